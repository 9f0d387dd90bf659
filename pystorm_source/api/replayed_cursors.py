"""A ``CursorSpout`` whose pages can be read again: its offsets have the cursors, and nothing is stored.

The driver reads pages to learn where they end, and names them in a partition of Spark's offset: a *segment*, whose
offsets count its rows. A task gets rows [start, end) of a segment, begins at the cursor of the page that has ``start``,
and reads the same rows. So the pages of a segment can be read by several tasks.

    segment 0: pages at cursors null, 100, 200     segment 1: pages at cursors 237, 337
              └─ read, and retired as soon as segment 1 is in Spark's offset

What the driver has read and Spark has not planned yet is kept here, and extended; a new driver reads it again. In a
run without end, a partition's next segment is made when the one before it is planned completely: its rows keep their
order, and limits are shared evenly among the source's partitions.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from pystorm_source.api.cursor_page import first_cursor_of, page_of, partitions_of
from pystorm_source.api.cursor_spout import CursorSpout
from pystorm_source.api.partitioned_spout import PartitionedSpout, Snapshot
from pystorm_source.api.polled_rows import fields_of, poll_seconds_of, values_of
from pystorm_source.errors import CheckpointError, DataLossError, given
from pystorm_source.options import Options, parse

MOST_PAGES = 100
"""Pages of a segment in a run without end. Too few: small micro-batches. Too many: long names in every offset."""
LOOK_SECONDS = 1.0
"""How long the driver reads pages at once in a run without end. Too short: small micro-batches, unless pages come
quickly. Too long: each micro-batch begins that much later."""


class ReplayOptions(Options, frozen=True, kw_only=True):
    """The reader's option that such a spout needs."""

    fail_on_data_loss: bool = msgspec.field(name="failOnDataLoss", default=True)


class Segment(NamedTuple):
    """Pages of one of the source's partitions, one behind the other. ``begins``, ``cursors``: for each page the number
    of rows before it, and its cursor as JSON text; ``end``: the cursor behind the last one; ``number``: of this
    segment, by partition."""

    partition: str
    number: int
    begins: tuple[int, ...]
    cursors: tuple[str, ...]
    end: str
    rows: int

    @property
    def name(self) -> str:
        """As a partition of Spark's offset."""
        pages = ",".join(f"[{begin},{cursor}]" for begin, cursor in zip(self.begins, self.cursors, strict=True))
        return f"[{json.dumps(self.partition)},{self.number},[{pages}],{self.end},{self.rows}]"

    def then(self, cursor: str, rows: int, end: str) -> "Segment":
        """With one more page."""
        return self._replace(
            begins=(*self.begins, self.rows), cursors=(*self.cursors, cursor), end=end, rows=self.rows + rows
        )


@lru_cache(maxsize=4096)
def segment_of(name: str) -> Segment:
    """Raises CheckpointError if no segment has this name."""
    try:
        partition, number, pages, end, rows = json.loads(name)
        begins = tuple(int(begin) for begin, _ in pages)
        return Segment(str(partition), int(number), begins, tuple(_text(at) for _, at in pages), _text(end), int(rows))
    except (TypeError, ValueError):
        raise CheckpointError(
            "this checkpoint has no cursors in its offsets: the spout was not `replayable` when it began. Leave that "
            f"out of the class, and set journal.path as before, or give the query a new checkpointLocation. Given: "
            f"{given(name)}",
            code="PYSTORM_CHECKPOINT_DAMAGED",
        ) from None


def _text(cursor: Any) -> str:
    return json.dumps(cursor, sort_keys=True, separators=(",", ":"))


