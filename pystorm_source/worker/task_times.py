"""Where the time of a task goes: what its executor's turns have counted, and how long its calls waited for permits."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cython_core.executors.async_executor import AsyncExecutor
from cython_core.executors.executor import Executor
from pystorm_source.limits.permit_waits import PermitTimes, PermitWaits
from pystorm_source.records.stall_reasons import CIRCUIT_BREAKER, RATE_LIMIT


class TaskTimes(NamedTuple):
    """Nanoseconds since the worker's start. ``busy``: without waiting for permits. ``stalls``: by reason. ``permits``:
    by name of a limit."""

    busy: int
    stalls: dict[str, int]
    permits: Mapping[str, PermitTimes]


def task_times(executor: Executor) -> TaskTimes:
    """Now, from any thread."""
    permits = {name: waits.look() for name, waits in permit_waits(executor).items()}
    waited = sum(each.waited for each in permits.values())
    paused = sum(each.paused for each in permits.values())
    busy: int = executor.times.busy
    if not isinstance(executor, AsyncExecutor):  # whose requests wait outside of its turns
        busy = max(0, busy - waited - paused)
    return TaskTimes(busy, executor.times.stalls | {RATE_LIMIT: waited, CIRCUIT_BREAKER: paused}, permits)


def requests_text(executors: Iterable[AsyncExecutor]) -> str:
    """``116 requests, 114 wait for a permit of 'prices'``."""
    requests, waiting = 0, dict[str, list[PermitWaits]]()
    for executor in executors:
        requests += executor.in_flight
        for name, waits in permit_waits(executor).items():
            waiting.setdefault(name, []).append(waits)
    return f"{requests:,} requests{''.join(_waiting_text(name, waits) for name, waits in waiting.items())}"


def permit_text(executor: Executor) -> str:
    """``waits for a permit of 'prices'``, of a bolt whose call waits for one; empty for another one."""
    for name, waits in permit_waits(executor).items():
        if waits.waiting:
            return f"waits for a permit of {name!r}{_paused_text([waits])}"
    return ""


def _paused_text(waits: list[PermitWaits]) -> str:
    return ", whose circuit breaker is open" if any(each.permits.is_paused for each in waits) else ""


def _waiting_text(name: str, waits: list[PermitWaits]) -> str:
    calls = sum(each.waiting for each in waits)
    if not calls:
        return ""
    return f", {calls:,} wait{'s' if calls == 1 else ''} for a permit of {name!r}{_paused_text(waits)}"


def permit_waits(executor: Executor) -> dict[str, PermitWaits]:
    """By name of a limit; none for a component that is no bolt of ours."""
    # Guarantee: a copy is made at once, while a call in another thread may take the first permit of a limit.
    waits = getattr(executor.instance, "_pystorm_permits", None)
    return dict(waits) if waits else {}
