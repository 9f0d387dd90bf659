"""A bolt in processes of its own at every door of a real Spark: the rows that it gives in the task's own process."""

import json
import os
import random
import time
from collections import Counter

import pytest

from pystorm_source import apply, read, read_stream
from tests.processes.spark_topologies import (
    TOTAL,
    Cut,
    CutHere,
    Fewer,
    Hanging,
    HangingHere,
    Kept,
    Squared,
    SquaredRows,
    killed,
    marks_of,
)

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]
every_spark = pytest.mark.every_spark
ROUNDS = int(os.environ.get("PYSTORM_PROCESS_ROUNDS", "2"))
NAME = "tests.processes.spark_topologies:"


def run(frame, folder, write=None):
    """A query over all that there is; of which JSON is written, if ``write`` names no other sink. Not by availableNow,
    which is one micro-batch of Spark 4.0 and 4.1."""
    writer = frame.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.format("json").start(str(folder / "rows")) if write is None else write(writer).start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    assert query.exception() is None


def rows_in(spark, frame, folder):
    return spark.read.schema(frame.schema).json(str(folder / "rows")).collect()


def families(rows):
    """Parent → its children."""
    found = {}
    for row in rows:
        found.setdefault(row.parent, set()).add(row.pid)
    return found


@every_spark
def test_rows_are_exact_though_a_child_is_killed(spark, tmp_path):
    flag = tmp_path / "not killed yet"
    flag.touch()
    options = {"config": json.dumps({"app.killed.once": str(flag)}), "maxOffsetsPerTrigger": 15_000}
    frame = read_stream(spark, Squared, options=options)
    run(frame, tmp_path)
    assert not flag.exists()
    rows = rows_in(spark, frame, tmp_path)
    assert sorted((row.n, row.square) for row in rows) == [(n, n * n) for n in range(TOTAL)]
    for parent, children in families(rows).items():
        assert len(children) == 2, "each Python process of Spark has two children"
        assert parent not in children


@pytest.mark.parametrize(
    ("topology", "stops", "said"),
    [
        (Hanging, False, "process() raised CallTimedOut: the call has not returned for"),
        (Hanging, True, "it is stopped, as SIGSTOP does it"),
        (HangingHere, False, "process() raised CallTimedOut: the call has not returned for"),
    ],
)
def test_a_hang_fails_the_query_in_time_and_rows_are_exact_when_it_starts_again(spark, tmp_path, topology, stops, said):
    hangs = tmp_path / "hangs"
    hangs.touch()
    config = {"app.hangs": str(hangs), "app.stops": stops, "topology.subprocess.timeout.secs": 1}
    frame = read_stream(spark, topology, options={"config": json.dumps(config)})
    began = time.monotonic()
    with pytest.raises(Exception, match="component 'squares', task ") as raised:
        run(frame, tmp_path)
    assert time.monotonic() - began < 90
    assert said in str(raised.value)
    assert "topology.subprocess.timeout.secs" in str(raised.value)
    if not stops:
        assert "input:  tuple (7777,) of numbers.default; offset 7777" in str(raised.value)
        assert "spark_topologies.py" in str(raised.value)
    hangs.unlink()
    run(frame, tmp_path)
    rows = rows_in(spark, frame, tmp_path)
    assert sorted((row.n, row.square) for row in rows) == [(n, n * n) for n in range(TOTAL)]


@every_spark
def test_apply_runs_its_bolt_in_processes(spark):
    frame = spark.range(0, TOTAL, 1, 2).selectExpr("id AS n")
    rows = apply(frame, SquaredRows).collect()
    assert sorted((row.n, row.square) for row in rows) == [(n, n * n) for n in range(TOTAL)]
    assert len({row.pid for row in rows}) == 2 * len({row.parent for row in rows})


@every_spark
def test_one_placed_topology_over_another_in_a_stream(spark, tmp_path):
    source = read_stream(spark, Squared, maxOffsetsPerTrigger=8_000)
    above = source.selectExpr("square AS n", "pid AS own")
    frame = apply(above, SquaredRows, keep=["own"])
    run(frame, tmp_path)
    rows = rows_in(spark, frame, tmp_path)
    assert sorted(row.square for row in rows) == [n**4 for n in range(TOTAL)]
    assert all(row.n**2 == row.square for row in rows)
    assert not {row.pid for row in rows} & {row.own for row in rows}


