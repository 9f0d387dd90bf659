"""Logs a call of a component that does not return, while it lasts, with tuple and stack; ends it if an option says so.

    Worker: start, run, stop ──► watching(worker) ──► one thread of this process looks now and then:
                                                      the same call as at the last look ──► since when?
                                                      longer than the message time-out  ──► a warning
                                                      twice as long, four times, ...    ──► another one
                                                      longer than topology.subprocess.timeout.secs ──► it is ended

It costs executors nothing: they store the component in a call and the number of calls and turns anyway, and the thread
reads these with the interpreter's lock held. It sleeps while no worker runs, and keeps no worker alive.

A call that keeps the interpreter's lock forever (a loop in compiled code) stops this thread, too. That is noticed for a
child process: its watchdog counts its looks in memory shared with the parent, and the parent's watchdog names a process
that has work but has stopped counting, because it is stopped or keeps that lock.

Threading law: ``watching`` is for any thread, the rest is for the watchdog.
"""

import logging
import os
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, NamedTuple, Protocol

from cython_core.executors.async_executor import AsyncExecutor
from cython_core.executors.executor import Executor
from pystorm_source.clock import SystemClock
from pystorm_source.errors import LONGEST_TRACEBACK, cut
from pystorm_source.worker.failure import place
from pystorm_source.worker.task_counts import NANOS
from pystorm_source.worker.task_times import permit_text

logger = logging.getLogger("pystorm.worker")

DEFAULT_SECONDS = 30.0
"""How long a call may last before it is named if message time-outs are off; otherwise Storm's time-out counts. Less:
healthy calls (a bulk load) are named. More: the warning comes later."""
LOOKS = 4
"""Looks in that time. Fewer: a call is named later, by that share of the time. More: the thread wakes for nothing."""
LONGEST_SECONDS = 1.0
"""Most seconds between two looks. Less: the thread wakes for nothing. More: the start of a call is known less
exactly."""
SHORTEST_SECONDS = 0.01
"""Least seconds between two looks, for any time-out. Less: more than a thousandth of a processor."""
AFTER_ERROR_SECONDS = 1.0
"""Pause after an error in the watchdog itself. Less: an error that lasts takes a processor. More: calls are named
later."""

Call = tuple[tuple[Executor, ...], int, int, bool]
"""As schedulers return it: executors that the component may belong to, thread, turn, whether the thread sleeps in the
loop."""


class Watched(Protocol):
    """The part of a worker that the watchdog uses."""

    @property
    def call_seconds(self) -> float: ...

    def calls(self) -> Sequence[Call]: ...

    def calls_away(self) -> Sequence[Call]: ...

    def place_of_run(self) -> str: ...

    @property
    def call_limit(self) -> float | None:
        """Seconds after which a call is ended; None: never."""

    def end_call(self, call: "LongCall", is_late: bool) -> None:
        """Ends the run, because the call lasts too long. ``is_late``: it has been interrupted, and still lasts."""

    def end_away(self, call: "LongCall") -> None:
        """The same for a task in a process that does not answer."""


INTERRUPTED_SECONDS = 2.0
"""How long an interrupted call may still last. Less: its ``finally`` is cut off. More: one that cannot be interrupted
ends later."""
SILENT_SECONDS = LOOKS * LONGEST_SECONDS
"""A child process that has counted no look for this long is silent, for any time-out. Less: one that waits for a
processor is named. More: the warning comes later."""


class LongCall(NamedTuple):
    """``executors``: the component belongs to one of them. ``seconds``: how long it has lasted at least."""

    executors: tuple[Executor, ...]
    thread: int
    seconds: float


class _Seen:
    def __init__(self, mark: Any, now: float, seconds: float):
        self.mark = mark
        self.since = now
        self.due = now + seconds


