"""Gets permits from another process for the workers of a task's process: what a driver and a Redis have in common.

::

    want() ─▶ due? ─▶ _ask() ─▶ _came(): permits, or when to ask again ─▶ Permits.granted()
               ▲         │
               └─ lost ──┴─ no answer for UNREACHABLE_SECONDS ─▶ Permits.refuse()

It asks when calls wait, or will soon. Each limit has at most one question in flight. Times in an answer are by the
other side's clock; ``ClockDifference`` says how far that is from this process's.

Threading law: ``want`` and ``ended`` from any thread; what asks, and its connection, belongs to the client's
thread.
"""

from collections.abc import Callable
from threading import active_count
from typing import Generic, NamedTuple, TypeVar

from pystorm_source.channel.leases.clock_difference import ClockDifference
from pystorm_source.channel.reports.client_thread import NEVER, ClientThread
from pystorm_source.errors import WorldError
from pystorm_source.limits.permits import AHEAD_SECONDS, Permits
from pystorm_source.limits.schedule import Slots
from pystorm_source.options.rate_limit import RateLimit

UNREACHABLE_SECONDS = 20.0
"""Seconds that calls wait for a driver or a Redis that cannot be reached, or does not answer. Longer: a query hangs
without a message. Shorter: a restart, or a driver that pauses, fails tasks."""

MOST_WANTED = 100_000
"""Permits to ask for at once, at most. More: a task may ask for what no process can use."""


class Answer(NamedTuple):
    """``now``: the answering side's clock, in seconds; so are ``first``, the time of the first permit, and ``again``,
    before which asking is useless. ``number``: of permits. ``sent``, ``came``: this process's clock when it asked and
    when the answer arrived."""

    now: float
    first: float
    number: int
    again: float
    sent: float
    came: float


class OneLimit:
    """The state of one worker's permits."""

    lost_seconds = 1.0
    """Seconds after which a question without an answer is taken for lost. Longer: calls wait for nothing. Shorter: a
    busy server is asked twice."""

    def __init__(self, permits: Permits, now: float):
        self.permits = permits
        self.wants = False
        self.again = now
        """Asking before is useless."""
        self.waits_since: float | None = None
        """Since when calls wait without an answer."""
        self.sent: float | None = None
        """When the question in flight was sent; None without one."""
        self.asked = 0
        """Permits that it asks for: no answer gives more."""

    @property
    def is_open(self) -> bool:
        """Whether the circuit breaker is open, as far as this process knows."""
        raise NotImplementedError

    def due(self) -> float:
        """When its next question should be sent; infinity for never."""
        due = min(self.again if self.wants else NEVER, self.tells_at())
        return due if self.sent is None else max(due, self.sent + self.lost_seconds)

    def tells_at(self) -> float:
        """When to report how calls have ended, even if none waits for a permit."""
        return NEVER

    def is_late(self, now: float) -> bool:
        """Whether calls have waited too long for an answer; not while asking is useless."""
        return self.waits_since is not None and now - max(self.waits_since, self.again) > UNREACHABLE_SECONDS


One = TypeVar("One", bound=OneLimit)


class RemoteLessor(Generic[One]):
    """A ``Lessor``, and a part of a client. Subclasses ask a driver or a Redis; they call ``_came`` with each answer.

    They define ``ended``; ``_new``, the initial state of a limit; ``_ask``, which asks for ``one.asked`` permits and
    blocks for some seconds at most; ``_unreachable``, the error that calls raise.
    """

    ahead = True
    _new: Callable[[Permits, float], One]
    _ask: Callable[[One], None]
    _unreachable: Callable[[One], WorldError]

    def __init__(self, thread: ClientThread):
        self._thread = thread
        self.close, self.abandon = thread.close, thread.line.end
        self._lock = thread.lock
        self._clock = thread.clock
        self._limits: dict[RateLimit, One] = {}
        self._difference = ClockDifference()

    def want(self, permits: Permits) -> None:
        """As ``Lessor``."""
        with self._lock:
            one = self._of(permits)
            if one.wants:
                return
            one.wants = True
            if one.waits_since is None:
                one.waits_since = self._clock.monotonic()
            if self._thread.wake():
                return
            one.wants, one.waits_since = False, None
        permits.refuse(_no_thread(permits))

    def is_open(self, permits: Permits) -> bool:
        """As ``Lessor``. Without the lock: it reads one value."""
        one = self._limits.get(permits.limit)
        return one is not None and one.is_open

    def leave(self, seconds: float) -> None:
        """As ``Lessor``: there is no other process to report to."""

    def _of(self, permits: Permits) -> One:
        """With the lock held. A worker that replaces another one takes over its limits."""
        one = self._limits.get(permits.limit)
        if one is None:
            one = self._limits[permits.limit] = self._new(permits, self._clock.monotonic())
        one.permits = permits
        return one

    def due(self) -> float:
        return min((one.due() for one in self._limits.values()), default=NEVER)

    def turn(self) -> None:
        if self._limits:
            try:
                self._ask_due()
            finally:
                self._refuse_late()

    def _ask_due(self) -> None:
        with self._lock:
            limits = list(self._limits.values())
        for one in limits:
            with self._lock:
                # Order: with the lock held, or a call that begins to wait in between is not asked for.
                wanted = one.permits.wanted() if one.wants else 0
                now = self._clock.monotonic()
                if one.wants and not wanted:
                    one.wants, one.waits_since = False, None
                if one.due() > now:
                    continue
                one.asked = min(wanted, MOST_WANTED) if one.again <= now else 0
                one.sent = now
            self._ask(one)

    def _refuse_late(self) -> None:
        """Calls that have waited too long raise an error, whether a question was sent or not."""
        with self._lock:
            now = self._clock.monotonic()
            late = [one for one in self._limits.values() if one.is_late(now)]
            for one in late:
                self._give_up(one)
                one.wants, one.waits_since = False, None  # later calls start a new wait
        for one in late:
            one.permits.refuse(self._unreachable(one))

    def _give_up(self, one: One) -> None:
        """With the lock held: its calls raise; a later answer belongs to an old question."""

    def _here(self, answer: Answer, apart: float) -> tuple[Slots, float]:
        """With the lock held: an answer's permits, and when to ask again, by this process's clock."""
        ahead = self._difference.ahead(answer.sent, answer.now, answer.came)
        return Slots(answer.first - ahead, answer.number, apart), answer.again - ahead

    def _came(self, one: One, slots: Slots, again: float, probe: int = 0) -> None:
        """Takes an answer, with permits or without; its times are by this process's clock."""
        with self._lock:
            one.sent = None
            one.again = again
            if slots.number:
                # Not for each permit within the horizon: asking takes the time of some calls.
                one.again = max(again, slots.at(slots.number - 1) - AHEAD_SECONDS)
                one.wants, one.waits_since = False, None
            elif one.waits_since is not None:
                one.waits_since = self._clock.monotonic()  # the other side answers, but has no permits
            permits = one.permits
        if slots.number:
            permits.granted(slots, probe)
        if permits.wanted():
            self.want(permits)


def _no_thread(permits: Permits) -> WorldError:
    return WorldError(
        f"no permits of limit {permits.limit.name!r}: this process cannot start a thread that asks for them. Raise the "
        "limit of processes and threads where tasks run (ulimit -u; pids of the container), or give each task a fixed "
        f"share (topology.rate.limit.tasks), which needs no thread. Given: {active_count()} threads of Python",
        code="PYSTORM_PERMITS_UNREACHABLE",
    )
