"""A service answers 429, Too Many Requests, for seconds: the query lives, asks no more often, and reads exactly."""

import json
import time

import pytest
from pyspark.errors import StreamingQueryException

from tests.channel.reports.made_reports import wait_until
from tests.source.feed import feed
from tests.source.pages import pages
from tests.source.queries import Query

pytestmark = pytest.mark.spark


@pytest.fixture
def service():
    with feed() as server:
        yield server


@pytest.fixture
def query(tmp_path):
    return Query(tmp_path)


def started(spark, service, query, **options):
    options = {name.replace("__", "."): value for name, value in options.items()}
    reader = spark.readStream.format("pystorm").options(topology="tests.source.feed:Posts", path=service.url, **options)
    return query.start(reader.load(), processingTime="0 seconds")


def report_of(running):
    last = running.lastProgress
    return {} if last is None else json.loads(last["sources"][0]["latestOffset"] or "{}")


def rows(query):
    return [n for (n,) in query.rows]


@pytest.mark.timeout(240)
def test_a_busy_service_is_asked_at_the_interval_and_read_exactly(spark, service, query):
    service.head = 25
    service.busy["/head"] = 1
    running = started(spark, service, query)
    try:
        wait_until(lambda: service.count("/head") >= 3)  # before its first answer, too
        assert query.rows == []
        del service.busy["/head"]
        wait_until(lambda: rows(query) == list(range(25)))

        service.busy.update({"/head": 1, "/posts": 1, "/done": 1})
        service.head, began = 60, time.monotonic()
        seen = wait_until(lambda: "posts" in (found := report_of(running)).get("unavailableMillis", {}) and found)
        assert "RetryLater: again after 1 s: 429" in seen["unavailable"]["posts"]
        wait_until(lambda: service.count("/head", began) >= 4)
        assert service.count("/head", began) <= 1.1 * (time.monotonic() - began) + 1

        del service.busy["/head"]  # and the tasks find it busy
        began = time.monotonic()
        wait_until(lambda: service.count("/posts", began) >= 3)
        assert service.count("/posts", began) <= time.monotonic() - began + 3
        assert rows(query) == list(range(25))
        service.busy.clear()
        wait_until(lambda: rows(query) == list(range(60)))
        service.head = 70
        wait_until(lambda: rows(query) == list(range(70)))
        assert running.isActive
        assert running.exception() is None
    finally:
        running.stop()


@pytest.mark.parametrize(("path", "call"), [("/head", "latest"), ("/posts", "next_tuple")])
def test_a_service_that_stays_busy_ends_the_query_with_one_block(spark, service, query, path, call):
    service.head = 25
    service.busy[path] = 1
    running = started(spark, service, query, spout__unavailable__timeout="3s")
    try:
        with pytest.raises(StreamingQueryException) as raised:
            assert running.awaitTermination(60), "the query did not end"
    finally:
        running.stop()
    text = str(raised.value)
    assert "PYSTORM_SPOUT_UNAVAILABLE" in text
    assert f"{call}() raised RetryLater: again after 1 s: 429 Too Many Requests" in text
    assert "attempts in 3 s" in text
    assert "spout.unavailable.timeout. Given: '3s'" in text


def test_available_now_waits_for_the_service_and_can_be_stopped_meanwhile(spark, service, query):
    service.head = 25
    service.busy["/head"] = 1
    reader = spark.readStream.format("pystorm").options(topology="tests.source.feed:Posts", path=service.url)
    running = query.start(reader.load(), availableNow=True)
    try:
        wait_until(lambda: service.count("/head") >= 2)
        assert running.isActive
    finally:
        running.stop()
    began = time.monotonic()
    running = query.start(reader.load(), availableNow=True)
    try:
        wait_until(lambda: service.count("/head", began) >= 2)
        service.busy.clear()
        assert running.awaitTermination(60), "the query did not end"
    finally:
        running.stop()
    assert rows(query) == list(range(25))


def test_a_task_reads_a_page_again_if_it_raises_what_is_worth_a_retry(spark, query, tmp_path):
    options = {
        "topology": "tests.source.pages:Rows",
        "journal.path": str(tmp_path / "journal"),
        "topology.retry.on": '{"IncompleteRead": "retry"}',
        "spout.unavailable.timeout": "2s",
        "spout.poll.seconds": "0.1",
    }
    with pages() as server:
        server.fill(25)
        server.garbled = 2
        reader = spark.readStream.format("pystorm").options(path=server.url, **options)
        running = query.start(reader.load(), processingTime="0 seconds")
        try:
            wait_until(lambda: [n for n, _ in query.rows] == list(range(1, 26)))
            server.garbled = 10**9
            with pytest.raises(StreamingQueryException) as raised:
                assert running.awaitTermination(60), "the query did not end"
        finally:
            running.stop()
        text = str(raised.value)
        assert "PYSTORM_SPOUT_UNAVAILABLE" in text
        assert "component 'rows', task 1: read() raised IncompleteRead" in text
        assert "spout.unavailable.timeout. Given: '2s'" in text
        server.garbled = 0
        server.fill(30)
        running = query.start(reader.load(), availableNow=True)
        assert running.awaitTermination(60), "the query did not end"
    assert [n for n, _ in query.rows] == list(range(1, 56))
