"""Gets permits for the workers of a task's process: for each runner a thread and a connection.

A wish leaves when calls wait, or will soon; with it how calls have ended, which leaves by itself after a while. One
wish of a limit is under way at a time.

The permits' times are the server's clock; ``ClockDifference`` says how far that is from this process's.

Threading law: ``want`` and ``ended`` from any thread; the connection belongs to the client's thread. A forked process
begins anew, with clients of its own.
"""

import logging
from threading import Lock, Thread

from pystorm_source.channel.leases.clock_difference import ClockDifference
from pystorm_source.channel.leases.messages import Wish, encode, granted_decoder
from pystorm_source.channel.reports.endpoint import Runner
from pystorm_source.channel.reports.link import Link
from pystorm_source.channel.reports.protocol import LEASE
from pystorm_source.channel.reports.server_clients import ServerClients
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import WorldError
from pystorm_source.limits.permits import AHEAD_SECONDS, Permits
from pystorm_source.limits.schedule import Slots

logger = logging.getLogger("pystorm.source")

OUTCOME_SECONDS = 0.2
"""Seconds after which it is reported how calls ended, if no wish leaves before. Longer: a circuit breaker opens late.
Shorter: more frames."""

LOST_SECONDS = 1.0
"""Seconds after which a wish without an answer is taken for lost. Longer: calls stand still. Shorter: a busy server is
asked twice."""

UNREACHABLE_SECONDS = 20.0
"""Seconds that calls wait for a server that cannot be reached, or does not answer. Longer: a query hangs without a
message. Shorter: a driver that pauses fails its tasks."""


class _OneLimit:
    """What the client knows of the permits of one worker."""

    def __init__(self, permits: Permits, now: float):
        self.permits = permits
        self.wish = Wish(permits.limit.name)
        self.wants = False
        self.sent: float | None = None
        """When the wish under way has left; None: there is none."""
        self.last_sent = now
        self.again = now
        self.waits_since: float | None = None
        self.asked = 0
        """Permits of the wish under way: no answer gives more."""
        self.openings = 0
        self.is_open = False

    @property
    def has_outcomes(self) -> bool:
        return bool(self.wish.good or self.wish.bad or self.wish.probe)

    def due(self) -> float:
        """When its next wish leaves; infinity if none is to."""
        times = [self.again] if self.wants else []
        if self.wish.probe:
            times.append(self.last_sent)
        elif self.has_outcomes:
            times.append(self.last_sent + OUTCOME_SECONDS)
        due = min(times, default=float("inf"))
        return due if self.sent is None else max(due, self.sent + LOST_SECONDS)

    def is_late(self, now: float) -> bool:
        """Whether calls have waited too long for an answer; not while asking is no use."""
        return self.waits_since is not None and now - max(self.waits_since, self.again) > UNREACHABLE_SECONDS


