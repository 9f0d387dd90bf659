"""kill -9 in the middle of a micro-batch: no row lost, none twice in the sink."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

JOB = Path(__file__).parent / "jobs" / "numbers_job.py"
TOTAL = 3000
DEADLINE = 100

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]


def start_job(work: Path) -> subprocess.Popen:
    log = (work / "log").open("ab")
    return subprocess.Popen(
        [sys.executable, str(JOB), str(work), str(TOTAL)], stdout=log, stderr=log, start_new_session=True
    )


def paused_worker(job: subprocess.Popen, work: Path) -> int:
    """The process id of the worker whose bolt has stopped in the middle of the second micro-batch."""
    end = time.monotonic() + DEADLINE
    while not (work / "pid").exists():
        assert job.poll() is None, (work / "log").read_text()
        assert time.monotonic() < end, (work / "log").read_text()
        time.sleep(0.05)
    return int((work / "pid").read_text())


def finish(job: subprocess.Popen, work: Path) -> None:
    assert job.wait(DEADLINE) == 0, (work / "log").read_text()


def rows_in_sink(spark, work: Path) -> list[tuple]:
    return sorted(tuple(row) for row in spark.read.parquet(str(work / "out")).collect())


EXPECTED = sorted((partition, n, 2 * n) for partition in "ab" for n in range(TOTAL))


def test_a_killed_python_worker_costs_a_retry_and_no_row(spark, tmp_path):
    job = start_job(tmp_path)
    worker = paused_worker(job, tmp_path)
    os.kill(worker, signal.SIGKILL)
    (tmp_path / "go").touch()
    finish(job, tmp_path)
    assert rows_in_sink(spark, tmp_path) == EXPECTED


def test_a_killed_driver_resumes_from_its_checkpoint(spark, tmp_path):
    job = start_job(tmp_path)
    paused_worker(job, tmp_path)
    # The whole process group at once: driver, JVM and workers, as when a machine goes away.
    os.killpg(job.pid, signal.SIGKILL)
    job.wait(DEADLINE)
    written = {name for name in os.listdir(tmp_path / "checkpoint" / "commits") if not name.startswith(".")}
    planned = {name for name in os.listdir(tmp_path / "checkpoint" / "offsets") if not name.startswith(".")}
    assert planned - written, "the kill came too late to leave an uncommitted micro-batch"
    (tmp_path / "go").touch()
    finish(start_job(tmp_path), tmp_path)
    assert rows_in_sink(spark, tmp_path) == EXPECTED
