"""A log that grows and is rotated → the parts of each line, by a regular expression → Parquet."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from benchmarks.harness.peers import PROGRAMS
from benchmarks.harness.record import ROOT
from benchmarks.job_programs.lines import line, taken
from benchmarks.jobs.kafka_loads import rows_of
from benchmarks.jobs.measuring import Job, Load, Loads
from benchmarks.jobs.side import BARE, EXACTLY_ONCE, NONE, SPARK, SYSLOG_NGS, TELEGRAFS, Side

ROWS = {"few": 50_000, "part": 1_000_000, "all": 1_000_000}
QUICK_ROWS = {"few": 100, "part": 2_000, "all": 2_000}
LINES_A_SECOND = 50_000
"""More: the writer takes the processors from those that read. Fewer: a run takes longer."""


def _written(lines: int, work: Path) -> Mapping[str, Any]:
    """Starts a writer; the folder of its files, and the file that it makes when it is done."""
    logs, done = work / "logs", work / "done"
    logs.mkdir()
    command = [sys.executable, str(PROGRAMS / "log_writer.py"), str(logs), str(lines), str(LINES_A_SECOND), str(done)]
    subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)})
    return {"logs": str(logs), "done": str(done)}


def _check(lines: int, out: Path) -> None:
    found = rows_of(out, ["number", "millis"])
    wanted = [row for row in map(taken, map(line, range(lines))) if row]
    seen = (len(found), pc.count_distinct(found["number"]).as_py(), pc.sum(found["millis"]).as_py())
    right = (len(wanted), len(wanted), sum(row[4] for row in wanted))
    if seen != right:
        raise RuntimeError(f"rows, lines and milliseconds are {seen} instead of {right}")


@contextmanager
def _loads(folder: Path, quick: bool) -> Iterator[Loads]:
    rows = QUICK_ROWS if quick else ROWS
    yield Loads(**{name: Load(lines, partial(_written, lines), partial(_check, lines)) for name, lines in rows.items()})


LOGS = Job(
    "logs",
    (
        Side("pystorm", "pystorm", SPARK, EXACTLY_ONCE),
        Side("spark", "spark", SPARK, NONE, loses=True),
        # Both open the log by its name: they lose files if it is rotated as often as in the small load.
        Side("telegraf", "telegraf", TELEGRAFS, NONE, loses=True),
        Side("syslog-ng", "syslog_ng", SYSLOG_NGS, NONE, loses=True),
        Side("by-hand", "by_hand", BARE, NONE),
    ),
    _loads,
    asked=1.0,
    asked_of_all=True,
)
