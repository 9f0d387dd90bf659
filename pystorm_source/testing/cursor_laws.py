"""The laws of every CursorSpout, each with its remedy and its check."""

import copy
import json
from collections.abc import Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

from pystorm_source.api.cursor_page import is_full
from pystorm_source.api.seen_keys import digest_of
from pystorm_source.errors import given
from pystorm_source.testing.law import Law, difference, law_of
from pystorm_source.testing.polled_trial import PICKLES, ROWS_FIT, PolledTrial
from pystorm_source.testing.spout_trial import MOST_PARTITIONS

LIMITS = (1, 7)
"""Rows of a page that are asked for, besides ``page_rows``."""
MOST_RESTARTS = 8
"""Cursors from which a fresh instance goes on. Fewer: a fault of one page is missed. More: the check takes longer."""

LAWS: list[Law] = []
"""In the order in which they are tried: the first that is broken is the most telling one."""


class Page(NamedTuple):
    """The rows between two cursors."""

    cursor: Any
    rows: list[Any]
    new: int  # of them; the others are known, if the spout remembers rows
    behind: Any
    goes_on: bool  # what the engine concludes: there is more now


class CursorTrial(PolledTrial):
    """One CursorSpout."""

    @cached_property
    def names(self) -> Sequence[str]:
        """The partitions that are read."""
        found = self.first(self.task().partitions)
        if isinstance(found, str) or not all(isinstance(name, str) for name in found):
            self.broken("", "partitions() to return names, each a str", given(found))
        if not found:
            self.broken("", "a source that has a partition", given(found))
        return list(found)[:MOST_PARTITIONS]

    @cached_property
    def pages(self) -> dict[str, list[Page]]:
        """Partition → all its pages, of one instance."""
        spout = self.task()
        pages = {name: self.first(partial(self.read, spout, name), f"partition {name!r}") for name in self.names}
        if not any(page.rows for each in pages.values() for page in each):
            self.broken("", "a source that holds something", f"no rows in the partitions {given(self.names)}")
        return pages

    def read(self, spout: Any, name: str, cursor: Any = ..., limit: int | None = None) -> list[Page]:
        """Pages from a cursor on (...: the first one), until there are no rows behind the last one."""
        spout.partition = name
        if limit is not None:
            spout.page_rows = limit
        at = self._json(name, spout.first_cursor(name), "first_cursor") if cursor is ... else cursor
        pages: list[Page] = []
        seen: set[bytes] = set()
        count = 0
        while count < self.most_rows:
            page = self._page(spout, name, at, len(pages[-1].rows) if pages else None, seen)
            if not page.new and page.behind == at:
                break
            pages.append(page)
            count += max(1, page.new)
            at = page.behind
        return pages

    def read_afresh(self, name: str, cursor: Any = ..., limit: int | None = None) -> list[Page]:
        """The same, by a new instance."""
        spout = self.task()
        pages = self.read(spout, name, cursor, limit)
        spout.cleanup()
        return pages

    def _page(self, spout: Any, name: str, cursor: Any, before: int | None, seen: set[bytes]) -> Page:
        place = f"partition {name!r}, cursor {given(cursor)}"
        spout._pystorm_has_more = None
        answer = spout.read(copy.deepcopy(cursor), spout.page_rows)
        if not isinstance(answer, tuple) or len(answer) != 2:
            self.broken(place, "read() to return its rows and the cursor behind them", given(answer))
        rows, behind = list(answer[0]), self._json(place, answer[1], "read")
        if rows and behind == cursor and not spout.remembered:
            self.broken(place, f"another cursor behind {len(rows)} rows", given(behind))
        told = spout._pystorm_has_more
        goes_on = is_full(len(rows), spout.page_rows, before) and behind != cursor if told is None else told
        new = len(rows)
        if spout.remembered:
            known = len(seen)
            seen.update(digest_of(spout.row_key(row)) for row in rows)
            new = len(seen) - known
        return Page(cursor, rows, new, behind, goes_on)

    def _json(self, place: str, cursor: Any, method: str) -> Any:
        """As it comes back after a restart."""
        try:
            return json.loads(json.dumps(cursor, allow_nan=False))
        except (TypeError, ValueError, RecursionError):
            self.broken(place, f"the cursor of {method}() to be a JSON value", given(cursor))

    def rows_of(self, pages: list[Page]) -> list[Any]:
        """All rows; known ones once, if the spout remembers rows."""
        rows = [row for page in pages for row in page.rows]
        if not self.driven.cls.remembered:
            return rows
        spout = self.task()
        return list({digest_of(spout.row_key(row)): row for row in reversed(rows)}.values())[::-1]

    def compare(self, place: str, expected: list[Any], found: list[Any]) -> None:
        """Raises ContractBroken if these are not the same rows."""
        differs = difference(expected, found)
        if differs is not None:
            self.broken(place, *differs)


