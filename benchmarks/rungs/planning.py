"""What planning costs per trigger: ``latestOffset`` and ``partitions`` of a query with many partitions, without Spark.

    trigger-N          N partitions of one spout, most of which have moved a little since the last trigger
    trigger-N-limited  the same with ``maxOffsetsPerTrigger``: half of what waits
    trigger-N-controlled    the same with the controller, which hears nothing from tasks and goes by time
    pickle-N           pickling the N input partitions, one by one, as pyspark does it

A trigger is what pyspark's runner makes of it: ``latestOffset`` of the start as ``json.loads`` gives it, ``json.dumps``
of the answer, ``json.loads`` of both ends and ``partitions`` between them. The spout's ``snapshot`` answers a dict that
exists already, so that it costs nothing. ``processor_ms`` is the median of the processor time: if it is far below
the value, others have used the machine.
"""

import gc
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from pyspark.sql.datasource import InputPartition
from pyspark.worker_util import pickleSer

from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import Record, record, rounded
from pystorm_source.api import PartitionedSpout, Snapshot, Topology
from pystorm_source.clock import SystemClock
from pystorm_source.plan import compile_plan
from pystorm_source.source.driver.stream_reader import PystormStreamReader
from pystorm_source.source.request import ReadRequest

CLOCK = SystemClock()
SIZES = (100, 1_000, 10_000, 100_000)
QUICK_SIZES = (100, 1_000)
ASKED_MILLIS: Mapping[int, float] = MappingProxyType({10_000: 50.0, 100_000: 500.0})
MOVING = 0.9
"""The share of the partitions that have moved since the last trigger."""
STEP = 100
"""By how many offsets at most."""


class WorldSpout(PartitionedSpout):
    """Its world is what ``heads`` of the class holds."""

    outputs = ["n long"]
    heads: Mapping[str, tuple[int, int]] = MappingProxyType({})

    def snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str]) -> Snapshot:
        return Snapshot(WorldSpout.heads)

    def open(self, partition: str, start: int, end: int) -> None:
        raise NotImplementedError("nothing is read here")

    def next_tuple(self) -> Any:
        raise NotImplementedError("nothing is read here")


class Planned(Topology):
    """Spout → rows."""

    lines = WorldSpout.spec()


class Cost(NamedTuple):
    """Seconds on the clock and of the processor."""

    elapsed: float
    processor: float

    @classmethod
    def of(cls, work: Callable[[], Any]) -> "Cost":
        """What ``work`` takes, with a heap that was just collected."""
        gc.collect()
        used, began = time.process_time(), CLOCK.monotonic()
        work()
        return cls(CLOCK.monotonic() - began, time.process_time() - used)


class Query:
    """Spark's side of a query over a world of ``size`` partitions. ``limit``: ``maxOffsetsPerTrigger``. ``controlled``:
    whether the controller measures micro-batches out."""

    def __init__(self, size: int, limit: int | None = None, controlled: bool = False):
        given = {} if limit is None else {"maxoffsetspertrigger": str(limit)}
        request = ReadRequest.of(given, "planning", compile_plan(Planned))
        self._reader = PystormStreamReader(request, request.rows.output(request.rows.schema()), controlled=controlled)
        self._limit = self._reader.getDefaultReadLimit()
        self._random = random.Random(size)
        self._heads = {f"part-{number:06d}": (0, self._random.randrange(10**9)) for number in range(size)}
        self._at = json.dumps(self._reader.initialOffset())
        WorldSpout.heads = self._heads
        self.trigger()

    def move(self) -> None:
        """Something new in most partitions."""
        chance = self._random
        self._heads = WorldSpout.heads = {
            name: (first, head + chance.randint(1, STEP) if chance.random() < MOVING else head)
            for name, (first, head) in self._heads.items()
        }

    def trigger(self) -> Sequence[InputPartition]:
        """Plans a micro-batch. Raises RuntimeError if nothing was planned."""
        end = json.dumps(self._reader.latestOffset(json.loads(self._at), self._limit))
        planned = self._reader.partitions(json.loads(self._at), json.loads(end))
        self._at = end
        if not planned:
            raise RuntimeError("a trigger planned nothing")
        return planned


def run(settings: Settings) -> Iterator[Record]:
    """Each case by itself: a query's triggers, one after another, the first few not counted."""
    for size in QUICK_SIZES if settings.quick else SIZES:
        asked = ASKED_MILLIS.get(size)
        runs = settings.runs_of(15 if size >= 100_000 else 40)
        for kind, limit, controlled in (
            ("", None, False),
            ("-limited", size * STEP // 4, False),
            ("-controlled", None, True),
        ):
            if settings.wants(case := f"trigger-{size}{kind}"):
                yield _told(case, _triggers(Query(size, limit, controlled), runs), size, asked)
        if settings.wants(case := f"pickle-{size}"):
            yield _told(case, _pickles(Query(size), runs), size)


def _told(case: str, costs: list[Cost], size: int, asked: float | None = None) -> Record:
    processor = statistics.median(cost.processor for cost in costs) * 1000
    return record(
        "planning",
        case,
        [cost.elapsed * 1000 for cost in costs],
        "ms",
        asked=asked,
        less_is_better=True,
        partitions=size,
        processor_ms=rounded(processor),
    )


def _triggers(query: Query, runs: int) -> list[Cost]:
    costs = []
    for _ in range(2 + runs):
        query.move()
        costs.append(Cost.of(query.trigger))
    return costs[2:]


def _pickles(query: Query, runs: int) -> list[Cost]:
    query.move()
    planned = query.trigger()
    return [Cost.of(lambda: [pickleSer.dumps(partition) for partition in planned]) for _ in range(runs)]


if __name__ == "__main__":
    import cProfile
    import pstats
    import sys

    query = Query(int(sys.argv[1]))
    query.move()
    with cProfile.Profile() as profile:
        query.trigger()
    pstats.Stats(profile).sort_stats("tottime").print_stats(20)