def sink(writer, name, marks, **options):
    config = json.dumps({"app.marks": str(marks)})
    return writer.format("pystorm").options(topology=NAME + name, config=config, **options)


@pytest.mark.parametrize("streams", [False, pytest.param(True, marks=every_spark)])
def test_a_sink_has_the_same_effects_under_the_same_keys(spark, tmp_path, streams):
    spark.range(0, 400, 1, 1).selectExpr("id AS n").write.parquet(str(tmp_path / "in"))
    found = []
    for name in ("MarkedHere", "Marked"):
        marks = tmp_path / name
        marks.mkdir()
        if streams:
            frame = spark.readStream.schema("n long").parquet(str(tmp_path / "in"))
            run(frame, tmp_path / f"of {name}", lambda writer, name=name, marks=marks: sink(writer, name, marks))
        else:
            sink(spark.read.parquet(str(tmp_path / "in")).write, name, marks, key="n").mode("append").save()
        found.append(marks_of(marks))
    (here, _), (placed, by_parent) = found
    of_query = 2 if streams else 0  # the topology's name, and the query's id
    assert [(key.split("/")[of_query:], n) for key, n in placed] == [(key.split("/")[of_query:], n) for key, n in here]
    assert len({key for key, _ in placed}) == len(placed) == 400
    assert [len(children) for children in by_parent.values()] == [2]


@every_spark
def test_for_each_batch_uses_two_placed_topologies(spark, tmp_path):
    (tmp_path / "marks").mkdir()
    source = read_stream(spark, Squared, maxOffsetsPerTrigger=12_000)

    def both(batch, number):
        some = batch.where("n % 10 = 0").selectExpr("n")
        applied = apply(some, SquaredRows, use="squares", batch_id=number)
        applied.write.mode("overwrite").json(str(tmp_path / "squares" / str(number)))
        sink(some.write, "Marked", tmp_path / "marks", use="marks", key="n").mode("append").save()

    run(source, tmp_path, lambda writer: writer.foreachBatch(both))
    rows = spark.read.json(str(tmp_path / "squares/*")).collect()
    assert sorted((row.n, row.square) for row in rows) == [(n, n * n) for n in range(0, TOTAL, 10)]
    marks, by_parent = marks_of(tmp_path / "marks")
    assert [n for _, n in marks] == list(range(0, TOTAL, 10))
    # A part of a micro-batch may have rows for one child alone.
    assert max(map(len, by_parent.values())) >= 2
    assert max(map(len, families(rows).values())) >= 2


def test_processes_before_and_behind_a_cut(spark):
    options = {"topology.stage.partitions": 2}
    placed = read(spark, Cut, scope="cluster", options=options).collect()
    here = read(spark, CutHere, scope="cluster", options=options).collect()
    totals = {key: sum(n * n for n in range(key, TOTAL, 7)) for key in range(7)}
    for rows in (placed, here):
        found = Counter()
        for row in rows:
            found[row.key] += row.total
        assert found == totals
    assert len({row.pid for row in placed}) > len({row.pid for row in here})


@every_spark
def test_processes_around_a_bolt_with_states(spark, tmp_path):
    frame = read_stream(spark, Kept, scope="cluster", options={"topology.state.buckets": 2})
    run(frame, tmp_path)
    rows = rows_in(spark, frame, tmp_path)
    found = sorted((row.key, row.total) for row in rows)
    assert found == sorted((n % 7, n // 7 + 1) for n in range(TOTAL))
    assert all(len(children) == 2 for children in families(rows).values())


POINTS = ["initialize", "process", "behind an emit", "process_tick", "at some time"]


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_rows_are_exact_after_a_kill_at_a_drawn_moment(spark, tmp_path, seed):
    chance = random.Random(seed)
    victim, point = chance.choice(["child", "parent"]), chance.choice(POINTS)
    at = chance.uniform(0, 0.2) if point == "at some time" else chance.randrange(Fewer.total)
    processes = chance.randint(1, 2)
    flag = tmp_path / "not killed yet"
    flag.touch()
    frame = read_stream(
        spark,
        killed(processes * chance.randint(1, 2), processes),
        maxOffsetsPerTrigger=chance.choice([2_000, 3_000, Fewer.total]),
        options={"config": json.dumps({"app.fault": [str(flag), victim, point, at]})},
    )
    run(frame, tmp_path)
    assert not flag.exists()
    rows = rows_in(spark, frame, tmp_path)
    assert sorted((row.n, row.square) for row in rows) == [(n, n * n) for n in range(Fewer.total)]
