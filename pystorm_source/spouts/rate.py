"""Tuples at a steady rate, like Spark's rate source, but every one a function of its offset."""

import datetime
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Meta

from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.partitioned_spout import Snapshot
from pystorm_source.api.spec_config import spec_config
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.options import Options, parse
from pystorm_source.spouts.either_way import EitherWaySpout

BATCH_ROWS = 16_384
"""Rows of a batch. Too small: bolts and Spark take time for each batch. Too large: it leaves the processor's cache."""
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class RateOptions(Options, frozen=True, kw_only=True):
    """Options of RateSpout; Spark's rate source has the first two."""

    further = ("startTime",)

    rows_per_second: Annotated[
        int, Meta(ge=1, le=1_000_000_000, description="Rows per second, over all partitions.")
    ] = msgspec.field(name="rowsPerSecond", default=1)
    num_partitions: Annotated[int, Meta(ge=1, le=100_000, description="Partitions that get the rows in turn.")] = (
        msgspec.field(name="numPartitions", default=1)
    )
    start_time: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Time of value 0: seconds since 1970 (UTC). Unset: 1970; a new query begins at present."),
    ] = msgspec.field(name="startTime", default=None)


class RateSpout(EitherWaySpout):
    """Rows ``timestamp``, ``value`` at a steady rate. Spark's rate source, but every row is a function of its offset.

    Nothing is remembered: the row of offset ``o`` in partition ``p`` of ``n`` is::

        value     = o * n + p
        timestamp = startTime + value / rowsPerSecond

    so drivers, tasks and restarts agree by construction. With ``startTime`` a new query begins at that second, with
    value 0. Without it values count from 1970, and a new query begins now, with a large value.

    Trap: rate and number of partitions of one checkpoint must not change: offsets would mean other rows.

    Example:
        >>> from pystorm_source.spouts import RateSpout
        >>> from pystorm_source.testing import ManualClock, run_topology
        >>> class Beats(Topology):
        ...     beats = RateSpout.spec(rows_per_second=2, start_time=1000)
        >>> result = run_topology(Beats, clock=ManualClock(now=1001))
        >>> [value for timestamp, value in result.rows("beats")]
        [0, 1, 2]
    """

    Options = RateOptions
    outputs = ["timestamp timestamp", "value long"]
    clock: Clock = SystemClock()
    bounded = False
    poll_seconds = 0.0  # the clock is asked, and each row should leave when its time has come

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        par: int | dict[str, int] | None = None,
        config: dict[str, Any] | None = None,
        *,
        rows_per_second: int | None = None,
        num_partitions: int | None = None,
        start_time: int | None = None,
    ) -> ComponentSpec:
        """This spout for a Topology; arguments win over the reader's options.

        Args:
            name (str): as in ``Spout.spec``.
            par (int | dict[str, int]): as in ``Spout.spec``.
            config (dict): as in ``Spout.spec``.
            rows_per_second (int): ``rowsPerSecond``: rows a second, all partitions together. Defaults to 1.
            num_partitions (int): ``numPartitions``: partitions that the rows are dealt to in turn. Defaults to 1.
            start_time (int): ``startTime``: second since 1970 (UTC) of value 0. Defaults to None: see above.

        Returns:
            ComponentSpec: what an attribute of the Topology is set to.
        """
        given = {"rowsPerSecond": rows_per_second, "numPartitions": num_partitions, "startTime": start_time}
        return super().spec(name=name, par=par, config=spec_config(cls.config, config, given))

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        options = parse(RateOptions, conf)
        self._rate = options.rows_per_second
        self._count = options.num_partitions
        self._fixed = options.start_time is not None
        self._first_second = options.start_time or 0
        self._begins: dict[str, int] = {}

    def partitions(self) -> list[str]:
        return [str(index) for index in range(self._count)]

    def latest(self, partition: str) -> int:
        """Driver. The number of rows of this partition whose time has come.

        Returns:
            int: one past the last offset that can be read now.
        """
        passed = round(self.clock.wall() * 1_000_000) - self._first_second * 1_000_000
        values = passed * self._rate // 1_000_000 + 1
        return max(0, -((int(partition) - values) // self._count))

    def snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str]) -> Snapshot:
        """Driver. Known partitions reach back to offset 0; without ``startTime`` one that is new begins now."""
        heads = {}
        for name in self.partitions():
            latest = self.latest(name)
            begin = 0 if self._fixed or name in known else self._begins.setdefault(name, latest)
            # Remembered: before the first rows of a query no offset names the partitions, and a begin that moved with
            # the clock would never be passed.
            heads[name] = (begin, latest)
        return Snapshot(heads, state)

    def open(self, partition: str, start: int, end: int) -> None:
        first = int(partition)
        self._offsets = iter(range(start, end))
        self._values = range(start * self._count + first, end * self._count + first, self._count)
        self._left = iter(self._values)

    def next_tuple(self) -> Any:
        for value in self._left:
            # Whole microseconds by integers: a float of seconds since 1970 has only about a quarter of one left.
            passed = datetime.timedelta(0, self._first_second, value * 1_000_000 // self._rate)
            self.emit((EPOCH + passed, value), next(self._offsets))
            return None
        return False

    def next_batch(self) -> pa.RecordBatch | None:
        """The rows of ``next_tuple``, some thousand at a time. The engine calls it instead, if it may.

        Returns:
            pyarrow.RecordBatch | None: the next rows of the range; None at its end.
        """
        now, self._values = self._values[:BATCH_ROWS], self._values[BATCH_ROWS:]
        if not now:
            return None
        values = np.arange(now.start, now.stop, now.step)
        # In two parts: a million times a value may be more than 64 bits hold.
        seconds, rest = np.divmod(values, self._rate)
        micros = (self._first_second + seconds) * 1_000_000 + rest * 1_000_000 // self._rate
        stamps = pa.array(micros).view(pa.timestamp("us", tz="UTC"))
        return pa.RecordBatch.from_arrays([stamps, pa.array(values)], names=["timestamp", "value"])
