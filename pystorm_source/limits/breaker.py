"""A circuit breaker: a service whose calls fail is not called for a while. Pure.

::

               most of the last calls failed
      closed ───────────────────────────────▶ open ──pause is over──▶ probing: one call
        ▲                                      ▲                        │        │
        │                                      └── it failed: a pause ──┘        │
        └─────────────────────────── it succeeded ───────────────────────────────┘
                                                     twice as long, up to 10 s

Only one probe runs at a time: all other calls wait until it ends. A probe longer than LONGEST_PROBE is replaced.

The pattern is Nygard's ("Release It!"); windows of counts and the probe are as in resilience4j.
"""

from collections import deque
from typing import NamedTuple

LEAST_CALLS = 10
"""Least calls to decide on. More: a service with few calls is called for long after it has died. Fewer: it is paused
for bad luck."""

WINDOW_SECONDS = 1.0
"""The calls of this window decide, or of a longer one if they are fewer than LEAST_CALLS. Longer: earlier successes
hide for longer that the service has died. Shorter: it is paused for bad luck."""

LONGEST_PAUSE = 10.0
"""The pause doubles up to these seconds, unless the first one is longer. Longer: calls resume long after a service has
recovered. Shorter: more calls reach a service that is down for hours."""

LONGEST_PROBE = 10.0
"""Seconds after which another call probes, because the first one may be lost with the task that had it. Longer: no
calls for so long when a task is killed. Shorter: more calls reach a service that hangs."""

_KEPT_SECONDS = 60.0  # Older counts say nothing about now.
_STEP = 0.1  # Seconds whose calls are counted together. Longer: the window is coarse. Shorter: more counts.


class Verdict(NamedTuple):
    """``paused_until``: no call before it, unless the breaker closes; ``probe``: whether the next call is the probe.
    While a probe runs, the next call is no probe, and calls pause until the running one counts as lost."""

    paused_until: float
    probe: bool


class _Counts:
    def __init__(self, since: float):
        self.since = since
        self.good = self.bad = 0


class CircuitBreaker:
    """``share``: of failed calls at which it opens, 0 to 1; 0: never. ``pause``: seconds of the first pause."""

    def __init__(self, share: float, pause: float):
        self._share = share
        self._first_pause = self._pause = pause
        self._recent: deque[_Counts] = deque()
        self.open_until: float | None = None
        """The end of the pause; None: closed."""
        self.failing_since = 0.0
        """The last opening."""
        self.openings = 0
        self.failed = (0, 0)
        """At the last opening: how many calls had failed, of how many."""
        self.last_error = ""
        """The error of the last call that failed, for people."""
        self._probe_ends: float | None = None
        self._probes = 0
        self._closed_at = float("-inf")

    def verdict(self, now: float) -> Verdict:
        """Whether calls may be made."""
        if self.open_until is None:
            return Verdict(now, False)
        if self._probe_ends is not None and now < self._probe_ends:
            return Verdict(self._probe_ends, False)
        return Verdict(max(now, self.open_until), True)

    @property
    def is_closed(self) -> bool:
        """Whether calls are made as if there were no breaker."""
        return self.open_until is None

    def is_open(self, now: float) -> bool:
        """Whether no call may be made now, not even a probe."""
        return self.open_until is not None and now < self.open_until

    def probes(self, at: float) -> int:
        """The probe is made at that time. Returns its number, above 0."""
        self._probe_ends = at + LONGEST_PROBE
        self._probes += 1
        return self._probes

    def ended(self, good: int, bad: int, now: float, error: str = "") -> bool:
        """Calls other than the probe have ended. Returns whether that opens the breaker."""
        if self._share == 0 or self.open_until is not None:  # calls that were in flight when it opened say nothing new
            return False
        if bad and error:
            self.last_error = error
        self._count(good, bad, now)
        failed, all_calls = self._last_calls(now)
        if all_calls < LEAST_CALLS or failed < self._share * all_calls:
            return False
        self.failed = (failed, all_calls)
        self._open(now)
        return True

    def probed(self, number: int, good: bool, now: float, error: str = "") -> bool:
        """A probe has ended. Returns whether that closes the breaker.

        If a probe that counts as lost succeeds, it closes the breaker, too: the service is slow, but works."""
        if self.open_until is None or not (good or self._is_out(number)):
            return False
        self._probe_ends = None
        if good:
            self.open_until = None
            self._closed_at = now
            return True
        if error:
            self.last_error = error
        self._pause = self._doubled()
        self.open_until = now + self._pause
        return False

    def returned(self, number: int) -> None:
        """A probe was not made."""
        if self._is_out(number):
            self._probe_ends = None

    def _is_out(self, number: int) -> bool:
        return self._probe_ends is not None and number == self._probes

    def _doubled(self) -> float:
        return min(max(LONGEST_PAUSE, self._first_pause), 2 * self._pause)

    def _open(self, now: float) -> None:
        self.openings += 1
        self.failing_since = now
        # A service that passes a probe and then fails again at once is no better than one that fails the probe.
        stayed_closed = now - self._closed_at > self._pause
        self._pause = self._first_pause if stayed_closed else self._doubled()
        self.open_until = now + self._pause
        self._probe_ends = None
        self._recent.clear()

    def _count(self, good: int, bad: int, now: float) -> None:
        if not self._recent or now - self._recent[-1].since >= _STEP:
            self._recent.append(_Counts(now))
        self._recent[-1].good += good
        self._recent[-1].bad += bad
        while self._recent[0].since < now - _KEPT_SECONDS:
            self._recent.popleft()

    def _last_calls(self, now: float) -> tuple[int, int]:
        """Failed calls and all calls of the last second, or further back until there are enough."""
        good = bad = 0
        for counts in reversed(self._recent):
            if counts.since < now - WINDOW_SECONDS and good + bad >= LEAST_CALLS:
                break
            good += counts.good
            bad += counts.bad
        return bad, good + bad
