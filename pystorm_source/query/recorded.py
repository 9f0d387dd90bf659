"""The record files of a query of this process's session."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pystorm_source.clock import Clock, SystemClock
from pystorm_source.records.record_file import RecordedRun, last_lines
from pystorm_source.records.record_folder import files_in, private_folder, runs

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

WAIT_SECONDS = 6.0
"""For the last line of a run that has ended, which is there at once unless reports are missing (``LAST_SECONDS`` of
run_recorder). Longer: a call takes long if the runner hangs. Shorter: the last micro-batch may lack ranges on a busy
machine."""
LOOK_SECONDS = 0.02
"""Between two looks for it. Longer: a call takes longer than necessary."""


def record_files(query: "StreamingQuery") -> list[Path]:
    """The files of the query's run, one for each of its sources of this package; no files before a task has reported,
    and under Spark Connect, whose driver may be elsewhere."""
    return [path for path, _ in _ends(query)[0]]


def folder_of_driver() -> Path | None:
    """The private folder of the JVM that this process has started; None if it has not started one."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    return None if gateway is None else private_folder(int(gateway.jvm.java.lang.ProcessHandle.current().pid()))


def last_records(query: "StreamingQuery", clock: Clock | None = None) -> list[RecordedRun]:
    """Returns the ends of the files of the query's run. If it has ended, waits for the last line."""
    clock = clock or SystemClock()
    has_ended = not query.isActive
    until = clock.monotonic() + WAIT_SECONDS
    while True:
        ours, unknown = _ends(query)
        found = [run for _, run in ours]
        if not has_ended or not any(map(is_written, found or unknown)) or clock.monotonic() >= until:
            return found
        clock.sleep(LOOK_SECONDS)


def is_written(run: RecordedRun) -> bool:
    """Whether lines may still come."""
    return run.ended is None and run.begin is not None and run.begin.process > 0 and runs(run.begin.process)


def is_unknown(run: RecordedRun) -> bool:
    """Whether its query is not known yet, because no task has reported."""
    return not run.records or not run.records[-1].run_id


def _ends(query: "StreamingQuery") -> tuple[list[tuple[Path, RecordedRun]], list[RecordedRun]]:
    """The ends of the files of the query's run, and those whose query is not known yet."""
    folder = folder_of_driver() if hasattr(query, "_jsq") else None
    found = [] if folder is None else [(path, _end_of(path)) for path in files_in(folder)]
    ours = [(path, run) for path, run in found if run.records and run.records[-1].run_id == str(query.runId)]
    return ours, [run for _, run in found if is_unknown(run)]


def _end_of(path: Path) -> RecordedRun:
    with suppress(OSError):
        return last_lines(path)
    return RecordedRun()
