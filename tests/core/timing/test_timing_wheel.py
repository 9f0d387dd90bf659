"""The wheel gives what a heap gives: every timer once, never early, tick by tick, at any distance."""

import gc
import heapq
import itertools
import weakref

import pytest
from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from cython_core.timing.timers import Timer, TimingWheel
from tests.sizes import sized

MILLI = 1_000_000
FAR = 2**63 - 1
# As many near distances as far ones; more of them at the borders of levels.
DISTANCES = st.one_of(
    st.integers(0, 57).flatmap(lambda bits: st.integers(0, 2**bits)),
    st.sampled_from([0, 11, 16, 21, 26, 51]).flatmap(lambda bits: st.integers(2**bits - 1, 2**bits + 1)),
)


class WheelAgainstHeap(RuleBasedStateMachine):
    """The heap holds (tick, number); what is cancelled or moved leaves its entry there, as heapq's own page does it."""

    timers = Bundle("timers")

    @initialize(tick=st.sampled_from([1, 3, 1000, MILLI]), now=st.integers(0, 2**60))
    def begin(self, tick, now):
        self.tick, self.now, self.advanced = tick, now, now // tick
        self.wheel = TimingWheel(tick, now)
        self.heap, self.live, self.numbers = [], {}, itertools.count()

    def expect(self, number, expiry):
        self.live[number] = due = -(-expiry // self.tick)
        heapq.heappush(self.heap, (due, number))

    def first(self):
        while self.heap and self.live.get(self.heap[0][1]) != self.heap[0][0]:
            heapq.heappop(self.heap)
        return self.heap[0][0] if self.heap else None

    @rule(target=timers, ahead=DISTANCES, ticks=st.booleans())
    def insert(self, ahead, ticks):
        expiry = min(self.now + ahead * (self.tick if ticks else 1), 2**64 - 1)
        number = next(self.numbers)
        timer = self.wheel.insert(expiry, number)
        assert (timer is None) == (-(-expiry // self.tick) <= self.advanced)
        assume(timer is not None)
        self.expect(number, expiry)
        return number, timer

    @rule(of=timers, ahead=DISTANCES)
    def move(self, of, ahead):
        number, timer = of
        is_in = self.wheel.move(timer, self.now + ahead)
        self.live.pop(number, None)
        if is_in:
            self.expect(number, self.now + ahead)
        assert is_in == timer.pending == (-(-(self.now + ahead) // self.tick) > self.advanced)

    @rule(of=consumes(timers))
    def cancel(self, of):
        number, timer = of
        assert self.wheel.cancel(timer) == (self.live.pop(number, None) is not None)
        assert not timer.pending
        assert not self.wheel.cancel(timer)

    @rule(ahead=DISTANCES, changes=st.lists(st.tuples(st.integers(0, 30), DISTANCES), max_size=8))
    def advance(self, ahead, changes):
        """Takes timers one by one; between two of them, new ones are inserted."""
        self.now = min(self.now + ahead, FAR)
        changes = dict(changes)
        for taken in itertools.count():
            number = self.wheel.poll(self.now)
            if number is None:
                break
            self.advanced = due = self.live.pop(number)
            assert (due, number) in self.heap
            assert due * self.tick <= self.now
            assert self.first() is None or due <= self.first()
            if taken in changes:
                self.insert_while_advancing(changes.pop(taken))
        self.advanced = max(self.advanced, self.now // self.tick)
        assert self.first() is None or self.first() * self.tick > self.now

    def insert_while_advancing(self, ahead):
        expiry, number = self.advanced * self.tick + ahead, next(self.numbers)
        if self.wheel.insert(expiry, number) is not None:
            self.expect(number, expiry)

    @rule(ahead=DISTANCES)
    def advance_at_once(self, ahead):
        self.now = min(self.now + ahead, FAR)
        self.advanced = self.now // self.tick
        numbers = self.wheel.advance(self.now)
        ticks = [self.live.pop(number) for number in numbers]
        assert ticks == sorted(ticks)
        assert all(tick <= self.advanced for tick in ticks)
        assert self.first() is None or self.first() > self.advanced

    @rule()
    def advance_to_the_next(self):
        """A caller that sleeps until ``next`` each time comes to the first timer in a step per level at most, once it
        is within the reach of the highest one."""
        while (first := self.first()) is not None and first * self.tick < FAR:
            for _ in range(9 + first // 2**50):
                assert self.now < self.wheel.next <= first * self.tick
                self.now = self.wheel.next
                self.advanced = self.now // self.tick
                numbers = self.wheel.advance(self.now)
                if numbers:
                    break
            assert {self.live.pop(number) for number in numbers} == {first}

    @invariant()
    def counts_what_is_in(self):
        assert len(self.wheel) == len(self.live)
        assert (self.wheel.next is None) == (not self.live)


TestWheelAgainstHeap = WheelAgainstHeap.TestCase
TestWheelAgainstHeap.settings = settings(max_examples=sized(60), stateful_step_count=30, deadline=None)


def test_ties_come_together_and_later_ones_later():
    wheel = TimingWheel(MILLI, 0)
    for expiry in (5 * MILLI, 4 * MILLI + 1, 5 * MILLI - 1, 5 * MILLI + 1, 300 * MILLI, 299 * MILLI + 7):
        wheel.insert(expiry, expiry)
    assert wheel.advance(5 * MILLI - 1) == []
    assert sorted(wheel.advance(5 * MILLI)) == [4 * MILLI + 1, 5 * MILLI - 1, 5 * MILLI]
    assert wheel.advance(6 * MILLI) == [5 * MILLI + 1]
    assert sorted(wheel.advance(300 * MILLI)) == [299 * MILLI + 7, 300 * MILLI]
    assert len(wheel) == 0


def test_a_clock_that_jumps_for_years_skips_nothing():
    wheel, year = TimingWheel(MILLI, 0), 31_536_000_000 * MILLI
    for number in range(100):
        wheel.insert(number * year // 7 + MILLI, number)
    assert wheel.advance(20 * year) == list(range(100))


def test_timers_of_a_tick_may_be_cancelled_by_who_takes_the_first():
    wheel = TimingWheel(MILLI, 0)
    timers = [wheel.insert(MILLI, number) for number in range(3)]
    taken = wheel.poll(MILLI)
    kept, dropped = (timers[number] for number in range(3) if number != taken)
    assert not timers[taken].pending
    assert wheel.cancel(dropped)
    assert wheel.next == MILLI
    assert wheel.advance(MILLI) == [timers.index(kept)]


def test_a_timer_goes_in_again_as_often_as_it_is_moved():
    wheel = TimingWheel(MILLI, 0)
    timer = wheel.insert(MILLI, "again")
    for milli in range(1, 1000):
        assert wheel.advance(milli * MILLI) == ["again"]
        assert wheel.move(timer, (milli + 1) * MILLI)
        assert wheel.move(timer, (milli + 500) * MILLI)
        assert wheel.move(timer, (milli + 1) * MILLI)
    assert not wheel.move(timer, 5)
    assert (timer.pending, len(wheel), wheel.next) == (False, 0, None)


def test_buckets_emptied_by_cancelling_wake_nobody():
    wheel = TimingWheel(MILLI, 0)
    timers = [wheel.insert(milli * MILLI, milli) for milli in range(1, 5000)]
    for timer in timers[:-1]:
        wheel.cancel(timer)
    assert wheel.next == 4992 * MILLI  # the bucket of 32 ticks that holds the last one
    assert wheel.advance(4992 * MILLI) == []
    assert wheel.next == 4999 * MILLI


def test_timers_and_wheels_that_hold_each_other_are_collected():
    class Owner:
        pass

    owner = Owner()
    owner.wheel = TimingWheel(MILLI, 0)
    owner.timer = owner.wheel.insert(MILLI, owner)
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None


def test_a_wheel_that_goes_leaves_its_timers_free():
    wheel = TimingWheel(MILLI, 0)
    timer = wheel.insert(MILLI, "x")
    del wheel
    assert not timer.pending
    other = TimingWheel(MILLI, 0)
    assert other.move(timer, MILLI)
    assert other.advance(MILLI) == ["x"]


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match=r"at least 1 nanosecond.*Given: 0"):
        TimingWheel(0, 0)
    with pytest.raises(TypeError, match=r"TimingWheel\.insert"):
        Timer()
    wheel, other = TimingWheel(MILLI, 0), TimingWheel(MILLI, 0)
    timer = wheel.insert(MILLI, "x")
    for call in (lambda: other.cancel(timer), lambda: other.move(timer, MILLI)):
        with pytest.raises(ValueError, match=r"by the wheel that it is in.*Given: <"):
            call()
    with pytest.raises(OverflowError):
        wheel.insert(-1, "x")
