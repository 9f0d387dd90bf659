"""Streaming queries through Spark: limits, restarts, replays, failures, stops."""

import json
import time

import pytest
from pyspark.errors import StreamingQueryException

from tests.channel.reports.made_reports import wait_until
from tests.source.queries import Query

pytestmark = pytest.mark.spark
spark40 = pytest.mark.spark40


def numbers(part, start, end):
    return [(part, n) for n in range(start, end)]


def stream(spark, options, schema=None):
    reader = spark.readStream.format("pystorm").options(**options)
    return (reader.schema(schema) if schema else reader).load()


@pytest.fixture
def query(tmp_path):
    return Query(tmp_path)


@pytest.mark.timeout(180)  # the first query of the session
def test_available_now_is_rate_controlled_and_restarts(spark, world, query):
    world.put(a=50, b=(10, 30))
    frame = stream(spark, world.options("Doubled", maxOffsetsPerTrigger=20, minOffsetsPerTrigger=20))
    assert [len(rows) for rows in query.run(frame)] == [20, 20, 20, 10]
    report = [json.loads(progress.sources[0].latestOffset) for progress in query.progress if progress.numInputRows]
    assert [each["backlog"] for each in report] == [50, 30, 10, 0]
    world.put(a=55, c=3)  # and a new partition
    assert query.run(frame) == [sorted([("a", 2 * n) for n in range(50, 55)] + [("c", 2 * n) for n in range(3)])]
    assert query.run(frame) == []
    assert len(query.rows) == 78


def test_replay_of_a_batch_that_was_not_finished(spark, world, query):
    world.put(a=9)
    frame = stream(spark, world.options(maxOffsetsPerTrigger=5))
    first = query.run(frame)
    query.forget_commit()
    world.put(a=12, b=2)
    again = query.run(frame)
    assert again[0] == first[-1] == numbers("a", 5, 9)
    assert again[1:] == [sorted(numbers("a", 9, 12) + numbers("b", 0, 2))]
    assert [number for number, _ in query.batches] == [0, 1, 1, 2]


@spark40
def test_restart_and_replay_of_an_endless_query(spark, world, query):
    world.put(a=9)
    frame = stream(spark, world.options(maxOffsetsPerTrigger=5))
    assert query.follow(frame) == [numbers("a", 0, 5), numbers("a", 5, 9)]
    query.forget_commit()
    world.put(a=12, b=2)
    assert query.follow(frame) == [numbers("a", 5, 9), sorted(numbers("a", 9, 12) + numbers("b", 0, 2))]
    world.put(b=4)
    assert query.follow(frame) == [numbers("b", 2, 4)]
    assert world.committed[0] == {"a": 5}


@pytest.mark.campaign
@spark40
def test_vanished_partition(spark, world, query):
    world.put(a=5, b=5)
    query.run(stream(spark, world.options()))
    world.remove("b")
    world.put(a=7)
    with pytest.raises(StreamingQueryException, match="partition 'b' of spout 'numbers' has vanished"):
        query.run(stream(spark, world.options()))
    assert query.run(stream(spark, world.options(failOnDataLoss="false"))) == [numbers("a", 5, 7)]


def test_once_lifts_the_limits_and_latest_is_kept(spark, world, query):
    world.put(a=5)
    frame = stream(spark, world.options(startingOffsets="latest", maxOffsetsPerTrigger=2))
    assert query.run(frame) in ([], [[]])
    world.put(a=12)
    assert query.run(frame, once=True) == [numbers("a", 5, 12)]


def test_limit_per_partition_alone(spark, world, query):
    world.put(a=5, b=3)
    assert [len(rows) for rows in query.run(stream(spark, world.options(maxOffsetsPerPartition=2)))] == [4, 3, 1]


@spark40
def test_follows_a_growing_world_and_commits(spark, world, query):
    world.put(a=3)
    running = query.start(stream(spark, world.options()), processingTime="0 seconds")
    try:
        running.processAllAvailable()
        world.put(a=6, b=1)
        running.processAllAvailable()
        world.put(a=7)
        running.processAllAvailable()
    finally:
        running.stop()
    assert query.rows == numbers("a", 0, 7) + numbers("b", 0, 1)
    assert {"a": 3} in world.committed


