"""A circuit breaker opens if most of the last calls failed, tries one call, and closes by its answer."""

import pytest

from pystorm_source.limits.breaker import LONGEST_PAUSE, LONGEST_PROBE, CircuitBreaker

PAUSE = 5.0
SHORT = 1.0


@pytest.fixture
def breaker():
    return CircuitBreaker(0.5, PAUSE)


def opened(breaker, now=0.0):
    assert breaker.ended(0, 10, now, "ConnectionError: down")
    return breaker


def test_a_few_failures_do_not_open_it(breaker):
    assert not breaker.ended(0, 9, 0.0)
    assert not breaker.is_open(0.0)


def test_it_opens_once_half_of_the_last_calls_failed(breaker):
    assert not breaker.ended(6, 5, 0.0)
    assert breaker.ended(0, 1, 0.05, "TimeoutError: late")
    assert breaker.is_open(0.1)
    assert breaker.failed == (6, 12)
    assert breaker.last_error == "TimeoutError: late"


def test_five_percent_of_failures_never_open_it(breaker):
    for step in range(1000):
        assert not breaker.ended(19, 1, step / 100)


def test_calls_that_went_well_before_the_last_second_do_not_hide_that_the_service_has_died(breaker):
    for step in range(100):
        breaker.ended(10, 0, step / 10)
    opens_at = next(now for now in (10 + step / 10 for step in range(30)) if breaker.ended(0, 10, now))

    assert opens_at <= 11.0


def test_of_a_service_with_few_calls_the_last_ten_count(breaker):
    for second in range(20):
        breaker.ended(1, 0, float(second))
    opens = [second for second in range(20, 40) if breaker.ended(0, 1, float(second))]

    assert opens[0] == 24  # five of the last ten


def test_after_the_pause_one_call_tries_the_service(breaker):
    opened(breaker)
    assert breaker.verdict(1.0) == (PAUSE, True)
    assert breaker.verdict(7.0) == (7.0, True)

    breaker.probes(7.0)
    assert breaker.verdict(7.1) == (7.0 + LONGEST_PROBE, False), "the others wait for it"


def test_it_closes_if_that_call_succeeds(breaker):
    opened(breaker).probes(5.0)
    assert breaker.probed(1, True, 5.5)
    assert breaker.verdict(5.6) == (5.6, False)
    assert not breaker.ended(0, 9, 6.0), "what failed before it opened counts no more"


def test_if_that_call_fails_the_pause_is_twice_as_long_up_to_ten_seconds():
    breaker = opened(CircuitBreaker(0.5, SHORT))
    now, pauses = SHORT, []
    for _ in range(6):
        number = breaker.probes(now)
        assert not breaker.probed(number, False, now)
        pauses.append(breaker.open_until - now)
        now = breaker.open_until

    assert pauses == [2.0, 4.0, 8.0, 10.0, 10.0, 10.0]
    assert breaker.probed(breaker.probes(now), True, now)
    later = now + LONGEST_PAUSE + 1
    assert opened(breaker, later).open_until == later + SHORT, "it begins anew"


def test_a_first_pause_that_is_longer_stays_as_it_is():
    breaker = opened(CircuitBreaker(0.5, 60.0))
    breaker.probed(breaker.probes(60.0), False, 60.0)
    assert breaker.open_until == 120.0


def test_if_it_opens_again_sooner_than_the_last_pause_was_long_the_pause_doubles_too(breaker):
    opened(breaker).probes(PAUSE)
    assert breaker.probed(1, True, PAUSE)
    soon = PAUSE + PAUSE / 2
    assert opened(breaker, soon).open_until == soon + 2 * PAUSE


def test_calls_that_were_under_way_when_it_opened_say_nothing_new(breaker):
    opened(breaker)
    assert not breaker.ended(0, 1000, 1.0)
    assert breaker.open_until == PAUSE
    assert breaker.openings == 1


def test_a_probe_that_was_not_made_is_given_to_another(breaker):
    opened(breaker).probes(5.0)
    breaker.returned(1)
    assert breaker.verdict(6.0) == (6.0, True)


def test_a_probe_without_an_answer_is_taken_for_lost(breaker):
    opened(breaker).probes(5.0)
    assert breaker.verdict(5.0 + LONGEST_PROBE + 1).paused_until == 5.0 + LONGEST_PROBE + 1


def test_a_share_of_0_never_opens_it():
    assert not CircuitBreaker(0, PAUSE).ended(0, 1000, 0.0)


def test_a_probe_that_counts_as_lost_closes_it_if_it_succeeds_and_else_says_nothing(breaker):
    opened(breaker)
    first = breaker.probes(5.0)
    breaker.probes(5.0 + LONGEST_PROBE)
    now = 6.0 + LONGEST_PROBE
    breaker.returned(first)
    assert not breaker.probed(first, False, now)
    assert breaker.verdict(now) == (5.0 + 2 * LONGEST_PROBE, False), "the second one is out"
    assert breaker.probed(first, True, now)
    assert breaker.is_closed
