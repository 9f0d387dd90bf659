"""The driver's record of what a sink has written: a line for each micro-batch, in the form of a source's records."""

import fcntl
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from pystorm_source.channel.reports.task_report import decode
from pystorm_source.counts.query_counts import QueryCounts
from pystorm_source.counts.run_outline import begin_of
from pystorm_source.counts.summary import ReportSummary
from pystorm_source.options.given_options import given_options
from pystorm_source.records.from_spark import tasks_of
from pystorm_source.records.record import PystormProgress, TopologyProgress
from pystorm_source.records.record_file import last_lines
from pystorm_source.records.record_folder import folder_above, sweep
from pystorm_source.records.record_writer import RecordWriter
from pystorm_source.sink.request import SinkRequest
from pystorm_source.sink.write_rows import Written

logger = logging.getLogger("pystorm.source")


def record_of(request: SinkRequest, messages: Sequence[Written], batch: int | None) -> PystormProgress:
    """Adds up what the tasks of a write have done. ``batch``: the number of the micro-batch that a stream's sink has
    written; None for a batch write, whose tasks know the micro-batch if it runs inside ``foreachBatch``."""
    reports = [decode(message.report, message.ended) for message in messages]
    query = next((report.query for report in reports if report.query is not None), None)
    if batch is None:
        batch = query.batch if query is not None else 0
    run = query.query if query is not None else request.used
    counts = QueryCounts(request.plan, request.output, run)
    counts.begin("sink", len(reports))
    summary = ReportSummary(request.plan.queue_capacity)
    for report in reports:
        counts.add(report)
    summary.add(reports)
    topology = counts.topology() or TopologyProgress(name=request.plan.name, run=run)
    began = min((report.arrived - report.seconds for report in reports), default=0.0)
    return PystormProgress(
        door="sink",
        query_id=run,
        run_id=query.run if query is not None else "",
        batch_id=batch,
        timestamp=datetime.fromtimestamp(began, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        seconds=round(max((report.arrived for report in reports), default=0.0) - began, 3),
        rows=sum(report.offsets for report in reports),
        tasks=tasks_of(summary.to_json()),
        topology=replace(topology, batch=batch),
    )


def write_record(request: SinkRequest, record: PystormProgress, is_stream: bool) -> None:
    """Appends the record to the file of its query in the folder that option progress.path names. ``is_stream``: whether
    it is of a stream's sink; then it is skipped if its micro-batch is there, because a commit is repeated after a
    restart. A batch write commits once, and inside ``foreachBatch`` other writes of the same micro-batch may precede
    it. Without that option, the record is a line of the log. A streaming query's record is also in the private folder
    of the driver, where ``progress`` finds it.

    Raises nothing: no query ends because of it.
    """
    if is_stream and record.run_id:
        _write_privately(request, record)
    if not request.records:
        if logger.isEnabledFor(logging.INFO):
            logger.info("%s: micro-batch %d is written, %d rows", request.plan.name, record.batch_id, record.rows)
        return
    try:
        folder = Path(request.records)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        run = f"{record.query_id}-{request.use}" if request.use else record.query_id
        _append(request, record, folder, run, is_stream)
    except Exception as error:
        logger.warning(
            "micro-batch %d of this sink has no record, as its file cannot be written (%s): give option progress.path "
            "a folder on a disk of the driver that has room. The query goes on. Given: progress.path=%r",
            record.batch_id,
            error,
            request.records,
            exc_info=not isinstance(error, OSError),
        )


def _write_privately(request: SinkRequest, record: PystormProgress) -> None:
    folder = folder_above()
    if folder is None:
        return
    try:
        sweep(folder)
        _append(request, record, folder, record.run_id, is_stream=True)  # a file for each run, as of a source
    except Exception as error:
        logger.debug("micro-batch %d of this sink is in no private record: %s", record.batch_id, error)


def _append(request: SinkRequest, record: PystormProgress, folder: Path, run: str, is_stream: bool) -> None:
    began = datetime.fromisoformat(record.timestamp).timestamp()
    # No process: each commit may run in another one, and none writes a last line.
    begin = begin_of(request.plan, request.output, run, began, given_options(request.plan.config))
    writer = RecordWriter(folder, replace(begin, process=0))
    with _alone(folder):  # two writes of one foreachBatch may commit at the same time
        last = next(iter(last_lines(writer.path).records), None) if writer.path.exists() else None
        if last is not None and is_stream and last.batch_id == record.batch_id:
            return
        if last is not None and last.topology is not None and record.topology is not None:
            topology = _with_totals(record.topology, last.topology)
            # Readers keep the last line of a topology's micro-batch, so each batch write gets a new number.
            number = record.batch_id if is_stream else last.topology.batch + 1
            record = replace(record, topology=replace(topology, batch=number))
        writer.write(record)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time appends to the files of a folder, where the file system has locks."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _with_totals(new: TopologyProgress, last: TopologyProgress) -> TopologyProgress:
    """``total`` of each component continues from the record before."""
    before = {component.name: component.total for component in last.components}
    return replace(
        new,
        components=tuple(
            replace(component, total=before[component.name] + component.batch)
            if component.name in before
            else component
            for component in new.components
        ),
    )
