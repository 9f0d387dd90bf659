"""Sinks on a real Spark."""

import json

import pytest

from pystorm_source import progress
from pystorm_source.records.record_file import RecordFile
from tests.sink import topologies
from tests.sink.topologies import effects

pytestmark = [pytest.mark.spark, pytest.mark.spark40]
NAME = "tests.sink.topologies:Notes"


def records_in(folder):
    (path,) = folder.iterdir()
    return RecordFile(path).read().records


def rows_of(path):
    return [json.loads(line) for file in path.iterdir() for line in file.read_text().splitlines()]


@pytest.mark.campaign
def test_a_stream_whose_last_commit_comes_again_after_a_restart(spark, tmp_path):
    for name in ("in", "effects"):
        (tmp_path / name).mkdir()
    spark.range(0, 10, 1, 1).write.parquet(str(tmp_path / "in" / "a"))
    stream = spark.readStream.schema("id long").parquet(str(tmp_path / "in" / "*"))

    def run():
        query = (
            stream.writeStream.format("pystorm")
            .option("topology", NAME)
            .option("config", json.dumps({"effects": str(tmp_path / "effects")}))
            .option("topology.dead.letter.path", str(tmp_path / "letters"))
            .option("progress.path", str(tmp_path / "records"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)
        return progress(query)

    shown = run()
    assert (shown.door, shown.batch_id, shown.rows) == ("sink", 0, 10)
    assert shown.topology.component("note").batch.executed == 11
    once = effects(tmp_path / "effects")
    assert [number for _, number in once] == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    (tmp_path / "checkpoint" / "commits" / "0").unlink()
    (tmp_path / "checkpoint" / "commits" / ".0.crc").unlink(missing_ok=True)
    assert run().topology.component("note").batch.executed == 11
    twice = effects(tmp_path / "effects")
    assert twice == sorted([*once, *once], key=lambda effect: (effect[1], effect[0])), "the same keys again"
    (record,) = records_in(tmp_path / "records")
    assert (record.batch_id, record.rows, record.tasks.acked, record.tasks.dead_letters) == (0, 10, 9, 1)
    assert record.topology.component("note").total.executed == 11
    (letter,) = rows_of(tmp_path / "letters")
    assert (letter["component"], letter["values"], letter["attempts"]) == ("note", "[3]", 2)


def test_a_batch_of_which_a_task_is_tried_again_counts_each_row_once(spark, tmp_path):
    (tmp_path / "effects").mkdir()
    frame = spark.range(0, 20, 1, 2).selectExpr("'x' AS other", "id AS ID")
    config = {"effects": str(tmp_path / "effects"), "breaks": True, "topology.dead.letter": "drop"}
    write = frame.write.format("pystorm").option("topology", NAME).option("config", json.dumps(config))
    write.option("progress.path", str(tmp_path / "records")).mode("append").save()
    numbers = [number for _, number in effects(tmp_path / "effects")]
    assert set(numbers) == set(range(20)) - {3}
    assert len(numbers) > 19, "the broken attempt had its effects"
    (record,) = records_in(tmp_path / "records")
    assert (record.rows, record.tasks.acked, record.tasks.dead_letters) == (20, 19, 1)
    assert record.tasks.retried_tasks == 1
    assert record.topology.component("note").batch.executed == 21


def test_a_dead_letter_fails_the_task_and_names_the_row_unless_an_option_says_otherwise(spark, tmp_path):
    write = spark.range(3, 4, 1, 1).write.format("pystorm").option("topology", NAME).mode("append")
    with pytest.raises(Exception, match=r"three") as raised:
        write.option("config", json.dumps({"effects": str(tmp_path)})).save()
    assert "(3,) of rows.default" in str(raised.value)
    assert topologies.Notes.__name__ in str(raised.value) or "note" in str(raised.value)
