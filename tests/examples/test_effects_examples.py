"""The examples that call services, on a real Spark, against real servers."""

import json
import os

import pytest
from confluent_kafka import Producer

from examples.busy_service import Geocoded
from examples.model import FEATURES, Model, ScoreBolt, Scored
from examples.rest_writer import Payments
from examples.table_enrichment import ORDER, PricedOrders, orders_of
from pystorm_source import apply, read_stream
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology
from testbed.effects_service import effects_service
from testbed.periods import most_in_a_period
from tests.examples.price_server import PRICES, price_server

pytestmark = pytest.mark.spark

ITEMS = ("apple", "pear", "dragon")


@pytest.fixture
def service(tmp_path):
    with effects_service(tmp_path / "service") as found:
        yield found


def run(writer, folder, **trigger):
    query = writer.option("checkpointLocation", str(folder)).trigger(**(trigger or {"availableNow": True})).start()
    assert query.awaitTermination(120)
    assert query.exception() is None


def rows_of(frame, tmp_path):
    run(frame.writeStream.format("parquet").option("path", str(tmp_path / "out")), tmp_path / "checkpoint")
    return sorted(tuple(row) for row in frame.sparkSession.read.parquet(str(tmp_path / "out")).collect())


def test_prices_behind_a_table_of_files(spark, tmp_path):
    orders = [(n, ITEMS[n % 3], n) for n in range(300)]
    spark.createDataFrame(orders, ORDER).repartition(3).write.parquet(str(tmp_path / "orders"))
    with price_server() as server:
        stream = spark.readStream.schema(ORDER).option("maxFilesPerTrigger", 2).parquet(str(tmp_path / "orders"))
        config = {"prices.url": server.url}
        priced = apply(stream, PricedOrders, stream="prices.default", keep=["item"], config=config)
        found = rows_of(priced, tmp_path)
    assert found == sorted((item, n, n * PRICES[item]) for n, item, _ in orders if item in PRICES)


def test_prices_behind_kafka(spark, tmp_path, kafka):
    kafka.create("orders")
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    for n in range(60):
        producer.produce("orders", json.dumps({"order": n, "item": ITEMS[n % 2], "number": 2}))
    assert producer.flush(30) == 0
    with price_server() as server:
        orders = orders_of(spark, kafka.bootstrap)
        priced = apply(orders, PricedOrders, stream="prices.default", config={"prices.url": server.url})
        found = rows_of(priced, tmp_path)
    assert found == [(n, 2 * PRICES[ITEMS[n % 2]]) for n in range(60)]


def test_each_payment_is_made_once_though_calls_fail_and_a_micro_batch_runs_again(spark, service, tmp_path):
    service.behave(fails=0.1)
    spark.range(0, 400, 1, 4).selectExpr("id AS payment", "id * 1.5D AS amount").write.parquet(str(tmp_path / "in"))
    config = {"payments.url": service.url}

    def write():
        frame = spark.readStream.schema("payment long, amount double").option("maxFilesPerTrigger", 2)
        writer = frame.parquet(str(tmp_path / "in")).writeStream.format("pystorm")
        writer = writer.option("topology", f"{Payments.__module__}:Payments").option("config", json.dumps(config))
        run(writer, tmp_path / "checkpoint")

    write()
    commits = tmp_path / "checkpoint" / "commits"
    for path in [*commits.glob("1"), *commits.glob(".1.crc")]:  # as if the driver had died before the last commit
        os.remove(path)
    write()
    assert len(service.calls) > 600, "the second micro-batch came again"
    assert sorted(service.effects.values()) == [1] * 400


@pytest.mark.campaign
def test_a_busy_service_is_called_as_often_as_it_allows(spark, service, tmp_path):
    """Its own bound is lower than the limit for a while: it says 429."""
    service.behave(seconds=0.3, capacity=50, retry_after=0.3, fails=0.02)
    (tmp_path / "in").mkdir()
    for part in range(2):
        (tmp_path / "in" / f"{part}.txt").write_text("".join(f"{part} Main Street {n}\n" for n in range(100)))
    frame = read_stream(spark, Geocoded, path=str(tmp_path / "in"), config={"geocoder.url": service.url})
    found = rows_of(frame, tmp_path)
    assert found == sorted((f"{part} Main Street {n}",) * 2 for part in range(2) for n in range(100))
    calls = service.calls
    assert any(call.status == 429 for call in calls)
    assert most_in_a_period([call.time for call in calls]) <= 105  # a busy machine stops the service, too


class SomeRows(Scored):
    rows = MemorySpout.spec(fields=["value long"], rows=[[n] for n in range(500)])
    scores = ScoreBolt.spec(inputs=[rows])


@pytest.mark.parametrize("scheduler", ["inline", "threads"])
def test_a_model_scores_rows_that_wait_together(scheduler, monkeypatch):
    calls = []
    predict = Model.predict
    monkeypatch.setattr(Model, "predict", lambda model, rows: calls.append(len(rows)) or predict(model, rows))
    result = run_topology(SomeRows, scheduler=scheduler)
    expected = {n: float(sum(k * (n % (k + 1)) for k in range(FEATURES))) for n in range(500)}
    assert dict(result.rows("scores")) == expected
    assert sum(calls) == 500
    assert len(calls) < 100, "rows that wait are scored in one call"
