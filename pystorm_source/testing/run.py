"""Runs a topology inside a test."""

from collections.abc import Mapping
from typing import Any, Literal

from cython_core.async_executor import AsyncExecutor
from cython_core.spout_executor import SpoutExecutor
from pystorm_source.api import Topology
from pystorm_source.clock import Clock, ManualClock
from pystorm_source.errors import TopologyError, TupleFailed, given
from pystorm_source.plan import Plan, check_meetings, compile_plan
from pystorm_source.testing.result import Result, counted
from pystorm_source.testing.script import Play, ScriptedSpout
from pystorm_source.testing.watch import TooLong, Watchdog, WatchedClock, interrupted_call, interrupted_threads
from pystorm_source.worker import Worker
from pystorm_source.worker.local_run import LocalRun, LocalTask


def run_topology(
    topology: type[Topology],
    config: Mapping[str, Any] | None = None,
    scheduler: Literal["inline", "threads"] | None = None,
    clock: Clock | None = None,
    seed: int | None = None,
    timeout: float = 60.0,
    together: bool = False,
) -> Result:
    """Runs a topology in this process until its spouts have nothing more, and all of it has passed through.

    As in Spark, each range of a spout's partition has a worker of its own, and so has each spout without offsets: no
    bolt sees tuples of two spouts, or of two partitions, in one instance.

    Args:
        topology: the class. Its PartitionedSpouts are read from their earliest offsets to what is the latest now; a
            spout without offsets is asked until it has nothing.
        config: goes over ``Topology.config``, as options of a query do; a component's own config stays on top.
        scheduler: goes over ``topology.scheduler``: "inline", one thread, or "threads", one per executor, whose
            interleaving no seed decides.
        clock: the engine's; components that have a ``clock`` get it, too. Default: a ManualClock for the engine alone.
        seed: shuffles the order of workers and the order and the length of turns; the same seed gives the same run.
        timeout: seconds of the machine's clock. A component is interrupted between two instructions of Python.
        together: one worker runs all spouts at once, as Storm does and Spark does not: for what is to meet in a bolt.

    Raises TimeoutError, naming what was still running. TopologyError and OptionError for what cannot run as it is
    declared, or, unless it runs together, would be refused by Spark's reader as its spouts are to meet. What components
    raise is in ``Result.errors``.
    """
    if scheduler is not None:
        config = {**(config or {}), "topology.scheduler": scheduler}
    plan = compile_plan(topology, config)
    if not together:
        check_meetings(plan)
    watched = WatchedClock(clock or ManualClock(), timeout)
    plays = _plays_of(plan, watched)

    def give_plays(worker: Worker, task: LocalTask) -> None:
        for executor in worker.executors:
            if executor.component in plays:
                executor.instance._play = plays[executor.component]
        for spout in task.listens_to:
            if spout in plays:
                plays[spout].repeat()

    streams = [(component.name, stream.name) for component in plan.components for stream in plan.streams_of(component)]
    run = LocalRun(plan, watched, seed, streams, clock, give_plays, together)
    for play in plays.values():
        play.die = run.die
    watched.next_event = lambda: _next_event(run, plays)
    errors: list[Exception] = []
    running = "its components were being cleaned up"
    try:
        with Watchdog(timeout):
            try:
                _run_to_the_end(run, plays)
            except TupleFailed as error:
                errors.append(error)
            except TooLong as error:
                threads = [thread for _, thread in run.worker.busy()] if run.worker is not None else []
                running = interrupted_call(error) or interrupted_threads(threads) or _still_running(run)
                raise
            finally:
                run.stop()
    except TooLong:
        raise TimeoutError(
            f"topology {plan.name!r} has not come to its end: {running}. Let its spouts end, its cycles run out and "
            f"its components return, or give run_topology a longer timeout. Given: timeout={given(timeout)}"
        ) from None
    counts = run.counts()
    counts.errors += errors
    result = Result(plan, run.rows, counts)
    result.attempts, result.micro_batches = run.attempts, run.micro_batches
    for name, play in plays.items():
        result.acked[name] -= play.failed
        result.failed[name] += play.failed
    return result


def _plays_of(plan: Plan, clock: Clock) -> dict[str, Play]:
    plays = {}
    for component in plan.spouts:
        if issubclass(component.cls, ScriptedSpout):
            if len(component.tasks) > 1:
                raise TopologyError(
                    f"a script is played by one task: give {component.name!r} par=1. Given: {len(component.tasks)}"
                )
            plays[component.name] = Play(component.cls.rows, clock)
    return plays


def _run_to_the_end(run: LocalRun, plays: Mapping[str, Play]) -> None:
    unread = run.unread.next_ranges if run.together else run.unread.all_ranges
    run.unread.look()
    ranges = unread()
    over: set[str] = set()
    begins = True
    while begins or ranges or not all(play.done for play in plays.values()):
        for play in plays.values():
            play.begin()
        run.round(ranges, listens_to=[spout for spout in run.without_offsets if run.together or spout not in over])
        ranges = unread()
        over = {spout for spout, play in plays.items() if play.done}
        begins = False


def _next_event(run: LocalRun, plays: Mapping[str, Play]) -> float | None:
    """When the next pause is over, the next timer goes off or the next tree times out.

    None where a spout, or a socket of an async bolt, may have something before.
    """
    if run.worker is None:
        return None
    events = [run.worker.next_due]
    for executor in run.worker.executors:
        if isinstance(executor, AsyncExecutor) and executor.in_flight > 0 and executor.loop.waits_for_world:
            return None
        if isinstance(executor, SpoutExecutor) and not executor.exhausted:
            play = plays.get(executor.component)
            if play is None or play.wakes is None:
                return None
            events.append(play.wakes)
    event = min(events)
    return None if event == float("inf") else event


def _still_running(run: LocalRun) -> str:
    if run.worker is None:
        return "it has not begun"
    parts, done = [], []
    for executor in run.worker.executors:
        done.append(f"{executor.component!r} {executor.executed}")
        queue = getattr(executor, "queue", None)
        if queue is not None and len(queue):
            parts.append(f"{executor.component!r} has {counted(len(queue), 'tuple')} waiting, {executor.executed} done")
        elif queue is None and not executor.exhausted:  # type: ignore[attr-defined]
            parts.append(f"spout {executor.component!r} has not ended, {counted(executor.executed, 'call')} done")
    # The only tuple of a cycle may lie in no queue just then: its bolt is at work on it.
    return ", ".join(parts) or f"tuples were under way; calls done: {', '.join(done)}"
