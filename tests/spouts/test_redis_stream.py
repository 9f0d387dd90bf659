"""RedisStreamSpout against a real Redis, behind a journal, mostly as Spark calls it, without Spark."""

import datetime
import logging
import threading

import pytest
from redis import Redis
from redis.exceptions import RedisError

from pystorm_source.errors import OptionError, TupleFailed
from pystorm_source.journal.writer import BatchWriter
from pystorm_source.spouts import RedisStreamSpout
from tests.channel.reports.made_reports import wait_until
from tests.source.queries import Query
from tests.source.spark_calls import Checkpoint, Run
from tests.states.redis_process import redis_process


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with redis_process(tmp_path_factory.mktemp("redis")) as found:
        yield found


@pytest.fixture
def redis(server):
    with Redis.from_url(server.url) as found:
        yield found
        found.flushall()


def put(redis, *numbers, stream="orders", **more):
    for n in numbers:
        redis.xadd(stream, {"n": n}, **more)


def options(server, folder, topology="Numbers", **more):
    return {
        "topology": f"tests.spouts.queue_topologies:{topology}",
        "redis.url": server.url,
        "redis.streams": "orders",
        "redis.count": "5",
        "journal.path": str(folder / "journal"),
        "batch.target.millis": "200",
        "maxOffsetsPerTrigger": "7",
        "spout.poll.seconds": "0.05",
        **{key.replace("__", "."): str(value) for key, value in more.items()},
    }


def rows(checkpoint):
    return [row for batch in checkpoint.rows for row in batch]


def numbers(checkpoint):
    return [n for (n,) in rows(checkpoint)]


def until(run, checkpoint, count, most=60):
    for _ in range(most):
        if len(rows(checkpoint)) >= count:
            return
        run.trigger()
    raise AssertionError(f"{rows(checkpoint)} after {most} micro-batches")


def test_entries_of_several_streams_come_once_and_in_order(server, redis, tmp_path):
    put(redis, *range(23))
    put(redis, *range(23), stream="returns")
    checkpoint = Checkpoint()
    run = Run(options(server, tmp_path, "Entries", redis__streams="orders, returns,later"), checkpoint)
    until(run, checkpoint, 46)
    put(redis, 23)
    put(redis, 0, stream="later")
    until(run, checkpoint, 48)
    found = [(stream, int(dict(fields)["n"])) for stream, _, fields in rows(checkpoint)]
    assert [n for stream, n in found if stream == "orders"] == list(range(24))
    assert [n for stream, n in found if stream == "returns"] == list(range(23))
    assert [n for stream, n in found if stream == "later"] == [0]
    ids = {(stream, id.decode()) for stream in ("orders", "returns", "later") for id, _ in redis.xrange(stream)}
    assert {(stream, id) for stream, id, _ in rows(checkpoint)} == ids


def test_a_query_goes_on_behind_the_last_entry_of_its_journal(server, redis, tmp_path, monkeypatch):
    put(redis, *range(20))
    checkpoint, found = Checkpoint(), options(server, tmp_path)
    with monkeypatch.context() as fails:
        fails.setattr(BatchWriter, "commit", lambda self, notes=None: 1 / 0)
        with pytest.raises(TupleFailed, match="ZeroDivisionError"):
            Run(found, checkpoint).trigger()
    until(Run(found, checkpoint), checkpoint, 11)
    until(Run(found, checkpoint), checkpoint, 20)
    assert numbers(checkpoint) == list(range(20))


@pytest.mark.parametrize(("start", "first"), [("0", 0), ("$", 10), ("id", 5)])
def test_a_new_query_begins_where_it_is_told_to(server, redis, tmp_path, start, first):
    put(redis, *range(10))
    begin = redis.xrange("orders")[4][0].decode() if start == "id" else start
    checkpoint, found = Checkpoint(), options(server, tmp_path, redis__start=begin)
    Run(found, checkpoint).trigger()
    put(redis, 10, 11)
    until(Run(found, checkpoint), checkpoint, 12 - first)
    assert numbers(checkpoint) == list(range(first, 12))


def test_a_start_behind_the_end_is_no_loss(server, redis, tmp_path):
    put(redis, 0)
    checkpoint = Checkpoint()
    run = Run(options(server, tmp_path, redis__start="9000000000000-0"), checkpoint)
    run.trigger()
    run.trigger()
    redis.xadd("orders", {"n": 1}, id="9000000000001-0")
    until(run, checkpoint, 1)
    assert numbers(checkpoint) == [1]


