"""The driver's span of each sampled micro-batch: from its planning until Spark asks for the next one."""

import logging
from random import random
from typing import Any

from pystorm_source.plan.plan import Plan
from pystorm_source.worker.tracing import flush, guarded, note_end, tracer_of

logger = logging.getLogger("pystorm.trace")


class BatchSpans:
    """Decides once for a micro-batch whether it is sampled. Its span never changes what is planned.

    Threading law: the planning thread calls all methods.
    """

    def __init__(self, plan: Plan):
        self._plan = plan
        self._batch = self._traceparent = ""
        self._tracer: Any = None
        self._span: Any = None

    def begun(self, batch: str) -> str:
        """Returns the traceparent for the tasks of a micro-batch, the same one if it is planned twice; empty if it is
        not sampled. Raises OptionError as ``tracer_of``."""
        if not self._plan.options.trace_sample:
            return ""
        if batch != self._batch:
            self.ended()
            self._batch = batch
            self._tracer = self._tracer or self._new_tracer()
            if random() < self._plan.options.trace_sample:
                with guarded():
                    self._begin()
        return self._traceparent

    def _new_tracer(self) -> Any:
        tracer = tracer_of(self._plan.options)
        from opentelemetry import trace

        if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
            logger.warning(
                "trace.sample is set, but no provider takes the spans of this process: set one up in trace.setup"
            )
        return tracer

    def _begin(self) -> None:
        from opentelemetry import context, trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        attributes = {"pystorm.topology": self._plan.name}
        span = self._tracer.start_span(f"micro-batch {self._plan.name}", context.Context(), attributes=attributes)
        if span.is_recording():  # the provider's own sampler, too, may leave it out
            carrier: dict[str, str] = {}
            TraceContextTextMapPropagator().inject(carrier, trace.set_span_in_context(span))
            self._span, self._traceparent = span, carrier["traceparent"]

    def ended(self) -> None:
        """The micro-batch is over, if one runs."""
        span, self._span = self._span, None
        self._batch = self._traceparent = ""
        if span is not None:
            with guarded():
                span.end()
            note_end()

    def close(self) -> None:
        """Blocks for at most as long as ``flush``: exports the last micro-batch."""
        self.ended()
        flush()
