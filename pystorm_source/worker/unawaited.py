"""Coroutines that a call of an async bolt makes and never awaits: they never run, so that rows and effects are lost."""

import sys
import warnings
from collections.abc import Iterable
from functools import partial
from opcode import opmap
from types import BuiltinMethodType, CodeType, FrameType, MethodType
from typing import Any

from cython_core.arrow.row_error import coded, shown
from cython_core.executors.async_request import AsyncRequest, call_both, request_variable

_POP_TOP = opmap["POP_TOP"]


def watch_unawaited() -> None:
    """From here on a forgotten await is an exception of the bolt. Python itself only warns of it.

    Python has no public hook for it, and filters of warnings see each line of code once. Without the private hook, the
    warning remains.
    """
    original = getattr(warnings, "_warn_unawaited_coroutine", None)
    if original is not None and getattr(original, "func", None) is not call_both:
        warnings._warn_unawaited_coroutine = partial(call_both, _note, original)  # type: ignore[attr-defined]


def not_awaited(request: AsyncRequest, coroutine: Any, what: str) -> BaseException:
    """The error for a coroutine that a call of a bolt has made. ``what``: its fate."""
    name = getattr(coroutine, "__qualname__", "a coroutine").rpartition("<locals>.")[2]
    error = coded(
        ValueError,
        "PYSTORM_ANCHOR_CLOSED",
        f"{type(request.bolt).__name__}.{request.method}: await what it starts. {name}() {what}; "
        f"Given: {shown(request.tup)}",
    )
    code = getattr(coroutine, "cr_code", None)
    if isinstance(code, CodeType):
        error.method_code = code  # type: ignore[attr-defined]  # no traceback leads to it
    return error


def has_hold(frames: Iterable[FrameType | None], bolt: Any, tup: Any = None) -> bool:
    """Whether a variable of the frames is the bolt, a method of it, or the tuple."""
    values = [value for frame in frames if frame is not None for value in list(frame.f_locals.values())]
    values += [each for value in values if type(value) is tuple for each in value]  # of ``*args``
    return any(
        value is bolt
        or (tup is not None and value is tup)
        or (isinstance(value, (MethodType, BuiltinMethodType)) and value.__self__ is bolt)
        for value in values
    )


def _drops(frame: FrameType, bolt: Any) -> bool:
    """Whether a method of the bolt discards the result of a call right now. Anywhere else, the garbage collector may
    have interrupted it to drop a coroutine of others."""
    return frame.f_code.co_code[frame.f_lasti] == _POP_TOP and has_hold([frame], bolt)


def _note(coroutine: Any) -> None:
    """Python calls it with a coroutine that is dropped and never ran. The fault is the bolt's if the coroutine has hold
    of the bolt, or if a method of the bolt drops it."""
    request = request_variable.get(None)
    if request is None:
        return
    if has_hold([getattr(coroutine, "cr_frame", None)], request.bolt) or _drops(sys._getframe(1), request.bolt):
        error = not_awaited(request, coroutine, "was called without await and never ran")
        if request.done:
            request.line.strays.append((request, request.method, error))
        elif request.unawaited is None:
            request.unawaited = error
