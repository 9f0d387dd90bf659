"""A short campaign; ``python -m tests.effects.campaign`` is a long one."""

import os
import signal
import sys
import time

import pytest

from testbed.effects_service import effects_service
from tests.effects import campaign

ROWS, LIMIT = 6_000, 150


def test_calls_that_the_service_may_have_counted_late_are_no_more_than_the_limit():
    times = [n / 100 for n in range(100)] + [1.0] * 12  # of a limit of 100 a second, 0.1 s of the next one at once
    assert campaign.unexplained(times, 100, late=[]) == 11
    assert campaign.unexplained(times, 100, late=[(1.0, 0.1)]) == 1
    assert campaign.unexplained(times, 100, late=[(1.0, 0.12)]) == 0
    assert campaign.unexplained(times, 100, late=[(3.0, 0.12)]) == 11


def test_a_service_that_is_stopped_says_for_how_long(tmp_path):
    with effects_service(tmp_path / "service") as service:
        os.kill(service.pid, signal.SIGSTOP)
        time.sleep(0.2)
        os.kill(service.pid, signal.SIGCONT)
        end = time.monotonic() + 10
        while not (late := [seconds for _, seconds in service.late if seconds > 0.15]):
            assert time.monotonic() < end
            time.sleep(0.01)
    assert len(late) == 1


@pytest.mark.spark
@pytest.mark.campaign
@pytest.mark.timeout(1200)
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_every_effect_is_done_once_whatever_is_killed_or_hangs(tmp_path):
    found = campaign.run(tmp_path / "campaign", ROWS, LIMIT, seed=1)
    # Beside other work the service that counts is itself stopped now and then, and counts late what came in time.
    assert [each for each in found["wrong"] if "calls in a second" not in each] == [], found
    assert found["most"] <= 1.5 * LIMIT, found
    assert sum(found["done"].values()) >= 2, found
