"""Spark's calls during a streaming query, in the runner process on the driver; only ``read`` runs in the tasks.

The life of a micro-batch, from offset to offset: ``latestOffset`` reads the sources (``snapshot_reader``), decides how
much of the backlog the micro-batch reads (``batch_plan``), reports on it (``run_telemetry``) and returns the next
offset; Spark writes it to its log; ``partitions`` turns the two offsets into ranges (``offsets.ranges``), independent
of earlier calls; ``commit`` follows with the next batch.

Spark builds this class twice, in the runner and in the planner. The planner's copy plans nothing; it is pickled for
every task and becomes a ``TaskReader`` there. Spark 4.0 and 4.1 call ``latestOffset()`` without start and limit: the
position is then the last planned offset.
"""

import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from pystorm_source.channel.leases.checks import refuse_speculation
from pystorm_source.channel.leases.driver_permits import DriverPermits
from pystorm_source.channel.reports.endpoint import in_runner, parents_command, speculation_of
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import DataLossError
from pystorm_source.plan import lint
from pystorm_source.source.admission.controller import AdmissionState, initial_rates
from pystorm_source.source.admission.limits import limits_of
from pystorm_source.source.driver.batch_plan import Busy, PlanState, Seen, plan
from pystorm_source.source.driver.batch_spans import BatchSpans
from pystorm_source.source.driver.commits import Commits
from pystorm_source.source.driver.partitions import partitions_of
from pystorm_source.source.driver.run_telemetry import RunTelemetry
from pystorm_source.source.driver.snapshot_reader import SnapshotReader
from pystorm_source.source.driver.spouts import DriverSpouts, Terminated
from pystorm_source.source.driver.task_packing import estimates, packed
from pystorm_source.source.offsets import offsets as wire
from pystorm_source.source.offsets.micro_batch import waiting
from pystorm_source.source.offsets.offsets import Key, Offsets
from pystorm_source.source.request import ReadRequest
from pystorm_source.source.task.range_partition import JoinedRanges, PlannedBatch, RangePartition
from pystorm_source.source.task.read_range import TaskReader
from pystorm_source.spark.border import spark_border
from pystorm_source.spark.hold import is_held
from pystorm_source.spark.versions import SupportsTriggerAvailableNow, default_read_limit
from pystorm_source.worker.output import OutputPlan

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

_terminated = False


class PystormStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming query over one topology. Raises nothing when built; its methods raise the errors when they are
    called.

    ``controlled``: whether a controller sizes micro-batches, unless ``feedback`` is off; ``recorded``: whether the run
    is recorded in a file; None: if this is a runner.
    """

    def __init__(
        self,
        request: ReadRequest,
        output: OutputPlan,
        clock: Clock | None = None,
        controlled: bool | None = None,
        recorded: bool | None = None,
    ):
        self._request = request
        self._output = output
        self._clock = clock or SystemClock()
        self._components = tuple(spout.name for spout in request.plan.spouts)
        self._telemetry = RunTelemetry(request, output, self._clock, recorded)
        permits = DriverPermits(request.plan.options, self._telemetry.run, self._telemetry.receiver.endpoint)
        self._spouts = DriverSpouts(request.plan, permits)
        self._snapshots = SnapshotReader(
            request.plan, self._spouts, request.options.max_offsets_per_trigger, self._clock
        )
        self._spans = BatchSpans(request.plan)
        self._commits = Commits(self._spouts, self._clock)
        is_controlled = in_runner() if controlled is None else controlled
        self._state = PlanState(is_controlled and request.options.feedback != "off")
        self._at: Offsets | None = None
        self._is_checked = False
        _stop_on_sigterm()

    def __reduce__(self) -> tuple[Any, ...]:
        return TaskReader(self._request, self._output).__reduce__()

    @spark_border()
    def initialOffset(self) -> dict[str, Any]:
        """The offset before the first batch. The end offset of the first batch also has the query's start."""
        return Offsets().to_json()

    @spark_border()
    def latestOffset(self, start: dict[str, Any] | None = None, limit: "ReadLimit | None" = None) -> dict[str, Any]:
        """The end of the next micro-batch; ``start`` itself if there is nothing, or not enough yet.

        Raises CheckpointError, OptionError (startingOffsets), DataLossError, TopologyError, and exceptions of spouts.
        """
        self._spans.ended()
        if is_held(self._telemetry.began):  # its job waits for the running micro-batch, to stop the query
            return (self._at or Offsets()).to_json() if start is None else start
        asked = self._clock.monotonic(), self._clock.wall()
        if not self._is_checked:
            self._check(by_limit=start is not None)
        at = (self._at or Offsets()) if start is None else self._parsed(start)
        limits = limits_of(self._request.options, limit, draining=self._snapshots.frozen)
        once = limits.lifted and type(self.getDefaultReadLimit()) is not type(limit)
        while True:
            may_end = self._snapshots.frozen or once or (start is None and not self._state.has_planned)
            planned = plan(self._request, at, self._seen(at, by_limit=start is not None), limits, self._state)
            self._telemetry.planned(planned, asked)
            self._state, self._at = planned.state, planned.offsets
            if planned.is_new or not (may_end and planned.seen.unanswered):
                break
            self._snapshots.rest()  # the run would end, and seem to have read all there is
        return start if start is not None and not planned.is_new else planned.offsets.to_json()

    def getDefaultReadLimit(self) -> "ReadLimit":
        """Returns the limit that Spark passes to ``latestOffset``, except with Trigger.Once, which lifts all limits.

        With ``journal.readers``, a run without limits gets one too, which distinguishes it from a single micro-batch.
        """
        options = self._request.options
        return default_read_limit(
            options.max_offsets_per_trigger,
            options.min_offsets_per_trigger,
            options.max_offsets_per_partition,
            self._state.controlled or self._request.journal.readers is not None,
        )

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Heads, backlog and components for the query's progress, None before anything is known. Never raises."""
        return self._telemetry.progress()

    @spark_border()
    def prepareForTriggerAvailableNow(self) -> None:
        """Trigger.AvailableNow: data that comes from now on is left for the next run."""
        self._snapshots.freeze()

    @spark_border()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[RangePartition | JoinedRanges]:
        """The ranges between two offsets. Pure: a replay after a restart calls this first.

        Raises CheckpointError for offsets that are not ours or go backwards.
        """
        since, upto = self._parsed(start), self._parsed(end)
        ranges, telemetry, options = wire.ranges(since, upto), self._telemetry, self._request.options
        batch = PlannedBatch.of(ranges, self._request.fingerprint, telemetry.run, telemetry.receiver.endpoint())
        batch = replace(batch, traceparent=self._spans.begun(batch.batch))
        self._state, self._at = self._state.begun(batch.batch), upto
        made = partitions_of(ranges, batch, self._spouts, options.min_partitions, options.max_records_per_partition)
        telemetry.begun(batch.batch, len(made))
        if options.min_partitions is not None:
            return made
        known = self._state.admission or AdmissionState()
        initial = initial_rates(self._request.plan, options)
        return packed(made, *estimates(made, initial, known.rates), known.slots)

    @spark_border()
    def commit(self, end: dict[str, Any]) -> None:
        """Commits finished offsets to the spouts."""
        done = self._parsed(end)
        for component in self._spouts.components:
            known = done.known(component)
            if known:
                self._commits.commit(component, known)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Task: the rows of one range."""
        return TaskReader(self._request, self._output).read(partition)

    def stop(self) -> None:
        """Writes the last record, stops listening for reports and cleans up the driver's spouts. May be called
        again.

        Spark does not wait for it, so what the next run needs is released first: the port, and the spouts' resources.
        """
        telemetry = self._telemetry
        telemetry.receiver.refuse()
        telemetry.recorder.settle()
        try:
            self._spouts.cleanup()
        finally:
            telemetry.recorder.close()
            telemetry.receiver.close()
            self._spans.close()
        if _terminated:
            # Workaround: Spark's runner would still write its last error to a closed socket, and print that failure.
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)

    def _check(self, by_limit: bool) -> None:
        refuse_speculation(self._request.plan.options, speculation_of(parents_command()))
        self._is_checked = True
        if not by_limit:
            self._telemetry.warn(
                "this Spark does not ask a source for a limit: limits hold for every micro-batch, the controller from "
                "the second one of a run on. Trigger.AvailableNow and Trigger.Once read one micro-batch here and leave "
                "to the next run what a limit holds back"
            )
        for finding in lint(self._request.plan):
            self._telemetry.warn(str(finding))

    def _lost(self, key: Key, what: str) -> None:
        if self._request.options.fail_on_data_loss:
            raise DataLossError(
                f"{what}. Some data may be lost: bring it back, or let the query go on without it with option "
                "failOnDataLoss=false. "
                f"Given: failOnDataLoss={True!r}",
                code="PYSTORM_DATA_LOST",
            )
        self._telemetry.warn(f"{what}; skipped, as failOnDataLoss is false")

    def _parsed(self, offset: dict[str, Any]) -> Offsets:
        return wire.parse(offset, self._components)

    def _seen(self, at: Offsets, by_limit: bool) -> Seen:
        """Reports may come while the heads are read, so they are taken afterwards; taking may wait, so the clock is
        read last."""
        snapshots = self._snapshots
        source = snapshots.read(at)
        first = self._request.starting if not snapshots.unanswered else replace(self._request.starting, named={})
        waits = waiting(at, source, first, self._lost)
        readable = snapshots.bounded(waits)
        outages = {name: each for name, each in self._commits.outages.items() if each.is_on} | snapshots.outages
        reports, paused = self._telemetry.reports(), self._telemetry.paused()
        return Seen(
            now=self._clock.monotonic(),
            wall=self._clock.wall(),
            source=source,
            waiting=waits,
            readable=readable,
            aligns=self._spouts.aligns,
            without_offsets=snapshots.without_offsets,
            frozen=snapshots.frozen,
            by_limit=by_limit,
            reports=reports,
            paused=paused,
            followers=snapshots.followers,
            polls=snapshots.polls,
            busy={name: Busy(each.seconds, each.reason) for name, each in outages.items()},
            unanswered=bool(snapshots.unanswered),
        )


def _stop_on_sigterm() -> None:
    """Spark ends the runner process with SIGTERM and never calls ``stop()`` on a normal end: as SystemExit it is
    called."""
    if not in_runner():
        return

    def leave(signum: int, frame: Any) -> None:
        global _terminated
        _terminated = True
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it may come twice; stop() must not be broken off
        raise Terminated(0)

    signal.signal(signal.SIGTERM, leave)
