"""The newest record of a query, while it runs and after its end."""

import os
import signal
import time

import pytest
from pyspark.errors import StreamingQueryException

from pystorm_source import progress, read_stream
from pystorm_source.errors import UsageError
from pystorm_source.query.recorded import WAIT_SECONDS, record_files
from pystorm_source.records.record_file import RecordFile
from pystorm_source.records.record_folder import runs
from tests.channel.reports.made_reports import wait_until
from tests.source import failing
from tests.source.topologies import Doubled, Numbers

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]


def noop(frame, folder, **trigger):
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(**(trigger or {"availableNow": True})).start()


def ended(query):
    assert query.awaitTermination(90), "the query did not end"
    return query


@pytest.mark.parametrize("given", [None, "q", Doubled])
def test_what_is_no_query_is_refused(given):
    with pytest.raises(TypeError, match=r"PYSTORM_INVALID_ARGUMENT.*takes a streaming query"):
        progress(given)


def test_after_the_end_it_is_the_last_micro_batch_with_its_own_counts(spark, world, tmp_path):
    world.put(a=30, b=12)
    folder = tmp_path / "runs"
    options = world.options("Doubled", maxOffsetsPerTrigger=20, progress__path=str(folder))
    frame = spark.readStream.format("pystorm").options(**options).load()
    query = ended(noop(frame, tmp_path))
    record = progress(query)
    assert (record.batch_id, record.rows, record.backlog) == (2, 2, 0)
    assert (record.query_id, record.run_id, record.name) == (query.id, query.runId, None)
    assert (record.tasks.rows, record.tasks.acked) == (2, 2)
    assert (record.topology.batch, record.topology.whole) == (2, True)
    assert not record.counts_of_batch_before
    # All of the run is in the file of the folder; Spark's progress lacks the tasks of the last one.
    (path,) = folder.iterdir()
    run = RecordFile(path).read()
    assert [(each.batch_id, each.rows) for each in run.records] == [(0, 20), (1, 20), (2, 2)]
    assert sum(each.tasks.offsets for each in run.records) == 42
    assert run.ended is not None
    spark_seconds = {each["batchId"]: each["durationMs"]["triggerExecution"] / 1000 for each in query.recentProgress}
    for each in run.records[:-1]:
        assert each.seconds == pytest.approx(spark_seconds[each.batch_id], abs=2)  # on a busy machine


@pytest.mark.campaign
def test_while_the_query_runs_it_follows(spark, world, tmp_path):
    world.put(a=30)
    query = noop(read_stream(spark, Numbers, path=str(world.folder)), tmp_path, processingTime="0 seconds")
    try:
        query.processAllAvailable()
        wait_until(lambda: rows(query) == 30, "the record of the first micro-batch")
        first = progress(query)
        world.put(a=75)
        query.processAllAvailable()
        wait_until(lambda: rows(query) == 45, "the record of the second one")
        assert (first.batch_id, progress(query).batch_id) == (0, 1)
    finally:
        query.stop()
    assert progress(query).rows == 45


def rows(query):
    record = progress(query)
    return None if record is None else record.rows


def test_of_a_query_that_has_failed_it_has_the_error(spark, tmp_path):
    query = noop(read_stream(spark, failing.Tuples), tmp_path)
    with pytest.raises(StreamingQueryException):
        query.awaitTermination(90)
    record = progress(query)
    error = record.topology.component("bolt").last_error
    assert "no price: two" in error.text
    assert (record.tasks.failed_tasks > 0, record.topology.whole) == (True, False)


def test_a_runner_that_was_killed_has_left_its_records_and_is_not_waited_for(spark, world, tmp_path):
    world.put(a=30)
    query = noop(read_stream(spark, Numbers, path=str(world.folder)), tmp_path, processingTime="0 seconds")
    query.processAllAvailable()
    wait_until(lambda: rows(query) == 30, "the record of the micro-batch")
    (path,) = record_files(query)
    runner = RecordFile(path).read().begin.process
    os.kill(runner, signal.SIGKILL)
    with pytest.raises(StreamingQueryException):
        query.awaitTermination(90)
    wait_until(lambda: not runs(runner), "the end of the runner")
    began = time.monotonic()
    assert progress(query).rows == 30
    assert time.monotonic() - began < WAIT_SECONDS / 2
    assert RecordFile(path).read().ended is None


def test_of_several_sources_one_is_named(spark, world, tmp_path):
    world.put(a=30)
    path = str(world.folder)
    frame = read_stream(spark, Numbers, path=path).union(read_stream(spark, Doubled, path=path))
    query = ended(noop(frame, tmp_path))
    with pytest.raises(UsageError, match=r"several topologies.*'Numbers' \(run '\w{32}'\)") as error:
        progress(query)
    assert error.value.code == "PYSTORM_INVALID_ARGUMENT"
    record = progress(query, source="Doubled")
    assert (record.topology.name, record.rows) == ("Doubled", 30)
    assert progress(query, source=record.topology.run) == record
    with pytest.raises(UsageError, match=r"no such topology.*Given: source='Halved'"):
        progress(query, source="Halved")


@pytest.mark.campaign
def test_without_reports_it_is_sparks(spark, world, tmp_path):
    world.put(a=30)
    query = ended(noop(read_stream(spark, Numbers, path=str(world.folder), feedback="off"), tmp_path))
    record = progress(query)
    assert (record.batch_id, record.rows, record.tasks) == (0, 30, None)


def test_a_query_without_a_source_of_ours_is_refused(spark, tmp_path):
    query = noop(spark.readStream.format("rate").load(), tmp_path, processingTime="0 seconds")
    try:
        wait_until(lambda: query.lastProgress is not None, "progress")
        with pytest.raises(UsageError, match="nothing in the query is of this package"):
            progress(query)
    finally:
        query.stop()


def test_before_the_first_micro_batch_there_is_none(spark, world, tmp_path):
    query = noop(read_stream(spark, Numbers, path=str(world.folder)), tmp_path, processingTime="1 hour")
    try:
        assert progress(query) is None
    finally:
        query.stop()
