"""Every call is counted once, no time twice; an executor that cannot go on is seen to stall, and why."""

import time
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cython_core.executors.executor import ComponentFailed
from cython_core.routing.component_base import BoltBase, SpoutBase
from pystorm_source.records.stall_reasons import LIMITS, REASONS
from tests.core.wired import Collect, Numbers, Part, Pass, Wired, slice_of
from tests.sizes import sized

MILLI = 1_000_000
ALWAYS, NEVER = 0, 1 << 40
COUNTED = REASONS[: -len(LIMITS)]
PLAIN = dict.fromkeys(COUNTED, 0)


def chain(*parts, **sizes):
    """Parts one behind the other, named a, b, c, …."""
    names = "abcdefgh"[: len(parts)]
    edges = [(x, "default", y, "shuffle", ()) for x, y in pairwise(names)]
    return Wired(dict(zip(names, parts, strict=True)), edges, **sizes)


def times_of(wired, name):
    return wired.named[name][0].times


def slow(wired, nanos):
    for executor in wired.executors:
        executor.times.slow_nanos = nanos
    return wired


class Sleeps(BoltBase):
    """Sleeps 20 ms at the numbers that ``at`` holds."""

    at = frozenset()

    def process(self, tup):
        if tup.values[0] in self.at:
            time.sleep(0.02)


def sleeps(*at):
    return type("Sleeps", (Sleeps,), {"at": frozenset(at)})


@settings(max_examples=sized(60), deadline=None)
@given(
    emits=st.integers(0, 400),
    fans=st.lists(st.integers(0, 3), max_size=3),
    pars=st.lists(st.integers(1, 3), min_size=4, max_size=4),
    queue=st.sampled_from([1, 2, 8, 64]),
    batch=st.sampled_from([1, 2, 7]),
    quota=st.sampled_from([1, 3, 256]),
    nanos=st.sampled_from([ALWAYS, 300, 2000, NEVER]),
)
def test_every_call_is_counted_once_in_any_topology(emits, fans, pars, queue, batch, quota, nanos):
    """Of a chain whose bolts emit ``fans`` tuples for each; the model multiplies."""

    def fan(width):
        class Fan(BoltBase):
            def process(self, tup):
                for _ in range(width):
                    self.emit(tup.values)

        return Fan

    parts = [Part(Numbers)] + [Part(fan(width), par=par) for width, par in zip(fans, pars, strict=False)]
    wired = slow(chain(*parts, Part(Collect, streams={}), queue=queue, batch=batch, quota=quota), nanos)
    began = time.monotonic_ns()
    wired.open("a", 0, emits).run()
    passed = time.monotonic_ns() - began
    expected = {"a": emits + 1 if emits else 0, "b": emits}  # the spout's last call answers False
    for name, width in zip("cde", fans, strict=False):
        expected[name] = expected[chr(ord(name) - 1)] * width
    for name, executors in wired.named.items():
        assert sum(executor.executed for executor in executors) == expected[name]
    for executor in wired.executors:
        assert executor.times.latency.count == executor.executed
        assert executor.times.latency.maximum <= executor.times.latency.total <= executor.times.busy
        assert sum(executor.times.stalls.values()) <= passed
    assert sum(executor.times.busy for executor in wired.executors) <= passed


@pytest.mark.parametrize("nanos", [ALWAYS, NEVER])
def test_time_in_calls_is_in_the_latencies(nanos):
    spent = []

    class Spends(BoltBase):
        def process(self, tup):
            began = time.monotonic_ns()
            sum(range(tup.values[0] * 10))
            spent.append(time.monotonic_ns() - began)

    wired = slow(chain(Part(Numbers), Part(Spends, streams={})), nanos).open("a", 0, 500).run()
    times = times_of(wired, "b")
    assert times.latency.total >= sum(spent)
    assert times.latency.count == 500


def test_fast_calls_count_with_the_mean_of_their_turn():
    wired = slow(chain(Part(Numbers), Part(sleeps(7), streams={}), queue=64, batch=1), NEVER).open("a", 0, 10)
    wired.named["a"][0].take_turn()
    assert wired.named["b"][0].take_turn() == 10
    latency = times_of(wired, "b").latency
    ((low, count),) = latency.buckets()
    assert count == 10
    assert low <= latency.maximum == latency.total // 10
    assert latency.total >= 20 * MILLI


def test_after_a_slow_turn_calls_are_timed_one_by_one():
    wired = chain(Part(Numbers), Part(sleeps(0, 9), streams={}), queue=64, batch=1).open("a", 0, 20)
    wired.named["a"][0].take_turn()
    bolt = wired.named["b"][0]
    assert bolt.take_turn(1) == 1
    assert bolt.take_turn() == 19
    latency = times_of(wired, "b").latency
    assert sum(count for low, count in latency.buckets() if low >= 10 * MILLI) >= 2
    assert latency.quantile(0.5) < 10 * MILLI
    assert latency.total >= 40 * MILLI


def test_after_a_fast_turn_calls_share_their_time_again():
    wired = slow(chain(Part(Numbers), Part(sleeps(2), streams={}), queue=64, batch=1), ALWAYS).open("a", 0, 50)
    wired.named["a"][0].take_turn()
    bolt, times = wired.named["b"][0], times_of(wired, "b")
    bolt.take_turn(1)
    times.slow_nanos = NEVER
    bolt.take_turn(4)
    assert sum(count for low, count in times.latency.buckets() if low >= 10 * MILLI) >= 1
    before = dict(times.latency.buckets())
    bolt.take_turn(5)
    grown = [count - before.get(low, 0) for low, count in times.latency.buckets() if count != before.get(low, 0)]
    assert grown == [5]


