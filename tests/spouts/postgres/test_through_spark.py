"""A streaming query over a PostgreSQL whose tasks are killed, and which is killed itself."""

import psycopg
import pytest

from tests.channel.reports.made_reports import wait_until
from tests.docs.postgres_server import killable_postgres
from tests.source.queries import Query
from tests.spouts.postgres.shop import LOGICAL, Shop

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]


def rows(query):
    """A micro-batch that runs again has its number, and must have its rows."""
    once = dict(query.batches)
    assert all(once[number] == found for number, found in query.batches)
    return [row for found in once.values() for row in found]


def test_killed_tasks_and_a_killed_server_double_and_lose_nothing(spark, tmp_path):
    query = Query(tmp_path)
    with killable_postgres(LOGICAL) as server, psycopg.connect(server.place, autocommit=True) as connection:
        shop = Shop(server, connection, "orders")
        shop.insert(*range(40))
        named = shop.options("tests.spouts.postgres.shop:Killed", path=str(tmp_path), maxOffsetsPerPartition=25)
        frame = spark.readStream.format("pystorm").options(**named).load()
        running = query.start(frame, processingTime="0 seconds")
        try:
            wait_until(lambda: len(rows(query)) == 40)
            running.stop()
            named["maxOffsetsPerPartition"] = "1000000"
            frame = spark.readStream.format("pystorm").options(**named).load()
            running = query.start(frame, processingTime="0 seconds")
            for n in range(40, 70, 10):
                shop.insert(*range(n, n + 10))
            wait_until(lambda: len(rows(query)) == 70)
            shop.restart()
            shop.insert(*range(70, 80))
            wait_until(lambda: len(rows(query)) == 80)
        finally:
            running.stop()
        assert running.exception() is None
        assert sorted(id for _, _, _, id, _ in rows(query)) == list(range(80))
        assert {path.name for path in tmp_path.glob("killed*")} == {"killed in the snapshot", "killed in changes"}
