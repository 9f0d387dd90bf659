"""A job that waits for its query and gets Ctrl-C or SIGTERM: it ends between two micro-batches, and says where."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from pystorm_source import await_query, explain
from tests.query import awaited
from tests.source import failing
from tests.source.topologies import Sleepy

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

SUBMIT = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[1]"]


class Job:
    """The job in a process group of its own, as a terminal starts it. Its output is in ``said``."""

    def __init__(self, command, folder, topology, *options, module="topologies"):
        self.folder = folder
        self._log = (folder / "log").open("w+")
        environment = {**os.environ, "SPARK_HOME": str(Path(pyspark.__file__).parent)}
        self.process = subprocess.Popen(
            [*command, awaited.__file__, str(folder), f"{module}:{topology}", *options],
            stdout=self._log,
            stderr=self._log,
            env=environment,
            start_new_session=True,
        )

    def wait_for(self, seen):
        deadline = time.monotonic() + 150
        while not seen():
            assert self.process.poll() is None and time.monotonic() < deadline, self.said
            time.sleep(0.02)

    def numbers(self, log):
        """The micro-batches in a log of the checkpoint."""
        return {int(path.name) for path in (self.folder / "checkpoint" / log).glob("[0-9]*")}

    def wait_for_jvm(self):
        """It outlives the script for a while, and still logs."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                os.killpg(self.process.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.05)
        raise AssertionError("the JVM goes on")

    def ended(self):
        return self.process.wait(timeout=150)

    @property
    def said(self):
        return (self.folder / "log").read_text()

    @property
    def own_lines(self):
        """Without Spark's log, and what it logs of progress."""
        return [line for line in self.said.splitlines() if line.startswith(("Ctrl-C", "SIGTERM", "query "))]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "world").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("command", "number", "to_group", "word"),
    [
        pytest.param([sys.executable], signal.SIGINT, True, "Ctrl-C", id="Ctrl-C"),
        pytest.param(SUBMIT, signal.SIGTERM, False, "SIGTERM", id="spark-submit", marks=pytest.mark.campaign),
    ],
)
def test_a_signal_ends_the_job_after_the_micro_batch(spark, folder, command, number, to_group, word):
    (folder / "world" / "a").write_text("[0, 100000]")
    job = Job(command, folder, "Sleepy")
    job.wait_for(lambda: len(job.numbers("offsets")) > len(job.numbers("commits")) >= 1)  # one is at work
    (os.killpg if to_group else os.kill)(job.process.pid, number)
    assert job.ended() == 128 + number
    assert "Traceback" not in job.said and "\tat " not in job.said
    assert job.numbers("offsets") == job.numbers("commits"), "none is half done"
    batches = len(job.numbers("commits"))
    first, last = job.own_lines
    assert first == f"{word}: stops after the running micro-batch, in 60 s at most; once more: at once"
    pattern = r"query 'awaited' stopped; last micro-batch (\d+), 400 rows; read up to numbers: 'a' (\d+)(; backlog .*)?"
    found = re.fullmatch(pattern, last)
    assert (int(found[1]), int(found[2])) == (batches - 1, 400 * batches)
    # Started again it goes on there.
    (folder / "world" / "a").write_text(f"[0, {400 * batches + 100}]")
    await_query(start(spark, folder))
    rows = sorted(row.n for row in spark.read.parquet(str(folder / "out")).collect())
    assert rows == list(range(400 * batches + 100))


@pytest.mark.campaign
def test_a_micro_batch_that_is_interrupted_twice_is_broken_off(spark, folder):
    (folder / "world" / "a").write_text("[0, 10]")
    job = Job([sys.executable], folder, "Slow")
    job.wait_for((folder / "world" / "slow.log").exists)
    for count in range(2):
        job.wait_for(lambda count=count: len(job.own_lines) >= count)
        os.kill(job.process.pid, signal.SIGINT)
    assert job.ended() == 130
    assert "stopped in the middle of a micro-batch; no micro-batch has ended in this run" in job.own_lines[-1]
    assert "Traceback" not in job.said
    await_query(start(spark, folder, "Slow"))
    assert sorted(row.n for row in spark.read.parquet(str(folder / "out")).collect()) == list(range(10))


def test_a_micro_batch_that_takes_too_long_is_broken_off(spark, folder, capsys):
    (folder / "world" / "a").write_text("[0, 10]")
    query = start(spark, folder, "Slow")
    with signal_once((folder / "world" / "slow.log").exists, signal.SIGINT):
        await_query(query, exits=False, stop_timeout=1)
    assert not query.isActive
    said = capsys.readouterr().err
    assert "in 1 s at most" in said
    assert "stopped in the middle of a micro-batch; no micro-batch has ended in this run" in said
    await_query(start(spark, folder, "Slow"))
    assert sorted(row.n for row in spark.read.parquet(str(folder / "out")).collect()) == list(range(10))


