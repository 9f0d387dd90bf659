"""Keeps a run from never ending: a clock that checks the time, and a thread for calls that do not return."""

import sys
import threading
from collections.abc import Callable, Iterable
from threading import Thread
from types import FrameType, TracebackType
from typing import Self

from pystorm_source.api import Component
from pystorm_source.api.limit import Limit
from pystorm_source.clock import Clock, ManualClock, SystemClock
from pystorm_source.worker.interrupt import raise_in

GRACE_SECONDS = 2.0
"""How long after the clock a call is interrupted. Too small: on a busy machine a component is blamed for a turn that
the clock would have ended. Too large: a call that never returns takes that much longer to end."""
END_SECONDS = 10.0
"""How long a run may clean up after the clock has ended it. Too small: the clean-up is interrupted."""
_MOMENT = 0.001  # Just past the time limit, so that it is exceeded.


class TooLong(BaseException):
    """Time is up. Not an Exception, so components do not catch it as their own."""


class WatchedClock:
    """Wraps ``clock``; raises TooLong once the machine's clock has advanced by more than ``timeout`` seconds.

    A sleep of a ManualClock advances to the reading that ``next_event`` returns, if that is later.
    """

    def __init__(self, clock: Clock, timeout: float):
        self._clock = clock
        self._machine = SystemClock()
        self._end = self._machine.monotonic() + timeout
        self.has_raised = threading.Event()
        """Whether some thread is ending the run."""
        self.next_event: Callable[[], float | None] = lambda: None

    def stop_watching(self) -> None:
        """Stops raising while the run cleans up, because time is already up. The Watchdog still ends a clean-up that
        takes too long."""
        self._end = float("inf")

    def _watch(self) -> None:
        if self._machine.monotonic() > self._end:
            self.has_raised.set()
            raise TooLong

    def monotonic(self) -> float:
        self._watch()
        return self._clock.monotonic()

    def wall(self) -> float:
        return self._clock.wall()

    def sleep(self, seconds: float) -> None:
        self._watch()
        event = self.next_event() if isinstance(self._clock, ManualClock) else None
        self._clock.sleep(seconds if event is None else max(seconds, event - self._clock.monotonic()))

    def pause(self, seconds: float) -> None:
        """Sleeps inside a call, while the topology does not wait: for that long, but not beyond the time-out."""
        self._watch()
        if isinstance(self._clock, ManualClock):
            self._clock.sleep(seconds)
        else:
            self._clock.sleep(min(seconds, max(0.0, self._end - self._machine.monotonic()) + _MOMENT))
            self._watch()


class WatchedSystemClock(WatchedClock, SystemClock):
    """Wraps a SystemClock: code that asks whether time is real (flush timer, bound of a turn) sees that it is."""


def watched_clock(clock: Clock, timeout: float) -> WatchedClock:
    """Wraps ``clock`` so that it is watched."""
    return (WatchedSystemClock if isinstance(clock, SystemClock) else WatchedClock)(clock, timeout)


class Watchdog:
    """Raises TooLong in the thread of a ``with`` block after ``seconds``, plus a grace for ``clock`` to go first.

    CPython raises it between two Python instructions: a call that waits in C is interrupted when it returns.
    """

    def __init__(self, seconds: float, clock: WatchedClock):
        self._seconds = seconds + GRACE_SECONDS
        self._clock = clock
        self._watched = threading.get_ident()
        self._over = threading.Event()
        self._has_raised = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._wait, name="run_topology-watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while True:
            try:
                self._disarm()
                break
            except TooLong:  # it arrived at the very last moment
                pass
        if self._has_raised or kind is TooLong:
            let_come()  # a pending interrupt must not hit code that runs later
        self._thread.join()

    def _wait(self) -> None:
        if not self._over.wait(self._seconds) and self._clock.has_raised.is_set():
            self._over.wait(END_SECONDS)
        while not self._over.is_set():
            with self._lock:
                # Replaces any pending interrupt: at most one is pending.
                if not self._over.is_set():
                    self._has_raised = True
                    raise_in(self._watched, TooLong)
            self._over.wait(GRACE_SECONDS)  # raise it again if a bare `except` has swallowed it

    def _disarm(self) -> None:
        with self._lock:
            self._over.set()


def let_come() -> None:
    """Returns once no interrupt is pending in this thread.

    Workaround: CPython 3.11 clears a pending interrupt only when it is raised, not when it is revoked or the thread
    ends. Until then the thread runs slower, and loops endlessly if a debugger or a coverage tool traces it.
    """
    try:
        raise_in(threading.get_ident(), TooLong)
        while True:
            pass
    except TooLong:
        pass


def interrupted_threads(threads: Iterable[Thread]) -> str:
    """Like ``interrupted_call``, for one of these threads that is in a component; interrupts all of them."""
    found = permit = ""
    for thread in threads:
        assert thread.ident is not None
        frame = sys._current_frames().get(thread.ident)
        while frame is not None:
            permit = permit or _permit_in(frame)
            found = _call_in(frame) or found
            frame = frame.f_back
        raise_in(thread.ident, TooLong)
    return found + permit if found else ""


def interrupted_call(error: BaseException) -> str:
    """Returns ``'words' has not returned from process()``, by the traceback; empty if no component was in a call.

    Also considers the hidden exception, because code that reads the clock while the interrupted turn ends raises again.
    """
    trace = error.__traceback__
    while trace is not None:
        if found := _call_in(trace.tb_frame):
            return found + _permit_below(trace)
        trace = trace.tb_next
    return "" if error.__context__ is None else interrupted_call(error.__context__)


def _permit_below(trace: TracebackType | None) -> str:
    while trace is not None:
        if found := _permit_in(trace.tb_frame):
            return found
        trace = trace.tb_next
    return ""


def _permit_in(frame: FrameType) -> str:
    limit = frame.f_locals.get("self")
    return f", where it waits for a permit of {limit.name!r}" if isinstance(limit, Limit) else ""


def _call_in(frame: FrameType) -> str:
    component = frame.f_locals.get("self")
    if not isinstance(component, Component):
        return ""
    return f"{component.component_name or type(component).__name__!r} has not returned from {frame.f_code.co_name}()"
