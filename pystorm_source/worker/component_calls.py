"""Calls a worker's components outside of turns: by the scheduler's rules, with errors that name them."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cython_core.executors.executor import ComponentFailed, Executor, named_failure
from cython_core.schedulers.schedulers import InlineScheduler, ThreadsScheduler
from pystorm_source.errors.user_frames import shown
from pystorm_source.worker.failure import GivenUp, tuple_failed
from pystorm_source.worker.interrupt import CallTimedOut, interrupt
from pystorm_source.worker.watchdog import LongCall, in_component, late_call, longest_calls

logger = logging.getLogger("pystorm.worker")


@contextmanager
def named_call(component: str, task: int, method: str) -> Iterator[None]:
    """Wraps a call of a component's method, or of an object that it has. Raises ComponentFailed if the call fails;
    errors that may come from outside of it pass through with a note."""
    try:
        yield
    except BaseException as error:
        failure = named_failure(component, task, method, None, -1, error)
        if failure is error:
            raise
        raise failure from error


class ComponentCalls:
    """``where``: the range that is read, for messages; empty for several ranges.

    ``call_seconds``: a call that takes longer is blamed for trees that time out during it.
    """

    def __init__(
        self, scheduler: InlineScheduler | ThreadsScheduler, executors: Sequence[Executor], call_seconds: float
    ):
        self.where = ""
        self.call_seconds = call_seconds
        self._scheduler = scheduler
        self._executors = executors
        self._longest: dict[Executor, int] = {}
        self._driver = 0  # the thread that waits for the executors
        self._left: ComponentFailed | None = None  # the call in another thread that it no longer waits for

    def begin(self) -> None:
        """Begins a micro-batch: calls of earlier ones are not blamed for its time-outs."""
        self._longest = longest_calls(self._executors)

    def call(self, executor: Executor, method: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a component's method. Raises TupleFailed, with the component's exception as its cause."""
        try:
            with self._leaves_long_calls(), named_call(executor.component, executor.task, method):
                return self._scheduler.call(executor, function, *arguments)
        except ComponentFailed as failure:
            raise tuple_failed(failure, self.where) from failure.__cause__

    def call_quietly(self, executor: Executor, method: str, function: Callable[[], Any]) -> None:
        """Calls it unless its thread is still in another call. Logs an error and does not raise it."""
        component, task = executor.component, executor.task
        self._driver = threading.get_ident()
        try:
            with named_call(component, task, method):
                self._scheduler.call_if_free(executor, function)
        except ComponentFailed as failure:
            raised = shown(failure.__cause__ or failure)
            logger.error("%s() of component %r, task %d raised\n%s", method, component, task, raised)

    @contextmanager
    def turns(self) -> Iterator[None]:
        """Wraps executors' turns. Raises TupleFailed if a component fails in one."""
        try:
            with self._leaves_long_calls():
                yield
        except ComponentFailed as failure:
            if isinstance(failure, GivenUp) and failure.failed.timed_out:
                late = late_call(self._scheduler.busy(), self._executors, self._longest, self.call_seconds)
                failure.failed = failure.failed if late is None else failure.failed.blamed_on(*late)
            raise tuple_failed(failure, self.where) from failure.__cause__

    def end(self, call: LongCall, limit: float, is_late: bool) -> None:
        """Ends a call that has lasted for longer than ``limit`` seconds, and so the run. Any thread may call it.
        ``is_late``: it has been interrupted, and still lasts: a thread that is not the driving one is left behind."""
        text = (
            f"the call has not returned for {call.seconds:.3g} s, longer than topology.subprocess.timeout.secs allows. "
            f"Given: {limit:g}"
        )
        interrupt(call.thread, text)
        if is_late and call.thread != self._driver and self._left is None:
            executor, method, stack = in_component(call.executors, call.thread)
            tup, offset = executor.at_work  # type: ignore[attr-defined]
            self._left = ComponentFailed(executor.component, executor.task, method or "process", tup, offset)
            self._left.__cause__ = CallTimedOut(f"{text}. It is at:\n{''.join(stack)}")
            interrupt(self._driver, text)

    @contextmanager
    def _leaves_long_calls(self) -> Iterator[None]:
        """Raises what ``end`` has left behind."""
        self._driver = threading.get_ident()
        try:
            yield
        except (CallTimedOut, ComponentFailed) as error:
            cause = error if isinstance(error, CallTimedOut) else error.__cause__
            if self._left is not None and isinstance(cause, CallTimedOut):
                raise self._left from self._left.__cause__
            raise