def test_available_now_reads_to_the_end_and_ends(server, redis, tmp_path):
    checkpoint, found = Checkpoint(), options(server, tmp_path)
    for count in (12, 0, 3):
        put(redis, *range(count))
        run = Run(found, checkpoint, available_now=True)
        run.drain()
        run.reader.stop()
    assert numbers(checkpoint) == [*range(12), *range(3)]


def test_entries_that_were_trimmed_unread_fail_with_their_number(server, redis, tmp_path):
    put(redis, *range(10))
    checkpoint, found = Checkpoint(), options(server, tmp_path)
    until(Run(found, checkpoint), checkpoint, 10)
    put(redis, *range(10, 30))
    redis.xtrim("orders", maxlen=8, approximate=False)
    with pytest.raises(TupleFailed, match=r"PYSTORM_DATA_LOST.*12 entries of stream 'orders' behind .* were trimmed"):
        until(Run(found, checkpoint), checkpoint, 11)
    assert numbers(checkpoint) == list(range(10))


def test_entries_that_were_trimmed_unread_are_counted_and_skipped_if_told_so(server, redis, tmp_path, caplog):
    put(redis, *range(10))
    checkpoint, found = Checkpoint(), options(server, tmp_path, failOnDataLoss="false", maxOffsetsPerTrigger=5)
    until(Run(found, checkpoint), checkpoint, 5)
    redis.xtrim("orders", maxlen=2, approximate=False)  # in the middle of what is read
    run = Run(found, checkpoint)
    until(run, checkpoint, 7)
    put(redis, *range(10, 30))
    redis.xtrim("orders", maxlen=8, approximate=False)
    until(run, checkpoint, 15)
    assert numbers(checkpoint) == [*range(5), 8, 9, *range(22, 30)]
    assert "3 entries of stream 'orders'" in caplog.text
    assert "12 entries of stream 'orders'" in caplog.text
    assert "failOnDataLoss is false" in caplog.text


def test_entries_that_were_trimmed_when_they_were_read_are_no_loss(server, redis, tmp_path):
    checkpoint = Checkpoint()
    run = Run(options(server, tmp_path), checkpoint)
    for n in range(0, 60, 6):
        put(redis, *range(n, n + 6))
        until(run, checkpoint, n + 6)
        redis.xtrim("orders", maxlen=n % 4, approximate=False)
    assert numbers(checkpoint) == list(range(60))


def test_entries_that_were_trimmed_before_a_query_began_are_no_loss(server, redis, tmp_path):
    put(redis, *range(50))
    redis.xtrim("orders", maxlen=30, approximate=False)
    checkpoint = Checkpoint()
    until(Run(options(server, tmp_path), checkpoint), checkpoint, 30)
    assert numbers(checkpoint) == list(range(20, 50))


def test_a_stream_that_was_made_anew_is_noticed(server, redis, tmp_path, caplog):
    put(redis, *range(10))
    checkpoint, found = Checkpoint(), options(server, tmp_path)
    until(Run(found, checkpoint), checkpoint, 10)
    redis.delete("orders")
    Run(found, checkpoint).trigger()  # it may come back
    redis.xadd("orders", {"n": 70}, id="5-1")
    with pytest.raises(TupleFailed, match=r"PYSTORM_DATA_LOST.*'orders' was read up to .* and ends at 5-1 now"):
        until(Run(found, checkpoint), checkpoint, 11)
    run = Run(found | {"failOnDataLoss": "false"}, checkpoint)
    until(run, checkpoint, 11)
    assert numbers(checkpoint) == [*range(10), 70]
    assert "how many entries were not read is unknown; skipped" in caplog.text


