"""apply() on a real Spark."""

import sys

import pytest

from pystorm_source import apply
from tests.operator import topologies

pytestmark = pytest.mark.spark


@pytest.mark.spark40
def test_a_batch_through_bolts_of_rows_and_of_batches(spark, monkeypatch):
    """Without pandas; with LIMIT, which closes the iterator."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    frame = spark.range(0, 20_000, 1, 2).selectExpr("concat('t', id) AS text", "id AS ID", "1 AS `other.column`")
    evens = apply(frame, topologies.Evens)
    assert evens.columns == ["id", "text"]
    doubled = apply(evens, topologies.Doubles)
    assert doubled.selectExpr("count(*)", "sum(twice)").first() == (10_000, 2 * sum(range(0, 20_000, 2)))
    assert len(doubled.limit(5).collect()) == 5


@pytest.mark.every_spark
def test_rows_with_the_columns_of_their_input_and_keys(spark):
    frame = spark.range(0, 3_000, 1, 3).selectExpr("id", "id % 3 = 0 AS third", "array(id, id) AS both")
    found = apply(frame, topologies.NamedRows, keep="*", key=["third", "id"])
    assert found.columns == ["id", "third", "both", "twice", "key"]
    rows = found.collect()
    assert len(rows) == 3_000
    for id, third, both, twice, key in rows:
        assert (third, both, twice, key) == (id % 3 == 0, [id, id], 2 * id, f"[{str(third).lower()}, {id}]")


@pytest.mark.every_spark
def test_a_key_is_that_of_the_micro_batch_and_of_the_row(spark, tmp_path):
    spark.range(0, 30, 1, 3).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 2).parquet(str(tmp_path / "in"))
    query = (
        apply(stream, topologies.NamedRows, keep=["id"])
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    assert query.awaitTermination(60)
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted((row.id, row.twice) for row in found) == [(i, 2 * i) for i in range(30)]
    assert len({row.key for row in found}) == 30
    assert {tuple(row.key.split("/")[0:3:2]) for row in found} == {("NamedRows", "0"), ("NamedRows", "1")}


def test_a_stream(spark, tmp_path):
    spark.range(0, 3_000, 1, 3).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 2).parquet(str(tmp_path / "in"))
    query = (
        apply(stream, topologies.Doubles)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    assert query.awaitTermination(60)
    found = spark.read.parquet(str(tmp_path / "out"))
    assert found.selectExpr("count(*)", "count(DISTINCT id)", "sum(twice)").first() == (3_000, 3_000, 2_999 * 3_000)


def test_an_exception_names_the_component(spark):
    with pytest.raises(Exception, match="seven") as raised:
        apply(spark.range(0, 10, 1, 1), topologies.Breaks).collect()
    assert "odd" in str(raised.value)


def test_inside_of_foreach_batch(spark, tmp_path):
    spark.range(5).write.parquet(str(tmp_path / "in"))
    found = []

    def each(frame, number):
        found.append((number, sorted(row.twice for row in apply(frame, topologies.Doubles).collect())))

    stream = spark.readStream.schema("id long").parquet(str(tmp_path / "in"))
    query = stream.writeStream.foreachBatch(each).trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    assert found == [(0, [0, 2, 4, 6, 8])]
