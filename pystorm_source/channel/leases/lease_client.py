"""Gets permits from a process on the driver, over the connection of the process's reports.

A wish says what calls want and how calls have ended. Without a wish, the latter is sent on its own after a while.
"""

import logging

from pystorm_source.channel.leases.lessor import UNREACHABLE_SECONDS, Answer, OneLimit, RemoteLessor
from pystorm_source.channel.leases.messages import Wish, encode, granted_decoder
from pystorm_source.channel.reports.client_thread import NEVER, ClientThread
from pystorm_source.channel.reports.link import Link
from pystorm_source.channel.reports.protocol import LEASE
from pystorm_source.errors import WorldError
from pystorm_source.limits.permits import Permits

logger = logging.getLogger("pystorm.source")

OUTCOME_SECONDS = 0.2
"""Seconds after which it is reported how calls ended, if no wish leaves before. Longer: a circuit breaker opens late.
Shorter: more frames."""

# A process that ends checks this often, in seconds, whether its report has reached the runner. Longer: it waits for
# nothing. Shorter: it takes time from the thread that sends the report.
_LEAVE_LOOK_SECONDS = 0.002


class _OneLimit(OneLimit):
    """``wish``: the next one; ``question``: the number of the last one. The server has the breaker: ``openings`` and
    ``is_open`` are from its last answer."""

    is_open = False

    def __init__(self, permits: Permits, now: float):
        super().__init__(permits, now)
        self.wish = Wish(permits.limit.name)
        self.last_sent = now
        self.openings = 0
        self.question = 0

    @property
    def has_outcomes(self) -> bool:
        return bool(self.wish.good or self.wish.bad or self.wish.probe)

    def tells_at(self) -> float:
        if self.wish.probe:
            return self.last_sent
        return self.last_sent + OUTCOME_SECONDS if self.has_outcomes else NEVER


class LeaseClient(RemoteLessor[_OneLimit]):
    """The permits of this process from one runner."""

    _new = _OneLimit

    def __init__(self, link: Link, thread: ClientThread):
        super().__init__(thread)
        self._link = link

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
                self._thread.wake()

    def leave(self, seconds: float) -> None:
        """As ``Lessor``: waits until the runner has answered the last report."""
        deadline = self._clock.monotonic() + seconds
        with self._lock:
            telling = [one for one in self._limits.values() if one.has_outcomes]
            for one in telling:
                one.last_sent = -NEVER
            if telling:
                self._thread.wake()
        while any(one.has_outcomes or one.sent is not None for one in telling):
            if self._clock.monotonic() > deadline:
                return
            self._clock.sleep(_LEAVE_LOOK_SECONDS)

    def _ask(self, one: _OneLimit) -> None:
        with self._lock:
            wish, one.wish = one.wish, Wish(one.permits.limit.name)
            one.question += 1
            wish.wanted, wish.openings, wish.question = one.asked, one.openings, one.question
            one.last_sent = self._clock.monotonic()
        self._link.longest_pause = one.lost_seconds
        if not self._link.send(LEASE + encode(wish)):
            self._failed(one, wish)

    def _failed(self, one: _OneLimit, wish: Wish) -> None:
        """A wish was not sent: the next one carries its report."""
        with self._lock:
            one.wish.good += wish.good
            one.wish.bad += wish.bad
            one.wish.error = one.wish.error or wish.error
            if not one.wish.probe:
                one.wish.probe, one.wish.works = wish.probe, wish.works

    def took(self, body: bytes) -> None:
        """Takes an answer of the runner."""
        granted = granted_decoder.decode(body)
        with self._lock:
            one = next((each for limit, each in self._limits.items() if limit.name == granted.limit), None)
            if one is None:
                return
            if granted.question != one.question:
                # A late answer to a wish that was taken for lost. Nothing says how long it took, so nothing says when
                # its permits are due: they are not used, and its probe is given back.
                if granted.probe and not one.wish.probe:
                    one.wish.probe, one.wish.works = granted.probe, None
                return
            if one.sent is None:
                return
            count = max(0, min(granted.count, one.asked))
            answer = Answer(granted.now, granted.first, count, granted.again, one.sent, self._clock.monotonic())
            slots, again = self._here(answer, granted.apart)
            # While a probe is under way there are no permits, and no pause.
            one.is_open = bool(granted.paused or granted.probe) or (one.is_open and not count)
            opened, one.openings = granted.openings > one.openings, granted.openings
            if opened:
                one.wish.good = one.wish.bad = 0
            permits = one.permits
        if opened:
            permits.revoke()
            if granted.paused:
                logger.info("limit %r: calls fail, so there are none for %.1f s", granted.limit, granted.paused)
        self._came(one, slots, again, granted.probe)

    def _give_up(self, one: _OneLimit) -> None:
        one.question += 1
        if one.waits_since is not None and self._link.received_at < one.waits_since:
            self._link.close()  # The runner may no longer answer on it; otherwise other limits and reports need it.

    def _unreachable(self, one: _OneLimit) -> WorldError:
        return WorldError(
            f"no permits of limit {one.permits.limit.name!r} for {UNREACHABLE_SECONDS:g} s: this task cannot reach the "
            "process on the driver that gives them, or it does not answer. Open the way (feedback.host, "
            "feedback.port), let a Redis give them (topology.rate.limit.redis), or give each task a fixed share "
            f"(topology.rate.limit.tasks). Given: {self._link.runner.host}:{self._link.runner.port}",
            code="PYSTORM_PERMITS_UNREACHABLE",
        )
