"""One page of a ``CursorSpout``: what ``read`` has returned, checked."""

import copy
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pystorm_source.errors import TopologyError, given

LEAST_FULL = 10
"""If two pages in a row have the same number of rows, and at least this many, the second counts as full even if it has
fewer rows than were asked for. Too small: a source with a new row every moment is asked without a pause. Too large: a
source that gives smaller pages than it is asked for gives one every ``poll_seconds``."""


class Page(NamedTuple):
    """``following``: the cursor after the rows, as it is after a restart; ``goes_on``: whether there is more now."""

    rows: list[Any]
    following: Any
    goes_on: bool


def page_of(spout: Any, partition: str, cursor: Any, before: int | None) -> Page:
    """Calls ``read``. ``before``: the number of rows of the page before, if there was one. A page counts whole or not
    at all: what a generator raises is raised here.

    Raises TopologyError for an answer that makes no sense.
    """
    spout.partition = partition
    spout._pystorm_has_more = None
    # A copy: a cursor that read() alters before it raises would pass over the rows of that page.
    with spout._pystorm_repeatable():
        answer: Any = spout.read(copy.deepcopy(cursor), spout.page_rows)
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[0], Iterable):
        raise wrong(spout, "read() returns its rows and the cursor behind them", answer)
    with spout._pystorm_repeatable():
        rows = list(answer[0])
    following = as_json(spout, answer[1], "read")
    if rows and following == cursor and not spout.remembered:
        raise wrong(
            spout,
            "read() returns another cursor behind rows than before them, or they would be read for ever; a cursor "
            "that stays where it is needs `remembered`, so that known rows are dropped",
            following,
        )
    told = spout._pystorm_has_more
    goes_on = is_full(len(rows), spout.page_rows, before) and following != cursor if told is None else told
    return Page(rows, following, goes_on)


def first_cursor_of(spout: Any, partition: str) -> Any:
    """Raises TopologyError if it is not JSON."""
    spout.partition = partition
    with spout._pystorm_repeatable():
        cursor = spout.first_cursor(partition)
    return as_json(spout, cursor, "first_cursor")


def partitions_of(spout: Any) -> Sequence[str]:
    """Raises TopologyError if they are no names."""
    with spout._pystorm_repeatable():
        found: Any = spout.partitions()
        is_list = isinstance(found, Iterable) and not isinstance(found, str)
        names = list(found) if is_list else []
    if not is_list or not all(isinstance(name, str) for name in names):
        raise wrong(spout, "partitions() returns a list of names", found)
    return names


def is_full(count: int, wanted: int, before: int | None) -> bool:
    """Whether there may be more rows behind a page of so many. One with fewer than were asked for is full, too, if the
    page before had as many: the source gives no more at once."""
    return count >= wanted or (count >= LEAST_FULL and count == before)


def as_json(spout: Any, cursor: Any, method: str) -> Any:
    """Returns the cursor as it is after a restart: a tuple is then a list."""
    try:
        return json.loads(json.dumps(cursor, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise wrong(spout, f"the cursor of {method}() is a JSON value, such as a str or an int", cursor) from None


def wrong(spout: Any, what: str, value: Any) -> TopologyError:
    return TopologyError(f"{type(spout).__name__}: {what}. Given: {given(value)}", code="PYSTORM_INVALID_COMPONENT")
