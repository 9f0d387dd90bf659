"""The list of all objects that a query knows, in a folder below ``journal.path``: it says what an offset means.

    journal.path / objects-ID / 000000000007.arrow                       as it was appended
                              / 000000000000-000000000006-3120.arrow     joined ones: first and last number, rows

Segments are numbered, put there once (a put that fails if there is one), and never changed, so a position in a lane
means the same bytes of the same object for ever, for any driver and any task. A driver that is killed behind a put has
found objects that no offset names yet: the next one goes on behind them. One that was taken for dead and is not finds
its number taken. Small segments are joined: the joined one is put there first, and a reader takes the widest.
"""

import re
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, NamedTuple

from cython_core.routing.failure_kinds import RetryLater
from pystorm_source.errors import DataLossError
from pystorm_source.spouts.objects.segment import Segment
from pystorm_source.spouts.objects.store import asking

_NAME = re.compile(r"(\d{12})(?:-(\d{12})-(\d+))?\.arrow")
MOST_SMALL = 64
"""Segments that are not full, before they are joined. Too few: they are written again and again. Too many: a restart
reads so many objects, and a task lists them."""
FULL = 50_000
"""Rows of a segment that is joined no more. Too few: a long list has many. Too many: a task reads the whole of one."""
_MOST_KEPT = 12
"""Segments in memory. Too few: each range reads one. Too many: memory."""
_MOST_TRIES = 5


class _Place(NamedTuple):
    """A segment in the folder. ``rows``: of a joined one."""

    first: int
    last: int
    rows: int = 0

    @classmethod
    def of_name(cls, name: str) -> "_Place | None":
        found = _NAME.fullmatch(name)
        return None if found is None else cls(int(found[1]), int(found[2] or found[1]), int(found[3] or 0))

    @property
    def name(self) -> str:
        return f"{self.first:012d}{f'-{self.last:012d}-{self.rows}' if self.rows else ''}.arrow"


class ObjectLog:
    """``ObjectLog(store, shown)``: of this folder, which messages call ``shown``."""

    def __init__(self, store: Any, shown: str):
        self._store = store
        self._shown = shown
        self._places: list[_Place] = []
        self._kept: OrderedDict[_Place, Segment] = OrderedDict()
        self._full: set[_Place] = set()
        self._is_listed = False

    @property
    def last(self) -> Segment | None:
        """The newest segment; None if there is none."""
        self._list_once()
        return self._segment(self._places[-1]) if self._places else None

    def append(self, segment: Segment) -> None:
        """Driver. Puts a segment behind the last one. Raises RetryLater if another process has put one there."""
        from obstore.exceptions import AlreadyExistsError

        self._list_once()
        number = self._places[-1].last + 1 if self._places else 0
        place = _Place(number, number)
        with asking(self._shown):
            try:
                self._store.put(place.name, segment.to_bytes(), mode="create")
            except AlreadyExistsError:
                self._is_listed = False
                raise RetryLater(1.0, f"another process adds to {self._shown}") from None
        self._places.append(place)
        self._keep(place, segment)
        self._join()

    def segments(self) -> Iterator[Segment]:
        """Driver. All of them, which are not kept in memory."""
        self._list_once()
        for place in self._places:
            yield self._kept.get(place) or self._read(place)

    def around(self, lane: int, start: int, end: int) -> Iterator[Segment]:
        """The segments that have parts of a lane in [start, end). Raises DataLossError if they are not there."""
        if start >= end:
            return
        for attempt in range(_MOST_TRIES):
            try:
                self._list_once()
                found = self._covering(lane, start, end)
                if found is not None:
                    yield from found
                    return
            except FileNotFoundError:  # joined meanwhile
                if attempt + 1 == _MOST_TRIES:
                    break
            self._is_listed = False
        raise DataLossError(
            f"the list of known objects ends before offset {end} of lane {lane}: journal.path must name the folder "
            f"that this query has used so far, for the driver and every executor. Given: {self._shown!r}",
            code="PYSTORM_DATA_LOST",
        )

    def _covering(self, lane: int, start: int, end: int) -> list[Segment] | None:
        """None if the list, as it was listed, ends before. Looked for from the end: there most ranges are."""
        if not self._places or self._segment(self._places[-1]).ends[lane] < end:
            return None
        low, high, step = 0, len(self._places) - 1, 1
        while high > 0 and self._segment(self._places[max(0, high - step)]).ends[lane] > start:
            high, step = max(0, high - step), 2 * step
        low = max(0, high - step)
        while low < high:
            middle = (low + high) // 2
            if self._segment(self._places[middle]).ends[lane] > start:
                high = middle
            else:
                low = middle + 1
        found = []
        for place in self._places[low:]:
            found.append(self._segment(place))
            if found[-1].ends[lane] >= end:
                break
        return found

    def _list_once(self) -> None:
        if self._is_listed:
            return
        with asking(self._shown):
            names: list[str] = [meta["path"] for page in self._store.list() for meta in page]
        places = sorted(filter(None, map(_Place.of_name, names)), key=lambda each: (each.first, -each.last))
        self._places = []
        for place in places:
            if not self._places or place.last > self._places[-1].last:
                self._places.append(place)
        self._is_listed = True

    def _join(self) -> None:
        """Joins what is not full, if there is much of it."""
        behind = max(
            (i for i, each in enumerate(self._places, 1) if each.rows >= FULL or each in self._full), default=0
        )
        if len(self._places) - behind <= MOST_SMALL:
            return
        segments = [self._segment(each) for each in self._places[behind:]]
        self._full.update(
            place for place, each in zip(self._places[behind:], segments, strict=True) if len(each.table) >= FULL
        )
        first = max((i for i, each in enumerate(self._places, 1) if each in self._full), default=behind)
        small = self._places[first:]
        if len(small) < 2:
            return
        joined = Segment.joined(segments[first - behind :])
        place = _Place(small[0].first, small[-1].last, len(joined.table))
        with asking(self._shown):
            self._store.put(place.name, joined.to_bytes())
        self._places[first:] = [place]
        self._keep(place, joined)
        with asking(self._shown):
            for each in small:
                self._store.delete(each.name)
                self._kept.pop(each, None)

    def _segment(self, place: _Place) -> Segment:
        found = self._kept.get(place) or self._read(place)
        self._keep(place, found)
        return found

    def _read(self, place: _Place) -> Segment:
        with asking(self._shown):
            return Segment.parse(self._store.get(place.name).bytes(), f"{self._shown}/{place.name}")

    def _keep(self, place: _Place, segment: Segment) -> None:
        self._kept[place] = segment
        self._kept.move_to_end(place)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
