"""One rate limit for all child processes of all Spark tasks, which is used, and goes on when a child is killed."""

import json
import time
from collections import Counter

import pytest

from pystorm_source import apply, progress, read_stream
from testbed.periods import most_in_a_period
from tests.processes.spark_topologies import Limited, LimitedRows
from tests.states.redis_process import redis_process

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]
every_spark = pytest.mark.every_spark

LIMIT = 200
MOST = 1.3 * LIMIT
"""In a second: a busy machine stops a process behind its permit. A whole limit for each would be twice as much."""


def check(rows, limit=LIMIT):
    """The limit holds, and is used from the second second on as long as all four processes call."""
    assert len(Counter(row.parent for row in rows)) == 2
    by_child = {}
    for row in rows:
        by_child.setdefault(row.pid, []).append(row.at)
    assert len(by_child) == 4
    times = sorted(row.at for row in rows)
    assert most_in_a_period(times) <= 1.3 * limit
    end = min(map(max, by_child.values()))
    together = [at for at in times if max(map(min, by_child.values())) + 1 <= at <= end]
    used = (len(together) - 1) / (together[-1] - together[0]) / limit
    assert used >= 0.4, f"{used:.0%} of the limit"


def limit_of(query):
    """As the first record with counts has it."""
    end = time.monotonic() + 60
    while True:
        found = progress(query)
        if found is not None and found.topology is not None and found.topology.limits:
            return found.topology.limits[0]
        assert time.monotonic() < end and query.isActive, query.exception()
        time.sleep(0.05)


@pytest.mark.spark40  # over Spark Connect, tasks cannot reach the process that gives permits
def test_an_operator(spark):
    rows = apply(spark.range(0, 1200, 1, 2).selectExpr("id AS n"), LimitedRows).collect()
    assert sorted(row.n for row in rows) == list(range(1200))
    check(rows)


@pytest.mark.parametrize("redis_url", [False, True])
def test_a_share_and_a_redis(spark, tmp_path, redis_url):
    frame = spark.range(0, 1200, 1, 2).selectExpr("id AS n")
    if not redis_url:
        check(apply(frame, LimitedRows, options={"topology.rate.limit.tasks": 2}).collect())
        return
    with redis_process(tmp_path) as redis:
        check(apply(frame, LimitedRows, options={"topology.rate.limit.redis": redis.url}).collect())


@every_spark
def test_a_source_goes_on_within_its_limit_when_a_child_is_killed(spark, tmp_path):
    (flag := tmp_path / "not killed yet").touch()
    frame = read_stream(spark, Limited, options={"config": json.dumps({"app.killed.once": str(flag)})})
    writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).format("json")
    query = writer.start(str(tmp_path / "rows"))
    try:
        limit = limit_of(query)
        query.processAllAvailable()
    finally:
        query.stop()
    assert query.exception() is None
    assert not flag.exists()
    rows = spark.read.schema(frame.schema).json(str(tmp_path / "rows")).collect()
    assert Counter(row.n for row in rows) == dict.fromkeys(range(600), 2)
    times = sorted(row.at for row in rows)
    assert most_in_a_period(times) <= MOST
    assert (limit.component, limit.name, limit.rate) == ("asks", "api", "200/s")
    assert limit.waits > 0.3
