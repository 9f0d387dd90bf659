"""What a worker has counted, as its report says it: by task and component, while it runs and when it has."""

import json
import sys
import threading
import time
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cython_core.primitives.latency_histogram import LatencyHistogram
from pystorm_source import Bolt, Grouping
from pystorm_source.plan import compile_plan
from pystorm_source.records.stall_reasons import REASONS
from pystorm_source.worker import OutputPlan, Worker
from pystorm_source.worker.report import added
from tests.channel.reports.made_reports import wait_until
from tests.sizes import sized
from tests.worker.running import Numbers, Pass, rows, topology, worker_of

pytestmark = pytest.mark.timeout(60)

LATENCY = {"count", "total", "mean", "p50", "p95", "p99", "max", "buckets"}


SCHEDULED = pytest.mark.parametrize("scheduler", ["inline", "threads"])


@pytest.fixture
def chain():
    """Makes workers of a spout and a bolt, and stops them."""
    made = []

    def make(bolt=Pass, par=1, spout=Numbers, scheduler="inline", overrides=None):
        s = spout.spec(par=par)
        b = bolt.spec(inputs=[s], par=par)
        overrides = {"topology.scheduler": scheduler, **(overrides or {})}
        made.append(worker_of(topology(s=s, b=b), "b", overrides=overrides))
        return made[-1]

    yield make
    for worker in made:
        worker.stop()


def latency_of(*nanos):
    histogram = LatencyHistogram()
    for each in nanos:
        histogram.record(each)
    return {
        "count": histogram.count,
        "total": histogram.total / 1e9,
        "mean": histogram.total / histogram.count / 1e9 if nanos else 0.0,
        "p50": histogram.quantile(0.5) / 1e9,
        "p95": histogram.quantile(0.95) / 1e9,
        "p99": histogram.quantile(0.99) / 1e9,
        "max": histogram.maximum / 1e9,
        "buckets": [[low / 1e9, count] for low, count in histogram.buckets()],
    }


class Fan(Bolt):
    outputs = ["n long"]
    width = 1

    def process(self, tup):
        for _ in range(self.width):
            self.emit(tup.values)


