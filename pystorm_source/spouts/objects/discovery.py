"""What a driver plans and a task looks up: partitions, and which parts of objects their offsets mean."""

import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from pystorm_source.api.partitioned_spout import Snapshot
from pystorm_source.clock import Clock
from pystorm_source.errors.redaction import without_credentials
from pystorm_source.spouts.objects.checkpoint import LANE, check, without_list
from pystorm_source.spouts.objects.known import KnownObjects
from pystorm_source.spouts.objects.listing import Listing
from pystorm_source.spouts.objects.log import ObjectLog
from pystorm_source.spouts.objects.options import ObjectsOptions
from pystorm_source.spouts.objects.reading import is_divisible
from pystorm_source.spouts.objects.segment import Found, Part, Segment, named, parts_named, parts_of
from pystorm_source.spouts.objects.store import opened

_NAMED_PARTS, _NAMED_BYTES = 100, 32 << 20
"""Parts and bytes of a partition whose name says which objects it has. Too few: many tasks. Too many: few tasks."""
_MANY_NAMED = 2_000
"""Objects in offsets above which a warning says how to do better."""


class Discovery:
    """``Discovery(options, journal, clock, logger)``. ``journal``: the folder of lists; empty: names are partitions."""

    def __init__(self, options: ObjectsOptions, journal: str, clock: Clock, logger: logging.Logger):
        self._options = options
        self._journal = journal
        self._clock = clock
        self._logger = logger
        self._id = uuid.uuid4().hex  # of a query that has no list yet
        self._log: tuple[str, ObjectLog] | None = None
        self._known: tuple[str, int, KnownObjects] | None = None  # as of the next segment of that number
        self._listing: Listing | None = None
        self._has_warned = self._was_frozen = False

    def snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str], is_frozen: bool) -> Snapshot:
        """``is_frozen``: the first one has to have all there is."""
        if not self._journal:
            return self._named(known)
        id = str(state.get("list") or self._id)
        log = self._log_of(id)
        check(known, id, log, self._journal)
        last, objects = log.last, self._known_in(id)
        watermark, newest = ("", 0) if last is None else (last.watermark, last.newest)
        if is_frozen and not self._was_frozen:
            self._found().renew()
            self._was_frozen = True
        for found in self._found().new(objects, watermark, newest):
            try:
                last = Segment.behind(last, found, self._is_divisible)
                log.append(last)
                self._known = id, log.number, objects
            except BaseException:
                self._known = self._listing = None  # they have passed what the list has not
                raise
        ends = [] if last is None else last.ends
        return Snapshot({f"lane-{lane:02d}@{id}": (0, end) for lane, end in enumerate(ends) if end}, {"list": id})

    def parts(self, partition: str, start: int, end: int) -> list[Part]:
        """The parts of objects that a range has."""
        near = self._near(partition, start, end)
        within = (part.within(start, end, self._is_divisible(part.object.path)) for part in near)
        return [part for part in within if part is not None]

    def align(self, partition: str, start: int, end: int) -> int:
        """Returns where a part begins near ``end``: before it or, if none does, after it."""
        with self._patiently(partition):
            cuts = self._cuts(partition, start, end + 1)
            before = cuts[(cuts > start) & (cuts <= end)]
            if len(before):
                return int(before[-1])
            first = (part for part in self._near(partition, start, start + 1) if part.at <= start)
            return max(map(_behind, ([part] for part in first)), default=end)

    def split(self, partition: str, start: int, end: int, parts: int) -> list[int]:
        """At most ``parts - 1`` places where parts of objects begin, near even cuts."""
        with self._patiently(partition):
            cuts = self._cuts(partition, start, end)
        cuts = cuts[(cuts > start) & (cuts < end)]
        if not len(cuts):
            return []
        wanted = [start + (end - start) * number // parts for number in range(1, parts)]
        places = np.minimum(np.searchsorted(cuts, wanted), len(cuts) - 1)
        return sorted(set(cuts[places].tolist()))

    def _patiently(self, partition: str) -> AbstractContextManager[None]:
        """For ``align`` and ``split``, which the engine does not call again."""
        found = LANE.fullmatch(partition)
        return nullcontext() if found is None else self._log_of(found[2]).patiently()

    def _cuts(self, partition: str, start: int, end: int) -> Any:
        """Where parts begin between these offsets, and some around them."""
        found = LANE.fullmatch(partition)
        if found is None:
            return np.array([each.at for each in parts_named(partition)], np.int64)
        lane, log = int(found[1]), self._log_of(found[2])
        last = log.last
        end = min(end, last.ends[lane] if last is not None else end)
        positions = [segment.positions(lane) for segment in log.around(lane, start, end)]
        return np.concatenate([*positions, np.empty(0, np.int64)])

    def _near(self, partition: str, start: int, end: int) -> list[Part]:
        """The parts that begin in a range, and the one before them."""
        found = LANE.fullmatch(partition)
        if found is None:
            return parts_named(partition)
        lane, log = int(found[1]), self._log_of(found[2])
        return [part for segment in log.around(lane, start, end) for part in segment.parts(lane, start, end)]

    def _named(self, known: Mapping[str, int]) -> Snapshot:
        """Returns the known partitions, and new ones for new objects: the name of each says which objects it has."""
        objects = KnownObjects(self._options.overwritten == "read")
        if any(map(LANE.fullmatch, known)):
            raise without_list()
        there = {name: parts_named(name) for name in known}
        for parts in there.values():
            objects.add(each.object for each in parts)
        newest = max((each.object.modified for parts in there.values() for each in parts), default=0)
        self._found().renew()
        fresh = [each for found in self._found().new(objects, "", newest) for each in found]
        names = [*known, *map(named, self._grouped(sorted(fresh)))]
        if known and len(objects) > _MANY_NAMED and not self._has_warned:
            self._has_warned = True
            self._logger.warning(
                "offsets hold the names of %d objects, for there is no list of them: set option journal.path for a new "
                "query, and offsets stay small",
                len(objects),
            )
        return Snapshot({name: (0, _behind(there.get(name) or parts_named(name))) for name in names})

    def _grouped(self, found: Iterable[Found]) -> Iterator[list[tuple[Found, int, int]]]:
        group: list[tuple[Found, int, int]] = []
        size = 0
        for each in found:
            for begin, end in parts_of(each, self._is_divisible(each.path)):
                if group and (len(group) == _NAMED_PARTS or size + end - begin > _NAMED_BYTES):
                    yield group
                    group, size = [], 0
                group.append((each, begin, end))
                size += end - begin
        if group:
            yield group

    def _found(self) -> Listing:
        if self._listing is None:
            self._listing = Listing(opened(self._options.path, self._options), self._options, self._clock)
        return self._listing

    def _log_of(self, id: str) -> ObjectLog:
        if not self._journal:
            raise without_list()
        if self._log is None or self._log[0] != id:
            # The underscore: a list below the prefix is no data.
            folder = f"{self._journal.rstrip('/')}/_objects-{id}"

            def open(is_patient: bool) -> Any:
                return opened(folder, self._options, makes_folder=True, is_patient=is_patient)

            self._log = id, ObjectLog(open, without_credentials(folder))
        return self._log[1]

    def _known_in(self, id: str) -> KnownObjects:
        """Returns the objects of the list, which is read at the first look-up, or if another process has added some."""
        log = self._log_of(id)
        if self._known is None or self._known[:2] != (id, log.number):
            oldest = self._options.max_age_micros

            def earlier() -> tuple[int | None, Iterator[tuple[Any, Any, Any]]]:
                last = log.last
                since = None if oldest is None or last is None else last.newest - oldest
                return since, (segment.digests(since) for segment in log.segments())

            self._known = id, log.number, KnownObjects(self._options.overwritten == "read", earlier)
        return self._known[2]

    def _is_divisible(self, path: str) -> bool:
        return is_divisible(path, self._options)


def _behind(parts: Iterable[Part]) -> int:
    return max(each.at + max(1, each.end - each.begin) for each in parts)
