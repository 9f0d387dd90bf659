"""Processes that call a service within a limit while it is down now and then, in virtual time.

::

    Process: n callers ─▶ Permits ─▶ the real lessor of a place ─▶ virtual network ─▶ the real server, or a schedule

Processes are killed without a word, with the probe or without it; calls are given up; connections are cut.
"""

import heapq
from collections.abc import Callable
from itertools import count, pairwise
from random import Random

from pystorm_source.channel.client import RunnerClient
from pystorm_source.channel.leases.lease_server import LeaseServer
from pystorm_source.channel.leases.lessor import Answer
from pystorm_source.channel.leases.redis_lessor import RedisLessor, RedisPlace
from pystorm_source.channel.reports.endpoint import Runner
from pystorm_source.channel.reports.protocol import LEASE
from pystorm_source.clock import ManualClock
from pystorm_source.limits.breaker import LONGEST_PROBE, CircuitBreaker
from pystorm_source.limits.local_lessor import LocalLessor
from pystorm_source.limits.permits import Permits, Waiter
from pystorm_source.limits.schedule import HORIZON_SECONDS, PermitSchedule, begin_of
from pystorm_source.options import EngineOptions, parse

PLACES = ("process", "shares", "driver", "redis")
CALL_SECONDS, TIMEOUT_SECONDS, NETWORK_SECONDS, LATE_SECONDS = 0.02, 1.5, 0.001, 0.003


class World:
    """``place``: who gives permits. ``wrong``: what must not be."""

    def __init__(self, place: str, rate: str, pause: float, processes: int, callers: int, seed: int):
        self.chance = Random(seed)
        self.clock = ManualClock(1000.0)
        self.place = place
        self.lost = 0.0
        """When a probe was lost last, with its process or in a call that never ends."""
        given = {"topology.rate.limit": {"api": rate}, "topology.circuit.breaker.pause.secs": pause}
        self.options = parse(EngineOptions, given)
        self.limit = self.options.limits["api"]
        self.callers = callers
        self.calls: list[float] = []
        self.wrong: list[str] = []
        self.down = self.hangs = False
        self.cuts = 0.01  # of the sends of a client
        self.server = LeaseServer(self.options, self.clock)
        self.redis = PermitSchedule(self.limit, begin_of(self.limit, self.clock.now))
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self.share = processes if place == "shares" else 1
        self.processes = [Process(self) for _ in range(1 if place == "process" else processes)]

    def at(self, time: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (max(time, self.clock.now), next(self._numbers), event))

    def later(self, seconds: float, event: Callable[[], None]) -> None:
        self.at(self.clock.now + seconds, event)

    def run(self, seconds: float) -> None:
        end = self.clock.now + seconds
        while self._events and self._events[0][0] <= end:
            time, _, event = heapq.heappop(self._events)
            self.clock.now = time
            event()
        self.clock.now = end

    def kill_one(self, seen: bool) -> None:
        """A process is gone, and another one takes its place. ``seen``: its connection is closed by that."""
        place = self.chance.randrange(len(self.processes))
        gone = self.processes[place]
        gone.alive = False
        # The driver may have given it a probe that it had not got yet.
        on_its_way = self.place == "driver" and (self.breakers[0]._probe_ends or 0.0) > self.clock.now
        if not seen and (gone.probes or on_its_way):
            self.lost = self.clock.now
        gone.probes.clear()
        if seen:
            self.server.answer(gone, b"")
        self.processes[place] = Process(self)

    @property
    def breakers(self) -> list[CircuitBreaker]:
        if self.place == "driver":
            return [self.server._states["api"].breaker]
        return [process.breaker for process in self.processes]

    @property
    def probes(self) -> list[list[Waiter]]:
        """Those that are out, of each breaker."""
        if self.place == "driver":
            return [[waiter for process in self.processes for waiter in process.probes]]
        return [process.probes for process in self.processes]

    def look(self) -> None:
        """One probe at a time, or the other one counts as lost."""
        for out in self.probes:
            times = sorted(waiter.time or 0.0 for waiter in out)
            if any(later < first + LONGEST_PROBE for first, later in pairwise(times)):
                self.wrong.append(f"probes at {times}")


