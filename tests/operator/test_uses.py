"""Two uses of one topology: no rows share an idempotency key, or it is refused, on a real Spark."""

import json
from collections import Counter

import pytest

from pystorm_source import Bolt, Input, Topology, apply
from pystorm_source.errors import ArgumentError
from pystorm_source.operator import uses

pytestmark = pytest.mark.spark


class Pay(Bolt):
    outputs = ["id long", "sent_as string"]
    exit_on_exception = False

    def process(self, tup):
        if tup.values.id % 5 == 3:
            raise ValueError("three")
        self.emit([tup.values.id, self.idempotency_key(tup)])


class Pays(Topology):
    config = {"topology.max.spout.retries": 0, "topology.dead.letter": "drop"}
    rows = Input.spec(["id long"])
    pay = Pay.spec(inputs=[rows])


def key_of(bolt, tup):
    return bolt.idempotency_key(tup)


class Unseen(Bolt):
    outputs = ["id long", "sent_as string"]

    def process(self, tup):
        self.emit([tup.values.id, key_of(self, tup)])


class UnseenPays(Topology):
    rows = Input.spec(["id long"])
    pay = Unseen.spec(inputs=[rows])


class Charge(Bolt):
    """Of a sink: a line for each row."""

    exit_on_exception = False

    def initialize(self, conf, context):
        self.path = conf["effects"]

    def process(self, tup):
        if tup.values.id % 5 == 3:
            raise ValueError("three")
        with open(self.path, "a") as file:
            file.write(json.dumps([self.idempotency_key(tup), tup.values.id]) + "\n")


class Charges(Topology):
    config = {"topology.max.spout.retries": 0, "topology.dead.letter": "drop"}
    rows = Input.spec(["id long"])
    charge = Charge.spec(inputs=[rows])


def in_files(spark, folder, files, rows=10):
    """A stream of as many micro-batches as files."""
    for number in range(files):
        ids = spark.range(number * rows, (number + 1) * rows, 1, 1)
        ids.coalesce(1).write.mode("overwrite").parquet(str(folder / f"in/{number}"))
    return spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(folder / "in/*"))


def run(writer, checkpoint):
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(90)
    assert query.exception() is None


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def letters_in(folder):
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]


def test_uses_in_for_each_batch_keep_their_letters_records_and_keys_apart(spark, tmp_path):
    letters, effects, records, rows = (tmp_path / name for name in ("letters", "effects", "records", "rows"))
    stream = in_files(spark, tmp_path, 2)

    def both(frame, number):
        for use, half in (("even", frame.where("id % 2 = 0")), ("odd", frame.where("id % 2 = 1"))):
            write = half.write.format("pystorm").option("topology", f"{__name__}:Charges").option("use", use)
            write = write.option("config", json.dumps({"effects": str(effects)}))
            write = write.option("topology.dead.letter.path", str(letters)).option("progress.path", str(records))
            write.mode("append").save()
            options = {"topology.dead.letter.path": str(letters / "applied")}
            apply(half, Pays, use=use, options=options).write.mode("append").json(str(rows))

    run(stream.writeStream.foreachBatch(both), tmp_path / "checkpoint")
    held = {number for _, _, number, _, use in uses._batches if use in ("even", "odd")}
    assert held == {"1"}, "no earlier micro-batch, with its shuffle files, is held"
    found = lines_of(effects)
    assert sorted(id for _, id in found) == [id for id in range(20) if id % 5 != 3]
    assert max(Counter(key for key, _ in found).values()) == 1
    applied = [(row.sent_as, row.id) for row in spark.read.json(str(rows)).collect()]
    assert len({key for key, _ in applied}) == len(applied) == 16
    failed = [3, 8, 13, 18]
    assert sorted(json.loads(letter["values"])[0] for letter in letters_in(letters)) == failed
    assert sorted(json.loads(letter["values"])[0] for letter in letters_in(letters / "applied")) == failed
    assert {letter["batch"] for letter in letters_in(letters)} == {0, 1}
    kept = [[json.loads(line) for line in path.read_text().splitlines()][1:] for path in records.iterdir()]
    assert [[(each["batchId"], each["rows"], each["tasks"]["deadLetters"]) for each in file] for file in kept] == [
        [(0, 5, 1), (1, 5, 1)]
    ] * 2
    before = {path: path.read_text() for path in letters.glob("*.jsonl")}

    for path in (tmp_path / "checkpoint" / "commits").glob("*1*"):
        path.unlink()
    run(stream.writeStream.foreachBatch(both), tmp_path / "checkpoint")
    again = lines_of(effects)[len(found) :]
    assert sorted(again) == sorted(line for line in found if line[1] >= 10), "the same keys after a restart"
    assert all(path.read_text() == text for path, text in before.items()), "no letter of another write was touched"


