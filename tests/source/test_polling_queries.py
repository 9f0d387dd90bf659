"""How often a query of Spark asks a spout of one question a second: idle, with a backlog, over a restart."""

import json
import time

import pytest

from tests.channel.reports.made_reports import wait_until
from tests.source.queries import Query

pytestmark = pytest.mark.spark


@pytest.fixture
def query(tmp_path):
    return Query(tmp_path)


def started(spark, world, query, **options):
    reader = spark.readStream.format("pystorm").options(**world.options("Polled", **options))
    return query.start(reader.load(), processingTime="0 seconds")


def asked(world):
    path = world.folder / "asked.log"
    return path.stat().st_size if path.exists() else 0


def rows_of(query):
    """Of each micro-batch once: one that a stop has caught before its commit is run again by the next run."""
    return sorted(row for rows in dict(query.batches).values() for row in rows)


def numbers(part, start, end):
    return [(part, n) for n in range(start, end)]


def test_an_idle_query_asks_once_a_second_and_sees_what_is_new(spark, world, query):
    world.put(a=5)
    running = started(spark, world, query)
    try:
        wait_until(lambda: len(rows_of(query)) == 5)
        before, began = asked(world), time.monotonic()
        wait_until(lambda: asked(world) >= before + 6)
        assert asked(world) - before <= 1.1 * (time.monotonic() - began) + 1
        before = asked(world)
        world.put(a=8, b=2)
        wait_until(lambda: len(rows_of(query)) == 10)
        assert asked(world) - before <= 2  # the question that found them, and one beside the micro-batch at most
    finally:
        running.stop()
    world.put(a=9)
    running = started(spark, world, query)
    try:
        wait_until(lambda: len(rows_of(query)) == 11)
    finally:
        running.stop()
    assert rows_of(query) == numbers("a", 0, 9) + numbers("b", 0, 2)


def test_a_backlog_is_read_micro_batch_by_micro_batch_with_few_questions(spark, world, query):
    world.put(a=200)
    began = time.monotonic()
    running = started(spark, world, query, maxOffsetsPerTrigger=10)
    try:
        wait_until(lambda: len(rows_of(query)) == 200)
        assert asked(world) <= 1.1 * (time.monotonic() - began) + 1
    finally:
        running.stop()
    assert [len(rows) for _, rows in query.batches] == [10] * 20
    assert rows_of(query) == numbers("a", 0, 200)


def test_the_progress_counts_the_questions(spark, world, query):
    world.put(a=30)
    reader = spark.readStream.format("pystorm").options(**world.options("Polled", maxOffsetsPerTrigger=10))
    query.run(reader.load())
    reports = [progress.sources[0].latestOffset for progress in query.progress if progress.numInputRows]
    assert len(reports) == 3
    counts = [json.loads(report)["polls"]["numbers"] for report in reports]
    assert counts == sorted(counts)
    assert 1 <= counts[0] <= counts[-1] <= asked(world)
