"""The permits of one limit in one worker: calls wait for them, and a ``Lessor`` gives them.

::

    take() ─▶ a permit in hand? ─yes─▶ waits until its time ─▶ in time? ─yes─▶ the call
                    │ no                                          │ no: the permit is lost
                    ▼                                             ▼
              waits in turn ◀── granted(): the oldest first ── take(first=True)

Threading law: any thread calls it. It calls the ``Lessor`` without the lock.
"""

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Protocol

from pystorm_source.clock import Clock
from pystorm_source.limits.schedule import HORIZON_SECONDS, Slots, together_seconds, valid_seconds
from pystorm_source.options.rate_limit import RateLimit

AHEAD_SECONDS = HORIZON_SECONDS / 2
"""If permits in hand last for less, more are asked for. More seconds: they are used later, or not at all. Less: calls
wait for the answer."""


class Lessor(Protocol):
    """Where permits come from. Any thread calls it; it raises nothing. ``ahead``: whether to ask it before permits are
    needed, because its answers take a while."""

    ahead: bool

    def want(self, permits: "Permits") -> None:
        """``permits.wanted()`` is above 0: it calls ``granted``, or ``refuse``, now or later."""

    def ended(self, permits: "Permits", good: bool | None, probe: int, error: str) -> None:
        """A call has ended; ``good``: None if it says nothing about the service. ``probe``: the number of the probe
        whose permit it had, 0 for none."""

    def is_open(self, permits: "Permits") -> bool:
        """Whether the circuit breaker is open, as far as this process knows: also while a probe runs."""

    def leave(self, seconds: float) -> None:
        """Blocks for at most ``seconds``: before the process ends, it reports how its calls have ended."""


class Waiter:
    """One call that waits. ``time``: of its permit, None until it has one. ``error``: why it never gets one.
    ``probe``: the number of the probe that it makes, or 0; ``outage``: the number of outages before it."""

    __slots__ = ("error", "gave_up", "outage", "probe", "revoked", "time", "wake")

    def __init__(self, wake: Callable[[], None]):
        self.wake = wake
        self.time: float | None = None
        self.probe = self.outage = 0
        self.revoked = self.gave_up = False
        self.error: Exception | None = None