def test_fields_are_columns_of_declared_types(server, redis, tmp_path, caplog):
    entry = {"n": "7", "at": "2026-02-03T04:05:06Z", "raw": b"\xff\x00", "text": "gr\u00fc\u00df"}
    redis.xadd("orders", entry)
    redis.xadd("orders", {**entry, "n": "seven"})
    redis.xadd("orders", {"n": "8", "text": b"\xff"})
    checkpoint = Checkpoint()
    until(Run(options(server, tmp_path, "Orders"), checkpoint), checkpoint, 2)
    at = datetime.datetime(2026, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
    assert rows(checkpoint) == [
        ("orders", 7, at, b"\xff\x00", "gr\u00fc\u00df", None),
        ("orders", 8, None, None, "\ufffd", None),
    ]
    assert "seven" in caplog.text, "the row that does not fit is left out and logged"


def test_an_idle_stream_is_asked_at_the_interval(server, redis, tmp_path):
    redis.config_resetstat()
    Run(options(server, tmp_path, spout__poll__seconds=0.5, batch__target__millis=2000), Checkpoint()).trigger()
    assert 1 <= redis.info("commandstats")["cmdstat_xrange"]["calls"] <= 2 / 0.5 + 2


def test_a_redis_that_is_killed_and_comes_again_loses_nothing(tmp_path):
    """What it has answered is in its append-only file."""
    with redis_process(tmp_path) as server:
        with Redis.from_url(server.url) as client:
            put(client, *range(20))
        checkpoint = Checkpoint()
        run = Run(options(server, tmp_path), checkpoint)
        until(run, checkpoint, 5)
        server.kill()
        for _ in range(3):
            run.trigger()
        server.start()
        until(run, checkpoint, 20)
        with Redis.from_url(server.url) as client:
            put(client, *range(20, 25))
        until(run, checkpoint, 25)
        assert numbers(checkpoint) == list(range(25))


def test_a_redis_that_is_busy_loses_nothing(server, redis, tmp_path):
    """It runs a script without end, and answers BUSY."""
    put(redis, *range(10))
    redis.config_set("busy-reply-threshold", 10)
    checkpoint = Checkpoint()
    run = Run(options(server, tmp_path), checkpoint)

    def endless():
        with Redis.from_url(server.url, socket_timeout=60) as client, pytest.raises(RedisError, match="killed"):
            client.eval("while true do end", 0)

    thread = threading.Thread(target=endless)
    with Redis.from_url(server.url, retry=None) as client:
        client.ping()  # no connection is made while Redis is busy
        thread.start()
        try:
            wait_until(lambda: answers_busy(client))
            for _ in range(3):
                run.trigger()
            assert rows(checkpoint) == []
        finally:
            client.script_kill()
            thread.join(20)
    until(run, checkpoint, 10)
    assert numbers(checkpoint) == list(range(10))


def answers_busy(client):
    try:
        client.ping()
    except RedisError as error:
        return str(error).startswith("BUSY")
    return False


def test_a_key_that_is_no_stream_and_a_wrong_password_are_named_without_it(server, redis, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    redis.set("orders", "text")
    with pytest.raises(TupleFailed, match=r"PYSTORM_EXTERNAL_FAILURE.*WRONGTYPE.*key is a stream"):
        Run(options(server, tmp_path), Checkpoint()).trigger()
    redis.acl_setuser("reader", enabled=True, passwords=["+right"], commands=["+xrange", "+multi", "+exec"], keys=["*"])
    url = server.url.replace("//", "//reader:hunter2@")
    with pytest.raises(
        TupleFailed, match=r"PYSTORM_EXTERNAL_FAILURE.*invalid username-password.*user and password"
    ) as raised:
        Run(options(server, tmp_path, redis__url=url), Checkpoint()).trigger()
    assert "hunter2" not in str(raised.value) + caplog.text
    url = server.url.replace("//", "//reader:right@")
    with pytest.raises(TupleFailed, match=r"no permissions.*allow XRANGE and XINFO"):
        Run(options(server, tmp_path, redis__url=url), Checkpoint()).trigger()


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"redis.url": "http://:hunter2@host"}, r"'redis\.url' does not begin"),
        ({"redis.streams": " , "}, r"'redis\.streams' names no stream"),
        ({"redis.start": "now"}, r"'redis\.start' is 0, \$ or an entry id"),
        ({"redis.count": "0"}, r"redis\.count"),
    ],
)
def test_wrong_options_are_refused(server, tmp_path, wrong, what):
    with pytest.raises(OptionError, match=what) as raised:
        RedisStreamSpout().initialize(options(server, tmp_path) | wrong, {})
    assert "hunter2" not in str(raised.value)


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_a_killed_task_and_a_killed_redis_double_and_lose_nothing(spark, tmp_path):
    with redis_process(tmp_path) as server:
        with Redis.from_url(server.url) as client:
            put(client, *range(40))
        marker = tmp_path / "killed"
        found = options(server, tmp_path, "KilledRedis", path=marker, maxOffsetsPerTrigger=15)
        query = Query(tmp_path)
        running = query.start(spark.readStream.format("pystorm").options(**found).load(), processingTime="0 seconds")
        try:
            wait_until(lambda: marker.exists() and len(query.rows) == 40)
            server.kill()
            before = running.lastProgress["batchId"]
            wait_until(lambda: running.lastProgress["batchId"] >= before + 3)  # the query lives
            server.start()
            with Redis.from_url(server.url) as client:
                put(client, *range(40, 60))
            wait_until(lambda: len(query.rows) == 60)
        finally:
            running.stop()
        assert running.exception() is None
        assert [n for (n,) in query.rows] == list(range(60))