@spark40
def test_an_overloaded_query_is_admitted_less(spark, world, query):
    world.put(a=100)
    options = world.options("Sleepy", controlled=True, **{"batch.target.millis": 500, "backpressure.initialRate": 200})
    running = query.start(stream(spark, options), processingTime="0 seconds")
    try:
        running.processAllAvailable()
        before = len(query.batches)
        world.put(a=100_000)  # of which a task does 500 a second
        wait_until(lambda: len(query.batches) >= before + 3)
    finally:
        running.stop()
    assert query.rows == numbers("a", 0, len(query.rows))
    assert 0 < max(len(rows) for _, rows in query.batches[before : before + 3]) < 2000


@spark40
def test_a_run_that_ends_leaves_nothing_for_the_next_one(spark, world, query):
    world.put(a=30_000)  # more than the first micro-batch of a query without end reads
    query.run(stream(spark, world.options()))
    assert len(query.rows) == 30_000


@spark40
def test_runner_is_cleaned_up_when_a_query_stops(spark, world, query):
    world.put(a=3)
    query.run(stream(spark, world.options()))
    deadline = time.monotonic() + 30
    while not (world.folder / "cleaned.log").exists():
        assert time.monotonic() < deadline, "SIGTERM did not reach stop()"
        time.sleep(0.05)


@spark40
@pytest.mark.parametrize("how", ["raise", "fail", "kill"])
def test_failed_task_is_tried_again(spark, world, query, how):
    world.put(a=10, b=10)
    frame = stream(spark, world.options("FailsOnce", how=how))
    assert query.run(frame) == [numbers("a", 0, 10) + numbers("b", 0, 10)]
    assert (world.folder / "failed.log").exists()


@spark40
def test_failing_for_good_names_component_tuple_and_offset(spark, world, query):
    world.put(a=10)
    options = world.options("FailsOnce", how="always")
    with pytest.raises(StreamingQueryException) as failed:
        query.run(stream(spark, options))
    said = str(failed.value)
    assert "TupleFailed: [PYSTORM_TUPLE_FAILED] \ncomponent 'once'" in said
    assert "('a', 7)" in said
    assert "offset 7" in said
    assert "topologies.py" in said  # where the bolt raised: Spark alone shows the engine's lines only


@pytest.mark.campaign
@spark40
def test_stop_in_the_middle_of_a_read_loses_nothing(spark, world, query):
    world.put(a=8)
    frame = stream(spark, world.options("Slow"))
    running = query.start(frame, processingTime="0 seconds")
    deadline = time.monotonic() + 60
    while not (world.folder / "slow.log").exists():
        assert time.monotonic() < deadline, "the task was not started"
        time.sleep(0.05)
    running.stop()
    assert query.batches == []
    assert query.run(frame) == [numbers("a", 0, 8)]


@spark40
def test_user_schema(spark, world, query):
    world.put(a=3)
    assert query.run(stream(spark, world.options("Untyped"), "n int, part string")) == [[(n, "a") for n in range(3)]]


@spark40
def test_user_schema_that_does_not_fit_is_named(spark, world, query):
    with pytest.raises(StreamingQueryException, match=r"a schema for numbers.default .*\['other'\]"):
        query.run(stream(spark, world.options(), "other string"))


@spark40
def test_checkpoint_of_another_topology_is_named(spark, world, query):
    world.put(a=3)
    query.run(stream(spark, world.options()))
    with pytest.raises(StreamingQueryException, match=r"knows the spouts \['numbers'\], this one has \['ticks'\]"):
        query.run(stream(spark, world.options("Ticks", delivery__guarantee="best-effort")))


def test_best_effort(spark, world, query):
    options = world.options("Ticks", delivery__guarantee="best-effort", maxOffsetsPerTrigger=6)
    (rows,) = query.run(stream(spark, options))
    assert [tick for (tick,) in rows] == list(range(6))


def test_a_query_does_not_see_what_the_components_of_another_remember(spark, world, tmp_path):
    """A cell that is run twice: the second query starts with initialize(), in the same Python workers."""
    options = world.options("Ticks", delivery__guarantee="best-effort", maxOffsetsPerTrigger=6)
    for name in ("first", "second"):
        found = stream(spark, options).writeStream.format("memory").queryName(f"ticks_of_{name}")
        found.trigger(availableNow=True).start().awaitTermination()
        assert sorted(row.tick for row in spark.table(f"ticks_of_{name}").collect()) == list(range(6))
