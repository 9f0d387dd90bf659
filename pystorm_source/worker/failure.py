"""What the user is told when a component fails, or a spout's tuple for good."""

from typing import Any, NamedTuple

from cython_core.executor import ComponentFailed
from pystorm_source.errors import TupleFailed

LONGEST = 200


class Failed(NamedTuple):
    """A tuple of a spout whose tree has failed.

    ``values``, ``stream``: as they were emitted; ``offset``: -1 for none. ``attempts``: emits so far, this one
    included. ``component``: who failed it; the spout itself where it timed out. ``reason``: a short text. ``cause``:
    the exception, if any.
    """

    values: tuple[Any, ...] | list[Any]
    stream: str
    offset: int
    attempts: int
    component: str
    reason: str
    cause: BaseException | None = None


class GivenUp(ComponentFailed):
    """No retry is left for a tuple, and ``topology.dead.letter`` is ``fail``.

    Attributes beside those of its base: ``failed``, which tuple and why, and ``remedy``, how to allow for more.
    """

    def __init__(self, component: str, task: int, failed: Failed, remedy: str):
        super().__init__(component, task, "fail", None, failed.offset)
        self.failed = failed
        self.remedy = remedy


def told(spout: str, failed: Failed) -> str:
    """Names a tuple that has failed for good: values (shortened), stream, offset, attempts, who failed it and why."""
    tries = "1 attempt" if failed.attempts == 1 else f"{failed.attempts} attempts"
    offset = f", offset {failed.offset}" if failed.offset >= 0 else ""
    values = shortened(tuple(failed.values))
    return (
        f"tuple {values} of {spout}.{failed.stream}{offset}, has failed for good after {tries}: "
        f"{failed.reason}, by component {failed.component!r}"
    )


def tuple_failed(failure: ComponentFailed, where: str = "") -> TupleFailed:
    """Names component, task, method, exception, the tuple's values (shortened), offset and ``where``, what ran."""
    if isinstance(failure, GivenUp):
        text = told(failure.component, failure.failed)
        return TupleFailed(f"{text}; {failure.remedy}{f'; in {where}' if where else ''}")
    cause = failure.__cause__
    text = f"component {failure.component!r}, task {failure.task}: "
    if failure.method == "fail" and cause is None:
        text += "the tuple was failed"
    else:
        text += f"{failure.method}() raised {type(cause).__name__}: {cause}" if cause else f"{failure.method}()"
    if failure.tuple is not None:
        text += f"; tuple {shortened(failure.tuple.values)} of {failure.tuple.component}.{failure.tuple.stream}"
    if failure.offset >= 0:
        # A spout that raises has not said the offset that it was at.
        text += f"; {'offset' if failure.tuple is not None else 'last offset'} {failure.offset}"
    if where:
        text += f"; in {where}"
    return TupleFailed(text)


def shortened(values: tuple[Any, ...]) -> str:
    """The values as they print, cut at ``LONGEST`` characters; a value that does not print is named by its type."""
    parts: list[str] = []
    left = LONGEST
    for value in values:
        if left <= 0:
            break
        if isinstance(value, (str, bytes)):
            value = value[: left + 1]  # no need to print what is cut away
        try:
            part = repr(value)
        except Exception:
            part = f"<{type(value).__name__} that does not print>"
        parts.append(part)
        left -= len(part) + 2
    text = ", ".join(parts)
    text = f"({text},)" if len(values) == 1 else f"({text})"
    return text if left >= 0 and len(parts) == len(values) else text[:LONGEST] + "…"
