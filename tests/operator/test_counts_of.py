"""What the components of an operator have done, as Spark observes it."""

import os

import pytest
from pyspark.sql import Observation

from pystorm_source import Bolt, Input, Topology, apply, counts_of, progress, ui
from pystorm_source.errors import ArgumentTypeError, UsageError
from pystorm_source.observe.measures import Measures
from pystorm_source.operator.report_column import REPORT, REPORTS
from tests.operator import topologies
from tests.operator.tasks import batches, function_of, rows_of, schedulers


def counts(seen, topology=topologies.Doubles):
    progress = counts_of(topology, seen)
    return {each.name: (each.batch.executed, each.batch.emitted, each.batch.failed) for each in progress.components}


@schedulers
def test_behind_the_rows_comes_one_with_the_report(scheduler):
    plain = function_of(topologies.Doubles, "id: long", **{"topology.scheduler": scheduler})
    counted = function_of(topologies.Doubles, "id: long", counted=True, **{"topology.scheduler": scheduler})
    *rows, (first, second, report) = rows_of(counted(batches(3)))
    assert [row[:-1] for row in rows] == rows_of(plain(batches(3)))
    assert {row[-1] for row in rows} == {None}
    assert first is second is None
    assert counts({REPORTS: [report]})["double"] == (3_000, 3_000, 0)


def test_without_a_row_there_is_a_report_and_kept_columns_are_empty():
    function = function_of(topologies.Doubles, "id: long, region: string", keep="*", counted=True)
    (batch,) = function(iter(()))
    assert batch.schema.names == ["region", "id", "twice", REPORT]
    assert batch.to_pylist()[0]["region"] is None
    assert counts({REPORTS: [batch.to_pylist()[0][REPORT]]})["double"] == (0, 0, 0)


def test_what_fails_is_counted_and_named():
    function = function_of(topologies.DeadLetters, "id: long", counted=True, **{"topology.dead.letter": "drop"})
    report = rows_of(function(batches(1, 10)))[-1][-1]
    progress = counts_of(topologies.DeadLetters, {REPORTS: [report]}, options={"topology.dead.letter": "drop"})
    assert progress.component("hopeless").batch.failed > 0
    assert progress.component("hopeless").last_error is not None


LETTERS = {
    "stream": {"topology.dead.letter": "stream", "streams": "all"},
    "drop": {"topology.dead.letter": "drop"},
    "path": {"topology.dead.letter.path": "letters"},
}


@schedulers
@pytest.mark.parametrize("read_with", ["options", "none"])
@pytest.mark.parametrize("keep", [(), "*"])
@pytest.mark.parametrize("letters", LETTERS)
def test_the_counts_are_those_of_a_model_whatever_becomes_of_dead_letters(
    letters, keep, read_with, scheduler, tmp_path, monkeypatch
):
    """Of ten rows one fails, at both attempts. Whoever reads the counts need not know where dead letters go."""
    monkeypatch.chdir(tmp_path)

    class OneFails(Topology):
        config = {"topology.max.spout.retries": 1}
        rows = Input.spec(["id long"])
        first = topologies.Hopeless.spec(inputs=[rows])
        last = topologies.Hopeless.spec(inputs=[first])

    options = {"topology.scheduler": scheduler, **LETTERS[letters]}
    function = function_of(OneFails, "id: long", keep=keep, counted=True, **options)
    report = rows_of(function(batches(1, 10)))[-1][-1]
    progress = counts_of(OneFails, {REPORTS: [report]}, options=options if read_with == "options" else None)
    found = {
        each.name: (each.batch.executed, each.batch.emitted, each.batch.acked, each.batch.failed, each.batch.errors)
        for each in progress.components
    }
    rows = progress.component("rows").batch
    letter = letters == "stream" and read_with == "options"  # a tuple of its own stream, which only then is known
    assert found["first"] == (11, 9, 9, 2, 2)
    assert found["last"] == (9, 9, 9, 0, 0)
    assert found["rows"][1:4] == (11 + letter, 9, 2)
    assert (rows.retries, rows.dead_letters, rows.dropped) == (1, 1, int(letters == "drop"))