@pytest.mark.parametrize("nanos", [ALWAYS, NEVER])
def test_a_call_that_fails_the_run_is_counted(nanos):
    class Fails(BoltBase):
        def process(self, tup):
            if tup.values[0] == 5:
                raise ValueError(5)

    wired = slow(chain(Part(Numbers), Part(Fails, streams={}), queue=64), nanos).open("a", 0, 20)
    with pytest.raises(ComponentFailed):
        wired.run()
    bolt = wired.named["b"][0]
    assert bolt.executed == bolt.times.latency.count == 6


@pytest.mark.parametrize("nanos", [ALWAYS, NEVER])
def test_calls_that_let_the_run_go_on_are_counted(nanos):
    class Fails(BoltBase):
        exit_on_exception = False

        def process(self, tup):
            raise ValueError(5)

    class Shaky(SpoutBase):
        exit_on_exception = False
        asked = 0

        def next_tuple(self):
            self.asked += 1
            if self.asked > 20:
                return False
            if self.asked % 2:
                raise ValueError(self.asked)
            self.emit((self.asked,))

    wired = slow(chain(Part(Shaky), Part(Fails, streams={})), nanos)
    wired.named["a"][0].open_slice(1000)
    wired.run()
    spout, bolt = wired.named["a"][0], wired.named["b"][0]
    assert spout.executed == spout.times.latency.count == 21
    assert bolt.executed == bolt.times.latency.count == 10


def test_ticks_and_verdicts_are_busy_time_and_no_latency():
    class Ticks(BoltBase):
        def process(self, tup):
            pass

        def process_tick(self, tup):
            time.sleep(0.02)

    class Told(slice_of((1,), ids=["x"])):
        def ack(self, tup_id):
            time.sleep(0.02)

    wired = slow(chain(Part(Told), Part(Ticks, streams={})), ALWAYS)
    wired.named["a"][0].open_slice(5, until_idle=True)
    wired.run()
    for name in "ab":
        assert times_of(wired, name).busy - times_of(wired, name).latency.total >= 20 * MILLI
        assert times_of(wired, name).latency.count == 1


def test_a_producer_stalls_while_its_consumer_is_slow():
    class Slow(BoltBase):
        def process(self, tup):
            time.sleep(0.002)

    wired = chain(Part(Numbers), Part(Slow, streams={}), queue=1, batch=1).open("a", 0, 50).run()
    spout, last = times_of(wired, "a"), times_of(wired, "b")
    assert last.busy >= 100 * MILLI
    # From the third tuple on, queue and pending emits are full whenever the bolt sleeps.
    assert spout.stalls["downstream_full"] >= 90 * MILLI
    assert last.stalls == PLAIN
    assert spout.stalls == PLAIN | {"downstream_full": spout.stalls["downstream_full"]}


def let_pass(nanos):
    """Until the clock that the core reads has gone on by so much."""
    until = time.monotonic_ns() + nanos
    while time.monotonic_ns() < until:
        pass


def test_a_spout_with_nothing_stalls_until_it_emits():
    class Pauses(SpoutBase):
        ready = True

        def next_tuple(self):
            if self.ready:
                self.emit((1,))

    wired = chain(Part(Pauses), Part(Collect, streams={}), queue=8, batch=1, quota=1)
    spout = wired.named["a"][0]
    spout.open_slice(1000)
    spout.instance.ready = False
    began = time.monotonic_ns()
    assert wired.scheduler.one_pass() == 0
    while spout.times.stalls["nothing_to_emit"] < 20 * MILLI:  # and goes on
        assert wired.scheduler.one_pass() == 0
    assert time.monotonic_ns() - began >= 20 * MILLI
    before = spout.times.stalls["nothing_to_emit"]
    let_pass(10 * MILLI)
    spout.instance.ready = True
    assert wired.scheduler.one_pass() == 1
    stalled = spout.times.stalls
    assert stalled == PLAIN | {"nothing_to_emit": stalled["nothing_to_emit"]}
    assert stalled["nothing_to_emit"] >= before + 10 * MILLI
    let_pass(10 * MILLI)
    assert spout.times.stalls == stalled
    assert spout.executed == spout.times.latency.count == 1


def test_who_writes_the_output_stalls_until_it_is_taken():
    schema = pa.schema([("n", pa.int64())])
    wired = chain(Part(Numbers), Part(Pass), output=schema, views=[("b", "default")]).open("a", 0, 15_000)
    wired.scheduler.begin()
    assert wired.scheduler.run()
    let_pass(20 * MILLI)
    wired.builder.done = []
    wired.run()
    stalled = times_of(wired, "b").stalls
    assert stalled["output_full"] >= 20 * MILLI
    let_pass(10 * MILLI)
    assert times_of(wired, "b").stalls == stalled
    assert times_of(wired, "a").stalls["output_full"] == 0


def test_time_between_runs_is_nobodys():
    wired = chain(Part(Numbers), Part(Pass), Part(Collect, streams={}), queue=2, batch=1)
    passed = 0
    for start in (0, 10):
        began = time.monotonic_ns()
        wired.open("a", start, start + 10).run()
        passed += time.monotonic_ns() - began
        let_pass(50 * MILLI)
    for executor in wired.executors:
        assert executor.times.busy + sum(executor.times.stalls.values()) <= passed
