"""How long each strategy waits, and that it does."""

import threading
import time

import pytest

from cython_core.schedulers.schedulers import ParkWait, ProgressiveWait, UserWait

MILLI = 1_000_000
LONGEST = 100 * MILLI


def spans(strategy, counters):
    return [strategy.nanos_at(counter) for counter in counters]


def test_park_waits_the_same_each_time():
    assert set(spans(ParkWait(100), [0, 1, 99, 100, 101, 1_000, 1 << 40])) == {100_000}


def test_parking_for_no_time_does_not_wait():
    assert spans(ParkWait(0), [0, 5]) == [0, 0]
    assert spans(ParkWait(0, True), [0, 1 << 40]) == [0, 0]


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ((0, 0, 1), [3, 3, 3, 3, 3]),
        ((2, 0, 1), [1, 1, 3, 3, 3]),
        ((0, 2, 1), [2, 2, 3, 3, 3]),
        ((1, 2, 1), [1, 2, 2, 3, 3]),
        ((9, 9, 1), [1, 1, 1, 1, 1]),
    ],
)
def test_progressive_goes_through_its_levels(levels, expected):
    level = {0: 1, 1: 2, MILLI: 3}
    assert [level[nanos] for nanos in spans(ProgressiveWait(*levels), range(5))] == expected


def test_progressive_stays_at_its_last_level():
    assert set(spans(ProgressiveWait(1, 1000, 7), [1001, 1100, 1102, 5_000, 1 << 60])) == {7 * MILLI}


def test_storms_defaults_of_back_pressure():
    assert spans(ProgressiveWait(1, 1000, 1), [0, 1, 1000, 1001]) == [0, 1, 1, MILLI]


def test_who_is_woken_looks_once_and_then_sleeps():
    assert spans(ProgressiveWait(1, 1000, 1, True), [0, 1, 2]) == [0, MILLI, MILLI]


@pytest.mark.parametrize(("first", "strategy"), [(0, ParkWait(1000, True)), (1, ProgressiveWait(1, 1000, 1, True))])
def test_who_is_woken_sleeps_ever_longer_up_to_a_tenth_of_a_second(first, strategy):
    assert spans(strategy, range(first, first + 10)) == [MILLI] * 10
    assert spans(strategy, range(first + 10, first + 18)) == [n * MILLI for n in (2, 4, 8, 16, 32, 64, 100, 100)]
    assert strategy.nanos_at(1 << 60) == LONGEST


@pytest.mark.parametrize("strategy", [ParkWait(200_000, True), ProgressiveWait(0, 0, 200, True)])
def test_a_wait_that_is_longer_than_that_as_it_is_does_not_change(strategy):
    assert set(spans(strategy, [0, 99, 100, 1 << 40])) == {2 * LONGEST}


@pytest.mark.parametrize("strategy", [ParkWait(3000), ProgressiveWait(0, 0, 3)])
def test_idle_waits_that_long_and_counts(strategy):
    begun = time.monotonic_ns()
    assert strategy.idle(41) == 42
    assert time.monotonic_ns() - begun >= 3 * MILLI


def test_others_run_while_one_waits():
    """Waiting releases the interpreter's lock, also if it lasts no time: another thread gets on meanwhile."""
    waiting, counted = True, 0

    def count():
        nonlocal counted
        while waiting:
            counted += 1

    other = threading.Thread(target=count)
    other.start()
    try:
        for strategy in (ParkWait(0), ProgressiveWait(1, 1, 1), ParkWait(20_000)):
            before, until = counted, time.monotonic() + 30
            while counted == before and time.monotonic() < until:
                strategy.idle(0)
            assert counted > before
    finally:
        waiting = False
        other.join()


class Backwards:
    """Waits like a user's class: counts down from where it was."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    def idle(self, idle_counter):
        self.asked.append(idle_counter)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_a_users_strategy_waits_by_itself_and_counts_as_it_likes():
    own = Backwards(-1)
    strategy = UserWait(own)
    assert strategy.strategy is own
    assert strategy.nanos_at(0) == -1
    assert [strategy.idle(0), strategy.idle(-1)] == [-1, -1]
    assert own.asked == [0, -1]


@pytest.mark.parametrize("answer", [None, "1", 1.0, True, [1]])
def test_a_users_strategy_returns_the_next_counter(answer):
    with pytest.raises(TypeError, match=r"Backwards.idle\(idle_counter\) must return the next counter, an int; Given:"):
        UserWait(Backwards(answer)).idle(0)


def test_what_a_users_strategy_raises_comes_out():
    with pytest.raises(ZeroDivisionError, match="mine"):
        UserWait(Backwards(ZeroDivisionError("mine"))).idle(0)


@pytest.mark.parametrize(
    ("make", "given"),
    [
        (lambda: ParkWait(-1), "park.microsec of a wait strategy .*Given: -1"),
        (lambda: ParkWait(1 << 60), "park.microsec of a wait strategy .*Given: "),
        (lambda: ProgressiveWait(-1, 0, 0), "level1.count .*Given: -1"),
        (lambda: ProgressiveWait(0, -2, 0), "level2.count .*Given: -2"),
        (lambda: ProgressiveWait(0, 0, -3), "level3.sleep.millis .*Given: -3"),
    ],
)
def test_times_and_counts_below_zero_or_beyond_the_clock_are_refused(make, given):
    with pytest.raises(ValueError, match=given):
        make()


@pytest.mark.parametrize("strategy", [ParkWait(1000, backs_off=True), ProgressiveWait(2, 3, 1, backs_off=True)])
def test_who_backs_off_waits_a_hundredth_of_its_time_and_never_more_than_ten_milliseconds(strategy):
    first = 5 if isinstance(strategy, ProgressiveWait) else 0
    millis = [strategy.nanos_at(first + waits) / 1e6 for waits in range(2000)]
    assert millis[:100] == [1.0] * 100
    assert millis[500] == 5.0
    assert millis == sorted(millis)
    assert max(millis) == 10.0
    assert strategy.nanos_at(1 << 61) == 10_000_000


def test_a_long_wait_is_not_shortened_by_backing_off():
    assert {ParkWait(50_000, backs_off=True).nanos_at(n) for n in (0, 1, 1 << 40)} == {50_000_000}
