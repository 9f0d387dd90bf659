"""Rows of an ``AsyncBatchBolt`` that share a call of a service: gathered, sent together, answered one by one.

    process(row 1) ─┐                                        ┌─► its answer, in the request of row 1
    process(row 2) ─┼─► RowBatches ──full, or batch_seconds──┼─► its answer, in the request of row 2
    process(row 3) ─┘      └─► one call: process_batch(rows) └─► its exception, in the request of row 3

Each row stays a request of the engine with its own verdict, so retries, time-outs, dead letters and order work as in an
AsyncBolt. While rows are gathered, and while their call waits for a permit, their time does not run.

Threading law: everything runs in the event loop's thread.
"""

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar, copy_context
from typing import Any, Protocol

from cython_core.arrow.row_error import coded
from cython_core.executors.async_executor import (
    AsyncRequest,
    has_expired,
    pause,
    pause_request,
    request_variable,
    resume_request,
)
from cython_core.tuples.tuple import Tuple
from pystorm_source.errors import given


class GathersRows(Protocol):
    """The part of an ``AsyncBatchBolt`` that its calls use."""

    batch_rows: int
    batch_seconds: float

    async def process_batch(self, tups: list[Tuple]) -> Sequence[Any] | None: ...

    def is_refusal(self, error: Exception) -> bool: ...

    def report_metric(self, name: str, value: Any) -> None: ...


class Row:
    """``answer``: the call sets it. ``request``: the engine's, which runs ``process``; None if it is not timed."""

    __slots__ = ("answer", "paused", "request", "tup")

    def __init__(self, tup: Tuple, answer: "asyncio.Future[Any]", paused: AsyncRequest | None):
        self.tup = tup
        self.answer = answer
        self.request = paused
        self.paused = paused is not None


class BatchCall:
    """One call for these rows: ``limit`` in ``process_batch`` finds it in its context. ``following``: the call to make
    when this one has ended. Parts of it may wait for the engine at the same time."""

    def __init__(self, bolt: GathersRows, rows: list[Row], following: "BatchCall | None" = None):
        self.bolt = bolt
        self.rows = rows
        self.following = following
        self.task: asyncio.Task[None] | None = None
        self.is_over = False
        self._pauses = 0

    @property
    def has_expired(self) -> bool:
        """Whether the time of one of its rows is over."""
        return any(row.request is not None and has_expired(row.request) for row in self.rows)

    def pause(self) -> None:
        """Stops the time of its rows while a part of it waits for the engine."""
        self._pauses += 1
        if self._pauses == 1 and not self.is_over:
            self.stop()

    def resume(self) -> None:
        """The part waits no longer. Starts the time of the rows again, from zero, once none does."""
        self._pauses -= 1
        if not self._pauses and not self.is_over:
            self.start()

    def stop(self) -> None:
        """Stops the time of its rows."""
        for row in self.rows:
            if row.request is not None and not row.paused:
                row.paused = pause(row.request) is not None

    def start(self) -> None:
        """Starts the time of its rows, from zero."""
        for row in self.rows:
            if row.paused and row.request is not None:
                row.paused = False
                resume_request(row.request)

    def end(self) -> None:
        """Tasks that it has started and not awaited no longer change the time of its rows."""
        if not self.is_over:
            self.is_over = True
            self.start()

    def halve(self) -> None:
        """Has two calls follow, each for half of the rows; in turn, so as not to call the service twice as often. The
        time of a row begins when its next call does."""
        self.stop()
        middle = (len(self.rows) + 1) // 2
        second = BatchCall(self.bolt, self.rows[middle:], self.following)
        self.following = BatchCall(self.bolt, self.rows[:middle], second)

    def without_given_up(self) -> "BatchCall | None":
        """Returns the first call, from this one on, with rows that still wait, and drops its other rows."""
        call: BatchCall | None = self
        while call is not None:
            call.rows = [row for row in call.rows if not row.answer.done()]
            if call.rows:
                break
            call = call.following
        return call

    def answered(self, answers: Any) -> None:
        """Gives the rows what ``process_batch`` has returned."""
        if answers is None:
            answers = [None] * len(self.rows)
        if not isinstance(answers, Sequence) or isinstance(answers, (str, bytes)) or len(answers) != len(self.rows):
            return self.failed(_wrong(self.bolt, answers, len(self.rows)))
        for row, answer in zip(self.rows, answers, strict=True):
            if row.answer.done():
                continue
            if isinstance(answer, StopIteration):  # which no future takes
                row.answer.set_exception(RuntimeError(f"process_batch answers {answer!r}"))
            elif isinstance(answer, BaseException):
                row.answer.set_exception(answer)
            else:
                row.answer.set_result(answer)
        return None

    def failed(self, error: BaseException) -> None:
        """Gives all rows the exception."""
        for row in self.rows:
            if not row.answer.done():
                row.answer.set_exception(error)