class CallTimes:
    """When the running calls of one worker were first seen."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self._seen: dict[int, _Seen] = {}

    def look(self, calls: Iterable[Call], now: float) -> list[LongCall]:
        """The calls that have lasted for ``seconds``; returns each again whenever its time has doubled."""
        found = []
        for call in self.under_way(calls, now):
            seen = self._seen[call.thread]
            if now >= seen.due:
                seen.due = seen.since + 2 * call.seconds
                found.append(call)
        return found

    def under_way(self, calls: Iterable[Call], now: float) -> list[LongCall]:
        """All running calls, with the time since they were first seen."""
        found, self._seen = self._compared(calls, now)
        return found

    def lasting(self, calls: Iterable[Call], now: float) -> list[LongCall]:
        """As ``under_way``, but does not count as a look: any thread may ask."""
        return self._compared(calls, now)[0]

    def _compared(self, calls: Iterable[Call], now: float) -> tuple[list[LongCall], dict[int, _Seen]]:
        before, after = self._seen, {}
        found = []
        for executors, thread, turn, in_loop in calls:
            if in_loop and _waits(thread):
                continue
            mark = (turn, tuple(_progress(executor) for executor in executors))
            seen = before.get(thread)
            if seen is None or seen.mark != mark:
                seen = _Seen(mark, now, self.seconds)
            after[thread] = seen
            found.append(LongCall(executors, thread, now - seen.since))
        return found, after


def _progress(executor: Any) -> tuple[Any, ...]:
    """A mark that differs between any two calls: only names and counts, which keep nothing alive."""
    ticks = getattr(executor, "ticks", 0)
    return (executor.component, executor.task, executor.executed, executor.acks, executor.fails, ticks)


class _Watch(NamedTuple):
    """``away``: for tasks in child processes. ``limit``: seconds after which a call is ended; None: never."""

    worker: "weakref.ref[Watched]"
    calls: CallTimes
    away: CallTimes
    limit: float | None


class Watchdog:
    """Watches the workers of this process, in a daemon thread that starts with the first one."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._forget()
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """Order: in a forked process, whose parent's threads are gone but may have held the lock."""
        self._changed = threading.Condition()
        self._workers: dict[int, _Watch] = {}
        self._count: Callable[[], None] = lambda: None
        self._end_process: Callable[[str], None] = lambda _: None
        self._entered = 0
        self._thread: threading.Thread | None = None
        self._sleeps_for: float | None = None  # None: until a worker comes
        self._complained = False

    @contextmanager
    def watching(self, worker: Watched) -> Iterator[None]:
        """Watches calls of the worker's components during the block."""
        watch = self._enter(worker)
        try:
            yield
        finally:
            self._leave(watch)

    def calls_of(self, worker: Watched) -> list[LongCall]:
        """The running calls of a worker, each with the seconds that it has lasted at least. Any thread may ask."""
        now = self._clock.monotonic()
        for watch in list(self._workers.values()):
            if watch.worker() is worker:
                return watch.calls.lasting(worker.calls(), now)
        return CallTimes(worker.call_seconds).lasting(worker.calls(), now)

    def count_looks(self, count: Callable[[], None]) -> None:
        """In a child process: ``count`` is called at each look while there is a worker."""
        self._count = count

    def end_process_by(self, end: Callable[[str], None]) -> None:
        """In a child process: ``end`` ends it, if a call that lasts too long cannot be interrupted. It gets the call's
        tuple, as text."""
        self._end_process = end

    def _enter(self, worker: Watched) -> int:
        with self._changed:
            self._entered += 1
            watch = self._entered
            seconds = worker.call_seconds
            away = CallTimes(max(seconds, SILENT_SECONDS))
            limit = worker.call_limit
            self._workers[watch] = _Watch(weakref.ref(worker), CallTimes(seconds), away, limit)
            if self._thread is None:
                self._start()
            elif self._sleeps_for is None or _interval(_shorter(seconds, limit)) < self._sleeps_for:
                self._changed.notify()
            return watch

    def _leave(self, watch: int) -> None:
        """Order: without the lock. A run may end while the interpreter shuts down; the thread, which then never wakes
        again, may hold it. A reader of the dict copies it first."""
        self._workers.pop(watch, None)

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="pystorm-watchdog", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter ends
            return
        self._thread = thread

    def _run(self) -> None:
        """The thread. It survives every exception, because no other thread would restart it."""
        while True:
            try:
                self._wait_and_look()
            except Exception:
                self._complain()
                self._clock.sleep(AFTER_ERROR_SECONDS)

    def _wait_and_look(self) -> None:
        with self._changed:
            # Order: copied first. A run that is garbage-collected leaves in the collecting thread, which may be this
            # one.
            seconds = [_shorter(watch.calls.seconds, watch.limit) for watch in list(self._workers.values())]
            self._sleeps_for = min(map(_interval, seconds), default=None)
            self._changed.wait(self._sleeps_for)
            watched = list(self._workers.values())
        self._count()
        for watch in watched:
            self._look(watch)

    def _complain(self) -> None:
        """Logs once: a fault of one look repeats in the next."""
        if not self._complained:
            self._complained = True
            logger.exception("the calls of a worker cannot be inspected; this is logged once")

    def _look(self, watch: _Watch) -> None:
        """Order: a separate call, because no reference to the worker may remain while the thread sleeps."""
        worker = watch.worker()
        if worker is None:
            return
        try:
            now = self._clock.monotonic()
            for call in watch.calls.look(worker.calls(), now):
                logger.warning("%s", text_of(call, worker.place_of_run()))
            for call in watch.away.look(worker.calls_away(), now):
                logger.warning("%s", text_of_silent(call, worker.place_of_run()))
            if watch.limit is not None:
                self._end_long_calls(worker, watch, watch.limit, now)
        except Exception:
            self._complain()

    def _end_long_calls(self, worker: Watched, watch: _Watch, limit: float, now: float) -> None:
        """Interrupts them again at each look: a bare ``except`` may have caught it."""
        for call in watch.calls.lasting(worker.calls(), now):
            if call.seconds >= limit:
                is_late = call.seconds >= limit + INTERRUPTED_SECONDS
                worker.end_call(call, is_late)
                if is_late:
                    executor, _, _ = in_component(call.executors, call.thread)
                    self._end_process(place(*executor.at_work))  # type: ignore[attr-defined]
        for call in watch.away.lasting(worker.calls_away(), now):
            if call.seconds >= max(limit, SILENT_SECONDS):
                worker.end_away(call)


