"""What a range does at this moment: which component is in a call and since when, and what the others wait for.

    in a call ──► since when, the tuple, the line                   the watchdog sees it
    tuples wait to be emitted, a queue below is full ──► for room there
    tuples in its queue ──► for its turn, which comes after the call
    tuples in a separate process (processes=) ──► for that process: its number, its stack, the oldest tuple
    nothing ──► for input, for acks, for requests

A thread other than the worker's reads it without stopping anything, at no cost to the components.
"""

import os
import socket
from collections.abc import Sequence

from cython_core.executors.async_executor import AsyncExecutor
from cython_core.executors.bolt_executor import BoltExecutor
from cython_core.executors.executor import Executor
from cython_core.executors.remote_executor import RemoteExecutor
from cython_core.executors.spout_executor import SpoutExecutor
from pystorm_source.errors.user_frames import frames_shown
from pystorm_source.records.standstill import RangeState, TaskState
from pystorm_source.worker import micro_batch
from pystorm_source.worker.failure import place
from pystorm_source.worker.task_times import permit_text, requests_text, waiting_text
from pystorm_source.worker.watchdog import LongCall, calls_of, frames_in_component, frames_of_thread
from pystorm_source.worker.worker import Worker

_ROOM, _TURN = "room at", "its turn after"


def range_state(worker: Worker, thread: int, seconds: float, run_id: str = "") -> RangeState:
    """Returns the state of the range that the worker reads. ``thread``: the one that drives it; ``seconds``: since
    the range began; ``run_id``: Spark's id of the query's run."""
    calls = [_in_call(call) for call in calls_of(worker)]
    called = {(state.component, state.task) for state in calls}
    busy = max(calls, key=lambda state: state.seconds, default=None)
    is_inline = worker.plan.options.scheduler == "inline"
    turn_after = busy.component if busy is not None and is_inline else ""
    waiting = [
        _waiting(executor, worker.executors, turn_after)
        for executor in worker.executors
        if (executor.component, executor.task) not in called
    ]
    places = {(executor.component, executor.task): i for i, executor in enumerate(worker.executors)}
    return RangeState(
        run_id=run_id,
        place=worker.place_of_run(),
        host=socket.gethostname(),
        process=os.getpid(),
        seconds=seconds,
        waits="" if calls else _idle(worker, thread),
        tasks=tuple(sorted([*calls, *waiting], key=lambda state: places[state.component, state.task])),
    )


def _in_call(call: LongCall) -> TaskState:
    executor, method, frames = frames_in_component(call.executors, call.thread)
    tup, offset = executor.at_work  # type: ignore[attr-defined]
    return TaskState(
        component=executor.component,
        task=executor.task,
        kind=_kind(executor),
        in_call=True,
        method=method,
        seconds=call.seconds,
        input=place(tup, offset),
        frames=frames_shown(frames),
        waits=permit_text(executor),
        queued=_queued(executor),
        capacity=_capacity(executor),
    )


def _waiting(executor: Executor, executors: Sequence[Executor], turn_after: str) -> TaskState:
    room_at = _room_at(executor, executors) if len(executor.pending) else ""
    queued = _queued(executor)
    waits, waits_for = "waits for input", ""
    if isinstance(executor, RemoteExecutor) and (executor.tuples_away or not room_at):
        return _in_process(executor, room_at)
    if room_at:
        waits, waits_for = _ROOM, room_at
    elif isinstance(executor, AsyncExecutor) and executor.in_flight:
        waits = f"waits for {requests_text([executor])}"
    elif turn_after and (queued or _is_reading(executor)):
        waits, waits_for = _TURN, turn_after
    elif isinstance(executor, SpoutExecutor) and executor.exhausted:
        waits = f"waits for {executor.unsettled:,} acks" if executor.unsettled else "has read all"
    return TaskState(
        component=executor.component,
        task=executor.task,
        kind=_kind(executor),
        waits=waits,
        waits_for=waits_for,
        queued=queued,
        capacity=_capacity(executor),
    )


def _in_process(executor: RemoteExecutor, room_at: str) -> TaskState:
    """Returns the state of a task in a separate process. ``room_at``: the component whose full queue blocks it."""
    tup, offset = executor.at_work
    away, seconds = executor.tuples_away, executor.oldest_away_seconds
    frames = executor.link.stack() if away else ()
    whose = f"process {executor.link.pid}" if executor.link.pid else "its process"
    waits = f"waits for input; {whose} has no tuple"
    if away:
        said = "" if frames or not executor.link.pid else _silent(frames)
        oldest = f", the oldest sent {seconds:,.3g} s ago" if seconds else ""
        limited = waiting_text([executor])
        waits = f"waits for {whose}, which has neither acked nor failed {_counted(away)} yet{oldest}{limited}{said}"
    return TaskState(
        component=executor.component,
        task=executor.task,
        kind=_kind(executor),
        seconds=seconds,
        input=place(tup, offset),
        frames=frames or (),
        waits=_ROOM if room_at else waits,
        waits_for=room_at,
        queued=_queued(executor),
        capacity=_capacity(executor),
        process=executor.link.pid,
        away=away,
    )


def _silent(frames: tuple[str, ...] | None) -> str:
    return "; it does not answer: it is stopped, or has no core" if frames is None else "; it is in no call"


def _counted(tuples: int) -> str:
    return f"{tuples:,} tuple{'' if tuples == 1 else 's'}"


def _is_reading(executor: Executor) -> bool:
    return isinstance(executor, SpoutExecutor) and not executor.exhausted


def _room_at(executor: Executor, executors: Sequence[Executor]) -> str:
    """The component whose queue is full for the executor's tuples; empty if all take them."""
    for inserter in executor.inserters:
        full = inserter.queue if inserter.queue is not None else inserter.ring
        if full is not None and len(full) >= full.capacity:
            for other in executors:
                if isinstance(other, BoltExecutor) and _reads(other, inserter.queue, inserter.ring):
                    return other.component
    return ""


def _reads(executor: BoltExecutor, queue: object, ring: object) -> bool:
    if queue is not None:
        return executor.queue is queue
    return any(reader in ring.readers for reader in executor.readers or ())  # type: ignore[attr-defined]


def _queued(executor: Executor) -> int:
    if not isinstance(executor, BoltExecutor):
        return 0
    return len(executor.queue) + sum(map(len, executor.readers or ()))


def _capacity(executor: Executor) -> int:
    return executor.queue.capacity if isinstance(executor, BoltExecutor) else 0


def _kind(executor: Executor) -> str:
    return "spout" if isinstance(executor, SpoutExecutor) else "bolt"


def _idle(worker: Worker, thread: int) -> str:
    """What it waits for if no component is in a call."""
    modules = {frame.f_globals.get("__name__") for frame in frames_of_thread(thread)}
    if micro_batch.__name__ not in modules:
        return "waits for Spark, which takes rows, or hands out the next range"
    placed = [each for each in worker.executors if isinstance(each, RemoteExecutor) and each.in_flight]
    if placed:
        named = " and ".join(f"the process of {each.component!r}, task {each.task}" for each in placed)
        return f"waits for {named}{waiting_text(placed)}"
    asyncs = [each for each in worker.executors if isinstance(each, AsyncExecutor) and each.in_flight]
    if asyncs:
        return f"waits for {requests_text(asyncs)}"
    unsettled = sum(each.unsettled for each in worker.executors if isinstance(each, SpoutExecutor))
    return f"waits for {unsettled:,} acks, retries or time-outs" if unsettled else "no component is in a call"