_CALL: ContextVar[BatchCall | None] = ContextVar("pystorm_batch_call", default=None)


def call_of(bolt: Any) -> BatchCall | None:
    """The call of this bolt's ``process_batch`` in whose context the caller runs."""
    call = _CALL.get()
    return call if call is not None and call.bolt is bolt else None


class RowBatches:
    """The batches of one task of ``bolt``."""

    def __init__(self, bolt: GathersRows):
        self._bolt = bolt
        self._waiting: list[Row] = []
        self._timer: asyncio.TimerHandle | None = None
        self._calls: dict[Row, BatchCall] = {}

    async def answer(self, tup: Tuple) -> Any:
        """Returns the answer of ``process_batch`` for the tuple. Raises an exception that it answers or raises."""
        loop = asyncio.get_running_loop()
        row = Row(tup, loop.create_future(), pause_request(self._bolt))
        self._waiting.append(row)
        if len(self._waiting) >= self._bolt.batch_rows:
            self._send()
        elif self._timer is None:
            self._timer = loop.call_later(self._bolt.batch_seconds, self._send)
        try:
            return await row.answer
        except asyncio.CancelledError:
            await self._gave_up(row)
            raise
        finally:
            self._calls.pop(row, None)

    async def _gave_up(self, row: Row) -> None:
        """The last row of a call keeps its place until the call has ended, like any request."""
        call = self._calls.get(row)
        if call is None:
            if row in self._waiting:
                self._waiting.remove(row)
        elif call.task is not None and all(each.answer.done() for each in call.rows):
            call.task.cancel()
            await asyncio.wait((call.task,))

    def _send(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        rows, self._waiting = self._waiting, []
        if rows:
            self._begin(BatchCall(self._bolt, rows))

    def _begin(self, call: BatchCall) -> None:
        for row in call.rows:
            self._calls[row] = call
        # Order: without the last row's request. Otherwise all that the call emits would belong to that row.
        context = copy_context()
        context.run(request_variable.set, None)
        call.task = asyncio.get_running_loop().create_task(self._make(call), context=context)

    async def _make(self, call: BatchCall) -> None:
        """Never raises: the rows get what a call raises.

        Order: its task ends in the same step that answers the rows, because the run and its loop may end then.
        """
        call.start()
        _CALL.set(call)
        bolt = self._bolt
        bolt.report_metric("batch.rows", len(call.rows))
        try:
            answers = await bolt.process_batch([row.tup for row in call.rows])
            call.end()
            call.answered(answers)
        except BaseException as error:
            call.end()
            if len(call.rows) > 1 and isinstance(error, Exception) and self._is_refused(call, error):
                call.halve()
            else:
                call.failed(error)
        following = None if call.following is None else call.following.without_given_up()
        if following is not None:
            self._begin(following)

    def _is_refused(self, call: BatchCall, error: Exception) -> bool:
        try:
            return bool(self._bolt.is_refusal(error))
        except Exception as own:
            call.failed(own)
            return False


def _wrong(bolt: GathersRows, answers: Any, rows: int) -> Exception:
    return coded(
        TypeError,
        "PYSTORM_INVALID_RETURN_VALUE",
        f"{type(bolt).__name__}.process_batch got {rows} tuples: it must return a list with one answer for each, in "
        f"their order (a row to emit, None, or an exception), or None if nothing is to be emitted. "
        f"Given: {given(answers)}",
    )
