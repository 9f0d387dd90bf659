"""The list of all objects that a query knows, in a folder below ``journal.path``: it says what an offset means.

    journal.path / _objects-ID / 000000000007.arrow                       as it was appended
                               / 000000000000-000000000006-3120.arrow     joined ones: first and last number, rows

Segments are numbered, written once (the put fails if one is there), and never changed, so a position in a lane always
means the same bytes of the same object, for any driver and any task. If a driver is killed after a put, no offset names
the objects yet: the next driver continues after them. A driver that was wrongly taken for dead finds its number taken.
Small segments are joined: the joined one is written first, and a reader takes the widest.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cython_core.routing.failure_kinds import RetryLater
from pystorm_source.errors import CheckpointError, DataLossError
from pystorm_source.spouts.objects.places import Place, are_all, places_of
from pystorm_source.spouts.objects.segment import Segment
from pystorm_source.spouts.objects.store import asking

MOST_SMALL = 64
"""Segments that are not full, before they are joined. Too few: they are rewritten again and again. Too many: a restart
reads so many objects, and a task lists them."""
FULL = 50_000
"""Rows of a segment that is not joined again. Too few: a long list has many. Too many: a task reads them all."""
_MOST_KEPT = 12
"""Segments in memory. Too few: each range reads one. Too many: memory."""
_MOST_TRIES = 5


class ObjectLog:
    """``ObjectLog(opened, shown)``: of a folder, which messages call ``shown``. ``opened(is_patient)``: its store."""

    def __init__(self, opened: Callable[[bool], Any], shown: str):
        self._opened = opened
        self._store = opened(False)
        self._shown = shown
        self._may_return = True
        self._places: list[Place] = []
        self._kept: OrderedDict[Place, Segment] = OrderedDict()
        self._full: set[Place] = set()
        self._is_listed = False

    @property
    def last(self) -> Segment | None:
        """The newest segment; None if the list is empty."""
        self._list_once()
        return self._segment(self._places[-1]) if self._places else None

    def end(self, lane: int) -> int:
        """Returns the offset after the last object of a lane."""
        last = self.last
        return 0 if last is None else last.ends[lane]

    @property
    def number(self) -> int:
        """Number of the next segment."""
        self._list_once()
        return self._places[-1].last + 1 if self._places else 0

    def forget(self) -> None:
        """Makes the next call list the folder again."""
        self._is_listed = False

    @contextmanager
    def patiently(self) -> Iterator[None]:
        """Inside of it, requests to a busy store are retried for minutes, and then raise WorldError."""
        before = self._store
        self._store, self._may_return = self._opened(True), False
        try:
            yield
        finally:
            self._store, self._may_return = before, True

    def append(self, segment: Segment) -> None:
        """Driver. Puts a segment behind the last one. Raises RetryLater if another process has put one there."""
        from obstore.exceptions import AlreadyExistsError

        place = Place(self.number, self.number)
        with asking(self._shown, self._may_return):
            try:
                self._store.put(place.name, segment.to_bytes(), mode="create")
            except AlreadyExistsError:
                self._is_listed = False
                raise RetryLater(1.0, f"another process adds to {self._shown}") from None
        self._places.append(place)
        self._keep(place, segment)
        self._join()

    def segments(self) -> Iterator[Segment]:
        """Driver. Yields all segments, without keeping them in memory. Raises RetryLater if one is gone by then."""
        self._list_once()
        for place in self._places:
            try:
                segment = self._kept.get(place) or self._read(place)
            except FileNotFoundError:
                self.forget()
                raise RetryLater(1.0, f"another process changes {self._shown}") from None
            yield segment

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
        """Returns the segments of a range; None if the list ends before. Searches from the end, the usual place."""
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
        for _ in range(_MOST_TRIES):
            if self._is_listed:
                return
            with asking(self._shown, self._may_return):
                self._places = places_of(meta["path"] for page in self._store.list() for meta in page)
            self._is_listed = are_all(self._places)  # else some were joined while the folder was listed
        raise CheckpointError(
            f"parts of the list of known objects are gone: restore the folder of journal.path, which no lifecycle rule "
            f"may clean, or give the query a new checkpointLocation. Given: {self._shown!r}",
            code="PYSTORM_CHECKPOINT_DAMAGED",
        )

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
        place = Place(small[0].first, small[-1].last, len(joined.table))
        with asking(self._shown, self._may_return):
            self._store.put(place.name, joined.to_bytes())
        self._places[first:] = [place]
        self._keep(place, joined)
        with asking(self._shown, self._may_return):
            for each in small:
                self._store.delete(each.name)
                self._kept.pop(each, None)

    def _segment(self, place: Place) -> Segment:
        found = self._kept.get(place) or self._read(place)
        self._keep(place, found)
        return found

    def _read(self, place: Place) -> Segment:
        with asking(self._shown, self._may_return):
            return Segment.parse(self._store.get(place.name).bytes(), f"{self._shown}/{place.name}")

    def _keep(self, place: Place, segment: Segment) -> None:
        self._kept[place] = segment
        self._kept.move_to_end(place)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