def _shorter(seconds: float, limit: float | None) -> float:
    return seconds if limit is None else min(seconds, limit)


def _interval(seconds: float) -> float:
    return max(SHORTEST_SECONDS, min(LONGEST_SECONDS, seconds / LOOKS))


def text_of(call: LongCall, where: str) -> str:
    """Names component, task, method, tuple, time and the call's place in the code."""
    executor, method, stack = in_component(call.executors, call.thread)
    tup, offset = executor.at_work  # type: ignore[attr-defined]
    called = f"{method}()" if method else "a call"
    text = f"component {executor.component!r}, task {executor.task}: {called} has not returned for {call.seconds:.3g} s"
    text += f", where it {waits}" if (waits := permit_text(executor)) else ""
    text += place(tup, offset) + (f"; in {where}" if where else "")
    return f"{text}. It is at:\n{cut(''.join(stack), LONGEST_TRACEBACK)}".rstrip() if stack else text


def text_of_silent(call: LongCall, where: str) -> str:
    """Names component, task, process, time and the tuple that has been there longest."""
    executor: Any = call.executors[0]
    what = executor.link.doing
    text = f"component {executor.component!r}, task {executor.task}: its process {executor.link.pid}"
    text += f" has not answered for {call.seconds:.3g} s" + (f": {what}" if what else "")
    return text + place(*executor.at_work) + (f"; in {where}" if where else "")


def longest_calls(executors: Iterable[Executor]) -> dict[Executor, int]:
    """Executor → nanoseconds of its longest call so far."""
    return {executor: executor.times.latency.maximum for executor in executors}


def late_call(
    busy: Iterable[tuple[Executor, threading.Thread]],
    executors: Sequence[Executor],
    before: Mapping[Executor, int],
    seconds: float,
) -> tuple[str, int, str] | None:
    """The component that a timed-out tuple waited for, if it can be found: component, task and its call.

    ``busy``: executors that are in a call, and their threads. ``before``: ``longest_calls`` when the run began.
    """
    for executor, thread in busy:
        _, method, _ = in_component((executor,), thread.ident or 0)
        return executor.component, executor.task, f"{f'{method}()' if method else 'a call'} has not returned"
    for executor, longest in longest_calls(executors).items():
        if longest > before.get(executor, 0) and longest / NANOS >= seconds:
            return executor.component, executor.task, f"a call took {longest / NANOS:.3g} s"
    for executor in executors:
        if isinstance(executor, AsyncExecutor) and executor.in_flight > 0:
            return executor.component, executor.task, f"{executor.in_flight} requests were under way"
    return None


def in_component(executors: Sequence[Executor], thread: int) -> tuple[Executor, str, list[str]]:
    """The executor whose component the thread is in, the called method, and the stack from there on; the method is
    empty if the component is compiled."""
    executor, method, frames = frames_in_component(executors, thread)
    return executor, method, traceback.format_list(_summary(frames))


def frames_in_component(executors: Sequence[Executor], thread: int) -> tuple[Executor, str, list[FrameType]]:
    """As ``in_component``, with the frames themselves, outermost first."""
    frames = frames_of_thread(thread)
    for i, frame in enumerate(frames):
        for executor in executors:
            method = _method_of(executor.instance, frame.f_code)
            if method and not method.startswith("_"):  # those belong to the engine and call the user's
                return executor, method, frames[i:]
    return executors[0], "", frames


def frames_of_thread(thread: int) -> list[FrameType]:
    """The frames of a thread, outermost first."""
    frame = sys._current_frames().get(thread)
    found: list[FrameType] = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found[::-1]


def _summary(frames: Iterable[FrameType]) -> traceback.StackSummary:
    return traceback.StackSummary.extract((frame, frame.f_lineno) for frame in frames)


def _method_of(instance: Any, code: CodeType) -> str:
    """The name of this code in the class of the instance, or empty."""
    for cls in type(instance).__mro__:
        for name, value in vars(cls).items():
            if getattr(value, "__code__", None) is code:
                return name
    return ""


def _waits(thread: int) -> bool:
    """Whether a thread in the event loop waits there, outside of callbacks."""
    frame = sys._current_frames().get(thread)
    module = "" if frame is None else frame.f_globals.get("__name__", "")
    return module == "selectors" or module.startswith(("asyncio.", "pystorm_source.worker.event_loop"))


_watchdog = Watchdog()
watching = _watchdog.watching
calls_of = _watchdog.calls_of
count_looks = _watchdog.count_looks
end_process_by = _watchdog.end_process_by
