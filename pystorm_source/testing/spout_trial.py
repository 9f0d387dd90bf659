"""One PartitionedSpout on trial: what is read of it, and how what was found is compared."""

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, NoReturn

from pystorm_source.api import ComponentSpec, Snapshot
from pystorm_source.api.snapshot_check import checked_snapshot
from pystorm_source.clock import Clock
from pystorm_source.errors import ContractBroken, TupleFailed, UsageError, given
from pystorm_source.errors.user_frames import trim
from pystorm_source.options import parse
from pystorm_source.testing.driven import Driven, Row
from pystorm_source.testing.law import (
    Law,
    broken,
    cause_of,
    difference,
    law_of_error,
    own_failure,
    raised,
)

MOST_PARTITIONS = 8
"""Partitions that are read. Fewer: a fault of one partition alone is missed. More: the check takes longer."""

MOST_BEHIND = 5_000
"""Offsets before the head that are read of a spout that begins now, and so has no earlier ones."""
Rows = dict[str, list[Row]]


def driven_by(spec: ComponentSpec, config: Mapping[str, Any] | None, clock: Clock) -> Driven:
    driven = Driven(spec, config, clock)
    for table in driven.component.option_tables:
        parse(table, driven.conf)
    return driven


class SpoutTrial:
    """One spout over a source that stands still."""

    def __init__(self, driven: Driven, most_offsets: int = 10_000):
        self.driven = driven
        self.most_offsets = most_offsets
        self._law: Law | None = None
        self._wholes: dict[str, Rows] = {}

    def judge(self, law: Law) -> None:
        """Raises ContractBroken if the spout breaks this law, or raises while it is looked at; TupleFailed if it raises
        when it is first asked or read."""
        self._law = law
        try:
            law.check(self)
        except (ContractBroken, TupleFailed, UsageError):
            raise
        except Exception as error:
            self._raise("", "no exception", raised(error), error)

    def broken(self, place: str, expected: str, found: str) -> NoReturn:
        self._raise(place, expected, found, None)

    def _raise(self, place: str, expected: str, found: str, cause: BaseException | None) -> NoReturn:
        assert self._law is not None
        says, remedy = (law_of_error(cause) if cause is not None else None) or (self._law.says, self._law.remedy)
        own = None if cause is None else trim(cause_of(cause))
        raise broken(self.driven.cls.__name__, says, place, expected, found, remedy) from own

    def snapshot(self) -> Snapshot:
        """What the driver sees before it has planned anything."""
        return self.driven.driver.snapshot({}, {})

    def first(self, call: Callable[[], Any], place: str = "") -> Any:
        """The result of a first call: what the spout raises there, as TupleFailed, breaks no law."""
        try:
            return call()
        except Exception as error:
            if isinstance(error, ContractBroken) or law_of_error(error) is not None:
                raise
            failed = own_failure(self.driven.component.name, error, place)
            raise failed from failed.__cause__

    @cached_property
    def ranges(self) -> dict[str, tuple[int, int]]:
        """Partition → offsets to read, [start, end)."""
        driver = self.driven.driver
        heads = dict(checked_snapshot(self.driven.component.name, driver.snapshot({}, {})).heads)
        # Spouts that begin now have rows behind them once they are known.
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
        """The rows of a partition's range, by stream; read once."""
        if name not in self._wholes:
            range = self.ranges[name]
            read = partial(self.driven.read_all, name, *range)
            self._wholes[name] = self.first(read, place_of(name, *range))
        return self._wholes[name]

    def compare(self, place: str, expected: Rows, found: Rows) -> None:
        """Offsets of batches are unknown: their rows are compared by values alone."""
        for stream, rows in expected.items():
            differs = difference(rows, found.get(stream, []))
            if differs is not None:
                self.broken(place if stream == "default" else f"{place}, stream {stream!r}", *differs)


def place_of(name: str, start: int, end: int) -> str:
    return f"partition {name!r}, offsets [{start}, {end})"
