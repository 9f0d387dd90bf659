"""A service that is down for a while, behind a limit with a circuit breaker: afterwards it is called as before."""

import os

import pytest

from pystorm_source.limits.breaker import LONGEST_PROBE
from testbed.periods import most_in_a_period
from tests.limits.outage import PLACES, TIMEOUT_SECONDS, World

SEEDS = 200 if os.environ.get("PYSTORM_DEEP") else 9


def goes_through(place, seed):
    """Outages by chance, kills by chance, and then the service is well. Returns the world at that moment."""
    world = World(place, "100/s", pause=0.5, processes=1 + seed % 4, callers=(20, 60, 400)[seed % 3], seed=seed)
    world.run(4)
    for _ in range(world.chance.randint(1, 3)):
        if world.chance.random() < 0.5:
            world.down = True
        else:
            world.hangs = True
        for _ in range(world.chance.randint(1, 4)):
            world.run(world.chance.random())
            if place != "process" and world.chance.random() < 0.5:
                world.kill_one(seen=world.chance.random() < 0.5)
        world.down = world.hangs = False
        world.run(world.chance.random() * 3)
    return world


def closed(world):
    """Runs until all breakers are closed. Returns whether they are, within the time that they may take."""
    # A probe of the outage may fail and double the pause, or be lost; that of a new process waits for its begin.
    now = world.clock.now
    pause = max(max(now, breaker.open_until or now) - now + 2 * breaker._pause for breaker in world.breakers)
    end = max(now, world.lost + LONGEST_PROBE) + pause + TIMEOUT_SECONDS + 0.5
    while not all(breaker.is_closed for breaker in world.breakers) and world.clock.now < end:
        world.run(0.01)
    return world.clock.now < end


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_after_outages_calls_go_on_at_the_limit(place, seed):
    world = goes_through(place, seed)
    world.cuts = 0.0
    openings = {breaker: breaker.openings + breaker.is_closed for breaker in world.breakers}
    if any(breaker.is_closed for breaker in world.breakers):
        world.run(TIMEOUT_SECONDS + 1.3)  # calls of the outage may still open it, and a new process grants none yet
    assert closed(world)
    well = world.clock.now
    world.run(10)
    calls = [at - well for at in world.calls if at >= well]
    by_second = [sum(second <= at < second + 1 for at in calls) for second in range(10)]
    assert world.wrong == []
    assert most_in_a_period(world.calls) <= 100
    assert len(calls) >= 0.9 * 100 * 10, by_second
    assert min(by_second) >= 0.7 * 100, by_second
    assert max(min(at for at in process.calls if at >= well) for process in world.processes) < well + 1, "all go on"
    assert all(breaker.openings <= openings[breaker] for breaker in world.breakers), "calls of the outage open none"
