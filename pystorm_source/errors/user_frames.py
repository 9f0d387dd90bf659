"""The user's part of a traceback: frames of this package, its core and Spark between them tell a user nothing."""

import functools
import linecache
import os
import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any

from cython_core.executors.executor import ComponentFailed
from pystorm_source.errors import TupleFailed, cut, one_line, said, traced

OURS = frozenset(("pystorm_source", "cython_core"))
_BELOW = OURS | {"pyspark", "py4j"}  # what calls a component
_IMPORT = ("importlib", "_frozen_importlib", "_frozen_importlib_external")
_COMPONENTS = ("pystorm_source.bolts", "pystorm_source.spouts", "pystorm_source.formats", "pystorm_source.journal")
LONGEST_LINE = 200
"""Characters of a source line in a message. Less: one does not see what it does. More: it hides the place."""


def trim(error: BaseException) -> BaseException:
    """Leaves the user's frames in the tracebacks of the exception, its causes and members: from the first one in the
    user's own code on, without those of this package and of Python's import. A traceback that has none of the user's
    loses those of the import alone.

    Changes the exception, and returns it.
    """
    for each in _chain(error):
        if kept := _users(each.__traceback__) or _without_import(each.__traceback__):
            each.__traceback__ = functools.reduce(_linked, reversed(kept), None)
        if isinstance(each.__context__, (ComponentFailed, TupleFailed)):
            each.__context__ = None  # the engine's own: it was at work on an exception when the user's code was called
    return error


def only_users(error: BaseException) -> BaseException:
    """The exception, its causes and members with the user's frames alone, none where there is none.

    Changes the exception, and returns it.
    """
    trim(error)
    for each in _chain(error):
        if not _users(each.__traceback__):
            each.__traceback__ = None
    return error


def users_traceback(error: BaseException) -> str:
    """The exception with its causes, and the user's frames alone, as Python prints them, cut. Empty if no frame is the
    user's."""
    if not any(_users(each.__traceback__) for each in _chain(error)):
        return ""
    return traced(trim(error)).rstrip("\n")


def shown(error: BaseException) -> str:
    """For a log: the exception with the user's frames alone, or the whole of it if none is the user's."""
    return users_traceback(error) or traced(error).rstrip("\n")


def users_line(error: BaseException) -> str:
    """The line of the user's own code that raised: ``File "/job/bolts.py", line 7, in process: 1 / n``; empty if there
    is none.

    Of an exception that a library raised it is the line that called the library.
    """
    kept = _users(error.__traceback__)
    own = [trace for trace in kept if not _is_library(trace)]
    if not own and kept:  # a component that is installed, as on a cluster
        package = _package_of(kept[0])
        own = [trace for trace in kept if _package_of(trace) == package]
    if not own:
        return _line_of_method(getattr(error, "method_code", None))
    frame = traceback.extract_tb(own[-1], limit=1)[0]
    source = f": {cut(frame.line, LONGEST_LINE)}" if frame.line else ""
    return f'File "{frame.filename}", line {frame.lineno}, in {frame.name}{source}'


def _line_of_method(code: object) -> str:
    """Where the method begins that a call was judged by: of an error that was raised for what it returned."""
    if not isinstance(code, CodeType):
        return ""
    file, line = code.co_filename, code.co_firstlineno
    source = cut(linecache.getline(file, line).strip(), LONGEST_LINE)
    return f'File "{file}", line {line}, in {code.co_name}{f": {source}" if source else ""}'


def users_frames(error: BaseException) -> list[str]:
    """The user's frames, outermost first: ``bolts.py:12 in process``."""
    return [
        f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno} in {trace.tb_frame.f_code.co_name}"
        for trace in _users(error.__traceback__)
    ]


def frames_shown(frames: Iterable[FrameType], most: int = 20) -> tuple[str, ...]:
    """Of a running thread the frames that are neither of this package nor of Spark, at most the ``most`` innermost
    ones, outermost first: ``bolts.py:12 in process: 1 / n``."""
    kept = [frame for frame in frames if _package(frame) not in _BELOW][-most:]
    return tuple(
        line_shown(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, frame.f_globals) for frame in kept
    )


def line_shown(file: str, line: int, function: str, names: dict[str, Any] | None = None) -> str:
    """One of these lines. ``names``: globals of the function, through which the source of a zipped module is found."""
    source = cut(linecache.getline(file, line, names).strip(), LONGEST_LINE)
    return f"{os.path.basename(file)}:{line} in {function}{f': {source}' if source else ''}"


def in_a_line(error: BaseException) -> str:
    """The exception's type and the first line of its message."""
    return one_line(said(error))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, its causes, contexts and members."""
    seen: dict[int, BaseException] = {}
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen[id(each)] = each
        yield each
        waiting += [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions


def _walked(trace: TracebackType | None) -> Iterator[TracebackType]:
    """The frames, outermost first, without the steps that Python takes to import a module."""
    return (each for each in _all(trace) if not _is_import(each))


def _without_import(trace: TracebackType | None) -> list[TracebackType]:
    """The frames, if some of them are of an import; else none."""
    return list(_walked(trace)) if any(map(_is_import, _all(trace))) else []


def _all(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _is_import(trace: TracebackType) -> bool:
    return _package_of(trace) in _IMPORT or trace.tb_frame.f_code.co_filename.startswith("<frozen importlib")


def _users(first: TracebackType | None) -> list[TracebackType]:
    """The user's frames, outermost first; libraries that the user's code calls are among them."""
    kept: list[TracebackType] = []
    after_ours: list[TracebackType] = []
    called_by = ""
    for trace in _walked(first):
        package = _package_of(trace)
        if package in _BELOW:
            after_ours, called_by = [], str(trace.tb_frame.f_globals.get("__name__", ""))
        if package not in OURS and (kept or not (package in _BELOW or _is_library(trace))):
            kept.append(trace)
        if package not in _BELOW:
            after_ours.append(trace)
    # Libraries that a ready-made spout calls are not the user's.
    return kept or ([] if called_by.startswith(_COMPONENTS) else after_ours)


def _linked(after: TracebackType | None, trace: TracebackType) -> TracebackType:
    return TracebackType(after, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)


def _package_of(trace: TracebackType) -> str:
    return _package(trace.tb_frame)


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _is_library(trace: TracebackType) -> bool:
    file = trace.tb_frame.f_code.co_filename
    return file.startswith(("<frozen ", *_library_folders())) or "/site-packages/" in file or ".zip/pyspark/" in file


@functools.cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple(os.path.join(paths[name], "") for name in ("stdlib", "platstdlib"))
