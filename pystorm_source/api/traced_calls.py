"""Async bolts whose calls have spans, by ``trace.sample``."""

from typing import Any

from pystorm_source.api.limited_calls import called_method


def trace_calls(bolt: Any) -> None:
    """Gives each call of an AsyncBolt's method that gets tuples a span, in tasks that are sampled.

    Order: before an executor asks for that method; after ``limit_calls``, so the span covers the wait for permits.
    """
    method = called_method(type(bolt))
    call = getattr(bolt, method)

    def traced(*arguments: Any) -> Any:
        spans = bolt._pystorm_spans
        return spans.called(method, call, arguments) if spans is not None and spans.is_on else call(*arguments)

    setattr(bolt, method, traced)
