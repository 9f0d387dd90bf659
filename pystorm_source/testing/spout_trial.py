"""One PartitionedSpout on trial: what to read from it, and how to compare what was read."""

from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any

from pystorm_source.api import ComponentSpec, Snapshot
from pystorm_source.api.snapshot_check import checked_snapshot
from pystorm_source.clock import Clock
from pystorm_source.errors import given
from pystorm_source.options import parse
from pystorm_source.testing.driven import Driven, Row
from pystorm_source.testing.law import difference
from pystorm_source.testing.trial import Trial

MOST_PARTITIONS = 8
"""Partitions to read. Fewer: misses a fault in just one partition. More: the check takes longer."""

MOST_BEHIND = 5_000
"""Offsets to read before the head of a spout that begins now, and so has no earlier ones."""
Rows = dict[str, list[Row]]


def driven_by(spec: ComponentSpec, config: Mapping[str, Any] | None, clock: Clock) -> Driven:
    driven = Driven(spec, config, clock)
    for table in driven.component.option_tables:
        parse(table, driven.conf)
    return driven


class SpoutTrial(Trial):
    """One PartitionedSpout."""

    def __init__(self, driven: Driven, most_offsets: int = 10_000):
        super().__init__(driven)
        self.most_offsets = most_offsets
        self._wholes: dict[str, Rows] = {}

    def snapshot(self) -> Snapshot:
        """What the driver sees before it has planned anything."""
        return self.driven.driver.snapshot({}, {})

    @cached_property
    def ranges(self) -> dict[str, tuple[int, int]]:
        """Partition → offsets to read, [start, end)."""
        driver = self.driven.driver
        heads = dict(checked_snapshot(self.driven.component.name, driver.snapshot({}, {})).heads)
        # Once a spout that begins now is known, it has earlier rows, too.
        known = {name: 0 for name, (earliest, latest) in heads.items() if earliest == latest > 0}
        for name, (earliest, latest) in driver.snapshot(known, {}).heads.items() if known else ():
            heads[name] = (max(earliest, latest - MOST_BEHIND), latest)
        read = sorted(name for name, (earliest, latest) in heads.items() if latest > earliest)
        if not read:
            self.broken("", "a source that holds something", f"the heads {given(heads)}")
        return {name: self._shortened(name, *heads[name]) for name in read[:MOST_PARTITIONS]}

    def _shortened(self, name: str, start: int, end: int) -> tuple[int, int]:
        if end - start <= self.most_offsets:
            return start, end
        cut = self.driven.driver.align(name, start, start + self.most_offsets)
        return start, cut if start < cut < end else end

    def whole(self, name: str) -> Rows:
        """Returns the rows of a partition's range, by stream; reads them once."""
        if name not in self._wholes:
            range = self.ranges[name]
            read = partial(self.driven.read_all, name, *range)
            self._wholes[name] = self.first(read, place_of(name, *range))
        return self._wholes[name]

    def compare(self, place: str, expected: Rows, found: Rows) -> None:
        """Compares rows. The offsets of batches are unknown, so only the values of their rows count."""
        for stream, rows in expected.items():
            differs = difference(rows, found.get(stream, []))
            if differs is not None:
                self.broken(place if stream == "default" else f"{place}, stream {stream!r}", *differs)


def place_of(name: str, start: int, end: int) -> str:
    return f"partition {name!r}, offsets [{start}, {end})"
