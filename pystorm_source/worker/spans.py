"""Spans of a worker's tasks, and of the calls that its components make::

    micro-batch ─► task ─┬─► a call of an AsyncBolt's process ─┬─► the block of self.limit
    (the driver)         └─► the block of self.limit           └─► what instrumented clients add

Parents are passed on by hand, not by the thread's context: calls run in several threads, and a task's rows leave in
between. Inside of a call, its span is the current one.

Order: imported only where ``trace.sample`` is set, because it imports opentelemetry.

Threading law: one thread begins and ends tasks; calls begin and end in any thread.
"""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry import context, trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from cython_core.executors.async_executor import request_variable
from cython_core.executors.executor import Executor
from cython_core.routing.failure_kinds import Hopeless, RetryLater
from cython_core.tuples.tuple import attempt_of_tree
from pystorm_source.api.batch_call import call_of
from pystorm_source.options import EngineOptions
from pystorm_source.worker.tracing import guarded, note_end, tracer_of

Call = Coroutine[Any, Any, Any]


class TaskSpans:
    """``context``: OpenTelemetry's, of the task that runs now; None if it is not sampled.

    Raises OptionError as ``tracer_of``: in the first task, sampled or not.
    """

    def __init__(self, options: EngineOptions) -> None:
        self.context: context.Context | None = None
        self.tracer: trace.Tracer = tracer_of(options)

    def of(self, executor: Executor) -> "CallSpans":
        """Spans of the calls of this component's task."""
        return CallSpans(self, executor)

    @contextmanager
    def task(self, name: str, traceparent: str, attributes: Mapping[str, Any]) -> Iterator[None]:
        """The block is a sampled task. ``traceparent``: names its parent as W3C says; empty: it has no parent."""
        span: trace.Span | None = None
        with guarded():
            parent = TraceContextTextMapPropagator().extract({"traceparent": traceparent}, context.Context())
            span = self.tracer.start_span(name, parent, attributes=attributes)
            self.context = trace.set_span_in_context(span, parent)
            context.attach(context.Context())  # what a block that ended out of order has left there
        error: BaseException | None = None
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            self.context = None
            if span is not None:
                _end(span, error)
                note_end()


class CallSpans:
    """Spans of the calls of one component's task: ``Component._pystorm_spans``."""

    def __init__(self, task: TaskSpans, executor: Executor):
        self._task = task
        self._executor = executor

    def __reduce__(self) -> tuple[object, ...]:
        """A component's state may be pickled: the engine's own attributes are left out."""
        return type(None), ()

    @property
    def is_on(self) -> bool:
        """Whether the task that runs now is sampled."""
        return self._task.context is not None

    def begin(self, call: str, attributes: Mapping[str, Any]) -> "CallSpan | None":
        """Begins the span of a call, which is current until its end; None if the task is not sampled, or the provider
        raises."""
        begun: CallSpan | None = None
        if (parent := self._task.context) is not None:
            with guarded():
                begun = CallSpan(self._begin(call, attributes, parent))
        return begun

    def _begin(self, call: str, attributes: Mapping[str, Any], above: context.Context) -> trace.Span:
        current = trace.get_current_span()
        is_inside = current.is_recording() and _trace_of(current) == _trace_of(trace.get_current_span(above))
        parent = None if is_inside else above  # inside of a call, that is the parent
        component = self._executor.component
        span = self._task.tracer.start_span(f"{component} {call}", parent, attributes=attributes)
        span.set_attributes({"pystorm.component": component, "pystorm.task": self._executor.task})
        if attempt := self._attempt():
            span.set_attribute("pystorm.attempt", attempt)
        return span

    async def called(self, method: str, call: Callable[..., Call], arguments: tuple[Any, ...]) -> Any:
        """Awaits a call of an AsyncBolt, in a span."""
        span = self.begin(method, {})
        error: BaseException | None = None
        try:
            return await call(*arguments)
        except BaseException as raised:
            error = raised
            raise
        finally:
            if span is not None:
                span.end(error)

    def _attempt(self) -> int:
        """Returns the attempt number of the call's tuple; the highest one of an AsyncBolt's batch, that of the first
        tuple of another batch; 0 if unknown."""
        bolt = self._executor.instance
        if (batch := call_of(bolt)) is not None:
            return max(attempt_of_tree(row.tup) for row in batch.rows)
        request = request_variable.get(None)
        if request is not None and request.bolt is bolt:
            return attempt_of_tree(request.tup)
        tup, _ = self._executor.at_work  # type: ignore[attr-defined]
        return 0 if tup is None else attempt_of_tree(tup)


class CallSpan:
    """The span of a call that has begun."""

    def __init__(self, span: trace.Span):
        self._span = span
        self._before = context.get_current()
        context.attach(trace.set_span_in_context(span))

    def end(self, error: BaseException | None) -> None:
        """``error``: the exception that has ended the call."""
        # A block may end in another thread or request than it began, whose own span stays current there. Not detach,
        # which logs an error in another context.
        if trace.get_current_span() is self._span:
            context.attach(self._before)
        _end(self._span, error)


def _trace_of(span: trace.Span) -> int:
    return int(span.get_span_context().trace_id)


def _end(span: trace.Span, error: BaseException | None) -> None:
    """Names the class of the exception, not its text, which may quote rows."""
    with guarded():
        span.set_attribute("pystorm.outcome", _outcome(error))
        if error is not None and not isinstance(error, GeneratorExit):
            span.set_attribute("error.type", type(error).__qualname__)
            span.set_status(trace.StatusCode.ERROR)
        span.end()


def _outcome(error: BaseException | None) -> str:
    if error is None:
        return "ok"
    if isinstance(error, RetryLater):
        return "retry-after"
    if isinstance(error, GeneratorExit):
        return "stopped"  # Spark wants no more rows, as with LIMIT
    return "hopeless" if isinstance(error, Hopeless) else "error"