class Process:
    """``probes``: the waiters that hold one. A real process but for its threads and its connection."""

    def __init__(self, world: World):
        self.world, self.alive = world, True
        self.probes: list[Waiter] = []
        self.calls: list[float] = []
        self.pumped = float("inf")
        limit = world.limit.shared(world.share)
        self.lessor = self._lessor(limit)
        self.permits = Permits(limit, world.clock, self.lessor)
        for _ in range(world.callers):
            world.later(world.chance.random() / 10, self.take)

    def _lessor(self, limit):
        world, pause = self.world, self.world.options.breaker_pause_secs
        if world.place in ("process", "shares"):
            self.lessor = LocalLessor([limit], lambda: CircuitBreaker(0.5, pause), world.clock, world.share == 1)
            return self.lessor
        if world.place == "driver":
            client = RunnerClient(Runner("127.0.0.1", 1, b""), world.clock).permits
            client._link.end()
            client._link = self  # type: ignore[assignment]
        else:
            client = RedisLessor(RedisPlace("redis://127.0.0.1/0", "p", 50, pause), world.clock)
            client._schedule = self  # type: ignore[assignment]
        client._thread.wake = self.wake  # type: ignore[method-assign]  # its turns are events
        return client

    @property
    def breaker(self) -> CircuitBreaker:
        if isinstance(self.lessor, RedisLessor):
            return self.lessor._of(self.permits).breaker
        return self.lessor._states["api"].breaker

    # The calls.

    def take(self, first: bool = False) -> None:
        if not self.alive:
            return
        holder: list[Waiter] = []
        waiter = self.permits.take(lambda: self.world.later(0, lambda: self.woken(holder[0])), first)
        holder.append(waiter)
        self.woken(waiter)
        if self.world.chance.random() < 0.01:
            self.world.later(self.world.chance.random(), lambda: self.give_up(waiter))

    def woken(self, waiter: Waiter) -> None:
        if not self.alive or waiter.gave_up:
            return
        if waiter.time is None:
            left = self.permits.seconds_to_look()
            if left is not None:
                self.world.later(left, lambda: self.looks(waiter))
            return
        if waiter.probe and waiter not in self.probes:
            self.probes.append(waiter)
            self.world.look()
        waiter.wake = lambda: None
        self.world.at(waiter.time + self.world.chance.random() * LATE_SECONDS, lambda: self.start(waiter))

    def looks(self, waiter: Waiter) -> None:
        if self.alive and waiter.time is None and not waiter.gave_up:
            self.permits.look()
            if waiter.time is None:
                self.woken(waiter)

    def give_up(self, waiter: Waiter) -> None:
        if self.alive and waiter.outage >= 0 and not waiter.gave_up:
            self.end_of(waiter)
            self.permits.give_up(waiter)
            self.take()

    def start(self, waiter: Waiter) -> None:
        if not self.alive or waiter.gave_up:
            return
        if not self.permits.starts(waiter):
            self.end_of(waiter)
            self.take(first=True)
            return
        world = self.world
        world.calls.append(world.clock.now)
        self.calls.append(world.clock.now)
        good, seconds = not (world.down or world.hangs), TIMEOUT_SECONDS if world.hangs else CALL_SECONDS
        outcome = None if world.chance.random() < 0.005 else good
        waiter.gave_up = True  # no one gives it up any more
        if world.hangs and world.chance.random() < 0.05:
            world.lost = world.clock.now if waiter.probe else world.lost
            return  # for ever: this call, and its caller with it
        world.later(seconds, lambda: self.ended(waiter, outcome))

    def ended(self, waiter: Waiter, outcome: bool | None) -> None:
        if self.alive:
            self.end_of(waiter)
            self.permits.ended(waiter, outcome, "down")
            self.take()

    def end_of(self, waiter: Waiter) -> None:
        if waiter in self.probes:
            self.probes.remove(waiter)

    # The connection of a client.

    def wake(self) -> bool:
        self.world.later(0, self.pump)
        return True

    def pump(self) -> None:
        """A turn of the client's thread."""
        if not self.alive:
            return
        world, client = self.world, self.lessor
        client._ask_due()
        due = client.due()
        # Events of the past that are no longer due look in vain.
        if due != float("inf"):
            world.at(max(due, world.clock.now + 0.0005), self.pump_at(due))

    def pump_at(self, due: float) -> Callable[[], None]:
        self.pumped = due

        def pump() -> None:
            if self.pumped == due:
                self.pump()

        return pump

    def send(self, body: bytes) -> bool:
        def arrived() -> None:
            answer = self.world.server.answer(self, body[len(LEASE) :])
            self.world.later(NETWORK_SECONDS, lambda: self.took(answer))

        if self.world.chance.random() < self.world.cuts:
            return False
        self.world.later(NETWORK_SECONDS, arrived)
        return True

    def took(self, answer: bytes) -> None:
        if self.alive:
            self.lessor.took(answer)
            self.wake()

    def lease(self, limit, wanted: int, held: int) -> Answer:
        """As a Redis does it."""
        now = self.world.clock.now
        slots = self.world.redis.take(min(wanted, 4), now)
        again = now if slots.number else self.world.redis.first(now) - HORIZON_SECONDS
        return Answer(now, slots.first, slots.number, again, now, now)