class LeaseClient:
    """The permits of this process from one runner. A ``Lessor``."""

    ahead = True

    def __init__(self, runner: Runner, clock: Clock | None = None):
        self._runner = runner
        self._clock = clock or SystemClock()
        self._link = Link(runner, self._clock, took=self._took, longest_pause=LOST_SECONDS)
        self._lock = Lock()
        self._limits: dict[str, _OneLimit] = {}
        self._difference = ClockDifference()
        self._thread: Thread | None = None
        self._closed = False
        self._woken = False

    def want(self, permits: Permits) -> None:
        """As ``Lessor``."""
        with self._lock:
            one = self._of(permits)
            if not one.wants:
                one.wants = True
                if one.waits_since is None:
                    one.waits_since = self._clock.monotonic()
                self._wake()

    def ended(self, permits: Permits, good: bool | None, probe: int, error: str) -> None:
        """As ``Lessor``."""
        with self._lock:
            one = self._of(permits)
            had = one.has_outcomes
            if probe:
                one.wish.probe, one.wish.works = probe, good
            elif good is not None:
                one.wish.good += good
                one.wish.bad += not good
            one.wish.error = error or one.wish.error
            if probe or not had:
                self._wake()

    def is_open(self, permits: Permits) -> bool:
        """As ``Lessor``, by the last answer. Without the lock: it reads one bool."""
        one = self._limits.get(permits.limit.name)
        return one is not None and one.is_open

    def close(self) -> None:
        """Non-blocking."""
        with self._lock:
            self._closed = True
            self._wake()

    def abandon(self) -> None:
        """In a forked process: closes its copy of the connection, which belongs to the other process."""
        self._link.end()

    def _of(self, permits: Permits) -> _OneLimit:
        """With the lock held. A worker that has taken the place of another one takes its limits, too."""
        one = self._limits.get(permits.limit.name)
        if one is None:
            one = self._limits[permits.limit.name] = _OneLimit(permits, self._clock.monotonic())
        one.permits = permits
        return one

    def _wake(self) -> None:
        """With the lock held."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name="pystorm-leases", daemon=True)
            self._thread.start()
        elif not self._woken:
            self._woken = True
            self._link.wake()

    def _run(self) -> None:
        while True:
            with self._lock:
                self._woken = False
                if self._closed:
                    break
                now = self._clock.monotonic()
                due = min((one.due() for one in self._limits.values()), default=float("inf"))
            try:
                self._link.look(None if due == float("inf") else max(0.0, due - now))
                self._send_due()
                self._refuse_late()
            except Exception:
                logger.debug("permits are not asked for", exc_info=True)
                self._link.close()
                self._clock.sleep(LOST_SECONDS)
        self._link.end()

    def _send_due(self) -> None:
        with self._lock:
            limits = list(self._limits.values())
        for one in limits:
            with self._lock:
                # Order: with the lock held, or a call that begins to wait meanwhile is not asked for.
                wanted = one.permits.wanted() if one.wants else 0
                now = self._clock.monotonic()
                if one.wants and not wanted:
                    one.wants, one.waits_since = False, None
                if one.due() > now:
                    continue
                wish, one.wish = one.wish, Wish(one.permits.limit.name)
                wish.wanted = wanted if one.again <= now else 0
                one.asked, wish.openings = wish.wanted, one.openings
                one.sent = one.last_sent = now
            if self._link.send(LEASE + encode(wish)):
                continue
            self._failed(one, wish)

    def _failed(self, one: _OneLimit, wish: Wish) -> None:
        """A wish did not leave: what it told is told with the next one."""
        with self._lock:
            one.wish.good += wish.good
            one.wish.bad += wish.bad
            one.wish.error = one.wish.error or wish.error
            if not one.wish.probe:
                one.wish.probe, one.wish.works = wish.probe, wish.works

    def _refuse_late(self) -> None:
        """Calls that have waited for too long raise an error, whether a wish has left or not."""
        with self._lock:
            now = self._clock.monotonic()
            late = [one for one in self._limits.values() if one.is_late(now)]
            for one in late:
                one.wants, one.waits_since = False, None  # later calls start a new wait
        for one in late:
            self._link.close()  # a later answer is to an old wish
            one.permits.refuse(
                WorldError(
                    f"no permits of limit {one.permits.limit.name!r} for {UNREACHABLE_SECONDS:g} s: this task cannot "
                    "reach the process on the driver that gives them, or it does not answer. Open the way "
                    "(feedback.host, feedback.port), let a Redis give them (topology.rate.limit.redis), or give each "
                    "task a fixed share (topology.rate.limit.tasks). Given: "
                    f"{self._runner.host}:{self._runner.port}",
                    code="PYSTORM_PERMITS_UNREACHABLE",
                )
            )

    def _took(self, body: bytes) -> None:
        granted = granted_decoder.decode(body)
        with self._lock:
            one = self._limits.get(granted.limit)
            if one is None or one.sent is None:
                return
            granted.count = max(0, min(granted.count, one.asked))
            now = self._clock.monotonic()
            ahead = self._difference.ahead(one.sent, granted.now, now)
            one.sent = None
            one.again = granted.again - ahead
            if granted.count:
                # Not for each permit that comes within the horizon: a wish takes the time of some calls.
                last = granted.first - ahead + (granted.count - 1) * granted.apart
                one.again = max(one.again, last - AHEAD_SECONDS)
            # While a probe is under way there are no permits, and no pause.
            one.is_open = bool(granted.paused or granted.probe) or (one.is_open and not granted.count)
            opened, one.openings = granted.openings > one.openings, granted.openings
            if opened:
                one.wish.good = one.wish.bad = 0
            if granted.count:
                one.wants, one.waits_since = False, None
            elif one.waits_since is not None:
                one.waits_since = now  # it is there, and has none to give
        if opened:
            one.permits.revoke()
        if opened and granted.paused:
            logger.info("limit %r: calls fail, so there are none for %.1f s", granted.limit, granted.paused)
        if granted.count:
            one.permits.granted(Slots(granted.first - ahead, granted.count, granted.apart), granted.probe)
        if one.permits.wanted():
            self.want(one.permits)


_clients = ServerClients(LeaseClient)


def lease_client(runner: Runner) -> LeaseClient:
    """That of this process. Called by the thread that runs the tasks; those not used for longest are closed."""
    return _clients.of(runner)
