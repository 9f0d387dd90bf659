"""An exception on its way to another process, with its causes, notes and the places in the code that raised it.

Pickle drops tracebacks and refuses an exception whose constructor takes other arguments. Here such an exception becomes
one of its nearest built-in base class, with the same name and text. Each traceback keeps its files, lines and
functions, without local variables.
"""

import builtins
from collections.abc import Iterable
from types import CodeType, FunctionType, TracebackType
from typing import Any, NamedTuple

from pystorm_source.worker.interrupt import WAKES
from pystorm_source.worker.processes.address_space import limit_in_words
from pystorm_source.worker.processes.frames import pack, unpack

MOST_FRAMES = 50
"""The last frames of a traceback. More: an endless recursion fills a ring. Fewer: a deep call does not show its
path."""


class _Carried(NamedTuple):
    """One exception of a chain. ``frames``: (file, line, function), outermost first."""

    pickled: bytes | None
    name: str
    module: str
    bases: tuple[str, ...]
    text: str
    frames: list[tuple[str, int, str]]
    notes: list[str]
    cause: "_Carried | None"
    context: "_Carried | None"
    suppresses: bool


def pack_error(error: BaseException) -> bytes:
    """The exception as bytes for ``unpack_error`` of the same program."""
    if isinstance(error, MemoryError) and (limit := limit_in_words()):
        error.add_note(limit)
    return b"".join(pack(tuple_of(error)))


def tuple_of(error: BaseException | None, seen: tuple[BaseException, ...] = ()) -> Any:
    """Plain values that ``pack_error`` writes; None without an exception, and for one that is its own cause."""
    if error is None or error in seen:
        return None
    seen = (*seen, error)
    bases = [cls.__name__ for cls in type(error).__mro__ if getattr(builtins, cls.__name__, None) is cls]
    return tuple(
        _Carried(
            _pickled(error),
            type(error).__qualname__,
            type(error).__module__,
            tuple(bases),
            _text(error),
            _frames(error.__traceback__),
            [str(note) for note in getattr(error, "__notes__", ())],
            tuple_of(error.__cause__, seen),
            tuple_of(error.__context__, seen),
            error.__suppress_context__,
        )
    )


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as own:
        return f"<its text cannot be read: {type(own).__name__}>"


def _pickled(error: BaseException) -> bytes | None:
    try:
        parts = b"".join(pack(error))
        return parts if type(unpack(parts)) is type(error) else None
    except Exception:
        return None


def _frames(traceback: TracebackType | None) -> list[tuple[str, int, str]]:
    found = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code is WAKES:
            break  # order: here, as the other process does not know whose frame it is
        found.append((code.co_filename, traceback.tb_lineno or 1, code.co_name))
        traceback = traceback.tb_next
    return found[-MOST_FRAMES:]


def unpack_error(data: bytes) -> BaseException:
    """The exception, as far as it could be sent."""
    return _restored(_Carried(*unpack(data)))


def _restored(carried: _Carried) -> BaseException:
    error = _loaded(carried)
    for note in carried.notes:
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
    error.__traceback__ = _traceback(carried.frames)
    error.__cause__ = None if carried.cause is None else _restored(_Carried(*carried.cause))
    error.__context__ = None if carried.context is None else _restored(_Carried(*carried.context))
    error.__suppress_context__ = carried.suppresses
    return error


def _loaded(carried: _Carried) -> BaseException:
    if carried.pickled is not None:
        try:
            loaded = unpack(carried.pickled)
            if isinstance(loaded, BaseException):
                return loaded
        except Exception:  # its own code changed it on the way
            pass
    base: Any = getattr(builtins, carried.bases[0])
    names = {"__module__": carried.module, "__qualname__": carried.name, "__str__": lambda self: carried.text}
    stand_in: Any = type(carried.name.rpartition(".")[2], (base,), names)
    made: BaseException = stand_in.__new__(stand_in, carried.text)
    return made


def _traceback(frames: Iterable[tuple[str, int, str]]) -> TracebackType | None:
    """A traceback of frames that never ran: functions with these files, lines and names that only raise."""
    found: TracebackType | None = None
    for file, line, function in reversed(list(frames)):
        code = _RAISES.replace(co_filename=file, co_name=function, co_firstlineno=line, co_linetable=_ONE_LINE)
        try:
            FunctionType(code, {"__name__": ""})()
        except RuntimeError as raised:  # a bare raise with nothing to raise again
            own = raised.__traceback__
            assert own is not None
            assert own.tb_next is not None
            found = TracebackType(found, own.tb_next.tb_frame, own.tb_next.tb_lasti, line)
    return found


def _one_line(code: CodeType) -> bytes:
    """The line table of code in a single line, without columns: Python would underline a part of a line that it has
    read elsewhere. By PEP 626: entries of at most 8 units, of kind 13, no line further."""
    units = len(code.co_code) // 2
    return b"".join(bytes((0x80 | 13 << 3 | min(8, units - at) - 1, 0)) for at in range(0, units, 8))


_RAISES = compile("raise", "", "exec")
_ONE_LINE = _one_line(_RAISES)
