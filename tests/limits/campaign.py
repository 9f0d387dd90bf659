"""Limits with a breaker in every place of permits, in virtual time: outages, kills, and afterwards the limit is used::

    python -m tests.limits.campaign [--first 0] [--rounds 200]

Prints one line of JSON: rounds of each place, and what was ``wrong``.
"""

import argparse
import json
import sys

from pystorm_source.limits.breaker import LONGEST_PROBE
from testbed.periods import most_in_a_period
from tests.limits.outage import PLACES, TIMEOUT_SECONDS, World


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


def wrong(place, seed):
    """What is wrong in one round."""
    world = goes_through(place, seed)
    world.cuts = 0.0
    openings = {breaker: breaker.openings + breaker.is_closed for breaker in world.breakers}
    if any(breaker.is_closed for breaker in world.breakers):
        world.run(TIMEOUT_SECONDS + 1.3)  # calls of the outage may still open it, and a new process grants none yet
    if not closed(world):
        return [*world.wrong, "a breaker does not close"]
    well = world.clock.now
    world.run(10)
    calls = [at - well for at in world.calls if at >= well]
    by_second = [sum(second <= at < second + 1 for at in calls) for second in range(10)]
    last = max(min((at for at in process.calls if at >= well), default=well + 10) for process in world.processes)
    laws = {
        "more than the limit": most_in_a_period(world.calls) > 100,
        f"less than the limit: {by_second}": len(calls) < 0.9 * 100 * 10 or min(by_second) < 0.7 * 100,
        f"one stands still for {last - well:.1f} s": last > well + 1,
        "calls of the outage open it": any(breaker.openings > openings[breaker] for breaker in world.breakers),
    }
    return world.wrong + [law for law, broken in laws.items() if broken]


def run(first, rounds):
    """So many rounds of each place."""
    found = {(place, seed): wrong(place, seed) for seed in range(first, first + rounds) for place in PLACES}
    return {"rounds": dict.fromkeys(PLACES, rounds), "wrong": [f"{at}: {each}" for at, each in found.items() if each]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=200)
    given = parser.parse_args()
    told = run(given.first, given.rounds)
    print(json.dumps(told), flush=True)
    sys.exit(1 if told["wrong"] else 0)