@contextmanager
def signal_once(seen, number):
    """This process gets the signal when ``seen`` says so."""

    def send():
        end = time.monotonic() + 60
        while not seen() and time.monotonic() < end:
            time.sleep(0.02)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=send)
    thread.start()
    yield
    thread.join()


def start(spark, folder, topology=Sleepy.__name__):
    frame = spark.readStream.format("pystorm").option("topology", f"tests.source.topologies:{topology}")
    writer = frame.load(str(folder / "world")).writeStream.format("parquet").trigger(availableNow=True)
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start(str(folder / "out"))


def failed(spark):
    frame = spark.readStream.format("pystorm").option("topology", f"{failing.__name__}:Tuples").load()
    return frame.writeStream.format("noop").trigger(availableNow=True).start()


def test_a_query_that_fails_is_explained_and_the_others_are_stopped(spark, folder, capsys):
    (folder / "world" / "a").write_text("[0, 10]")
    other = spark.readStream.format("pystorm").option("topology", "tests.source.topologies:Numbers")
    other = other.load(str(folder / "world")).writeStream.format("noop").queryName("other").start()
    with pytest.raises(SystemExit) as left:
        await_query(failed(spark), other, exits=True)
    assert left.value.code == 1
    assert not other.isActive and other.exception() is None
    stopped, what, place, line, remedy = capsys.readouterr().err.splitlines()
    assert stopped.startswith("query 'other' stopped; ")
    assert what == "[PYSTORM_TUPLE_FAILED] component 'bolt', task 2: process() raised RuntimeError: no price: two"
    assert place.startswith("  input:  tuple ('two',)") and "failing.py" in line and remedy.startswith("  remedy: ")


class FailsAfterSomeLooks:
    """A failed query as it was before it failed, for some looks at its state."""

    def __init__(self, query, looks):
        self._query, self._looks = query, looks

    def __getattr__(self, name):
        return getattr(self._query, name)

    def _has_failed(self):
        self._looks -= 1
        return self._looks < 0

    @property
    def isActive(self):
        return not self._has_failed()

    def exception(self):
        return self._query.exception() if self._has_failed() else None


@pytest.mark.campaign
def test_a_query_that_fails_between_two_looks_has_failed(spark):
    query = failed(spark)
    with pytest.raises(pyspark.errors.StreamingQueryException):
        query.awaitTermination()
    for looks in range(6):
        with pytest.raises(pyspark.errors.StreamingQueryException):
            await_query(FailsAfterSomeLooks(query, looks), exits=False)
        said = str(explain(FailsAfterSomeLooks(query, looks)))
        assert "PYSTORM_TUPLE_FAILED" in said or " runs; " in said


@pytest.mark.campaign
def test_where_nothing_may_exit_the_exception_is_raised(spark):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(pyspark.errors.StreamingQueryException):
        await_query(failed(spark), exits=False)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_signal_that_ends_nothing_returns(spark, folder, capsys):
    (folder / "world" / "a").write_text("[0, 10]")
    frame = spark.readStream.format("pystorm").option("topology", "tests.source.topologies:Numbers")
    query = frame.load(str(folder / "world")).writeStream.format("noop").start()
    query.processAllAvailable()
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
    await_query(spark.streams, exits=False)
    assert not query.isActive
    assert "read up to numbers: 'a' 10" in capsys.readouterr().err


def test_without_a_query_there_is_nothing_to_wait_for():
    with pytest.raises(ValueError, match="takes one or more queries"):
        await_query()


@pytest.mark.parametrize("given", [None, 5, "query"])
def test_what_is_no_query_is_refused(given):
    with pytest.raises(TypeError, match="await_query takes streaming queries.*Given: "):
        await_query(given)


@pytest.mark.campaign
def test_the_explanation_is_the_last_that_stands_on_the_screen(folder):
    """The other partition is still at work when the first one fails: Spark cancels its task and logs that."""
    job = Job([sys.executable], folder, "Siblings", "--cores", "2", module="failing")
    assert job.ended() == 1
    job.wait_for_jvm()
    assert "  remedy: " in job.said.splitlines()[-1], job.said[-2000:]
    assert job.said.count("Lost task") == 2, "the other one was cancelled"


@pytest.mark.campaign
def test_a_bolt_that_raises_is_a_screen_with_its_error_not_four_stacks_of_spark(folder):
    job = Job([sys.executable], folder, "Tuples", module="failing")
    assert job.ended() == 1
    job.wait_for_jvm()
    lines = job.said.splitlines()
    block = next(number for number, line in enumerate(lines) if line.startswith("[PYSTORM_TUPLE_FAILED] component "))
    assert len(lines) == block + 4, "the block is the last"
    first = next(number for number, line in enumerate(lines) if " ERROR " in line or "Lost task" in line)
    assert len(lines[first:block]) <= 6, lines[first:block]
