"""Rate limits over all tasks of a query, against a real service that counts: as source, as operator, as sink."""

import json
import time

import pytest

from pystorm_source import apply, explain, progress, read, read_stream
from testbed.effects_service import effects_service
from testbed.periods import most_in_a_period
from tests.effects.topologies import Lines, Rows, Sink
from tests.states.redis_process import redis_process

pytestmark = pytest.mark.spark

LIMIT = 200
MOST = 1.05 * LIMIT
"""In a second, as the service counts: on a busy machine it is itself stopped for longer than calls may be late."""


@pytest.fixture
def service(tmp_path):
    with effects_service(tmp_path / "service") as found:
        yield found


@pytest.fixture
def redis(tmp_path):
    (tmp_path / "redis").mkdir()
    with redis_process(tmp_path / "redis") as found:
        yield found


def eventually(ask, seconds=30):
    """What it says once it says anything."""
    end = time.monotonic() + seconds
    while not (found := ask()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def lines_in(folder, files, lines):
    folder.mkdir()
    for number in range(files):
        (folder / f"{number}.txt").write_text("".join(f"{number}-{n}\n" for n in range(lines)))
    return str(folder)


def check(service, rows, within_seconds, used=0.8):
    """Every effect once, at most MOST calls in any second, and most of these used in the time between the first and
    the last call."""
    calls = service.calls
    assert sorted(service.effects.values()) == [1] * rows
    times = [call.time for call in calls]
    assert most_in_a_period(times) <= MOST
    seconds = times[-1] - times[0]
    assert seconds < within_seconds
    assert (len(times) - 1) / seconds > used * LIMIT


def started(frame, tmp_path):
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    return writer.trigger(availableNow=True).start()


def ended(query):
    assert query.awaitTermination(120)
    assert query.exception() is None


@pytest.mark.campaign
def test_a_source(spark, service, tmp_path):
    """Four ranges, two tasks at a time, of which five calls in a hundred fail."""
    service.behave(fails=0.05, seconds=0.02)
    path = lines_in(tmp_path / "in", 4, 200)
    frame = read_stream(spark, Lines, path=path, config={"service.url": service.url}, minPartitions=4)
    ended(started(frame, tmp_path))
    check(service, 800, 10)


def test_an_operator(spark, service):
    service.behave(fails=0.05, seconds=0.02)
    frame = spark.range(0, 800, 1, 4).selectExpr("cast(id AS string) AS line")
    found = apply(frame, Rows, config={"service.url": service.url}).collect()
    assert sorted(int(row.line) for row in found) == list(range(800))
    check(service, 800, 10)


def test_the_limit_is_that_of_all_micro_batches_together(spark, service, tmp_path):
    """An operator in each call of foreachBatch: the second one does not begin anew, nor wait a second for its first
    permit."""
    spark.range(0, 600, 1, 3).selectExpr("cast(id AS string) AS line").write.parquet(str(tmp_path / "in"))
    frame = spark.readStream.schema("line string").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))

    def each(rows, number):
        apply(rows, Rows, batch_id=number, config={"service.url": service.url}).write.format("noop").mode(
            "append"
        ).save()

    query = (
        frame.writeStream.foreachBatch(each)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    check(service, 600, 12, used=0.4)


def test_a_worker_that_is_killed_takes_no_permit_along_and_does_no_effect_twice(spark, service, tmp_path):
    service.behave(seconds=0.02)
    frame = spark.range(0, 800, 1, 2).selectExpr("cast(id AS string) AS line")
    config = {"service.url": service.url, "kill.at": "50", "kill.marker": str(tmp_path / "killed")}
    found = apply(frame, Rows, key=["line"], config=config).collect()
    assert (tmp_path / "killed").exists()
    assert sorted(int(row.line) for row in found) == list(range(800))
    assert sorted(service.effects.values()) == [1] * 800
    assert most_in_a_period([call.time for call in service.calls]) <= MOST


@pytest.mark.campaign
def test_a_sink_takes_a_fixed_share(spark, service):
    frame = spark.range(0, 400, 1, 4).selectExpr("cast(id AS string) AS line")
    writer = frame.write.format("pystorm").mode("append").option("config", json.dumps({"service.url": service.url}))
    writer = writer.option("topology", f"{Sink.__module__}:Sink")
    with pytest.raises(Exception, match=r"a sink has no process that gives .*topology.rate.limit.tasks"):
        writer.save()
    writer.option("topology.rate.limit.tasks", 2).save()
    check(service, 400, 10, used=0.65)


def sink_of(frame, service, redis):
    writer = frame.write.format("pystorm").mode("append").option("topology", f"{Sink.__module__}:Sink")
    config = json.dumps({"service.url": service.url})
    return writer.option("config", config).option("topology.rate.limit.redis", redis.url)


def test_a_sink_gets_permits_from_a_redis(spark, service, redis):
    frame = spark.range(0, 600, 1, 4).selectExpr("cast(id AS string) AS line")
    sink_of(frame, service, redis).save()
    check(service, 600, 15, used=0.7)


@pytest.mark.campaign
def test_queries_of_every_kind_share_a_limit_of_a_redis(spark, service, redis, tmp_path):
    """A source without reports and a sink at the same time, then a batch read and an operator."""
    path = lines_in(tmp_path / "in", 1, 300)
    frame = spark.range(0, 300, 1, 2).selectExpr("cast(id AS string) AS line")
    given = {"config": {"service.url": service.url}, "topology.rate.limit.redis": redis.url}
    query = started(read_stream(spark, Lines, path=path, options={**given, "feedback": "off"}), tmp_path)
    sink_of(frame, service, redis).save()
    ended(query)
    assert read(spark, Lines, path=path, options=given).count() == 300
    assert apply(frame.limit(100), Rows, options=given).count() == 100
    times = [call.time for call in service.calls]
    assert len(times) == 1000
    assert most_in_a_period(times) <= MOST


def test_speculation_is_refused(spark, service):
    frame = spark.range(1).selectExpr("cast(id AS string) AS line")
    conf = spark.sparkContext._conf
    conf.set("spark.speculation", "true")
    try:
        with pytest.raises(ValueError, match="spark.speculation=true a slow task runs twice"):
            apply(frame, Rows, config={"service.url": service.url})
    finally:
        conf.set("spark.speculation", "false")


def test_a_batch_read_is_refused_without_a_share(spark, service, tmp_path):
    path = lines_in(tmp_path / "in", 1, 10)
    with pytest.raises(Exception, match=r"a batch read has no process that gives"):
        read(spark, Lines, path=path, config={"service.url": service.url}).collect()
    options = {"config": {"service.url": service.url}, "topology.rate.limit.tasks": 2}
    assert read(spark, Lines, path=path, options=options).count() == 10


@pytest.mark.campaign
def test_while_the_service_is_down_everything_says_so_before_the_micro_batch_ends(spark, service, tmp_path):
    service.behave(seconds=0.02)
    path = lines_in(tmp_path / "in", 1, 1000)
    frame = read_stream(spark, Lines, path=path, config={"service.url": service.url}, maxOffsetsPerTrigger=1200)
    query = started(frame, tmp_path)
    try:
        eventually(lambda: (found := progress(query)) is not None and found.rows)
        service.behave(down=True)
        held = eventually(lambda: (found := progress(query)).outages and found)
        (outage,) = held.outages
        assert (outage.name, outage.rate) == ("api", "200/s") and "503" in outage.error
        assert held.bottleneck.why == "waits for a circuit breaker"
        assert "higher value" not in held.bottleneck.advice
        assert "the circuit breaker of limit 'api' (200/s) is open: the service has failed since" in explain(query)
        service.behave(seconds=0.02)
        ended(query)
        assert progress(query).outages == ()
        assert "circuit breaker" not in explain(query)
    finally:
        query.stop()
