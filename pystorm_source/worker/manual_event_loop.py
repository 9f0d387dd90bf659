"""The event loop of async bolts, by a clock of the test kit.

Threading law: as EventLoop.
"""

import asyncio
import heapq
import selectors
import sys
from collections.abc import Callable, Coroutine
from contextvars import Context
from types import FrameType
from typing import Any

from pystorm_source.clock import Clock, SystemClock
from pystorm_source.worker.event_loop import NEVER, EventLoop

LOOK_SECONDS = 0.001
_WRAP_FUTURE = asyncio.wrap_future.__code__


class ManualEventLoop(EventLoop):
    """An event loop whose clock stops until it is advanced. If the loop waits only for timers, a wait advances the
    clock, unless ``others`` do; if it may also wait for sockets or threads, the clock also follows the machine's
    time."""

    def __init__(self, clock: Clock, others: bool):
        super().__init__()
        self._clock = clock
        self._others = others

    @property
    def next_timer(self) -> float:
        return self._timed().next_timer()

    @property
    def waits_for_world(self) -> bool:
        return self._timed().waits_for_world()

    @property
    def rests(self) -> bool:  # type: ignore[override]
        """Whether a wait sleeps: no callback runs or is about to run. Any thread may ask."""
        return self._timed().looks.rests

    def when_it_rests(self, call: Callable[[], None]) -> None:
        """Makes the loop's thread call it whenever a wait begins to sleep."""
        self._timed().looks.when_it_rests = call

    @property
    def is_ready(self) -> bool:
        """Whether a turn would run a callback without advancing the clock."""
        return self._timed().is_ready()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        looks = self._timed().looks
        others, looks.others = looks.others, False  # they wait for the end of this call
        try:
            return super().run(coroutine)
        finally:
            looks.others = others

    def _timed(self) -> "_TimedLoop":
        loop = self._opened()
        assert isinstance(loop, _TimedLoop)
        return loop

    def _new_loop(self) -> asyncio.AbstractEventLoop:
        return _TimedLoop(self._clock, self._others)


class _TimedLoop(asyncio.SelectorEventLoop):
    """asyncio's loop, by that clock."""

    OWN_FILES = 2  # for waking it: asyncio's pipe and the loop's own

    def __init__(self, clock: Clock, others: bool):
        self._clock = clock
        self._jobs = 0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self.looks = _TimedSelector(self, clock, others)
        super().__init__(self.looks)

    def time(self) -> float:
        return self._clock.monotonic()

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = super().call_at(when, callback, *args, context=context)
        heapq.heappush(self._timers, (when, id(timer), timer))
        return timer

    def create_future(self) -> "asyncio.Future[Any]":
        future = super().create_future()
        if _is_of_another_thread(sys._getframe().f_back):
            self._jobs += 1
            future.add_done_callback(self._job_done)
        return future

    def _job_done(self, _: Any) -> None:
        self._jobs -= 1

    def next_timer(self) -> float:
        while self._timers and (self._timers[0][2].cancelled() or self._timers[0][0] <= self.time()):
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else NEVER

    def is_ready(self) -> bool:
        timers = self._scheduled  # type: ignore[attr-defined]
        return bool(self._ready) or bool(timers and timers[0]._when <= self.time())  # type: ignore[attr-defined]

    def waits_for_world(self) -> bool:
        return self._jobs > 0 or len(self.looks.get_map()) > self.OWN_FILES


def _is_of_another_thread(caller: FrameType | None) -> bool:
    """Whether another thread sets the result of a future that this function, or what it calls, has made.

    A thread of Python does so by ``wrap_future``, also behind ``run_in_executor``. Clients in Rust or C (obstore,
    pyreqwest) call the loop from compiled code: then the nearest function of Python does not name ``create_future``.
    Nothing else tells of their threads, and the clock would jump to the time-outs of their calls.
    """
    return caller is None or caller.f_code is _WRAP_FUTURE or "create_future" not in caller.f_code.co_names


class _TimedSelector(selectors.DefaultSelector):
    """Waits by that clock."""

    def __init__(self, loop: _TimedLoop, clock: Clock, others: bool):
        super().__init__()
        self._loop = loop
        self._clock = clock
        self.others = others
        self.rests = False
        self.when_it_rests: Callable[[], None] = lambda: None
        self._machine = SystemClock()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is not None and not self.others and not self._loop.waits_for_world():
            self._clock.sleep(timeout)
            return []
        began, shown = self._machine.monotonic(), self._clock.monotonic()
        self.rests = True
        self.when_it_rests()
        ready = super().select(LOOK_SECONDS)
        self.rests = False
        passed = self._machine.monotonic() - began - (self._clock.monotonic() - shown)
        if passed > 0 and self._loop.waits_for_world():
            self._clock.sleep(passed)
        return ready