@law_of(
    LAWS,
    "the cursor moves with the rows",
    "Return (rows, cursor): a JSON value, behind the last row; the cursor that read() got means that there is nothing "
    "more now. A cursor that stays where it is needs `remembered`",
)
def _check_moves(trial: CursorTrial) -> None:
    assert trial.pages


@law_of(
    LAWS,
    "a page that is not full is the last one",
    "Ask the source again in read() until `limit` rows are there, or nothing more: a query with availableNow ends "
    "behind a page that is not full",
)
def _check_full(trial: CursorTrial) -> None:
    for name, pages in trial.pages.items():
        for page, following in pairwise(pages):
            if following.new and not page.goes_on:
                place = f"partition {name!r}, cursor {given(page.behind)}"
                trial.broken(place, f"nothing behind a page of {len(page.rows)} rows", f"{following.new} rows")


@law_of(
    LAWS,
    "a cursor goes on in a fresh instance",
    "Compute rows and cursor from the arguments of read() and `partition` alone, not from attributes that an earlier "
    "call has left: after a restart there are none",
)
def _check_restart(trial: CursorTrial) -> None:
    for name, pages in trial.pages.items():
        for number in range(0, len(pages), max(1, len(pages) // MOST_RESTARTS)):
            place = f"partition {name!r}, cursor {given(pages[number].cursor)}, in a fresh instance"
            found = trial.read_afresh(name, pages[number].cursor if number else ...)
            trial.compare(place, trial.rows_of(pages[number:]), trial.rows_of(found))


@law_of(
    LAWS,
    "pages of another size give the same rows",
    "Let the cursor name the last row that was returned, also if there were more rows than `limit` or fewer",
)
def _check_limits(trial: CursorTrial) -> None:
    if trial.driven.cls.remembered:
        return  # pages that are smaller than what is read again never get ahead
    for name, pages in trial.pages.items():
        rows = trial.rows_of(pages)
        for limit in LIMITS:
            found = trial.rows_of(trial.read_afresh(name, limit=limit))
            count = min(len(rows), len(found)) if max(len(rows), len(found)) >= trial.most_rows else None
            trial.compare(f"partition {name!r}, limit {limit}", rows[:count], found[:count])


LAWS.append(PICKLES)


@law_of(LAWS, *ROWS_FIT)
def _check_rows(trial: CursorTrial) -> None:
    trial.run()


GROWS = "what is new lies behind the last cursor"
GROWS_REMEDY = "Let the cursor of the last page stay valid, and order the rows so that new ones come last"


def check_growth(trial: CursorTrial) -> None:
    """After ``grow``."""
    if trial.driven.cls.replayable:
        for name, pages in trial.pages.items():
            rows = trial.rows_of(pages)
            place = f"partition {name!r}, after grow(), from its first cursor: the spout is `replayable`"
            trial.compare(place, rows, trial.rows_of(trial.read_afresh(name))[: len(rows)])
    ends = {name: pages[-1].behind if pages else ... for name, pages in trial.pages.items()}
    ends |= {name: ... for name in trial.task().partitions() if name not in ends}
    if not any(page.new for name, end in ends.items() for page in trial.read_afresh(name, end)):
        trial.broken("", "rows behind the last cursors after grow()", "none")
