"""OpenTelemetry in one Python process: its set-up, once, and the export of spans before the process may end.

Nothing imports opentelemetry until a query sets ``trace.sample``.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Thread
from typing import Any

from pystorm_source.errors import OptionError, said
from pystorm_source.errors.packages import package
from pystorm_source.options import EngineOptions
from pystorm_source.options.named import load_named
from pystorm_source.version import __version__

logger = logging.getLogger("pystorm.trace")

FLUSH_SECONDS = 0.5
"""How long a task waits for the export of its spans. Longer: a collector that hangs delays tasks. Shorter: spans are
lost if Spark ends the process with its task."""

_set_up: set[str] = set()
_has_warned = False
_lock = Lock()
_has_ended = False  # a span, since the last flush
_flushing: Thread | None = None


def tracer_of(options: EngineOptions) -> Any:
    """Returns a tracer of this process's provider, after ``trace.setup`` has set that up. Any thread may call it.

    Raises OptionError if opentelemetry-api is missing, or ``trace.setup`` names no function or one that raises.
    """
    api = package("opentelemetry.trace", "trace.sample", "otel")
    with _lock:
        if options.trace_setup and options.trace_setup not in _set_up:
            if _set_up:  # Spark uses a process for the next query, and OpenTelemetry keeps the first provider
                logger.warning(
                    "trace.setup: %s has set up this process already: use one set-up for all queries of an application",
                    ", ".join(_set_up),
                )
            _call(options.trace_setup)
            _set_up.add(options.trace_setup)
    return api.get_tracer("pystorm_source", __version__)


@contextmanager
def guarded() -> Iterator[None]:
    """The block calls the user's provider: what that raises costs spans, and is told once, but never fails a row."""
    global _has_warned
    try:
        yield
    except Exception as error:
        if not _has_warned:
            _has_warned = True
            logger.warning("spans are lost: OpenTelemetry's provider raised %s", said(error), exc_info=True)


def note_end() -> None:
    """A span has ended, for ``flush`` to export."""
    global _has_ended
    _has_ended = True


def flush() -> None:
    """Called at the end of each task: exports the spans that have ended, if any. Blocks for at most ``FLUSH_SECONDS``;
    while an earlier export hangs, not at all, so a dead collector does not delay every task."""
    global _flushing, _has_ended
    if not _has_ended:
        return
    _has_ended = False
    provider = package("opentelemetry.trace", "trace.sample", "otel").get_tracer_provider()
    force_flush = getattr(provider, "force_flush", None)  # the API has none
    if force_flush is None or (_flushing is not None and _flushing.is_alive()):
        return
    # A thread, because force_flush of the SDK ignores its time-out.
    flushing = Thread(target=_export, args=(force_flush,), name="pystorm-trace-flush", daemon=True)
    with guarded():  # a process may have no room for another thread
        flushing.start()
        _flushing = flushing
        flushing.join(FLUSH_SECONDS)


def _export(force_flush: Any) -> None:
    with guarded():
        force_flush()


def _call(name: str) -> None:
    module, function = load_named("trace.setup", name, "a function as module:function, such as 'jobs.traces:set_up'")
    if not callable(function):
        raise OptionError(
            f"option 'trace.setup': {module.__name__!r} has no function {name.partition(':')[2]!r}. Given: {name!r}",
            code="PYSTORM_NAME_NOT_FOUND",
        )
    try:
        function()
    except Exception as error:
        raise OptionError(
            f"option 'trace.setup': the function raised {said(error)}. Given: {name!r}", code="PYSTORM_INVALID_OPTION"
        ) from error