def test_two_uses_of_a_micro_batch_without_a_name_are_refused(spark, tmp_path):
    said = []

    def both(frame, number):
        apply(frame, Pays).collect()
        apply(frame, Pays).collect()  # the same rows: the same keys
        with pytest.raises(ArgumentError, match=r"key=\['id'\].*use='again'"):
            apply(frame.where("id > 5"), Pays)
        apply(frame, UnseenPays).collect()
        with pytest.raises(Exception, match=r"another use of 'UnseenPays' in micro-batch 0.*key=\['id'\]"):
            apply(frame.where("id > 5"), UnseenPays).collect()
        write = frame.write.format("pystorm").option("topology", f"{__name__}:Charges")
        write = write.option("config", json.dumps({"effects": str(tmp_path / "effects")}))
        write.option("key", "id").mode("append").save()
        with pytest.raises(Exception, match=r"nothing tells the rows of two writes.*option\('use'"):
            write.option("key", "").mode("append").save()
        write.option("key", "").option("use", "paid").mode("append").save()
        with pytest.raises(Exception, match=r"two writes of micro-batch 0 to 'Charges' have the same name"):
            write.option("key", "").option("use", "paid").mode("append").save()
        said.append(number)

    run(in_files(spark, tmp_path, 1).writeStream.foreachBatch(both), tmp_path / "checkpoint")
    assert said == [0]
    assert lines_of(tmp_path / "effects")[0] == ["[0]", 0]


def test_two_uses_in_the_plan_of_a_stream(spark, tmp_path):
    stream = in_files(spark, tmp_path, 1)
    once = apply(stream, Pays)
    with pytest.raises(ArgumentError, match=r"stems from another use of 'Pays'.*key=\['id'\]"):
        apply(once.select("id"), Pays)
    other = apply(stream.where("id > 4"), Pays)
    with pytest.raises(Exception, match=r"use of Pays \(for another one: apply\(..., use='again'\), or key=\['id'\]\)"):
        once.join(other, "id")
    with pytest.raises(Exception, match="use of Pays"):
        once.union(other)
    named = apply(stream.where("id > 4"), Pays, use="late")
    first = apply(stream, Pays)
    chained = apply(first.select("id"), Pays, use="again")
    by_key = apply(stream, Pays, key=["id"])
    rows = first.union(named).union(chained).union(by_key)
    run(rows.writeStream.format("json").option("path", str(tmp_path / "out")), tmp_path / "checkpoint")
    keys = Counter(row.sent_as for row in spark.read.json(str(tmp_path / "out")).collect())
    assert len(keys) == 8 + 4 + 8 + 8
    assert max(keys.values()) == 1
    with pytest.raises(ArgumentError, match="a stream numbers its micro-batches itself"):
        apply(stream, Pays, batch_id=7)


def test_what_cannot_be_told_apart_before_tasks_run_has_no_keys(spark, tmp_path):
    stream = in_files(spark, tmp_path, 1)
    outside = apply(spark.range(5), Pays)
    for frame in (apply(stream, UnseenPays), stream.join(outside.select("id"), "id")):
        query = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / f"of-{id(frame)}"))
        with pytest.raises(Exception, match=r"nothing tells this use of the topology from another one.*key=\['id'\]"):
            query.trigger(availableNow=True).start().awaitTermination(60)


def test_a_numbered_batch_query(spark):
    frame = spark.range(10, numPartitions=1)
    first = apply(frame, Pays, batch_id=77).collect()
    again = apply(spark.range(10, numPartitions=1), Pays, batch_id=77)
    assert sorted(again.collect()) == sorted(first), "the same rows have the same keys"
    with pytest.raises(ArgumentError, match="use='again'"):
        apply(frame.where("id > 5"), Pays, batch_id=77)
    other = apply(frame.where("id > 5"), Pays, batch_id=77, use="late")
    assert not {row.sent_as for row in other.collect()} & {row.sent_as for row in first}
