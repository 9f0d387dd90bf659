"""What the runner says about its run: warnings, the query's progress, the record file; and what its tasks report.

Planning does not depend on it: ``planned`` gets each decision after it was made. No query ends because of it.
"""

import logging
import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any

from pystorm_source.channel.leases.lease_server import LeaseServer
from pystorm_source.channel.reports.questions import QuestionListener
from pystorm_source.channel.reports.receiver import ReportReceiver
from pystorm_source.channel.reports.server import ReportServer
from pystorm_source.channel.reports.task_report import TaskReport
from pystorm_source.clock import Clock
from pystorm_source.counts.query_counts import QueryCounts
from pystorm_source.counts.run_outline import begin_of
from pystorm_source.counts.summary import ReportSummary
from pystorm_source.options.given_options import given_options
from pystorm_source.source.driver.backlog import Backlog
from pystorm_source.source.driver.batch_plan import Planned
from pystorm_source.source.driver.run_recorder import RunRecorder
from pystorm_source.source.driver.throttling import ThrottleLog
from pystorm_source.source.request import ReadRequest
from pystorm_source.worker.output import OutputPlan

logger = logging.getLogger("pystorm.source")


class RunTelemetry:
    """Telemetry of one run of a query. ``recorded``: whether it is recorded in a file; None: if this is a runner.

    Threading law: the planning thread calls all methods but ``reported``, which the thread that receives reports calls.
    """

    def __init__(self, request: ReadRequest, output: OutputPlan, clock: Clock, recorded: bool | None = None):
        plan = request.plan
        self.run = uuid.uuid4().hex
        self.began = clock.wall()
        self.counts = QueryCounts(plan, output, self.run)
        self.leases = LeaseServer(plan.options, clock, self._breaker_changed) if plan.options.limits else None
        self.receiver = ReportReceiver(
            request.options,
            clock,
            make=partial(
                ReportServer,
                on_report=self.reported,
                ask_at=partial(QuestionListener.of_run, plan.name, self.run),
                leases=self.leases.answer if self.leases is not None else None,
            ),
        )
        self.recorder = RunRecorder(
            begin_of(plan, output, self.run, self.began, given_options(plan.config, request.options)),
            clock,
            topology=self.counts.topology,
            dropped=lambda: self.receiver.dropped,
            queue_capacity=plan.queue_capacity,
            folder=request.options.progress_path,
            here=recorded,
            outages=self.leases.outages if self.leases is not None else tuple,
        )
        self._summary = ReportSummary(plan.queue_capacity)
        self._throttle_log = ThrottleLog(clock)
        self._warned: set[str] = set()
        self._backlog: Backlog | None = None
        self._asked: float | None = None  # for the micro-batch that runs now

    def warn(self, warning: str) -> None:
        """Warns once, not with every trigger."""
        if warning not in self._warned:
            self._warned.add(warning)
            logger.warning("%s", warning)

    def reported(self, report: TaskReport) -> None:
        """A report has come."""
        try:
            self.counts.add(report)
        finally:
            self.recorder.reported(report)

    def _breaker_changed(self) -> None:
        """Called by the thread that receives reports and requests for permits."""
        self.recorder.breaker_changed()

    def reports(self) -> list[TaskReport]:
        """Returns the reports since the last call, without attempts that ended in an exception. Waits a moment for
        reports on their way, so call it as late as possible."""
        if self.receiver.on:
            self.counts.await_reports()
        reports = self.receiver.take()
        try:
            self._summary.add(reports)
        except Exception:
            logger.exception("reports of tasks are not added up for the query's progress")
        return [report for report in reports if not report.broken_off]

    def paused(self) -> Mapping[str, float]:
        """Rate limits whose services are not called now, and for how many seconds."""
        return self.leases.paused() if self.leases is not None else {}

    def planned(self, planned: Planned, asked: tuple[float, float]) -> None:
        """What was planned when Spark had ``asked`` for it (monotonic seconds, seconds since 1970).

        The order matters: the record, written last, shows the duration of the micro-batch that ends here, and its sums
        are taken before they are reset.
        """
        if planned.failure is not None:
            logger.error(
                "micro-batches are not measured out any more, only limits bound them", exc_info=planned.failure
            )
        backlog = planned.seen.backlog
        self._throttle_log.log(planned.throttling, backlog)
        if self._asked is not None and backlog and not planned.waited:
            self.counts.ended(asked[0] - self._asked)  # Spark has asked at once, without a wait for data
        self._backlog = Backlog(planned, self._summary.to_json(self.receiver.dropped))
        self._asked = asked[0] if planned.is_new else None
        if planned.is_new:
            self._summary.begin()
        self.recorder.answered(asked, self._backlog if planned.is_new else None, planned.waited)

    def begun(self, batch: str, tasks: int) -> None:
        """Spark runs a micro-batch. ``batch``: its name in reports."""
        self.counts.begin(batch, tasks)
        self.recorder.begun(batch, tasks)

    def progress(self) -> dict[str, Any] | None:
        """Heads, backlog and components for Spark's progress; None before anything is known. Raises nothing."""
        try:
            return self._backlog.to_json(self.counts.topology()) if self._backlog is not None else None
        except Exception:
            logger.exception("no backlog is reported")
            return None
