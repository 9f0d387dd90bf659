"""What a tuple costs by how many wait: open trees that a bolt holds, requests of an AsyncBolt. No Spark, CPU time."""

import asyncio
import gc
import time
from collections import deque
from typing import Any

from benchmarks.curves.curve import Cost, Costs, Curve
from benchmarks.harness.components import ConstSpoutAcked, OffsetSpout
from benchmarks.rungs.core import HOUR_MILLIS, NO_OUTPUT
from pystorm_source.api import AsyncBolt, Bolt, Topology, Tuple
from pystorm_source.plan import compile_plan
from pystorm_source.worker import Worker
from pystorm_source.worker.new_worker import new_worker

WARM_UP, MEASURED = 20_000, 200_000
REST = 100
"""Tuples behind the measured ones, so that none of these is the last one."""
HOUR = 3600


class Marks:
    """CPU seconds at the first and the last of the measured calls, which begin when ``most`` wait."""

    def __init__(self, most: int):
        self.first = most + WARM_UP
        self.last = self.first + MEASURED
        self.total = self.last + REST
        self.calls = 0
        self.seconds = 0.0

    def call(self) -> bool:
        """Whether there are calls behind this one."""
        self.calls += 1
        if self.calls == self.first:
            gc.collect()
            self.seconds -= time.process_time()
        elif self.calls == self.last:
            self.seconds += time.process_time()
        return self.calls < self.total


class HoldsTuples(Bolt):
    """Acks the oldest one of ``benchmark.most`` tuples when the next one comes."""

    auto_ack = False

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.most = conf["benchmark.most"]
        self.marks = Marks(self.most)
        self.held: deque[Tuple] = deque()

    def process(self, tup: Tuple) -> None:
        held = self.held
        held.append(tup)
        if self.marks.call():
            if len(held) >= self.most:
                self.ack(held.popleft())
            return
        while held:
            self.ack(held.popleft())


class OpenTrees(Topology):
    spout = ConstSpoutAcked.spec()
    last = HoldsTuples.spec(inputs=[spout])


class Awaits(AsyncBolt):
    """Each request waits for an answer, which the oldest one of ``benchmark.most`` gets when the next one begins."""

    async def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:  # type: ignore[override]
        self.most = conf["benchmark.most"]
        self.marks = Marks(self.most)
        self.waiting: deque[asyncio.Future[None]] = deque()

    async def process(self, tup: Tuple) -> None:  # type: ignore[override]
        waiting = self.waiting
        answer = asyncio.get_running_loop().create_future()
        waiting.append(answer)
        if self.marks.call():
            if len(waiting) >= self.most:
                waiting.popleft().set_result(None)
        else:
            while waiting:
                waiting.popleft().set_result(None)
        await answer


class OpenRequests(Topology):
    spout = OffsetSpout.spec()
    last = Awaits.spec(inputs=[spout])


def nanos_of_tree(trees: int) -> Costs:
    """Of a tuple that is emitted, waits behind so many, and is acked."""
    config = {"topology.max.spout.pending": 2 * trees + 1000, "topology.message.timeout.secs": HOUR}
    worker = _started(OpenTrees, {"benchmark.most": trees, **config})
    marks = _marks(worker)
    for _ in worker.run_slice("spout", marks.total, HOUR_MILLIS):
        pass
    worker.stop()
    return {"cpu": 1e9 * marks.seconds / MEASURED}


def micros_of_request(requests: int) -> Costs:
    """Of a request that waits behind so many."""
    config = {"topology.async.max.pending": requests + 10, "topology.async.request.timeout.secs": HOUR}
    worker = _started(OpenRequests, {"benchmark.most": requests, **config})
    marks = _marks(worker)
    for _ in worker.run("spout", "0", 0, marks.total):
        pass
    worker.stop()
    return {"cpu": 1e6 * marks.seconds / MEASURED}


def _started(topology: type[Topology], config: dict[str, Any]) -> Worker:
    worker = new_worker(compile_plan(topology, config), NO_OUTPUT)
    worker.start()
    return worker


def _marks(worker: Worker) -> Marks:
    (marks,) = [executor.instance.marks for executor in worker.executors if hasattr(executor.instance, "marks")]
    assert isinstance(marks, Marks)
    return marks


CURVES = (
    Curve(
        "open-trees",
        "trees that wait for their ack",
        (100, 1_000, 10_000, 100_000, 1_000_000),
        (100, 10_000),
        {"cpu": Cost("ns of a tuple")},
        nanos_of_tree,
    ),
    Curve(
        "requests",
        "requests of an AsyncBolt in flight",
        (10, 100, 1_000, 10_000, 50_000),
        (10, 1_000),
        {"cpu": Cost("us of a request")},
        micros_of_request,
    ),
)
