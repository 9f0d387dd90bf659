"""Writes what the runner learns about each micro-batch of its run into the run's record file.

::

    latestOffset ─▶ answered ──────── when it began, admission ─┐
    partitions ───▶ begun ─────────── its ranges ───────────────┼─▶ a record ─▶ the file: when all ranges are reported,
    a report ─────▶ reported ──────── tasks, components ────────┤               when the next micro-batch is planned,
    a breaker ────▶ breaker_changed ─ outages ──────────────────┘               when a breaker opens, probes or closes,
                                                                                when the run ends

Spark's progress shows a micro-batch's counts only with the next one, so never the counts of the last one; on Spark 4.0
and 4.1 it shows no counts. The file has all of them.
"""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from threading import Condition
from typing import Any, Concatenate, ParamSpec

from msgspec.structs import replace

from pystorm_source.channel.reports.endpoint import in_runner
from pystorm_source.channel.reports.task_report import TaskReport
from pystorm_source.clock import Clock
from pystorm_source.counts.summary import ReportSummary
from pystorm_source.records.bottleneck import bottleneck
from pystorm_source.records.from_spark import admission_of, tasks_of
from pystorm_source.records.record import OutageProgress, PystormProgress, TopologyProgress
from pystorm_source.records.record_file import Begin
from pystorm_source.records.record_folder import make_private, private_folder, sweep
from pystorm_source.records.record_writer import RecordWriter
from pystorm_source.source.driver.backlog import Backlog
from pystorm_source.source.driver.running_batch import RunningBatch
from pystorm_source.spark.query_batch import QueryBatch

logger = logging.getLogger("pystorm.source")

QUIET_SECONDS = 5.0
"""Between two lines of a micro-batch that runs. Too large: the record of a long one is old. Too small: the file fills
up with lines that the next one replaces."""
LAST_SECONDS = 5.0
"""How long the end of a run waits for the reports of a micro-batch that has ended; Spark does not wait for that. Too
large: if a worker took its report along, the process outlives its query, and a job waits as long for the last record.
Too small: on a busy machine the last record lacks ranges."""
CUT_OFF_SECONDS = 0.5
"""The same for a micro-batch that may have been cut off, whose other ranges are never reported. Too large: a job that
stops its query waits for the last record. Too small: ranges that have ended are not in it."""


_P = ParamSpec("_P")


