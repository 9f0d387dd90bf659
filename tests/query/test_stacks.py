"""Queries that stand still, and what their tasks say when they are asked: real tasks, a real runner."""

import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from pystorm_source import stacks
from pystorm_source.errors import UsageError
from testbed.uncontrolled import UNCONTROLLED
from tests.channel.reports.made_reports import wait_until
from tests.source import standing

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]


@contextmanager
def started(spark, name, folder, **options):
    frame = (
        spark.readStream.format("pystorm")
        .options(**UNCONTROLLED, topology=f"{standing.__name__}:{name}", **options)
        .load()
    )
    query = frame.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint")).start()
    try:
        yield query
    finally:
        query.stop()


def asked(query):
    """Its stacks, None as long as nothing can be asked or no component is in a call."""
    try:
        found = stacks(query)
    except UsageError:
        return None
    busy = [task for run in found.runs for each in run.ranges for task in each.tasks if task.in_call]
    return found if busy else None


WAITING = {
    "Sleeps": ["'passes' waits for its turn after 'sleeps' ← 'sleeps' is in process() for "],
    "SleepsInThreads": [
        "'numbers' waits for room at 'passes' ← 'passes' waits for room at 'sleeps' ← 'sleeps' is in process() for ",
    ],
}


@pytest.mark.campaign
@pytest.mark.parametrize("name", WAITING)
def test_a_bolt_that_sleeps_is_named_with_its_line_and_who_waits_for_it(spark, tmp_path, name):
    with started(spark, name, tmp_path) as query:
        found = wait_until(lambda: asked(query), "an answer")
        wait_until(lambda: "for 1 s or more" in str(stacks(query)), "the time of the call")
        began = time.monotonic()
        found = stacks(query)
        assert time.monotonic() - began < 2
    (run,) = found.runs
    (each,) = run.ranges
    assert (run.asked.topology, run.missing, run.asked.driver) == (name, 0, ())
    assert each.run_id == query.runId
    busy = next(task for task in each.tasks if task.in_call)
    assert (busy.component, busy.method, busy.capacity) == ("sleeps", "process", 1024)
    assert busy.frames[-1].startswith("standing.py:")
    assert busy.frames[-1].endswith(" in wait: time.sleep(LONG)  # the line that is shown")
    assert "; tuple (0,) of passes.default; offset 0" in busy.input
    assert busy.seconds >= 1
    text = str(found)
    assert [line for line in WAITING[name] if line not in text] == [], text


@pytest.mark.campaign
@pytest.mark.parametrize(("name", "line"), [("Locks", "with self.lock, self.lock:"), ("Computes", "sum(range(1000))")])
def test_a_lock_that_is_never_free_and_a_loop_that_never_ends_are_named(spark, tmp_path, name, line):
    with started(spark, name, tmp_path) as query:
        found = wait_until(lambda: (found := asked(query)) and line in str(found) and found, "the line")
    assert f"{name.lower()}, task 2: in process()" in str(found)


@pytest.mark.campaign
def test_the_command_finds_the_query_by_itself(spark, tmp_path):
    with started(spark, "Sleeps", tmp_path) as query:
        wait_until(lambda: asked(query), "an answer")
        command = [sys.executable, "-m", "pystorm_source", "ui", "--stacks"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    assert "topology 'Sleeps', run " in done.stdout
    assert "'sleeps' is in process()" in done.stdout


def test_a_query_without_reports_or_that_has_ended_says_so(spark, tmp_path):
    off = pytest.raises(UsageError, match=r"PYSTORM_NO_STACKS.*feedback=off")
    with started(spark, "Sleeps", tmp_path, feedback="off") as query, off:
        stacks(query)
    with pytest.raises(UsageError, match=r"PYSTORM_NO_STACKS.*the query has ended"):
        stacks(query)


@pytest.mark.parametrize("given", [None, "q"])
def test_what_is_no_query_is_refused(given):
    with pytest.raises(TypeError, match=r"PYSTORM_INVALID_ARGUMENT.*takes a streaming query"):
        stacks(given)


class OfConnect:
    """A query of Spark Connect has no object of the JVM."""

    runId = "8e4a1f3c"
    lastProgress = None


def test_spark_connect_says_why_not():
    with pytest.raises(UsageError, match=r"PYSTORM_NO_STACKS.*under Spark Connect"):
        stacks(OfConnect())