class Permits:
    """``lessor``: where permits come from at first. ``together``: seconds for which calls may wait for others, so that
    they begin together."""

    def __init__(self, limit: RateLimit, clock: Clock, lessor: Lessor):
        self.limit = limit
        self._valid = valid_seconds(limit)
        self.together = together_seconds(limit)
        self.clock = clock
        self._lessor = lessor
        self._lock = Lock()
        self._in_hand: deque[tuple[float, int]] = deque()
        self._waiters: deque[Waiter] = deque()
        self._assigned: set[Waiter] = set()
        self._recent: deque[float] = deque()
        self._lost_probe = 0
        self._look: float | None = None
        self._outages = 0

    def __reduce__(self) -> tuple[object, ...]:
        """A component's state may be pickled: the engine's own attributes are left out."""
        return type(None), ()

    @property
    def is_paused(self) -> bool:
        """Whether the service is not called because its calls failed."""
        return self._lessor.is_open(self)

    def lease_from(self, lessor: Lessor) -> None:
        """From now on, permits come from ``lessor``. Permits in hand from another one are dropped."""
        if lessor is not self._lessor:
            with self._lock:
                self._lessor = lessor
                self._in_hand.clear()
                self._recent.clear()
                self._look = None

    def take(self, wake: Callable[[], None], first: bool = False) -> Waiter:
        """Returns the waiter of a call that wants a permit. If it must wait, any thread calls ``wake`` when it has one.

        ``first``: it had one and was too late for it, so it goes before others.
        """
        waiter = Waiter(wake)
        with self._lock:
            self._drop_late()
            if self._in_hand and (first or not self._waiters):
                self._assign(waiter)
            elif first:
                self._waiters.appendleft(waiter)
            else:
                self._waiters.append(waiter)
            lessor, wants = self._lessor, bool(self._waiters) or (self._lessor.ahead and self._runs_short())
        self._return_lost_probe()
        if wants:
            lessor.want(self)
        return waiter

    def starts(self, waiter: Waiter) -> bool:
        """Whether a waiter whose time has come may make its call. If not, it takes another permit."""
        assert waiter.time is not None
        with self._lock:
            self._assigned.discard(waiter)
            now = self.clock.monotonic()
            in_time = not waiter.revoked and now <= waiter.time + self._valid
            if in_time and self._lessor.ahead:
                self._recent.append(now)
            waiter.outage = self._outages
        if not in_time and waiter.probe:
            self._lessor.ended(self, None, waiter.probe, "")
        return in_time

    def give_up(self, waiter: Waiter) -> None:
        """The waiter's call is not made."""
        with self._lock:
            waiter.gave_up = True
            self._assigned.discard(waiter)
            if waiter.time is None or waiter.revoked or waiter.probe:
                given_back = False
            else:
                self._in_hand.appendleft((waiter.time, waiter.probe))
                given_back = True
            woken = self._hand_out() if given_back else []
        self._return_lost_probe()
        _wake(woken)
        if waiter.time is not None and waiter.probe:
            self._lessor.ended(self, None, waiter.probe, "")

    def ended(self, waiter: Waiter, good: bool | None, error: str = "") -> None:
        """The call has ended; ``good`` as for ``Lessor``. One that began before an outage says nothing about now."""
        if waiter.outage != self._outages and not waiter.probe:
            good = None
        self._lessor.ended(self, good, waiter.probe, error)

    def wanted(self) -> int:
        """How many permits calls wait for, or will soon."""
        with self._lock:
            waiting = sum(1 for waiter in self._waiters if not waiter.gave_up)
            return max(waiting, self._soon() if self._lessor.ahead and self._runs_short() else 0)

    def granted(self, slots: Slots, probe: int = 0) -> None:
        """Permits have arrived; times are this clock's."""
        with self._lock:
            self._look = None
            self._in_hand.extend((slots.at(place), probe) for place in range(slots.number))
            woken = self._hand_out()
            if probe and self._in_hand:  # no call waits that could make it now
                self._in_hand.pop()
                self._lost_probe = probe
        self._return_lost_probe()
        _wake(woken)

    def look_at(self, time: float) -> None:
        """There are no permits now: calls that still wait at that time ask for them again."""
        with self._lock:
            self._look = time

    def seconds_to_look(self) -> float | None:
        """Seconds that a call waits before it calls ``look``; None: until it is woken."""
        look = self._look
        return None if look is None else max(0.0, look - self.clock.monotonic())

    def look(self) -> None:
        """A call has waited for a while: asks for permits again if it is time."""
        if self.seconds_to_look() == 0.0:
            self._lessor.want(self)

    def revoke(self) -> None:
        """The service must not be called: unused permits do not count, nor do calls that have begun."""
        with self._lock:
            self._outages += 1
        self.drop()

    def drop(self) -> None:
        """Unused permits do not count."""
        with self._lock:
            self._in_hand.clear()
            self._recent.clear()
            for waiter in self._assigned:
                waiter.revoked = True

    def refuse(self, error: Exception) -> None:
        """There are no permits: every call that waits for one raises the error."""
        with self._lock:
            woken = [waiter for waiter in self._waiters if not waiter.gave_up]
            self._waiters.clear()
            for waiter in woken:
                waiter.error = error
        _wake(woken)

    def _soon(self) -> int:
        """Permits that calls will want within the horizon: half as many again as in the last one, less the permits in
        hand."""
        since = self.clock.monotonic() - HORIZON_SECONDS
        while self._recent and self._recent[0] < since:
            self._recent.popleft()
        return len(self._recent) * 3 // 2 + bool(self._recent) - len(self._in_hand)

    def _runs_short(self) -> bool:
        last = self._in_hand[-1][0] if self._in_hand else float("-inf")
        return last < self.clock.monotonic() + AHEAD_SECONDS

    def _drop_late(self) -> None:
        now = self.clock.monotonic()
        while self._in_hand and self._in_hand[0][0] + self._valid < now:
            _, probe = self._in_hand.popleft()
            self._lost_probe = self._lost_probe or probe

    def _return_lost_probe(self) -> None:
        """Returns a probe that no call makes, so that calls do not wait for it. The caller must not have the lock."""
        if self._lost_probe:
            lost, self._lost_probe = self._lost_probe, 0
            self._lessor.ended(self, None, lost, "")

    def _hand_out(self) -> list[Waiter]:
        self._drop_late()
        woken = []
        while self._waiters and self._in_hand:
            waiter = self._waiters.popleft()
            if not waiter.gave_up:
                self._assign(waiter)
                woken.append(waiter)
        return woken

    def _assign(self, waiter: Waiter) -> None:
        waiter.time, waiter.probe = self._in_hand.popleft()
        self._assigned.add(waiter)


def _wake(waiters: list[Waiter]) -> None:
    for waiter in waiters:
        waiter.wake()
