"""What the user is told when a component fails."""

from typing import Any

from cython_core.executor import ComponentFailed
from pystorm_source.errors import TupleFailed

LONGEST = 200


def tuple_failed(failure: ComponentFailed, where: str = "") -> TupleFailed:
    """Names component, task, method, exception, the tuple's values (shortened), offset and ``where``, what ran."""
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