def _harmless(
    method: "Callable[Concatenate[RunRecorder, _P], None]",
) -> "Callable[Concatenate[RunRecorder, _P], None]":
    """A method that does nothing if there is no file to write, and raises nothing: no query ends because of it."""

    @wraps(method)
    def wrapped(self: "RunRecorder", /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        if not self.on:
            return
        try:
            with self._changed:
                method(self, *args, **kwargs)
        except Exception as error:
            self._log(error)

    return wrapped


class RunRecorder:
    """The record of one run of a query.

    ``topology``: the components' counts of a micro-batch, by its number; None if it has no report. ``dropped``: reason
    → reports that could not be used. ``queue_capacity``: of the receive queues. ``folder``: option progress.path; if
    empty, only the private folder of the driver's JVM. ``here``: whether this process writes; None: if it is a runner.
    ``outages``: the limits whose circuit breakers are open.

    Late reports correct the previous micro-batch's record until the newest one's is written: a line of a file can
    replace only the line before it.

    Threading law: the planning thread calls all methods but ``reported`` and ``breaker_changed``, which the thread that
    receives reports calls; one lock.
    """

    def __init__(
        self,
        begin: Begin,
        clock: Clock,
        topology: Callable[[int], TopologyProgress | None],
        dropped: Callable[[], Mapping[str, int]],
        queue_capacity: int = 0,
        folder: str = "",
        here: bool | None = None,
        outages: Callable[[], Sequence[OutageProgress]] = tuple,
    ):
        self.on = in_runner() if here is None else here
        self._begin = begin
        self._clock = clock
        self._topology = topology
        self._dropped = dropped
        self._queue_capacity = queue_capacity
        self._outages = outages
        self._last: PystormProgress | None = None
        """What the last line was made of."""
        self._folder = folder
        self._private = private_folder(os.getppid())
        self._changed = Condition()
        self._writer: RecordWriter | None = None
        self._answered: tuple[tuple[float, float], Mapping[str, Any]] | None = None
        self._batch: RunningBatch | None = None
        self._before: RunningBatch | None = None
        """The one before, while its record may be corrected."""
        self._loses = False
        """Whether no report of the one before has come at all."""
        self._query: QueryBatch | None = None
        self._next = 0
        self._said = False

    @_harmless
    def answered(self, asked: tuple[float, float], backlog: Backlog | None, waited: bool) -> None:
        """``asked``: when Spark has asked for the next micro-batch, so the one before is over (monotonic seconds,
        seconds since 1970). ``backlog``: with the micro-batch that was planned, None if none was. ``waited``: whether
        the query has waited for its trigger since the one before, so that this time is no part of its duration."""
        batch = self._batch
        if batch is not None and batch.seconds is None:
            batch.seconds = batch.seconds_at(asked[0]) if waited else asked[0] - batch.began
            batch.changed = True
        if batch is not None and batch.changed:
            self._write(batch)
        if backlog is not None:
            self._answered = asked, admission_of(backlog.to_json())

    @_harmless
    def begun(self, key: str, ranges: int) -> None:
        """Spark runs a micro-batch: the planned one, or after a restart one of the run before. ``key``: its name in
        reports."""
        if not ranges or (self._batch is not None and self._batch.key == key):
            return
        if self._batch is not None and self._batch.changed:
            self._write(self._batch)
        self._loses = False
        self._before = self._batch if self._batch is not None and not self._batch.is_whole else None
        now = self._clock.monotonic(), self._clock.wall()
        (began, wall), admission = self._answered or (now, {})
        self._answered = None
        self._batch = RunningBatch(
            self._next, key, ranges, _timestamp(wall), began, admission, ReportSummary(self._queue_capacity)
        )
        self._next += 1

    @_harmless
    def reported(self, report: TaskReport) -> None:
        """A report has come, whose counts ``topology`` has."""
        batch = next((known for known in (self._batch, self._before) if known and known.key == report.batch), None)
        if batch is None:
            return
        batch.summary.add([report])
        batch.arrived = report.arrived
        if report.query is not None:
            batch.query = self._query = report.query
        batch.changed = True
        self._changed.notify_all()
        is_old = batch is self._batch and self._clock.monotonic() - batch.written >= QUIET_SECONDS
        if batch.is_whole or is_old:
            self._write(batch)

    @_harmless
    def breaker_changed(self) -> None:
        """A circuit breaker has opened or closed, or its probe has failed. The last line says so, whichever micro-batch
        it is about: the one that waits may have no report for that long."""
        if self._last is not None:
            self._put(self._last)
        elif self._batch is not None:
            self._write(self._batch)

    @_harmless
    def settle(self) -> None:
        """The run ends: writes what is known by now, and the end if no report is on its way."""
        self._write_last()
        if not self._wait_seconds:
            self._end()

    @_harmless
    def close(self) -> None:
        """The run has ended. Waits for reports that are on their way. May be called again."""
        self._changed.wait_for(lambda: not self._wait_seconds, self._wait_seconds)
        self._write_last()
        self._end()

    @property
    def _wait_seconds(self) -> float:
        """How many seconds it is worth waiting for reports of the last micro-batch."""
        batch = self._batch
        if batch is None or batch.is_whole:
            return 0.0
        if batch.seconds is None:  # Spark has not asked for the next one: it need not, if it reads only this one
            return 0.0 if batch.summary.has_failures else CUT_OFF_SECONDS
        return CUT_OFF_SECONDS if self._loses else LAST_SECONDS

    def _write_last(self) -> None:
        """A micro-batch that was cut off before its first report leaves no record."""
        batch = self._batch
        if batch is not None and batch.changed and (batch.seconds is not None or not batch.summary.is_empty):
            self._write(batch)

    def _end(self) -> None:
        if self._writer is not None:
            self._writer.end(self._clock.wall())
        self.on = False

    def _write(self, batch: RunningBatch) -> None:
        before = self._before
        if before is not None and batch is not before:
            self._before, self._loses = None, not before.is_whole
            if before.changed:
                self._write(before)
        batch.written = self._clock.monotonic()
        self._put(self._record(batch))
        batch.changed = False

    def _put(self, record: PystormProgress) -> None:
        """Writes it with the current outages."""
        self._last = record
        record = replace(record, outages=tuple(self._outages()))
        try:
            writer = self._writer = self._writer or self._made()
            writer.write(record)
        except FileNotFoundError:  # the folder was removed
            writer = self._writer = self._made()
            writer.write(record)

    def _record(self, batch: RunningBatch) -> PystormProgress:
        tasks = tasks_of(batch.summary.to_json(self._dropped()))
        return PystormProgress(
            query_id=self._query.query if self._query is not None else "",
            run_id=self._query.run if self._query is not None else "",
            batch_id=batch.query.batch if batch.query is not None else -1,
            timestamp=batch.timestamp,
            seconds=batch.seconds_at(self._clock.monotonic()),
            rows=tasks.rows if tasks is not None else 0,
            admitted=bool(batch.admission),
            **batch.admission,
            tasks=tasks,
            topology=self._topology_of(batch),
        )

    def _topology_of(self, batch: RunningBatch) -> TopologyProgress:
        found = self._topology(batch.number)
        if found is not None:
            if batch.seconds is None or not batch.admission.get("backlog"):
                return found
            # Only a query with a backlog is held back by what a micro-batch costs besides its tasks.
            return replace(found, bottleneck=bottleneck(found, batch.seconds))
        name, run = self._begin.topology, self._begin.run
        return TopologyProgress(name=name, run=run, batch=batch.number, whole=batch.is_whole)

    def _made(self) -> RecordWriter:
        """The writer of the file, and the folder that it is in. A file in a folder of the user is found by a link in
        the private one."""
        sweep(self._private, self._clock)
        if not self._folder:
            make_private(self._private)
            return RecordWriter(self._private, self._begin)
        Path(self._folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        writer = RecordWriter(Path(self._folder).absolute(), self._begin)
        with suppress(OSError):
            make_private(self._private)
            (self._private / writer.path.name).symlink_to(writer.path)
        return writer

    def _log(self, error: Exception) -> None:
        if not self._said:
            self._said = True
            logger.warning(
                "the record of this run has gaps, as its file cannot be written (%s): give option progress.path a "
                "folder on a disk of the driver that has room. The query goes on. Given: progress.path=%r",
                error,
                self._folder,
                exc_info=not isinstance(error, OSError),
            )


def _timestamp(wall: float) -> str:
    """As Spark prints it."""
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
