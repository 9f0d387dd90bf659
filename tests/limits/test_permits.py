"""Permits of a limit in a worker: one whose time is over is lost."""

import pytest

from pystorm_source.clock import ManualClock
from pystorm_source.limits.permits import Permits
from pystorm_source.limits.schedule import Slots
from pystorm_source.options.rate_limit import RateLimit


class Lessor:
    ahead = False

    def __init__(self):
        self.endings = []

    def want(self, permits):
        pass

    def ended(self, permits, good, probe, error):
        self.endings.append((good, probe))

    def is_open(self, permits):
        return False


@pytest.mark.parametrize(
    ("seconds", "late", "starts"),
    [(1.0, 0.02, True), (1.0, 0.03, False), (3600.0, 140.0, True), (3600.0, 145.0, False)],
)
def test_a_call_may_be_late_by_a_part_of_the_period(seconds, late, starts):
    """A process that is busy for a second may not cost the only call of an hour."""
    clock = ManualClock()
    permits = Permits(RateLimit("api", 1, seconds), clock, Lessor())
    waiter = permits.take(lambda: None)
    permits.granted(Slots(clock.monotonic(), 1, seconds))
    clock.advance(late)
    assert permits.starts(waiter) is starts


def test_a_probe_that_comes_too_late_is_given_back():
    """Else all would wait for it."""
    clock, lessor = ManualClock(10.0), Lessor()
    permits = Permits(RateLimit("api", 1, 1.0), clock, lessor)
    waiter = permits.take(lambda: None)
    permits.granted(Slots(9.9, 1, 1.0), probe=3)
    assert waiter.time is None
    assert lessor.endings == [(None, 3)]


def test_a_probe_that_no_call_waits_for_is_given_back():
    lessor = Lessor()
    permits = Permits(RateLimit("api", 1, 1.0), ManualClock(10.0), lessor)
    permits.granted(Slots(10.0, 1, 1.0), probe=3)
    assert lessor.endings == [(None, 3)]


def test_a_call_that_began_before_an_outage_says_nothing_of_the_service_behind_it():
    """It may hang for longer than the service is away, and would open the breaker again."""
    lessor = Lessor()
    permits = Permits(RateLimit("api", 10, 1.0), ManualClock(10.0), lessor)
    before = permits.take(lambda: None)
    permits.granted(Slots(10.0, 1, 0.1))
    assert permits.starts(before)
    permits.revoke()
    behind = permits.take(lambda: None)
    permits.granted(Slots(10.0, 1, 0.1))
    assert permits.starts(behind)
    for waiter in (before, behind):
        permits.ended(waiter, False, "late")
    assert lessor.endings == [(None, 0), (False, 0)]