class ReplayedCursors(PartitionedSpout):
    """``ReplayedCursors(cls)``: a replayable ``CursorSpout`` of class ``cls``."""

    bounded = False
    poll_seconds = 0.0  # it knows by itself which partition of the source is due

    def __init__(self, spout_cls: type[CursorSpout]):
        self._spout_cls = spout_cls

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        spout: Any = self._spout_cls()
        self._pystorm_lend(spout)
        spout._start(conf, context)
        self._spout = spout
        self.exit_on_exception = spout.exit_on_exception
        self._fields = fields_of(spout)
        self._fails = parse(ReplayOptions, conf).fail_on_data_loss
        self._poll_seconds = poll_seconds_of(spout)
        self._now = spout.clock.monotonic
        self._firsts: dict[str, Any] = {}  # partition → its first cursor, which may be the time of the first look
        self._ahead: dict[str, tuple[int, str, Segment]] = {}  # the number and end that it follows
        self._passed: dict[str, tuple[str, Any]] = {}  # end of a segment, and the cursor behind empty pages after it
        self._names: list[str] = []
        self._names_due = self._now()
        self._due: dict[str, float] = {}
        self._has_all = False
        self._rows: Iterator[Any] = iter(())

    def cleanup(self) -> None:
        self._spout.cleanup()

    # --- driver

    def snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str]) -> Snapshot:
        """Reads on in partitions that are due. Raises CheckpointError for offsets without cursors, and as ``read``."""
        segments = {name: segment_of(name) for name in known}
        last: dict[str, Segment] = {}
        for each in sorted(segments.values(), key=lambda each: each.number):
            last[each.partition] = each
        unread = {each.partition for name, each in segments.items() if known[name] < each.rows}
        self._look(last, unread)
        retired = {name for name, each in segments.items() if known[name] >= each.rows and each != last[each.partition]}
        ahead = {each.name: each for _, _, each in self._ahead.values()}
        heads = {name: (0, each.rows) for name, each in chain(segments.items(), ahead.items()) if name not in retired}
        return Snapshot(heads, {}, frozenset(retired))

    def _look(self, last: Mapping[str, Segment], unread: set[str]) -> None:
        for name, (number, end, _) in list(self._ahead.items()):
            before = last.get(name)
            if (number, end) != ((-1, "") if before is None else (before.number, before.end)):
                del self._ahead[name]  # it was planned
        now = self._now()
        if self._has_all:
            return
        if now >= self._names_due:
            self._names = list(partitions_of(self._spout))
            self._names_due = now + self._poll_seconds
        until, names = now + LOOK_SECONDS, self._names
        self._names = names[1:] + names[:1]  # the next one begins, if time is short
        failed: dict[str, Exception] = {}
        for name in names:
            try:
                if self._pystorm_is_frozen or name not in unread:
                    self._read_on(name, last.get(name), until)
            except Exception as error:
                if self._pystorm_is_frozen:
                    raise
                failed[name] = error
        if failed and not self._ahead:
            raise next(iter(failed.values()))
        for name, raised in failed.items():
            # What was found does not wait for the others. If it was no accident, this is raised as soon as it is read.
            self._due[name] = self._now() + max(self._poll_seconds, getattr(raised, "seconds", 0.0))
        self._has_all = self._pystorm_is_frozen

    def _read_on(self, name: str, last: Segment | None, until: float) -> None:
        """Reads pages of a partition behind its last segment, for as long as there are more."""
        number, end = (-1, "") if last is None else (last.number, last.end)
        segment = self._ahead[name][2] if name in self._ahead else Segment(name, number + 1, (), (), end, 0)
        cursor = json.loads(segment.end) if segment.end else self._first(name)
        if name in self._passed and self._passed[name][0] == segment.end:
            cursor = self._passed[name][1]
        before = None
        while not self._is_enough(name, segment, until):
            page = page_of(self._spout, name, cursor, before)
            before = len(page.rows)
            if page.rows:
                segment = segment.then(_text(cursor), before, _text(page.following))
                self._ahead[name] = number, end, segment
                self._passed.pop(name, None)
            else:
                self._passed[name] = segment.end, page.following
            cursor = page.following
            self._due[name] = self._now() + (0.0 if page.goes_on else self._poll_seconds)
            if not page.goes_on:
                return

    def _is_enough(self, name: str, segment: Segment, until: float) -> bool:
        """For now, in a run without end."""
        if self._pystorm_is_frozen:
            return False
        now = self._now()
        return now < self._due.get(name, now) or now >= until or len(segment.begins) >= MOST_PAGES

    def _first(self, name: str) -> Any:
        if name not in self._firsts:
            self._firsts[name] = first_cursor_of(self._spout, name)
        return self._firsts[name]

    def align(self, partition: str, start: int, end: int) -> int:
        """Returns the last page's begin before ``end``, if there is one: its rows need not be read twice."""
        segment = segment_of(partition)
        if end >= segment.rows:
            return end
        begin = segment.begins[bisect_right(segment.begins, end) - 1]
        return begin if begin > start else end

    def split(self, partition: str, start: int, end: int, parts: int) -> list[int]:
        """Begins of pages, near even cuts."""
        begins = [begin for begin in segment_of(partition).begins if start < begin < end]
        wanted = [start + (end - start) * part // parts for part in range(1, parts)]
        return sorted({begins[min(bisect_left(begins, each), len(begins) - 1)] for each in wanted} if begins else ())

    # --- task

    def open(self, partition: str, start: int, end: int) -> None:
        self._segment = segment_of(partition)
        page = bisect_right(self._segment.begins, start) - 1
        self._cursor = json.loads(self._segment.cursors[page])
        self._skips = start - self._segment.begins[page]
        self._offset, self._end = start, end
        self._rows = iter(())

    def next_tuple(self) -> Any:
        """Emits a row; reads the next page if there is none."""
        for row in self._rows:
            offset = self._offset
            self._offset += 1
            self.emit(values_of(row, self._fields), offset)
            return None
        if self._offset >= self._end:
            return False
        page = page_of(self._spout, self._segment.partition, self._cursor, None)
        if not page.rows and (page.following == self._cursor or not page.goes_on):
            return self._pass_over()
        self._cursor = page.following
        rows: Iterable[Any] = page.rows[self._skips : self._skips + self._end - self._offset]
        self._skips = max(0, self._skips - len(page.rows))
        self._rows = iter(rows)
        return None

    def _pass_over(self) -> Any:
        """Goes on at the segment's next page, which may lie behind empty ones."""
        begins = self._segment.begins
        number = bisect_left(begins, self._offset)
        if number == len(begins) or begins[number] != self._offset:
            return self._lose()
        cursor = json.loads(self._segment.cursors[number])
        if cursor == self._cursor:
            return self._lose()
        self._cursor, self._skips = cursor, 0
        return None

    def _lose(self) -> bool:
        """Ends the range without the rows that are gone."""
        error = DataLossError(
            f"{type(self._spout).__name__} is `replayable`, but rows {self._offset} to {self._end} (exclusive) behind "
            f"cursor {self._segment.cursors[0]} are gone: its source gave them before. Leave `replayable` out, and set "
            "journal.path; or set failOnDataLoss=false, which leaves them out. Given: "
            f"partition={self._segment.partition!r}, cursor={given(self._cursor)}",
            code="PYSTORM_DATA_LOST",
        )
        if self._fails:
            raise error
        self._any_logger().warning("%s", error)
        return False
