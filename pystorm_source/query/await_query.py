"""Waits for streaming queries, and stops them between two micro-batches when the job must end."""

import sys
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from pystorm_source.clock import SystemClock
from pystorm_source.errors import ArgumentError, ArgumentTypeError, given
from pystorm_source.query.explain import explain
from pystorm_source.query.short_log import short_log
from pystorm_source.query.signals import STATUS, Signals
from pystorm_source.query.standing import REPLACED, is_replaced, name_of, standing, state_of
from pystorm_source.spark.hold import held

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery, StreamingQueryManager

POLL_SECONDS = 0.25
"""Between two looks at whether a query still runs. Longer: a job ends later than its queries."""
WATCH_SECONDS = 0.005
"""Between two looks for the end of a micro-batch. Longer: the next one may already have begun its tasks."""
LAST_WORDS_SECONDS = 5.0
"""For tasks that are cancelled: Spark gives a Python worker two seconds to end. Longer: a script ends later."""
_IDLE = "Waiting"
"""How Spark's status begins between two micro-batches."""


def await_query(
    *queries: "StreamingQuery | StreamingQueryManager", stop_timeout: float = 30.0, exits: bool | None = None
) -> None:
    """Waits until the queries end; on Ctrl-C (SIGINT) and SIGTERM it stops them after the micro-batch that runs.

    ``query.stop()`` and a plain Ctrl-C break a micro-batch off, and the next run reads it again. Here it is finished
    first, within ``stop_timeout`` seconds; a second signal breaks it off at once. One or two lines on standard error
    say how far each query got. Started again with its checkpoint, a query continues there.

    If a query fails, the others are stopped in the same way, and ``explain`` says why. If Spark has stopped one because
    another one was started with its checkpoint, a line on standard error says so.

    Exit status of a script: 0 if the queries have ended by themselves, 1 if one has failed, 130 after SIGINT, 143
    after SIGTERM. spark-submit exits with the same status.

    Args:
        *queries (StreamingQuery | StreamingQueryManager): one or more queries, or ``spark.streams`` for all that are
            active now.
        stop_timeout (float): seconds for the running micro-batch to end. Less than what a cluster grants after
            SIGTERM, often 30 s. Defaults to 30.0.
        exits (bool): whether a signal and a failure end the process, by SystemExit. Otherwise it returns after a
            signal, and raises the query's exception. Defaults to None: in a script yes, in interactive Python no.

    Raises:
        SystemExit: with the exit status, if ``exits``.
        Exception: Spark's StreamingQueryException, if a query has failed, unless ``exits``.
        ArgumentError: no query is given.
        ArgumentTypeError: something else than a query is given.

    Example:
        >>> from pystorm_source import await_query, read_stream
        >>> from pystorm_source.spouts import MemorySpout
        >>> class Numbers(Topology):
        ...     numbers = MemorySpout.spec(fields=["n long"], rows=[[1], [2]])
        >>> stream = read_stream(spark, Numbers).writeStream.format("memory").queryName("awaited_numbers")
        >>> await_query(stream.trigger(availableNow=True).start())
        >>> spark.table("awaited_numbers").count()
        2
    """
    waiting = list(chain.from_iterable(each.active if hasattr(each, "active") else [each] for each in queries))
    if not waiting:
        raise ArgumentError(
            "await_query takes one or more queries, or spark.streams with active ones. Given: none",
            code="PYSTORM_INVALID_ARGUMENT",
        )
    for query in waiting:
        if not hasattr(query, "isActive"):
            raise ArgumentTypeError(
                "await_query takes streaming queries, as writeStream.start() returns them, or spark.streams. "
                f"Given: {given(query)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
    gateway = _gateway_of(waiting[0])
    with short_log(gateway, (query.id for query in waiting)), Signals(gateway) as signals:
        while not signals.count:
            are_active, errors = zip(*map(state_of, waiting), strict=True)
            if any(error is not None for error in errors):
                break
            if not any(are_active):
                for query in filter(is_replaced, waiting):
                    _say(f"{name_of(query)} {REPLACED}; {standing(query)}")
                return
            signals.wait(POLL_SECONDS)
        if signals.count:
            name = {2: "Ctrl-C", 15: "SIGTERM"}.get(signals.number, f"signal {signals.number}")
            _say(f"{name}: stops after the running micro-batch, in {stop_timeout:g} s at most; once more: at once")
        active = [query for query in waiting if query.isActive]
        with held(None if gateway is None else gateway.jvm.java.lang.ProcessHandle.current().pid()):
            broken_off = _stop(active, stop_timeout, signals)
        for query in waiting:
            if query.exception() is None:
                end = "stopped in the middle of a micro-batch" if query in broken_off else "stopped"
                _say(f"{name_of(query)} {end}; {standing(query)}")
        error = next((error for query in waiting if (error := query.exception()) is not None), None)
        if error is not None:
            _wait_for_sparks_last_words(waiting)
    if error is not None:
        _say(explain(error))
    if exits if exits is not None else not _is_interactive():
        raise SystemExit(1 if error is not None else STATUS + signals.number) from None
    if error is not None:
        raise error


def _wait_for_sparks_last_words(queries: "Sequence[StreamingQuery]") -> None:
    """Until the tasks of these queries are over, or for a few seconds: a task that is cancelled because another one has
    failed is logged when it ends, and would push the explanation off the screen."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is None:  # Spark Connect: its log is elsewhere
        return
    tracker, clock = context.statusTracker(), SystemClock()
    end = clock.monotonic() + LAST_WORDS_SECONDS
    with Signals() as signals:
        while clock.monotonic() < end and not signals.count and any(_is_busy(query, tracker) for query in queries):
            signals.wait(POLL_SECONDS)


def _is_busy(query: "StreamingQuery", tracker: Any) -> bool:
    """Whether it, or a task of it, has not ended. A stage counts its tasks down after it has failed, too."""
    jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup(str(query.runId)))
    stages = {stage for job in jobs if job is not None for stage in job.stageIds}
    infos = map(tracker.getStageInfo, stages)
    return query.isActive or any(info.numActiveTasks for info in infos if info is not None)


def _stop(queries: "Sequence[StreamingQuery]", seconds: float, signals: Signals) -> "list[StreamingQuery]":
    """Stops each between two micro-batches. Returns those that did not get there in time, or before another signal."""
    clock = SystemClock()
    end = clock.monotonic() + seconds
    asked = signals.count
    running = {query: _ended(query) for query in queries}
    broken_off: list[StreamingQuery] = []
    while running:
        hurries = clock.monotonic() >= end or signals.count > max(1, asked)
        if hurries:
            signals.restore()  # a third signal need not wait for Spark
        for query, ended in list(running.items()):
            # Spark Connect cannot hold a query: there the next micro-batch may be planned by now, which has no effect.
            is_between = _is_between(query) or (not hasattr(query, "_jsq") and _ended(query) != ended)
            if is_between or hurries:
                if not is_between:
                    broken_off.append(query)
                query.stop()
                del running[query]
        if running:
            signals.wait(WATCH_SECONDS)
    return broken_off


def _is_between(query: "StreamingQuery") -> bool:
    """Whether no micro-batch is being planned or run. A query that is held soon gets there."""
    status: Any = query.status
    return not query.isActive or not status["isTriggerActive"] or status["message"].startswith(_IDLE)


def _ended(query: "StreamingQuery") -> Any:
    """The last micro-batch that has ended."""
    last = query.lastProgress
    return None if last is None else (last["batchId"], last["timestamp"])


def _gateway_of(query: "StreamingQuery") -> Any:
    """None under Spark Connect, where the JVM is elsewhere."""
    if not hasattr(query, "_jsq"):
        return None
    from pyspark import SparkContext

    return SparkContext._gateway


def _is_interactive() -> bool:
    return hasattr(sys, "ps1") or ("IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