@pytest.mark.parametrize("seen", [{}, {"count": 3}, *({REPORTS: odd} for odd in (3, [3], ["{"], ["\udcff"]))])
def test_another_observation_is_refused(seen):
    with pytest.raises(ArgumentTypeError, match=r"counts='name'.*Given"):
        counts_of(topologies.Doubles, seen)


def test_counts_is_a_name():
    class Frame:
        schema = mapInArrow = None

    with pytest.raises(ArgumentTypeError, match="counts is a name"):
        apply(Frame(), topologies.Doubles, counts=3)


class DiesOnce(Bolt):
    outputs = ["id long"]

    def initialize(self, conf, context):
        self.mark = conf["mark"]

    def process(self, tup):
        if tup.values.id == 700 and not os.path.exists(self.mark):
            open(self.mark, "w").close()
            os._exit(1)
        self.emit([tup.values.id])


class Dies(Topology):
    rows = Input.spec(["id long"])
    once = DiesOnce.spec(inputs=[rows])


@pytest.mark.spark
def test_an_attempt_that_died_does_not_count(spark, tmp_path):
    seen = Observation("dies")
    frame = apply(spark.range(0, 1000, 1, 3), Dies, counts=seen, config={"mark": str(tmp_path / "mark")})
    assert frame.columns == ["id"]
    assert frame.selectExpr("sum(id)").first()[0] == 999 * 500
    assert (tmp_path / "mark").exists()
    assert counts(seen.get, Dies)["once"] == (1000, 1000, 0)


@pytest.mark.spark
def test_each_micro_batch_has_those_of_its_own(spark, tmp_path):
    for part in range(2):
        spark.range(part * 100, part * 100 + 100, 1, 2).write.mode("append").parquet(str(tmp_path / "in"))
    numbers = spark.readStream.schema("id long").option("maxFilesPerTrigger", 3).parquet(str(tmp_path / "in"))
    doubled = apply(numbers, topologies.Doubles, counts="doubles")
    query = doubled.writeStream.format("noop").trigger(availableNow=True).start()
    assert query.awaitTermination(60) and query.exception() is None
    batches = [each for each in query.recentProgress if each.numInputRows]
    assert len(batches) == 2
    found = [counts(each.observedMetrics["doubles"].asDict())["double"] for each in batches]
    assert found == [(each.numInputRows, each.numInputRows, 0) for each in batches]
    assert sum(each[0] for each in found) == 200
    record = progress(query)
    assert (record.door, record.batch_id, record.rows) == ("operator", 1, batches[1].numInputRows)
    double = record.topology.component("double")
    assert (double.batch.executed, double.total.executed) == (batches[1].numInputRows, 200)
    assert record == progress(query), "a second look counts nothing twice"
    page = tmp_path / "page.html"
    ui(query).save(page)
    assert "double" in page.read_text()


@pytest.mark.spark
def test_two_uses_of_one_topology_are_told_apart(spark, tmp_path):
    spark.range(0, 10).write.parquet(str(tmp_path / "in"))
    numbers = spark.readStream.schema("id long").parquet(str(tmp_path / "in"))
    few = apply(numbers.where("id < 3"), topologies.Doubles, counts="few")
    doubled = few.unionByName(apply(numbers, topologies.Doubles, counts="all", use="again"))
    query = doubled.writeStream.format("noop").trigger(availableNow=True).start()
    assert query.awaitTermination(60) and query.exception() is None
    with pytest.raises(UsageError, match="several topologies") as caught:
        progress(query)
    assert all(f"'Doubles' (counts='{use}')" in str(caught.value) for use in ("few", "all"))
    found = {use: progress(query, use).topology.component("double").batch.executed for use in ("few", "all")}
    assert found == {"few": 3, "all": 10}
    measures = Measures(10)
    for use in found:
        measures.update(progress(query, use))
    counted = {key.use: samples["execute_count"] for key, samples in measures.samples().items()}
    assert {use: {each.labels[0]: each.value for each in counted[use]}["double"] for use in found} == found


@pytest.mark.spark
def test_an_operator_that_is_not_counted_says_how_to_count_it(spark, tmp_path):
    spark.range(0, 10).write.parquet(str(tmp_path / "in"))
    numbers = spark.readStream.schema("id long").parquet(str(tmp_path / "in"))
    query = apply(numbers, topologies.Doubles).writeStream.format("noop").trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    with pytest.raises(UsageError, match=r"counts='name'"):
        progress(query)
