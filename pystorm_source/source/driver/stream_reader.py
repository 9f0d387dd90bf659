"""Spark's calls during a streaming query, in the runner process on the driver; only ``read`` runs in the tasks.

The life of a micro-batch, from offset to offset: ``latestOffset`` reads the sources (``snapshot_reader``), finds the
backlog (``micro_batch``), asks the controller how much of it can be done in time, applies the limits (both in
``admission``) and returns the next offset; Spark writes it to its log; ``partitions`` turns the two offsets into ranges
(``offsets.ranges``), independent of earlier calls; ``commit`` follows with the next batch.

Spark builds this class twice, in the runner and in the planner. The planner's plans nothing and is pickled for every
task, in which it becomes a ``TaskReader``.

Spark 4.0 and 4.1 call ``latestOffset()`` without start and limit. The position is then the last planned offset. Nothing
tells whether the query has an end there, and Trigger.AvailableNow and Trigger.Once plan one micro-batch: offsets that
the controller held back would wait for the next run. So it holds back from the second micro-batch of a run on, which
only a query without end has. If the query is known to have none, it does so from the first one on.
"""

import logging
import os
import signal
import sys
import uuid
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from pystorm_source.channel.leases.checks import refuse_speculation
from pystorm_source.channel.leases.lease_server import LeaseServer
from pystorm_source.channel.reports.endpoint import in_runner, parents_command, speculation_of
from pystorm_source.channel.reports.questions import QuestionListener
from pystorm_source.channel.reports.receiver import ReportReceiver
from pystorm_source.channel.reports.task_report import TaskReport
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.counts.query_counts import QueryCounts
from pystorm_source.counts.run_outline import begin_of
from pystorm_source.counts.summary import ReportSummary
from pystorm_source.errors import DataLossError
from pystorm_source.plan import lint
from pystorm_source.source.admission import (
    AdmissionController,
    AdmissionState,
    BatchBudget,
    Limits,
    admit,
    initial_rates,
    limits_of,
    section_of,
    state_of,
)
from pystorm_source.source.driver.backlog import Backlog
from pystorm_source.source.driver.partitions import partitions_of
from pystorm_source.source.driver.run_recorder import RunRecorder
from pystorm_source.source.driver.snapshot_reader import SnapshotReader
from pystorm_source.source.driver.spouts import DriverSpouts, Terminated
from pystorm_source.source.driver.task_packing import estimates, packed
from pystorm_source.source.driver.throttling import ThrottleLog, Throttling
from pystorm_source.source.driver.trigger_delay import TriggerDelay
from pystorm_source.source.offsets import offsets as wire
from pystorm_source.source.offsets.micro_batch import Waiting, next_offsets, waiting
from pystorm_source.source.offsets.offsets import Key, Offsets
from pystorm_source.source.offsets.partition_index import Column, total
from pystorm_source.source.request import ReadRequest
from pystorm_source.source.task.range_partition import JoinedRanges, PlannedBatch, RangePartition
from pystorm_source.source.task.read_range import TaskReader
from pystorm_source.spark.border import spark_border
from pystorm_source.spark.hold import is_held
from pystorm_source.spark.versions import SupportsTriggerAvailableNow, default_read_limit
from pystorm_source.worker.output import OutputPlan

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

logger = logging.getLogger("pystorm.source")

_terminated = False


class PystormStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming query over one topology. Raises nothing when built; its methods raise the errors when they are
    called.

    ``controlled``: whether a controller sizes micro-batches, unless ``feedback`` is off; ``recorded``: whether the run
    is recorded in a file; None: in the runner.
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
        options = request.options
        self._spouts = DriverSpouts(request.plan)
        self._components = tuple(component.name for component in request.plan.spouts)
        self._snapshots = SnapshotReader(request.plan, self._spouts, options.max_offsets_per_trigger)
        self._delay = TriggerDelay(request.max_trigger_delay, self._clock)
        self._at: Offsets | None = None
        self._backlog: Backlog | None = None
        self._said: set[str] = set()
        self._linted = False
        self._has_planned = False
        self._run = uuid.uuid4().hex
        self._began = self._clock.wall()
        self._counts = QueryCounts(request.plan, output, self._run)
        ask_at = partial(QuestionListener.of_run, request.plan.name, self._run)
        engine = request.plan.options
        self._leases = LeaseServer(engine, self._clock) if engine.limits else None
        self._receiver = ReportReceiver(
            options,
            self._clock,
            on_report=self._reported,
            ask_at=ask_at,
            leases=self._leases.answer if self._leases is not None else None,
        )
        self._recorder = RunRecorder(
            begin_of(request.plan, output, self._run, self._began),
            self._clock,
            topology=self._counts.topology,
            dropped=lambda: self._receiver.dropped,
            folder=options.progress_path,
            here=recorded,
        )
        self._is_controlled = options.feedback != "off" and (in_runner() if controlled is None else controlled)
        self._controller: AdmissionController | None = None
        self._throttle_log = ThrottleLog(self._clock)
        self._summary = ReportSummary()
        self._paused: dict[str, float] = {}  # rate limits whose services are not called, and for how many seconds
        self._asked: float | None = None  # when the micro-batch was planned that runs now
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
        if is_held(self._began):  # its job waits for the running micro-batch, to stop the query
            return (self._at or Offsets()).to_json() if start is None else start
        self._recorder.asked()
        if not self._linted:
            refuse_speculation(self._request.plan.options, speculation_of(parents_command()))
        if start is None:
            self._warn(
                "this Spark does not ask a source for a limit: limits hold for every micro-batch, the controller from "
                "the second one of a run on. Trigger.AvailableNow and Trigger.Once read one micro-batch here and leave "
                "to the next run what a limit holds back"
            )
        if not self._linted:
            self._linted = True
            for finding in lint(self._request.plan):
                self._warn(str(finding))
        asked = self._clock.monotonic()
        at = (self._at or Offsets()) if start is None else wire.parse(start, self._components)
        source = self._snapshots.read(at)
        all_waiting = waiting(at, source, self._request.starting, self._lost)
        waits = self._snapshots.bounded(all_waiting)
        limits = limits_of(self._request.options, limit, draining=self._snapshots.frozen)
        controller = self._controller_at(at) if not limits.lifted else None
        holds_back = start is not None or self._has_no_end(at)
        if self._receiver.on:  # as late as possible: the heads have been read meanwhile
            self._counts.await_reports()
        reports = self._reports()
        # An open circuit breaker: what a micro-batch would do fails. A query with an end would end here instead.
        self._paused = self._leases.paused() if self._leases is not None else {}
        ends, throttling = self._planned_ends(waits, limits, controller, reports, holds_back)
        section = section_of(controller.state) if controller is not None else None
        if start is None and not self._has_planned:
            section = {}  # if the run ends with this micro-batch, the next one must not take the query for endless
        self._note_duration(asked, total(waits.head - waits.start), controller)
        planned = next_offsets(at, source, waits, ends, self._request.starting, section)
        tasks = self._summary.to_json(self._receiver.dropped)
        self._backlog = Backlog(
            all_waiting, ends, limits, self._snapshots.without_offsets, throttling, tasks, self._paused
        )
        if planned is not at:
            self._has_planned = True
            self._summary.begin()
            self._asked = asked
        self._recorder.answered(
            self._backlog if planned is not at else None, waited=controller is not None and controller.waited
        )
        self._at = planned
        return start if start is not None and planned is at else planned.to_json()

    def getDefaultReadLimit(self) -> "ReadLimit":
        """The limit that Spark is to pass to ``latestOffset``, except with Trigger.Once, which lifts all limits."""
        options = self._request.options
        return default_read_limit(
            options.max_offsets_per_trigger,
            options.min_offsets_per_trigger,
            options.max_offsets_per_partition,
            self._is_controlled,
        )

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Heads, backlog and components for the query's progress, None before anything is known. Never raises: it is
        telemetry."""
        try:
            return self._backlog.to_json(self._counts.topology()) if self._backlog is not None else None
        except Exception:
            logger.exception("no backlog is reported")
            return None

    @spark_border()
    def prepareForTriggerAvailableNow(self) -> None:
        """Trigger.AvailableNow: data that comes from now on is left for the next run."""
        self._snapshots.freeze()

    @spark_border()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[RangePartition | JoinedRanges]:
        """The ranges between two offsets. Pure: a replay after a restart calls this first.

        Raises CheckpointError for offsets that are not ours or go backwards.
        """
        since, upto = (wire.parse(offset, self._components) for offset in (start, end))
        self._at = upto
        ranges = wire.ranges(since, upto)
        planned = PlannedBatch.of(ranges, self._request.fingerprint, self._run, self._receiver.endpoint())
        if self._controller is not None:
            self._controller.begun(planned.batch)
        options = self._request.options
        made = partitions_of(ranges, planned, self._spouts, options.min_partitions, options.max_records_per_partition)
        self._counts.begin(planned.batch, len(made))
        self._recorder.begun(planned.batch, len(made))
        if options.min_partitions is not None:
            return made
        known = self._controller.state if self._controller is not None else AdmissionState()
        initial = initial_rates(self._request.plan, options)
        return packed(made, *estimates(made, initial, known.rates), known.slots)

    @spark_border()
    def commit(self, end: dict[str, Any]) -> None:
        """Commits finished offsets to the spouts."""
        done = wire.parse(end, self._components)
        for component in self._spouts.components:
            known = done.known(component)
            if known:
                self._spouts.commit(component, known)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Task: the rows of one range."""
        return TaskReader(self._request, self._output).read(partition)

    def stop(self) -> None:
        """Writes the last record, stops listening for reports and cleans up the driver's spouts. May be called
        again.

        Spark waits for none of it. So what the next run needs is given back first: the port, and what spouts hold.
        """
        self._receiver.refuse()
        self._recorder.settle()
        try:
            self._spouts.cleanup()
        finally:
            self._recorder.close()
            self._receiver.close()
        if _terminated:
            # Workaround: Spark's runner would still write its last error to a closed socket, and print that failure.
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)

    def _planned_ends(
        self,
        waits: Waiting,
        limits: Limits,
        controller: AdmissionController | None,
        reports: list[TaskReport],
        holds_back: bool,
    ) -> tuple[Column, Throttling]:
        """The ends of partitions: within the user's limits and, if the controller ``holds_back``, within its budget."""
        backlog = total(waits.head - waits.start)
        budget = self._budget(controller, waits, reports) if controller is not None else None
        in_force = budget if holds_back else None
        if self._delay.holds(backlog, limits.minimum) or (self._paused and not self._snapshots.frozen):
            ends = waits.start
        else:
            ends = admit(waits, limits, self._spouts.aligns, in_force.offsets if in_force is not None else None)
        throttling = Throttling.of(waits, ends, limits, in_force)
        if controller is not None and budget is not None:
            controller.note_planned(waits.start, ends)
            self._throttle_log.log(throttling, backlog)
        return ends, throttling

    def _note_duration(self, asked: float, backlog: int, controller: AdmissionController | None) -> None:
        """How long the last micro-batch took, if Spark asks for the next one at once and there is one: it may have
        waited for data, or for its trigger."""
        waited = controller is not None and controller.waited
        if self._asked is not None and backlog > 0 and not waited:
            self._counts.ended(asked - self._asked)
        self._asked = None

    def _has_no_end(self, at: Offsets) -> bool:
        """Whether the query plans more than one micro-batch, on a Spark that asks for no limit.

        An earlier micro-batch of this run shows it. So does the controller's section in the offset, which only a run of
        several writes. If a first rate is set, the user wants it to bound the first micro-batch.
        """
        return self._has_planned or bool(at.admission) or self._request.options.initial_rate is not None

    def _reported(self, report: TaskReport) -> None:
        """A report has come; called by the thread that receives it."""
        try:
            self._counts.add(report)
        finally:
            self._recorder.reported(report)

    def _reports(self) -> list[TaskReport]:
        """The reports since the last call, added to the summary, without those of attempts that an exception has ended.
        Raises nothing: it is telemetry."""
        reports = self._receiver.take()
        try:
            self._summary.add(reports)
        except Exception:
            logger.exception("reports of tasks are not added up for the query's progress")
        return [report for report in reports if not report.broken_off]

    def _budget(self, controller: AdmissionController, waits: Waiting, reports: list[TaskReport]) -> BatchBudget | None:
        """The controller's budget. None if it fails: no query ends because of it."""
        try:
            return controller.decide(waits.index.names, waits.head - waits.start, reports)
        except Exception:
            logger.exception("micro-batches are not measured out any more, only limits bound them")
            self._is_controlled, self._controller = False, None
            return None

    def _controller_at(self, at: Offsets) -> AdmissionController | None:
        """The controller of this run, which begins with the state in the offset."""
        if self._controller is None and self._is_controlled:
            self._controller = AdmissionController.of(
                self._request.plan, self._request.options, self._clock, state_of(at.admission)
            )
        return self._controller

    def _lost(self, key: Key, what: str) -> None:
        if self._request.options.fail_on_data_loss:
            raise DataLossError(
                f"{what}. Some data may be lost: bring it back, or let the query go on without it with option "
                "failOnDataLoss=false. "
                f"Given: failOnDataLoss={True!r}",
                code="PYSTORM_DATA_LOST",
            )
        self._warn(f"{what}; skipped, as failOnDataLoss is false")

    def _warn(self, warning: str) -> None:
        if warning not in self._said:  # once, not with every trigger
            self._said.add(warning)
            logger.warning("%s", warning)


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
