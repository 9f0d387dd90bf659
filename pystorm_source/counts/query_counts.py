"""What the components of a query did, from its tasks' reports: the section ``topology`` of its progress.

The counts of a micro-batch are shown until a report of the next one arrives. Late reports of the previous micro-batch
still count; earlier ones are ignored.

Threading law: one thread adds reports, another one begins micro-batches, waits and reads; one lock.
"""

from math import isfinite
from threading import Condition

from pystorm_source.channel.reports.task_report import TaskReport
from pystorm_source.counts.batch_counts import BatchCounts, ComponentSums, Shape
from pystorm_source.counts.component_progress import TopologyView
from pystorm_source.plan.plan import Plan
from pystorm_source.records.record import ErrorRecord, Metric, TopologyProgress
from pystorm_source.worker.component_columns import ComponentColumns
from pystorm_source.worker.output import OutputPlan

MOST_METRICS = 1_000
"""Metrics of a query. More: a component that makes up names fills the driver's memory. Fewer: some are not shown."""


WAIT_SECONDS = 1.0
"""How long the next micro-batch waits for reports of the one that has ended. Too large: a query loses this time, once,
when a worker was killed with its report. Too small: on a busy machine the counts of a micro-batch lack some ranges."""


class QueryCounts:
    """The counts of one run of a query, ``run``."""

    def __init__(self, plan: Plan, output: OutputPlan, run: str):
        self._shape = Shape.of(plan)
        self._spouts = tuple(component.name for component in plan.spouts)
        self._view = TopologyView(plan, output, run)
        self._changed = Condition()
        self._prompt = True
        """Whether it is worth waiting for reports: whether those before them arrived in time."""
        self._began = 0
        self._closed = ComponentSums(self._shape)
        self._batches: list[BatchCounts] = []
        self._metrics: dict[tuple[int, str], Metric] = {}
        self._errors: dict[int, ErrorRecord] = {}

    def begin(self, batch: str, ranges: int) -> None:
        """A micro-batch was planned. ``batch``: its name in reports; if it was planned before, it goes on."""
        with self._changed:
            if not ranges or any(known.key == batch for known in self._batches):
                return
            while len(self._batches) > 1:
                self._closed.add_sums(self._batches.pop(0).sums)
            self._batches.append(BatchCounts(self._shape, self._spouts, batch, self._began, ranges))
            self._began += 1

    def ended(self, seconds: float) -> None:
        """The last micro-batch has ended; ``seconds``: how long it took in all. The first one of a run starts
        processes, so its time means nothing."""
        with self._changed:
            if self._batches and self._batches[-1].number > 0:
                self._batches[-1].duration = seconds

    def add(self, report: TaskReport) -> None:
        """Adds a report. Raises ValueError or IndexError if it is of another plan."""
        with self._changed:
            batch = next((known for known in self._batches if known.key == report.batch), None)
            if batch is not None and batch.add(report) and report.components is not None:
                self._note(report.components)
            if batch is not None and batch.whole:
                self._changed.notify_all()

    def await_reports(self, seconds: float = WAIT_SECONDS) -> bool:
        """Waits until all ranges of the newest micro-batch, which has ended, are reported: a task is over before its
        report has been read here. Returns whether they are.

        Once it has waited in vain, it does not wait again until all ranges of a micro-batch are reported in time: lost
        reports must not slow a query down.
        """
        with self._changed:
            batch = self._batches[-1] if self._batches else None
            if batch is None or batch.whole:
                self._prompt = True
            elif self._prompt:
                self._prompt = self._changed.wait_for(lambda: batch.whole, seconds)
            return batch is None or batch.whole

    def _note(self, columns: ComponentColumns) -> None:
        for error in columns.last_errors:
            known = self._errors.get(error.component)
            if error.component < self._shape.components and (known is None or known.at <= error.at):
                self._errors[error.component] = ErrorRecord(text=error.text, at=error.at, frames=error.frames)
        for delta in columns.metrics:
            of = delta.component, delta.name
            if of not in self._metrics and len(self._metrics) >= MOST_METRICS:
                continue
            old = self._metrics.get(of, Metric())
            total = old.sum + delta.sum
            total = total if isfinite(total) else old.sum  # JSON has no infinity
            self._metrics[of] = Metric(count=old.count + delta.count, sum=total, last=delta.last)

    def topology(self, number: int | None = None) -> TopologyProgress | None:
        """Returns the record of the newest micro-batch with a report, or of micro-batch ``number`` if it is one of the
        last two; None without a report."""
        with self._changed:
            known = [batch for batch in self._batches if batch.read or batch.has_errors]
            shown = next((batch for batch in reversed(known) if number in (None, batch.number)), None)
            if shown is None:
                return None
            totals = ComponentSums(self._shape)
            for sums in (self._closed, *(batch.sums for batch in self._batches if batch.number <= shown.number)):
                totals.add_sums(sums)
            return self._view.of(shown, totals, self._metrics, self._errors)
