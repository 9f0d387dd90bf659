"""Handles what calls start and do not await: coroutines that never run, and an async bolt's tasks.

A dropped coroutine fails its call of an async bolt, and the run of any other component. If a task outlives its call,
its tuple is acked once the call has returned: the bolt refuses what the task emits, and the run fails. But a task that
has not reached its emit when the micro-batch ends loses its row silently. So the micro-batch waits for such tasks.

Many tasks may outlive their call: a client's task, a refresh of a cache, a worker that serves a queue. The micro-batch
does not wait for a task that

- was started in ``initialize``, or in a call that has failed: that tuple is replayed;
- does not reference the bolt, like the tasks of libraries;
- waits for an asyncio queue, lock or event: it has nothing to do;
- got nothing from the tuple and does not emit, as far as its code says;
- was waited for before.

Calls cost nothing extra: asyncio keeps its tasks, and each task keeps the context of its request.
"""

import asyncio
import gc
import logging
import sys
import warnings
import weakref
from collections.abc import Iterable
from contextvars import Context
from functools import partial
from inspect import CO_VARARGS, getattr_static
from opcode import opmap
from types import BuiltinMethodType, CodeType, FrameType, FunctionType, MethodType
from typing import Any

from cython_core.arrow.row_error import coded, shown
from cython_core.executors.async_executor import AsyncExecutor, AsyncRequest, call_both, request_variable
from cython_core.routing.own_thread import blame
from pystorm_source.api.component import Component

logger = logging.getLogger("pystorm.worker")

LONGEST_SECONDS = 5.0
"""Counted from the last call of a micro-batch. Shorter: rows of slow calls are lost, but with a warning. Longer: a task
that never ends delays the first micro-batch of each worker by that time."""

_EMITS = frozenset(("emit", "emit_many", "emit_batch"))
_IDLE = frozenset(("asyncio.queues", "asyncio.locks"))
_POP_TOP = opmap["POP_TOP"]
_waited_for: "weakref.WeakSet[asyncio.Task[Any]]" = weakref.WeakSet()

Left = list[tuple[AsyncRequest, "asyncio.Task[Any]"]]


def watch_unawaited() -> None:
    """Turns a forgotten await into an exception of the component from now on. Python itself only warns.

    Python has no public hook for it, and warning filters see each line of code only once. Without the private hook, the
    warning remains.
    """
    original = getattr(warnings, "_warn_unawaited_coroutine", None)
    if original is not None and getattr(original, "func", None) is not call_both:
        warnings._warn_unawaited_coroutine = partial(call_both, _note, original)  # type: ignore[attr-defined]


def tasks_left(executor: AsyncExecutor) -> Left:
    """All tasks that calls of the bolt have left behind, each with its call."""
    found = []
    for task in executor.loop.tasks():
        request = _request_of(task)
        if request is None or request.bolt is not executor.instance or task in _waited_for:
            continue
        if request.completed and not request.expired:
            found.append((request, task))
    return found


def await_left(executor: AsyncExecutor) -> None:
    """Blocking, for at most ``LONGEST_SECONDS``: waits until the tasks that may emit have ended."""
    executor.loop.run(_await(executor))


async def _await(executor: AsyncExecutor) -> None:
    clock = asyncio.get_running_loop().time
    until = clock() + LONGEST_SECONDS
    while True:
        await asyncio.sleep(0)  # lets ready tasks go on, or they would look idle
        left = [(request, task) for request, task in tasks_left(executor) if _owes(task, request)]
        if not left:
            return
        if clock() >= until:
            _give_up(executor, left)
            return
        ended, _ = await asyncio.wait([task for _, task in left], timeout=until - clock())
        for task in ended:
            if getattr(task._exception, "code", None) == "PYSTORM_ANCHOR_CLOSED":
                task.exception()  # the run reports it, so asyncio must not log it, too; asyncio logs all others


def _give_up(executor: AsyncExecutor, left: Left) -> None:
    """A task that got the tuple works for it, so its row is lost. Other tasks may be meant to go on."""
    others = []
    for request, task in left:
        _waited_for.add(task)
        if any(value is request.tup or value is request.tup.values for value in _given(_frames(task)[0])):
            what = f"has not ended {LONGEST_SECONDS:g} s after the last call of the micro-batch"
            request.blame(_not_awaited(request, task.get_coro(), what))
            executor.loop.forget(task)
            task.cancel()
        else:
            others.append(_name(task.get_coro()))
    if others:
        logger.warning(
            "component %r, task %d: process() has left %d tasks behind, such as %s(), which have not ended %g s after "
            "the last call of the micro-batch: the engine refuses what they emit for its tuples. Await them, or start "
            "in initialize() what must outlive a call",
            executor.component,
            executor.task,
            len(others),
            others[0],
            LONGEST_SECONDS,
        )


def _owes(task: "asyncio.Task[Any]", request: AsyncRequest) -> bool:
    """Whether the task may still produce a row."""
    frames, tup = _frames(task), request.tup
    if not _has_hold(frames, (request.bolt, tup)) or frames[-1].f_globals.get("__name__") in _IDLE:
        return False
    of_tuple = {id(each) for each in (tup, tup.values, *tup.values) if not _is_shared(each)}
    return any(id(value) in of_tuple for value in _given(frames[0])) or _emits(frames, type(request.bolt))


