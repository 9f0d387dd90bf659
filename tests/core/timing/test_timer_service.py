"""Ticks and timed batches of many bolts: one wheel gives the same as looking at each of them, clock and all."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cython_core.executors.batching import BatchingBase
from cython_core.executors.bolt_executor import BoltExecutor
from cython_core.queues.queues import PendingEmits, ReceiveQueue
from cython_core.schedulers.schedulers import InlineScheduler
from cython_core.timing.timers import TurnTimer
from tests.core.wired import Collect, Part, Wired

MILLI = 1_000_000
SECOND = 1000 * MILLI


class Ticks(Collect):
    """Counts its ticks."""

    ticked = 0

    def process_tick(self, tup):
        self.ticked += 1


class Fires(BatchingBase):
    """Counts its ticks, and how often it was asked to process what it holds, which it goes on holding."""

    ticked = fired = 0

    def process_tick(self, tup):
        self.ticked += 1

    def process_batches(self):
        self.fired += 1


@dataclass
class Bolt:
    """The naive model: looks at its own timers whenever time passes. Nanoseconds; None: no such timer."""

    frequency: int | None
    between: int | None

    def begin(self, now):
        self.tick = None if self.frequency is None else now + self.frequency
        self.fire = None if self.between is None else now + self.between
        self.ticked = self.fired = 0

    def pass_time(self, now):
        if self.tick is not None and reached(self.tick, now):
            self.ticked += 1
            while self.tick <= now:
                self.tick += self.frequency
        if self.fire is not None and reached(self.fire, now):
            self.fired += 1
            self.fire = now + self.between

    def dues(self):
        return [rounded(due) for due in (self.tick, self.fire) if due is not None]


def rounded(due):
    """When a timer goes off: in whole milliseconds, never early."""
    return -(-due // MILLI) * MILLI


def reached(due, now):
    return now >= rounded(due)


class Timed:
    """Bolts like these in an inline scheduler whose clock stands still."""

    def __init__(self, bolts, began=0):
        self.now = began
        self.bolts = bolts
        self.executors = tuple(self._executor(task, bolt) for task, bolt in enumerate(bolts, 1))
        self.scheduler = InlineScheduler(self.executors, monotonic=lambda: self.now / 1e9)
        self.begin()

    def _executor(self, task, bolt):
        instance = Ticks() if bolt.between is None else Fires()
        if bolt.between is not None:
            instance.secs_between_batches = bolt.between / 1e9
        frequency = None if bolt.frequency is None else bolt.frequency / 1e9
        made = BoltExecutor(f"b{task}", task, instance, PendingEmits(), {}, ReceiveQueue(2), frequency)
        if bolt.between is not None:
            instance._batches["held"].append("something")
        return made

    def begin(self):
        for bolt, executor in zip(self.bolts, self.executors, strict=True):
            bolt.begin(self.now)
            executor.instance.ticked = executor.instance.fired = 0
        self.scheduler.begin()

    def advance(self, nanos):
        self.now += nanos
        for bolt in self.bolts:
            bolt.pass_time(self.now)
        assert self.scheduler.one_pass() == 0

    def advance_to_next(self):
        next_due = self.scheduler.next_due
        if next_due != float("inf"):
            self.advance(max(0, round(next_due * 1e9) - self.now))

    def check(self):
        for bolt, executor in zip(self.bolts, self.executors, strict=True):
            seen = executor.instance
            assert (seen.ticked, getattr(seen, "fired", 0)) == (bolt.ticked, bolt.fired), (executor.component, self.now)
        ahead = [due for bolt in self.bolts for due in bolt.dues() if due > self.now]
        next_due = self.scheduler.next_due
        assert next_due == float("inf") if not ahead else self.now < round(next_due * 1e9) <= min(ahead)


def periods(least):
    """Of half a millisecond to days, as a user writes them and as no one does."""
    usual = st.sampled_from([MILLI // 2, MILLI, 100 * MILLI, 250 * MILLI, SECOND, 60 * SECOND, 3600 * SECOND])
    return st.none() | usual | st.integers(least, 3 * SECOND) | st.integers(SECOND, 200_000 * SECOND)


bolts = st.builds(Bolt, periods(MILLI // 4), periods(0))
steps = st.lists(
    st.sampled_from(["begin", "next", "next"]) | st.integers(0, 3 * SECOND) | st.integers(0, 100 * SECOND), max_size=30
)


@settings(deadline=None)
@given(st.lists(bolts, min_size=1, max_size=12), st.integers(0, 10**6 * SECOND), steps)
def test_ticks_and_timed_batches_come_as_if_each_bolt_looked_at_the_clock(drawn, began, steps):
    timed = Timed(drawn, began)
    for step in steps:
        if step == "begin":
            timed.begin()
        elif step == "next":
            timed.advance_to_next()
        else:
            timed.advance(step)
        timed.check()


def test_who_sleeps_until_the_next_one_is_due_misses_none_of_hundreds():
    timed = Timed([Bolt(SECOND // 3 * n, None) for n in range(1, 301)])
    while timed.now < 100 * SECOND:
        timed.advance_to_next()
    timed.check()
    assert [bolt.ticked for bolt in timed.bolts] == [timed.now // bolt.frequency for bolt in timed.bolts]


def test_a_bolt_that_waits_for_room_gets_one_of_the_ticks_that_it_missed():
    class Talks(Ticks):
        def process_tick(self, tup):
            super().process_tick(tup)
            for n in range(5):
                self.emit((n,))

    wired = Wired({"b": Part(Talks), "c": Part(Collect, streams={})}, [("b", "default", "c", "all", ())], 1, 1)
    (wiring,), (sink,) = wired.named["b"], wired.named["c"]
    bolt = BoltExecutor("b", 1, wiring.instance, wiring.pending, wiring.routers, wiring.queue, 1.0)
    now = 100.0
    scheduler = InlineScheduler((bolt,), monotonic=lambda: now)
    scheduler.begin()
    for now in (101.0, 105.5, 110.25):
        scheduler.one_pass()
    assert bolt.ticks == 1
    while sink.executed < 5:
        sink.take_turn()
        scheduler.one_pass()
    assert bolt.ticks == 2
    assert scheduler.next_due == 111.0


def test_timers_are_made_by_executors_alone():
    with pytest.raises(TypeError, match="a timer is made by the executor"):
        TurnTimer()