@pytest.fixture
def quick_switches():
    """Threads take turns a hundred times as often as usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    yield
    sys.setswitchinterval(usual)


@SCHEDULED
def test_components_are_the_sum_of_their_tasks(chain, scheduler):
    worker = chain(par=3, scheduler=scheduler)
    rows(worker.run("s", "p", 0, 100))
    report = worker.report()
    assert json.loads(json.dumps(report)) == report
    for counts in report["components"].values():
        tasks = counts["tasks"].values()
        assert len(tasks) == 3
        for name in ("executed", "emitted", "transferred", "acked", "tuples_published", "batches_published"):
            assert counts[name] == sum(task[name] for task in tasks)
        assert counts["queue_high_mark"] == max(task["queue_high_mark"] for task in tasks)
        assert counts["latency"]["count"] == counts["executed"]
        assert counts["busy_seconds"] == pytest.approx(sum(task["busy_seconds"] for task in tasks))
    assert set(report["components"]["b"]["tasks"]) == {"4", "5", "6"}
    assert report["components"]["b"]["executed"] == report["components"]["s"]["emitted"] == 100


@SCHEDULED
def test_every_duration_has_its_place(chain, scheduler):
    worker = chain(scheduler=scheduler)
    rows(worker.run("s", "p", 0, 100))
    for counts in worker.report()["components"].values():
        (task,) = counts["tasks"].values()
        for found in (counts, task):
            assert set(found["stall_seconds"]) == set(REASONS)
            latency = found["latency"]
            assert set(latency) == LATENCY
            assert 0 < latency["p50"] <= latency["p95"] <= latency["p99"] <= latency["max"] <= latency["total"]
            assert latency["mean"] == pytest.approx(latency["total"] / latency["count"])
            assert latency["total"] <= found["busy_seconds"]


def test_batches_queues_and_refusals_are_counted(chain):
    worker = chain(overrides={"topology.producer.batch.size": 7, "topology.executor.receive.buffer.size": 16})
    rows(worker.run("s", "p", 0, 70))
    components = worker.report()["components"]
    assert components["s"]["tuples_published"] == components["s"]["transferred"] == 70
    assert components["s"]["batch_fill"] == 70 / components["s"]["batches_published"]
    assert 1 < components["s"]["batch_fill"] <= 7
    assert components["b"]["batch_fill"] == 0.0
    assert components["b"]["insert_failures"] > 0
    assert components["b"]["queue_population"] == 0
    assert components["b"]["queue_high_mark"] == 16
    assert components["s"]["stall_seconds"]["downstream_full"] > 0


def test_the_tuples_in_a_queue_are_seen_while_they_are_there(chain):
    populations = []

    class Looks(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            populations.append(worker.report()["components"]["b"]["queue_population"])

    worker = chain(Looks)
    rows(worker.run("s", "p", 0, 100))
    assert populations == list(reversed(range(100)))


@SCHEDULED
def test_a_report_from_another_thread_stops_nothing_and_never_goes_back(chain, quick_switches, scheduler):
    ended, found, raised = threading.Event(), [], []

    class Releases(Bolt):
        """Lets the other thread in, now and then until it has read, and reports metrics that are new."""

        outputs = ["n long"]

        def process(self, tup):
            if tup.values[0] % 50 == 0:
                self.report_metric(f"seen {tup.values[0]}", 1)
                time.sleep(0)
            if tup.values[0] % 4_000 == 2_000:
                read_before = len(found)
                wait_until(lambda: len(found) > read_before + 1 or raised, "a report from the other thread")
            self.emit(tup.values)

    worker = chain(Releases, scheduler=scheduler, overrides={"topology.executor.receive.buffer.size": 64})
    worker.start()

    def read():
        try:
            while not ended.is_set():
                found.append(json.loads(json.dumps(worker.report())))
                time.sleep(0)
        except Exception as error:
            raised.append(error)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        assert len(rows(worker.run("s", "p", 0, 20_000))) == 20_000
    finally:
        ended.set()
        reader.join()
    assert not raised
    executed = [report["components"]["b"]["executed"] for report in found]
    assert executed == sorted(executed)
    assert len(set(executed)) > 3, "the reader never saw the run under way"
    for report in found:
        spout, bolt = report["components"]["s"], report["components"]["b"]
        assert bolt["executed"] <= spout["emitted"]
        assert bolt["latency"]["count"] <= bolt["executed"]
        assert bolt["executed"] + bolt["queue_population"] <= spout["transferred"]
        assert sum(count for _, count in bolt["latency"]["buckets"]) == bolt["latency"]["count"]
    last = worker.report()["components"]["b"]
    assert last["executed"] == last["latency"]["count"] == last["emitted"] == 20_000
    assert len(worker.report()["metrics"]["b"]) == 400


def test_under_threads_a_bolt_waits_for_its_spout(chain):
    class Slow(Numbers):
        def next_tuple(self):
            time.sleep(0.002)
            return super().next_tuple()

    worker = chain(spout=Slow, scheduler="threads", overrides={"topology.producer.batch.size": 1})
    rows(worker.run("s", "p", 0, 50))
    components = worker.report()["components"]
    assert components["s"]["busy_seconds"] >= 0.1
    assert components["b"]["stall_seconds"]["input_empty"] >= 0.08
    assert components["b"]["busy_seconds"] < components["s"]["busy_seconds"]
    assert components["s"]["stall_seconds"]["downstream_full"] == 0.0


def test_under_threads_a_spout_waits_for_its_bolt(chain):
    class Slow(Pass):
        def process(self, tup):
            time.sleep(0.002)
            self.emit(tup.values)

    small = {"topology.producer.batch.size": 1, "topology.executor.receive.buffer.size": 2}
    worker = chain(Slow, scheduler="threads", overrides=small)
    rows(worker.run("s", "p", 0, 50))
    components = worker.report()["components"]
    assert components["b"]["busy_seconds"] >= 0.1
    assert components["s"]["stall_seconds"]["downstream_full"] >= 0.08
    assert components["s"]["busy_seconds"] < components["b"]["busy_seconds"]


@SCHEDULED
def test_nobody_stalls_between_two_runs(chain, scheduler):
    worker = chain(scheduler=scheduler)
    rows(worker.run("s", "p", 0, 50))
    before = worker.report()
    until = time.monotonic_ns() + 30_000_000
    while time.monotonic_ns() < until:  # the clock that the core reads goes on
        assert worker.report() == before


class Node(NamedTuple):
    """A bolt of a drawn topology: what it emits for each tuple, and (index of a component before it, grouping)."""

    par: int
    width: int
    inputs: list[tuple[int, str]]


@st.composite
def drawn_nodes(draw):
    nodes = []
    for index in range(draw(st.integers(1, 4))):
        inputs = draw(st.lists(st.integers(0, index), min_size=1, max_size=2, unique=True))
        kinds = st.sampled_from(["SHUFFLE", "fields", "ALL", "GLOBAL"])
        nodes.append(Node(draw(st.integers(1, 3)), draw(st.integers(0, 2)), [(i, draw(kinds)) for i in inputs]))
    return nodes


def expected_counts(nodes, emits, scheduler):
    """Component → (executed, emitted, transferred, published), by multiplying.

    Between threads, what goes to all of several tasks is published once for all of them.
    """
    emitted, executed, transferred, published = [emits], [None], [0], [0]
    for node in nodes:
        sent = [emitted[i] * (node.par if kind == "ALL" else 1) for i, kind in node.inputs]
        for (i, kind), count in zip(node.inputs, sent, strict=True):
            transferred[i] += count
            published[i] += emitted[i] if kind == "ALL" and scheduler == "threads" else count
        executed.append(sum(sent))
        emitted.append(executed[-1] * node.width)
        transferred.append(0)
        published.append(0)
    return list(zip(executed, emitted, transferred, published, strict=True))


@settings(max_examples=sized(40), deadline=None)
@given(
    nodes=drawn_nodes(),
    emits=st.integers(0, 150),
    queue=st.sampled_from([4, 8, 1024]),
    batch=st.sampled_from([1, 2]),
    scheduler=st.sampled_from(["inline", "threads"]),
    slow_nanos=st.sampled_from([0, 1 << 40]),
)
def test_counts_are_those_of_the_model_in_any_topology(nodes, emits, queue, batch, scheduler, slow_nanos):
    specs = [Numbers.spec()]
    for node in nodes:
        inputs = {}
        for i, kind in node.inputs:
            inputs[specs[i]["default"]] = Grouping.fields("n") if kind == "fields" else getattr(Grouping, kind)
        specs.append(type("Fan", (Fan,), {"width": node.width}).spec(inputs=inputs, par=node.par))
    overrides = {
        "topology.scheduler": scheduler,
        "topology.executor.receive.buffer.size": queue,
        "topology.producer.batch.size": batch,
    }
    made = topology(**{f"c{i}": spec for i, spec in enumerate(specs)})
    worker = Worker(compile_plan(made, overrides), OutputPlan(pa.schema([]), ()))
    for executor in worker.executors:
        executor.times.slow_nanos = slow_nanos
    try:
        for _ in worker.run("c0", "p", 0, emits):
            pass
        components = worker.report()["components"]
    finally:
        worker.stop()
    for i, (executed, emitted, transferred, published) in enumerate(expected_counts(nodes, emits, scheduler)):
        counts = components[f"c{i}"]
        assert counts["emitted"] == emitted
        assert counts["transferred"] == transferred
        assert counts["tuples_published"] == published
        assert counts["latency"]["count"] == counts["executed"]
        assert counts["queue_population"] == counts["failed"] == counts["errors"] == 0
        if executed is not None:
            assert counts["executed"] == counts["acked"] == executed
        for task in counts["tasks"].values():
            assert task["latency"]["count"] == task["executed"]
            assert sum(calls for _, calls in task["latency"]["buckets"]) == task["executed"]


@given(st.lists(st.integers(0, 10**13)), st.lists(st.integers(0, 10**13)))
def test_latencies_of_two_workers_are_those_of_all_calls(ones, others):
    both = added({"latency": latency_of(*ones)}, {"latency": latency_of(*others)})
    assert both == {"latency": latency_of(*ones, *others)}


def test_fills_of_two_workers_are_weighted():
    both = added(
        {"tuples_published": 10, "batches_published": 10, "batch_fill": 1.0},
        {"tuples_published": 90, "batches_published": 10, "batch_fill": 9.0},
    )
    assert both == {"tuples_published": 100, "batches_published": 20, "batch_fill": 5.0}
