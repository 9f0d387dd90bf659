"""The user's part of a traceback: frames of this package, its core and Spark tell a user nothing."""

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
"""Characters of a source line in a message. Less: it is unclear what it does. More: it hides the place."""


def trim(error: BaseException) -> BaseException:
    """Trims the tracebacks of the exception, its causes and members to the user's frames: from the first frame of the
    user's own code on, without this package and Python's import. A traceback without the user's frames loses only
    the import's frames.

    Changes the exception, and returns it.
    """
    for each in _chain(error):
        if kept := _users(each.__traceback__) or _without_import(each.__traceback__):
            each.__traceback__ = functools.reduce(_linked, reversed(kept), None)
        if isinstance(each.__context__, (ComponentFailed, TupleFailed)):
            each.__context__ = None  # the engine's own: it was handling an exception when it called the user's code
    return error


def only_users(error: BaseException) -> BaseException:
    """Keeps only the user's frames of the exception, its causes and members, and drops tracebacks without any.

    Changes the exception, and returns it.
    """
    trim(error)
    for each in _chain(error):
        if not _users(each.__traceback__):
            each.__traceback__ = None
    return error


def users_traceback(error: BaseException) -> str:
    """Formats the exception and its causes as Python prints them, with only the user's frames, cut. Empty without
    a frame of the user."""
    if not any(_users(each.__traceback__) for each in _chain(error)):
        return ""
    return traced(trim(error)).rstrip("\n")


def shown(error: BaseException) -> str:
    """Formats the exception for a log: only the user's frames, or all frames if the user has no frame."""
    return users_traceback(error) or traced(error).rstrip("\n")


def users_line(error: BaseException) -> str:
    """Returns the line of the user's own code that raised: ``File "/job/bolts.py", line 7, in process: 1 / n``; empty
    if there is no such line.

    If a library raised the exception, it is the line that called the library.
    """
    kept = _users(error.__traceback__)
    own = [trace for trace in kept if not is_library(trace)]
    if not own and kept:  # an installed component, as on a cluster
        package = package_of(kept[0])
        own = [trace for trace in kept if package_of(trace) == package]
    if not own:
        return _line_of_method(getattr(error, "method_code", None))
    frame = traceback.extract_tb(own[-1], limit=1)[0]
    source = f": {cut(frame.line, LONGEST_LINE)}" if frame.line else ""
    return f'File "{frame.filename}", line {frame.lineno}, in {frame.name}{source}'


def _line_of_method(code: object) -> str:
    """Returns the first line of the method whose return value caused the error."""
    if not isinstance(code, CodeType):
        return ""
    file, line = code.co_filename, code.co_firstlineno
    source = cut(linecache.getline(file, line).strip(), LONGEST_LINE)
    return f'File "{file}", line {line}, in {code.co_name}{f": {source}" if source else ""}'


def users_frames(error: BaseException) -> list[str]:
    """Returns the user's frames, outermost first: ``bolts.py:12 in process``."""
    return [
        f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno} in {trace.tb_frame.f_code.co_name}"
        for trace in _users(error.__traceback__)
    ]


def frames_shown(frames: Iterable[FrameType], most: int = 20) -> tuple[str, ...]:
    """Returns a running thread's frames outside of this package and Spark, up to the ``most`` innermost ones, outermost
    first: ``bolts.py:12 in process: 1 / n``."""
    kept = [frame for frame in frames if _package(frame) not in _BELOW][-most:]
    return tuple(
        line_shown(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, frame.f_globals) for frame in kept
    )


def line_shown(file: str, line: int, function: str, names: dict[str, Any] | None = None) -> str:
    """Formats such a line. ``names``: the function's globals, needed to find the source of a zipped module."""
    source = cut(linecache.getline(file, line, names).strip(), LONGEST_LINE)
    return f"{os.path.basename(file)}:{line} in {function}{f': {source}' if source else ''}"


def in_a_line(error: BaseException) -> str:
    """Returns the exception's type and the first line of its message."""
    return one_line(said(error))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yields the exception, its causes, contexts and members."""
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
    """Yields the frames, outermost first, without Python's own steps to import a module."""
    return (each for each in frames_of(trace) if not _is_import(each))


def _without_import(trace: TracebackType | None) -> list[TracebackType]:
    """Returns the frames without an import's; nothing if no frame belongs to an import."""
    return list(_walked(trace)) if any(map(_is_import, frames_of(trace))) else []


def frames_of(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _is_import(trace: TracebackType) -> bool:
    return package_of(trace) in _IMPORT or trace.tb_frame.f_code.co_filename.startswith("<frozen importlib")


def _users(first: TracebackType | None) -> list[TracebackType]:
    """Returns the user's frames, outermost first, including libraries that the user's code calls."""
    kept: list[TracebackType] = []
    after_ours: list[TracebackType] = []
    called_by = ""
    for trace in _walked(first):
        package = package_of(trace)
        if package in _BELOW:
            after_ours, called_by = [], str(trace.tb_frame.f_globals.get("__name__", ""))
        if package not in OURS and (kept or not (package in _BELOW or is_library(trace))):
            kept.append(trace)
        if package not in _BELOW:
            after_ours.append(trace)
    # Libraries called by a ready-made spout are not the user's.
    return kept or ([] if called_by.startswith(_COMPONENTS) else after_ours)


def _linked(after: TracebackType | None, trace: TracebackType) -> TracebackType:
    return TracebackType(after, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)


def package_of(trace: TracebackType) -> str:
    return _package(trace.tb_frame)


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def is_library(trace: TracebackType) -> bool:
    file = trace.tb_frame.f_code.co_filename
    return file.startswith(("<frozen ", *_library_folders())) or "/site-packages/" in file or ".zip/pyspark/" in file


@functools.cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple(os.path.join(paths[name], "") for name in ("stdlib", "platstdlib"))
