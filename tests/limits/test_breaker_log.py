"""What the log says while a service is down: that it still fails, and when the next call tries it."""

import itertools
import logging
import re

import pytest

from pystorm_source.clock import ManualClock
from pystorm_source.limits.breaker import CircuitBreaker
from pystorm_source.limits.local_lessor import LocalLessor
from pystorm_source.limits.permits import Permits
from pystorm_source.options.rate_limit import RateLimit


def down(seconds, caplog):
    """The lines of an outage of so many seconds: whenever a call may be made, one is, and it fails."""
    clock = ManualClock(1000.0)
    limit = RateLimit("api", 100, 1.0)
    lessor = LocalLessor([limit], lambda: CircuitBreaker(0.5, 0.5), clock)
    permits = Permits(limit, clock, lessor)
    end = clock.monotonic() + seconds
    said = []
    with caplog.at_level(logging.INFO, "pystorm.worker"):
        while clock.monotonic() < end:
            waiter = permits.take(lambda: None)
            while waiter.time is None or clock.monotonic() < waiter.time:
                clock.advance(0.01)
                permits.look()
            before = len(caplog.records)
            if permits.starts(waiter):
                permits.ended(waiter, False, "ConnectionError: down")
            said += [(clock.monotonic(), record.getMessage()) for record in caplog.records[before:]]
    return said


def test_each_probe_that_fails_says_when_the_next_one_comes(caplog):
    first, *probes = down(60.0, caplog)
    assert "calls failed, so there are none for 0.5 s" in first[1]
    waits = []
    for _, text in probes:
        found = re.search(r"still fails; the next call tries it in ([\d.]+) s", text)
        waits.append(float(found[1]))
        assert "ConnectionError: down" in text
    assert waits[:6] == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    times = [at for at, _ in probes]
    for (at, following), wait in zip(itertools.pairwise(times), waits, strict=False):
        assert following - at == pytest.approx(wait, abs=0.1), "it comes when the log said"
