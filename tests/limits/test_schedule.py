"""Permits are evenly apart, and no period has more calls than its limit, however late each is within its time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystorm_source.limits.schedule import (
    HORIZON_SECONDS,
    LEAD_SECONDS,
    VALID_SECONDS,
    PermitSchedule,
    begin_of,
    spread_seconds,
    valid_seconds,
)
from pystorm_source.options.rate_limit import RateLimit
from testbed.periods import most_in_a_period


@given(
    calls=st.integers(1, 300),
    seconds=st.sampled_from([1.0, 2.0, 60.0, 3600.0]),
    asks=st.lists(st.tuples(st.integers(0, 50), st.floats(0, 0.5)), min_size=1, max_size=80),
    chance=st.randoms(use_true_random=False),
)
def test_no_period_has_more_calls_than_the_limit(calls, seconds, asks, chance):
    limit = RateLimit("api", calls, seconds)
    schedule = PermitSchedule(limit, 0.0)
    now, given_at = 0.0, []
    for wanted, later in asks:
        now += later
        slots = schedule.take(wanted, now)
        given_at += [slots.at(place) for place in range(slots.number)]

    assert given_at == sorted(given_at)
    arrived = sorted(time + chance.random() * spread_seconds(limit) * 0.999 for time in given_at)

    assert most_in_a_period(arrived, seconds) <= calls


@given(calls=st.integers(1, 2000), wanted=st.integers(0, 5000))
def test_no_permit_is_given_for_more_than_the_horizon(calls, wanted):
    schedule = PermitSchedule(RateLimit("api", calls, 1.0), 5.0)
    slots = schedule.take(wanted, 5.0)

    assert slots.number <= wanted
    assert slots.first == 5.0 + LEAD_SECONDS
    assert slots.at(max(0, slots.number - 1)) <= 5.0 + HORIZON_SECONDS + 1e-9


def test_a_limit_of_a_hundred_a_second_is_used_to_more_than_95_percent():
    schedule = PermitSchedule(RateLimit("api", 100, 1.0), 0.0)
    count = 0
    for step in range(1000):
        count += schedule.take(50, step / 10).number

    assert count / 100 == pytest.approx(96.2, abs=0.3)


def test_what_was_not_taken_is_not_carried_over():
    schedule = PermitSchedule(RateLimit("api", 10, 1.0), 0.0)
    schedule.take(1, 0.0)
    slots = schedule.take(100, 60.0)

    assert slots.first == 60.0 + LEAD_SECONDS
    assert slots.number == 2


@pytest.mark.parametrize(("calls", "seconds", "waits"), [(100, 1.0, 1.2), (1, 60.0, 62.6)])
def test_a_new_process_waits_until_what_an_earlier_one_gave_is_used_and_forgotten(calls, seconds, waits):
    assert begin_of(RateLimit("api", calls, seconds), 7.0) == pytest.approx(7.0 + waits)


@pytest.mark.parametrize(
    ("calls", "seconds", "valid"),
    [(100, 1.0, VALID_SECONDS), (1, 3600.0, 143.985), (60, 60.0, 1.0), (3600, 3600.0, 1.0)],
)
def test_a_permit_is_valid_for_a_part_of_the_period_and_not_beyond_the_next_one(calls, seconds, valid):
    limit = RateLimit("api", calls, seconds)
    assert valid_seconds(limit) == pytest.approx(valid)
    assert PermitSchedule(limit, 0.0).apart >= valid_seconds(limit) or valid == VALID_SECONDS


def test_in_the_first_second_permits_are_further_apart():
    """What a process sends late while it starts arrives together with what comes in time."""
    schedule, now, times = PermitSchedule(RateLimit("api", 100, 1.0), 5.0), 5.0, []
    while now < 8.0:
        slots = schedule.take(100, now)
        times += map(slots.at, range(slots.number))
        now += 0.1
    assert 86 <= sum(1 for time in times if time < 6.0) <= 89
    assert 95 <= sum(1 for time in times if 6.5 <= time < 7.5) <= 97


def test_of_all_permits_at_once_those_of_the_first_second_alone_are_further_apart():
    schedule = PermitSchedule(RateLimit("api", 10, 1.0), 0.0)
    first = schedule.take(1000, 0.0, float("inf"))
    rest = schedule.take(1000, 0.0, float("inf"))
    assert 8 <= first.number <= 11
    assert first.at(first.number - 1) < 1.0 < rest.first < 1.2
    assert (rest.number, rest.apart) == (1000, schedule.apart)