def _is_shared(value: Any) -> bool:
    """Whether Python keeps one object for all equal values, so that the task may have got it from anywhere."""
    return value is None or (isinstance(value, int) and -6 < value < 257) or (isinstance(value, str) and len(value) < 2)


def _emits(frames: list[FrameType], cls: type) -> bool:
    """Whether their code calls emit: directly, in inner functions, in methods that they got, or in methods of the bolt
    that they name."""
    given = [value for value in _given(frames[0]) if isinstance(value, (MethodType, BuiltinMethodType))]
    if any(method.__name__ in _EMITS for method in given):
        return True
    functions = [getattr(method, "__func__", None) for method in given]
    waiting = [frame.f_code for frame in frames]
    waiting += [function.__code__ for function in functions if isinstance(function, FunctionType)]
    seen = set()
    while waiting:
        code = waiting.pop()
        if code in seen:
            continue
        seen.add(code)
        if not _EMITS.isdisjoint(code.co_names):
            return True
        waiting += [each for each in code.co_consts if isinstance(each, CodeType)]
        methods = [getattr_static(cls, name, None) for name in code.co_names]
        waiting += [each.__code__ for each in methods if isinstance(each, FunctionType) and not _is_engines(each)]
    return False


def _is_engines(method: FunctionType) -> bool:
    return method.__module__.startswith("pystorm_source.api.")


def _frames(task: "asyncio.Task[Any]") -> list[FrameType]:
    """The frames of its coroutine, of what that awaits, and so on."""
    frames = []
    awaited: Any = task.get_coro()
    while (frame := getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)) is not None:
        frames.append(frame)
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
    return frames


def _given(frame: FrameType) -> list[Any]:
    """Arguments of a coroutine, and variables of the functions around it."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    values = [frame.f_locals.get(name) for name in (*code.co_varnames[:count], *code.co_freevars)]
    if code.co_flags & CO_VARARGS:
        values += frame.f_locals.get(code.co_varnames[count], ())
    return values


def _has_hold(frames: Iterable[FrameType], things: tuple[Any, ...]) -> bool:
    """Whether a variable of the frames is one of the things, or a method of one."""
    values = [value for frame in frames for value in list(frame.f_locals.values())]
    values += [each for value in values if type(value) is tuple for each in value]  # of ``*args``
    values += [value.__self__ for value in values if isinstance(value, (MethodType, BuiltinMethodType))]
    return any(value is thing for value in values for thing in things)


def _request_of(task: "asyncio.Task[Any]") -> AsyncRequest | None:
    """The call that started it, or None."""
    if hasattr(task, "get_context"):
        return task.get_context().get(request_variable)
    # Before Python 3.12: the first of what the task refers to; callbacks have contexts, too.
    context = next((each for each in gc.get_referents(task) if isinstance(each, Context)), None)
    return None if context is None else context.get(request_variable)


def _note(coroutine: Any) -> None:
    """Python calls it with a coroutine that is dropped and never ran. It is the bolt's fault if the coroutine
    references the bolt, or if a method of the bolt drops it."""
    request = request_variable.get(None)
    frame = getattr(coroutine, "cr_frame", None)
    if frame is None:
        return
    if request is None:
        _note_plain(coroutine, sys._getframe(1))
    elif _has_hold([frame], (request.bolt,)) or _drops(sys._getframe(1), request.bolt):
        request.blame(_not_awaited(request, coroutine, "was called without await and never ran"))


def _note_plain(coroutine: Any, frame: FrameType) -> None:
    """Outside of a request, only a result that a component's method discards is surely its fault. A result that it has
    kept is also dropped when an exception ends the call."""
    if not _discards(frame):
        return
    component = next((each for each in list(frame.f_locals.values()) if isinstance(each, Component)), None)
    if component is None:
        return
    error: Any = coded(
        TypeError,
        "PYSTORM_ROWS_RETURNED",
        f"{_name(coroutine)}() was called without await and never ran: await it in an AsyncBolt's process(). "
        f"Given: line {frame.f_lineno} of {frame.f_code.co_filename}",
    )
    error.method, error.method_code = frame.f_code.co_name, frame.f_code  # no traceback reaches it
    blame(component, error)


def _drops(frame: FrameType, bolt: Any) -> bool:
    return _discards(frame) and _has_hold([frame], (bolt,))


def _discards(frame: FrameType) -> bool:
    """Whether its code is discarding the result of a call right now. Anywhere else, the garbage collector may have
    interrupted it to drop an unrelated coroutine."""
    return frame.f_code.co_code[frame.f_lasti] == _POP_TOP


def _not_awaited(request: AsyncRequest, coroutine: Any, what: str) -> Any:
    """The error for a coroutine that a call of a bolt has made. ``what``: its fate."""
    error: Any = coded(
        ValueError,
        "PYSTORM_ANCHOR_CLOSED",
        f"{type(request.bolt).__name__}: await what a call starts. {_name(coroutine)}() {what}; "
        f"Given: {shown(request.tup)}",
    )
    error.method_code = getattr(coroutine, "cr_code", None)  # no traceback reaches it
    return error


def _name(coroutine: Any) -> str:
    return str(getattr(coroutine, "__qualname__", "a coroutine")).rpartition("<locals>.")[2]
