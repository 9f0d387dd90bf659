"""Runs a topology inside a test."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Literal

import pyarrow as pa

from cython_core.executors.async_executor import AsyncExecutor
from cython_core.executors.remote_executor import RemoteExecutor
from cython_core.executors.spout_executor import SpoutExecutor
from pystorm_source.api import Topology
from pystorm_source.clock import Clock, ManualClock
from pystorm_source.errors import ArgumentError, TopologyError, TopologyTimeoutError, TupleFailed, given
from pystorm_source.errors.door import door
from pystorm_source.errors.user_frames import trim
from pystorm_source.plan import Plan, check_meetings, compile_plan
from pystorm_source.testing.inner_types import InnerTypes
from pystorm_source.testing.input_rows import with_rows
from pystorm_source.testing.result import Result, counted
from pystorm_source.testing.run_stages import run_stages
from pystorm_source.testing.script import Play, ScriptedSpout
from pystorm_source.testing.watch import TooLong, Watchdog, interrupted_call, interrupted_threads, watched_clock
from pystorm_source.worker import OutputPlan, Worker
from pystorm_source.worker.local_run import LocalRun, LocalTask
from pystorm_source.worker.processes.process_limits import limits_of
from pystorm_source.worker.task_times import requests_text, waiting_text


@door
def run_topology(
    topology: type[Topology],
    config: Mapping[str, Any] | None = None,
    scheduler: Literal["inline", "threads"] | None = None,
    clock: Clock | None = None,
    seed: int | None = None,
    timeout: float = 60.0,
    together: bool = False,
    errors: Literal["raise", "collect"] = "raise",
    check_types: bool = True,
    rows: Any = None,
    scope: Literal["task", "cluster"] = "task",
    tasks: int = 2,
    timers_after: float = 0.0,
) -> Result:
    """Runs a topology in this process until its spouts have nothing more and every tuple has passed through.

    As in Spark, each range of a spout's partition has its own worker, and so does each spout without offsets: no
    instance of a bolt sees tuples of two spouts or two partitions.

    Raises a component's exception if it would end the Spark task; otherwise (with ``exit_on_exception = False``) adds
    it to ``Result.errors``.

    Args:
        topology (type[Topology]): the class. Its PartitionedSpouts are read from their earliest offsets to the present
            latest ones; a spout without offsets is polled until it has nothing.
        config (Mapping[str, Any]): overrides ``Topology.config``, like options of a query; a component's own config
            overrides both. Defaults to None.
        scheduler (str): "inline", one thread, or "threads", one per executor, which no seed can make repeatable.
            Defaults to ``topology.scheduler``.
        clock (Clock): the engine's; components that have a ``clock`` get it, too. A SystemClock waits for real, and
            runs as the engine does in Spark. Defaults to a ManualClock for only the engine, which advances where a
            topology would wait.
        seed (int): shuffles the order of workers and the order and length of turns; the same seed gives the same
            run. Defaults to None: not shuffled.
        timeout (float): seconds of the machine's clock. Defaults to 60.0. Interrupts a component between two Python
            instructions.
        together (bool): one worker runs all spouts at once, as Storm does and Spark does not. Defaults to False.
        errors (str): "raise", or "collect": ``Result.errors`` also holds the error that ends the run, and its
            micro-batch has no rows. Defaults to 'raise'.
        check_types (bool): a value that does not fit its declared type fails its emit on an open stream, as in Spark;
            on an inner stream it fails the run after its micro-batch, though Spark would pass it on. Defaults to True.
        rows (list | pyarrow.RecordBatch | pyarrow.Table): rows for the topology's ``Input``: lists, tuples or dicts of
            values. Defaults to None, for topologies without an ``Input``.
        scope (str): "cluster": cuts the topology like ``read_stream(..., scope="cluster")``, and runs each stage after
            a cut in ``tasks`` workers that share nothing. Defaults to 'task'.
        tasks (int): tasks of each stage after a cut, at least 1. Defaults to 2.
        timers_after (float): for scope="cluster": seconds that pass after the rows are processed; timers of keys
            (``StatefulBolt.set_timer``) that are due by then call ``process_timer``. Defaults to 0.0.

    Returns:
        Result: rows, counts and errors.

    Raises:
        TupleFailed: a component raised, or a tuple used up its retries; its cause is the component's own exception.
            Or a value does not fit its declared type.
        TopologyTimeoutError: the run took longer than ``timeout``; names what was still running.
        TopologyError: it cannot run as declared, or Spark's reader would refuse it because its spouts must meet.
        OptionError: a wrong option.
        SchemaError: a declared type does not exist.
        ArgumentError: ``errors`` is neither "raise" nor "collect"; rows without an ``Input``, or the reverse; another
            scope, less than one task, or ``together`` with scope="cluster"; ``timers_after`` less than 0, or with
            scope="task".

    Example:
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Double(Bolt):
        ...     outputs = ["n long"]
        ...     def process(self, tup):
        ...         self.emit([2 * tup.values.n])
        >>> class Doubles(Topology):
        ...     numbers = MemorySpout.spec(fields=["n long"], rows=[[1], [2]])
        ...     doubles = Double.spec(inputs=[numbers])
        >>> run_topology(Doubles).rows("doubles")
        [(2,), (4,)]
    """
    __tracebackhide__ = True  # for pytest: the component's frames tell more
    if errors not in ("raise", "collect"):
        raise ArgumentError(f"errors is 'raise' or 'collect'. Given: {given(errors)}", code="PYSTORM_INVALID_ARGUMENT")
    if scheduler is not None:
        config = {**(config or {}), "topology.scheduler": scheduler}
    raises = errors == "raise"
    _check_timers_after(timers_after, scope)
    if scope == "task":
        return run_watched(topology, config, clock, seed, timeout, together, raises, check_types, rows=rows)
    _check_scope(scope, tasks, together)

    engine_clock, plan = clock or ManualClock(), with_rows(compile_plan(topology, config), rows)
    limits = limits_of(plan, engine_clock)  # shared by all stages: a stage is not a new run

    def run(plan: Plan, together: bool, on_worker: Callable[[Worker], None] | None) -> Result:
        def begin(worker: Worker) -> None:
            worker.limits.lease_with(limits)
            if on_worker is not None:
                on_worker(worker)

        return run_plan(plan, engine_clock, clock, seed, timeout, together, raises, check_types, begin)

    return run_stages(plan, tasks, timers_after, run)


def _check_timers_after(seconds: Any, scope: Any) -> None:
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not 0 <= seconds < float("inf") or (seconds > 0 and scope == "task"):
        raise ArgumentError(
            "timers_after is how many seconds pass behind the rows, with scope='cluster', which has timers of keys. "
            f"Given: {given(seconds)}",
            code="PYSTORM_INVALID_ARGUMENT",
        )


def _check_scope(scope: Any, tasks: Any, together: bool) -> None:
    if scope != "cluster":
        raise ArgumentError(f"scope is 'task' or 'cluster'. Given: {given(scope)}", code="PYSTORM_INVALID_ARGUMENT")
    if isinstance(tasks, bool) or not isinstance(tasks, int) or tasks < 1:
        raise ArgumentError(
            f"tasks is how many workers run each stage behind a cut, at least 1. Given: {given(tasks)}",
            code="PYSTORM_INVALID_ARGUMENT",
        )
    if together:
        raise ArgumentError(
            "together=True runs all spouts in one worker, which has nothing to cut: leave it out with scope='cluster'. "
            "Given: together=True",
            code="PYSTORM_INVALID_ARGUMENT",
        )


def run_watched(
    topology: type[Topology],
    config: Mapping[str, Any] | None = None,
    clock: Clock | None = None,
    seed: int | None = None,
    timeout: float = 60.0,
    together: bool = False,
    raises: bool = True,
    check_types: bool = True,
    on_worker: Callable[[Worker], None] | None = None,
    rows: Any = None,
) -> Result:
    """Like ``run_topology``. Calls ``on_worker`` with every new worker before it starts."""
    __tracebackhide__ = True
    plan = with_rows(compile_plan(topology, config), rows)
    if not together:
        check_meetings(plan)
    return run_plan(plan, clock or ManualClock(), clock, seed, timeout, together, raises, check_types, on_worker)


def run_plan(
    plan: Plan,
    engine_clock: Clock,
    clock: Clock | None,
    seed: int | None,
    timeout: float,
    together: bool,
    raises: bool,
    check_types: bool,
    on_worker: Callable[[Worker], None] | None = None,
) -> Result:
    """Like ``run_topology``, for a plan whose Inputs have their rows."""
    __tracebackhide__ = True
    watched = watched_clock(engine_clock, timeout)
    plays = _plays_of(plan, watched)

    def give_plays(worker: Worker, task: LocalTask) -> None:
        if on_worker is not None:
            on_worker(worker)
        for executor in worker.executors:
            if executor.component in plays:
                executor.instance._play = plays[executor.component]
        for spout in task.listens_to:
            if spout in plays:
                plays[spout].repeat()

    output = OutputPlan.typed(plan, numbered=True) if check_types or plan.leaving is not None else None
    left: list[pa.RecordBatch] = []
    inner_types = InnerTypes(plan) if check_types else None
    streams = [(component.name, stream.name) for component in plan.components for stream in plan.streams_of(component)]
    run = LocalRun(plan, watched, seed, streams, clock, give_plays, together, output, left=left)
    for play in plays.values():
        play.die = run.die
    watched.next_event = lambda: _next_event(run, plays)
    ended_by: TupleFailed | None = None
    running = "its components were being cleaned up"
    try:
        with Watchdog(timeout, watched):
            try:
                _run_to_the_end(run, plays, inner_types)
            except TupleFailed as error:
                ended_by = error
            except TooLong as error:
                threads = [thread for _, thread in run.worker.busy()] if run.worker is not None else []
                running = interrupted_call(error) or interrupted_threads(threads) or _still_running(run)
                raise
            finally:
                watched.stop_watching()
                run.stop()
    except TooLong:
        raise TopologyTimeoutError(
            f"topology {plan.name!r} did not end in time: {running}. Make its spouts, cycles and calls end, or give "
            f"run_topology a longer timeout. Given: timeout={given(timeout)}",
            code="PYSTORM_TOPOLOGY_DOES_NOT_END",
        ) from None
    if ended_by is not None:
        if ended_by.__cause__ is not None:
            trim(ended_by.__cause__)
        if raises:
            raise ended_by.with_traceback(None)
    counts = run.counts()
    counts.errors += [] if ended_by is None else [ended_by]
    result = Result(plan, run.rows, counts)
    result.attempts, result.micro_batches = run.attempts, run.micro_batches
    result.is_whole = ended_by is None
    if output is not None:
        result._left = rows_of_views(output, left)
    for name, play in plays.items():
        result.acked[name] -= play.failed
        result.failed[name] += play.failed
    return result


def rows_of_views(output: OutputPlan, batches: list[pa.RecordBatch]) -> dict[tuple[str, str], list[tuple[Any, ...]]]:
    """Component and stream → its rows as Spark would get them, without rows of failed attempts."""
    found: dict[tuple[str, str], list[tuple[Any, ...]]] = {(view.component, view.stream): [] for view in output.views}
    for batch in batches:
        numbers = batch.column(batch.num_columns - 1).to_pylist()
        columns = [column.to_pylist() for column in batch.columns[:-1]]
        for row, number in enumerate(numbers):
            view = output.views[number]
            found[view.component, view.stream].append(
                tuple(None if place < 0 else columns[place][row] for place in view.columns)
            )
    return found


def _plays_of(plan: Plan, clock: Clock) -> dict[str, Play]:
    plays = {}
    for component in plan.spouts:
        if issubclass(component.cls, ScriptedSpout):
            if len(component.tasks) > 1:
                raise TopologyError(
                    f"a script is played by one task: give {component.name!r} par=1. Given: {len(component.tasks)}",
                    code="PYSTORM_INVALID_ARGUMENT",
                )
            plays[component.name] = Play(component.cls.rows, clock)
    return plays


def _run_to_the_end(run: LocalRun, plays: Mapping[str, Play], inner_types: InnerTypes | None) -> None:
    unread = run.unread.next_ranges if run.together else run.unread.all_ranges
    run.unread.look()
    ranges = unread()
    over: set[str] = set()
    begins = True
    while begins or ranges or not all(play.done for play in plays.values()):
        for play in plays.values():
            play.begin()
        run.round(ranges, listens_to=[spout for spout in run.without_offsets if run.together or spout not in over])
        if inner_types is not None:
            inner_types.check(run.rows)
        ranges = unread()
        over = {spout for spout, play in plays.items() if play.done}
        begins = False


def _next_event(run: LocalRun, plays: Mapping[str, Play]) -> float | None:
    """Returns when the next pause ends, the next timer goes off or the next tree times out.

    None if a spout, or a socket of an async bolt, may have something earlier.
    """
    if run.worker is None:
        return None
    events = [run.worker.next_due]
    for executor in run.worker.executors:
        if isinstance(executor, AsyncExecutor) and executor.in_flight > 0 and executor.loop.waits_for_world:
            return None
        if isinstance(executor, SpoutExecutor) and not executor.exhausted:
            if executor.resting:
                events.append(executor.outage.again_at)
                continue
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
    # Time may run out between two calls of a turn: the first call's emits are still in batches.
    batched: Counter[int] = Counter()
    for executor in run.worker.executors:
        for inserter in executor.inserters:
            batched[inserter.task] += len(inserter) if inserter.queue is not None else 0
    for executor in run.worker.executors:
        done.append(f"{executor.component!r} {executor.executed}")
        queue = getattr(executor, "queue", None)
        waiting = 0 if queue is None else len(queue) + batched[executor.task]
        if isinstance(executor, AsyncExecutor) and executor.in_flight:
            parts.append(f"{executor.component!r} waits for {requests_text([executor])}")
        if isinstance(executor, RemoteExecutor) and executor.tuples_away:
            parts.append(
                f"{executor.component!r} waits for its process, which has "
                f"{counted(executor.tuples_away, 'tuple')}{waiting_text([executor])}"
            )
        if waiting:
            parts.append(f"{executor.component!r} has {counted(waiting, 'tuple')} waiting, {executor.executed} done")
        elif queue is None and not executor.exhausted:  # type: ignore[attr-defined]
            parts.append(f"spout {executor.component!r} has not ended, {counted(executor.executed, 'call')} done")
    # The only tuple of a cycle may be in no queue because its bolt is processing it.
    return ", ".join(parts) or f"tuples were under way; calls done: {', '.join(done)}"
