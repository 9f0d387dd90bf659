"""Where the time of a task goes: what its executor's turns have counted, and how long its calls waited for permits."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cython_core.executors.async_executor import AsyncExecutor
from cython_core.executors.executor import Executor
from cython_core.executors.remote_executor import RemoteExecutor
from pystorm_source.limits.permit_waits import PermitTimes, TaskWaits, Waits
from pystorm_source.records.stall_reasons import CIRCUIT_BREAKER, PROCESSES, RATE_LIMIT


class TaskTimes(NamedTuple):
    """Nanoseconds since the worker's start. ``busy``: without waiting for permits. ``stalls``: by reason. ``permits``:
    by name of a limit."""

    busy: int
    stalls: dict[str, int]
    permits: Mapping[str, PermitTimes]


def task_times(executor: Executor) -> TaskTimes:
    """The times up to now; any thread may ask."""
    permits = {name: waits.look() for name, waits in permit_waits(executor).items()}
    waited = sum(each.waited for each in permits.values())
    paused = sum(each.paused for each in permits.values())
    busy: int = executor.times.busy
    stalls = executor.times.stalls | {RATE_LIMIT: waited, CIRCUIT_BREAKER: paused}
    if isinstance(executor, RemoteExecutor):  # its process counts calls without these waits
        left = waited + paused
        for reason in PROCESSES:  # in that time its tuples wait for permits, not for the process
            explained = min(left, stalls[reason])
            stalls[reason] -= explained
            left -= explained
    elif not isinstance(executor, AsyncExecutor):  # an AsyncExecutor's requests wait outside of its turns
        busy = max(0, busy - waited - paused)
    return TaskTimes(busy, stalls, permits)


def requests_text(executors: Iterable[AsyncExecutor]) -> str:
    """``116 requests, 114 wait for a permit of 'prices'``."""
    several = list(executors)
    return f"{sum(executor.in_flight for executor in several):,} requests{waiting_text(several)}"


def permit_text(executor: Executor) -> str:
    """``waits for a permit of 'prices'`` if a call of the bolt waits for one, otherwise empty."""
    for name, waits in permit_waits(executor).items():
        if waits.waiting:
            return f"waits for a permit of {name!r}{_paused_text([waits])}"
    return ""


def waiting_text(executors: Iterable[Executor]) -> str:
    """``, 114 wait for a permit of 'prices'``, for the calls of all these tasks; empty if none wait."""
    waiting = dict[str, list[Waits]]()
    for executor in executors:
        for name, waits in permit_waits(executor).items():
            waiting.setdefault(name, []).append(waits)
    return "".join(_waiting_text(name, waits) for name, waits in waiting.items())


def _paused_text(waits: list[Waits]) -> str:
    return ", whose circuit breaker is open" if any(each.is_paused for each in waits) else ""


def _waiting_text(name: str, waits: list[Waits]) -> str:
    calls = sum(each.waiting for each in waits)
    if not calls:
        return ""
    return f", {calls:,} wait{'s' if calls == 1 else ''} for a permit of {name!r}{_paused_text(waits)}"


def permit_waits(executor: Executor) -> dict[str, Waits]:
    """Waits by name of a limit; empty unless the component is one of this package's bolts."""
    waits: TaskWaits | None = getattr(executor.instance, "_pystorm_permits", None)
    return {} if waits is None else waits.used()
