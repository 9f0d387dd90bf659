"""What a worker has counted during its last run alone."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cython_core.primitives.latency_histogram import LatencyHistogram
from pystorm_source import Bolt, Spout
from pystorm_source.worker.run_counts import _difference
from tests.sizes import sized
from tests.worker.running import Numbers, Pass, above, rows, topology, worker_of

pytestmark = pytest.mark.timeout(60)

SCHEDULED = pytest.mark.parametrize("scheduler", ["inline", "threads"])


@pytest.fixture
def made():
    """Makes workers of a spout and a bolt, and stops them."""
    workers = []

    def make(bolt=Pass, spout=Numbers, par=1, **overrides):
        s = spout.spec(par=par)
        b = bolt.spec(inputs=[s], par=par)
        overrides = {key.replace("__", "."): value for key, value in overrides.items()}
        workers.append(worker_of(topology(s=s, b=b), "b", overrides=overrides))
        return workers[-1]

    yield make
    for worker in workers:
        worker.stop()


class Fails(Bolt):
    """Fails every tenth tuple as often as it comes, and every other one divisible by four once."""

    outputs = ["n long"]
    auto_ack = auto_fail = False

    def initialize(self, conf, context):
        self.seen = set()

    def process(self, tup):
        n = tup.values[0]
        if n % 10 == 0 or (n % 4 == 0 and n not in self.seen):
            self.seen.add(n)
            self.fail(tup)
        else:
            self.emit(tup.values)
            self.ack(tup)


@SCHEDULED
def test_runs_before_do_not_count(made, scheduler):
    worker = made(par=2, topology__scheduler=scheduler)
    for start, end in ((0, 300), (300, 301), (301, 361)):
        assert len(rows(worker.run("s", "p", start, end))) == end - start
        counts = worker.last_run()
        assert (counts.rows, counts.emits, counts.acked) == (end - start, {"s": end - start}, end - start)
        assert (counts.failed, counts.components.retries, counts.components.dead_letters) == (0, (), ())


@SCHEDULED
def test_the_runs_together_are_what_the_worker_reports(made, scheduler):
    worker = made(Fails, topology__scheduler=scheduler, topology__max__spout__retries=1, topology__dead__letter="drop")
    seen = []
    for start, end in ((0, 200), (200, 203), (203, 400)):
        rows(worker.run("s", "p", start, end))
        seen.append(worker.last_run())
    spout = worker.report()["components"]["s"]
    for name in ("acked", "failed", "retries", "dead_letters"):
        assert sum(getattr(counts.components, name)[0] for counts in seen) == spout[name] > 0, name
    assert [counts.acked for counts in seen] == [counts.components.acked[0] for counts in seen]
    assert seen[1] == seen[1]._replace(rows=2, emits={"s": 4}, acked=2, failed=2)
    assert (seen[1].components.retries, seen[1].components.dead_letters) == ((1,), (1,))


@SCHEDULED
def test_stalls_of_a_slow_range_are_not_those_of_the_next(made, scheduler):
    class Slow(Pass):
        def process(self, tup):
            if tup.values[0] < 50:
                time.sleep(0.002)
            self.emit(tup.values)

    worker = made(
        Slow,
        topology__scheduler=scheduler,
        topology__producer__batch__size=1,
        topology__executor__receive__buffer__size=2,
    )
    rows(worker.run("s", "p", 0, 50))
    slow = worker.last_run()
    assert 0.08 <= slow.stalls["downstream_full"] <= worker.report()["seconds"]
    assert (slow.components.queue_high_mark, worker.plan.queue_capacity) == ((0, 2), 2)
    assert slow.latency["p95"] >= 0.002
    rows(worker.run("s", "p", 50, 60))
    quick = worker.last_run()
    assert quick.stalls["downstream_full"] <= worker.report()["seconds"]
    assert quick.latency["p50"] < 0.002
    assert set(quick.stalls) == set(worker.report()["components"]["s"]["stall_seconds"])
    rows(worker.run("s", "p", 60, 61))
    assert worker.last_run().components.queue_high_mark == worker.last_run().components.queue_high_mark == (0, 1)
    assert worker.report()["components"]["b"]["queue_high_mark"] == 2


def test_the_stall_of_several_tasks_at_once_counts_once(made):
    class Slow(Numbers):
        def next_tuple(self):
            time.sleep(0.002)
            return super().next_tuple()

    worker = above(Pass, Slow, par=4, overrides={"topology.scheduler": "threads"})
    rows(worker.run("s", "p", 0, 50))
    assert 0.08 <= worker.last_run().stalls["input_empty"] <= worker.report()["seconds"]
    worker.stop()


def test_a_spout_alone_has_no_queue():
    worker = worker_of(topology(s=Numbers.spec()), "s")
    rows(worker.run("s", "p", 0, 10))
    assert (worker.last_run().components.queue_high_mark, worker.plan.queue_capacity) == ((), 0)
    worker.stop()


def test_what_a_spout_without_offsets_has_emitted(made):
    class Three(Spout):
        outputs = ["n long"]
        left = 3

        def next_tuple(self):
            if self.left:
                self.left -= 1
                self.emit([self.left])

    worker = made(spout=Three)
    assert len(rows(worker.run_slice("s", 100, 20))) == 3
    assert worker.last_run().emits == {"s": 3}
    rows(worker.run_slice("s", 100, 1))
    assert worker.last_run().emits == {"s": 0}


def recorded(*durations):
    histogram = LatencyHistogram()
    for nanos in durations:
        histogram.record(nanos)
    return histogram


@settings(max_examples=sized(200))
@given(st.lists(st.integers(0, 1 << 50)), st.lists(st.integers(0, 1 << 50)))
def test_a_difference_of_histograms_is_what_was_recorded_meanwhile(before, meanwhile):
    found, wanted = _difference(recorded(*before), recorded(*before, *meanwhile)), recorded(*meanwhile)
    assert found.buckets() == wanted.buckets()
    assert (found.count, found.total) == (wanted.count, wanted.total)
    if max(meanwhile, default=0) < 1 << 45:  # longer ones share a bucket
        assert wanted.maximum <= found.maximum <= wanted.maximum * 17 / 16 or not meanwhile
        for share in (0.5, 0.95, 0.99):
            assert found.quantile(share) == pytest.approx(wanted.quantile(share), rel=1 / 15, abs=0)
