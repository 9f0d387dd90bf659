"""Permits of a limit in a worker: one whose time is over is lost."""

import pytest

from pystorm_source.clock import ManualClock
from pystorm_source.limits.permits import Permits
from pystorm_source.limits.schedule import Slots
from pystorm_source.options.rate_limit import RateLimit


class Lessor:
    ahead = False

    def want(self, permits):
        pass

    def ended(self, permits, good, probe, error):
        pass


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
