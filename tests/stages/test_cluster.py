"""``scope="cluster"`` on a real Spark."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from pystorm_source import Bolt, Grouping, Input, Topology, apply, await_query, read, read_stream
from pystorm_source.errors import ArgumentError, OptionError, TopologyError
from pystorm_source.plan import compile_plan
from pystorm_source.spouts import FilesSpout
from pystorm_source.stages.salts import salts
from pystorm_source.testing import run_topology
from tests.markers import is_first
from tests.sizes import sized
from tests.stages.random_topologies import Step, Sums, random_topology
from tests.stages.test_run_stages import Control, Joined
from tests.states.redis_process import redis_process

pytestmark = pytest.mark.spark

SEEDS = [9, 31, 6, 77, 109][: sized(5)]


def read_all(spark, made, partitions):
    """(Component, stream) → its rows, by one read of all open streams."""
    open_streams = compile_plan(made).open_streams
    options = {"topology.stage.partitions": partitions}
    several = len(open_streams) > 1
    df = read(spark, made, scope="cluster", options=options, streams="all" if several else "one")
    found = {}
    for row in df.collect():
        values = row.asDict()
        of = (values.pop("_component"), values.pop("_stream")) if several else ("named", "default")
        fields = next(stream.fields for component, stream in open_streams if (component.name, stream.name) == of)
        found.setdefault(of, Counter())[tuple(values[field] for field in fields)] += 1
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_rows_as_in_one_task(spark, seed):
    made = random_topology(seed)
    expected = run_topology(made, together=True)._left
    expected = {of: Counter(rows) for of, rows in expected.items() if rows}
    assert read_all(spark, made, 3) == expected


@pytest.mark.every_spark
def test_streams_of_two_spouts_meet_by_key_and_by_control_stream(spark):
    options = {"topology.stage.partitions": 3}
    joined = read(spark, Joined, scope="cluster", options=options)
    assert sorted(joined.collect()) == [(n, f"name{n}", f"city{n}") for n in range(10, 20)]
    scaled = read(spark, Control, scope="cluster", options=options).collect()
    assert sorted(row.amount for row in scaled) == [2.0 * n for n in range(40)]


class Words(Topology):
    rows = Input.spec(["key string", "n long"])
    sums = Sums.spec(inputs={rows: Grouping.fields("key")})
    stepped = Step.spec(inputs=[sums])


class Total(Topology):
    rows = Input.spec(["key string", "n long"])
    step = Step.spec(inputs=[rows])
    sums = Sums.spec(inputs={step: Grouping.fields("key")})
    every = Sums.spec(inputs={sums: Grouping.GLOBAL})


def test_behind_a_dataframe_a_key_is_in_one_task(spark):
    """Also if the topology begins with the shuffle, where no operator is needed before it."""
    df = spark.range(0, 1_000, 1, 4).selectExpr("id AS n", "string(id % 7) AS key", "id AS other")
    words = apply(df, Words, scope="cluster")
    assert words.columns == ["key", "n"]
    sums = {str(key): sum(range(key, 1_000, 7)) for key in range(7)}
    expected = sorted((f"{key}{n % 3}", n + 1) for key, n in sums.items())
    assert sorted(words.collect()) == expected
    total = apply(df, Total, scope="cluster", options={"topology.stage.partitions": 5}).collect()
    assert sum(row.n for row in total) == sum(range(1_000)) + 1_000


def test_a_stream_goes_on_behind_its_checkpoint_whatever_the_partitions_are(spark, tmp_path):
    """Stages keep nothing: neither spark.sql.shuffle.partitions nor their own number is part of the checkpoint."""
    source = spark.readStream.schema("key string, n long").option("maxFilesPerTrigger", 1)
    for run in (1, 2):
        rows = [(f"k{n % 5}", n) for n in range(200 * run)]
        spark.createDataFrame(rows, "key string, n long").coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
        spark.conf.set("spark.sql.shuffle.partitions", str(run + 2))
        try:
            stream = apply(
                source.parquet(str(tmp_path / "in")),
                Words,
                scope="cluster",
                options={"topology.stage.partitions": 2 * run},
            )
            query = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            await_query(query.format("parquet").trigger(availableNow=True).start(str(tmp_path / "out")), exits=False)
        finally:
            spark.conf.set("spark.sql.shuffle.partitions", "2")
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sum(row.n - 1 for row in found) == sum(range(200)) + sum(range(400))
    assert len(found) == 10


def test_a_stream_of_a_source(spark):
    query = (
        read_stream(spark, Joined, scope="cluster")
        .writeStream.format("memory")
        .queryName("cut_stream")
        .trigger(availableNow=True)
        .start()
    )
    await_query(query, exits=False)
    assert spark.table("cut_stream").count() == 10


@pytest.mark.every_spark
def test_each_task_of_a_stage_has_a_number_that_leads_to_it(spark):
    from pyspark.sql import functions as F

    for partitions in (1, 2, 7, 50):
        rows = list(enumerate(salts(partitions)))
        placed = spark.createDataFrame(rows, "place int, salt int").repartition(partitions, "salt")
        found = placed.withColumn("at", F.spark_partition_id()).collect()
        assert [(row.place, row.at) for row in found if row.place != row.at] == []


class DiesOnce(Step):
    """Kills its own process at a tuple, once."""

    def initialize(self, conf, context):
        self.marker = conf["kill.marker"]

    def process(self, tup):
        super().process(tup)
        if tup.values.n == 777 and is_first(self.marker):
            os.kill(os.getpid(), signal.SIGKILL)


class Dies(Topology):
    """The first stage dies at a row of its own, the second one at a sum."""

    rows = Input.spec(["key string", "n long"])
    before = DiesOnce.spec(inputs=[rows])
    sums = Sums.spec(inputs={before: Grouping.fields("key")})
    after = Step.spec(inputs=[sums])


class DiesBehind(Topology):
    rows = Input.spec(["key string", "n long"])
    before = Step.spec(inputs=[rows])
    after = DiesOnce.spec(inputs={before: Grouping.fields("key")})


@pytest.mark.parametrize("made", [Dies, DiesBehind])
def test_a_killed_task_of_any_stage_is_run_again_and_the_rows_are_exact(spark, tmp_path, made):
    df = spark.range(0, 2_000, 1, 2).selectExpr("string(id % 7) AS key", "id AS n")
    marker = tmp_path / "marker"
    found = apply(df, made, scope="cluster", config={"kill.marker": str(marker)}).collect()
    assert marker.exists()
    given = [(row.key, row.n) for row in df.collect()]
    expected = run_topology(made, config={"kill.marker": str(marker)}, rows=given)._left["after", "default"]
    assert Counter(map(tuple, found)) == Counter(expected)


@pytest.mark.campaign  # three more JVMs
def test_stages_meet_over_several_executors(tmp_path):
    root, seeds = Path(__file__).resolve().parents[2], ["9"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.stages.cluster_job", "local-cluster[2,1,1024]", *seeds],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    for seed in seeds:
        rows = run_topology(random_topology(int(seed)), together=True)._left["named", "default"]
        assert found[seed] == sorted(json.dumps(list(row)) for row in rows)


class Limited(Bolt):
    """Takes permits, behind a cut, and reads a configuration of its own."""

    outputs = ["text string"]

    def initialize(self, conf, context):
        self.word = conf["own.word"]

    def process(self, tup):
        with self.limit("api"):
            self.emit([f"{self.word} {tup.values.line}"])


class LimitedLines(Topology):
    lines = FilesSpout.spec()
    limited = Limited.spec(inputs={lines: Grouping.fields("line")}, config={"own.word": "line"})


class LimitedAgain(Bolt):
    outputs = ["text string"]

    def process(self, tup):
        with self.limit("api"):
            self.emit([tup.values.text])


class LimitedAtOnce(Topology):
    lines = FilesSpout.spec()
    limited = Limited.spec(inputs=[lines], config={"own.word": "line"})
    again = LimitedAgain.spec(inputs={limited: Grouping.GLOBAL})


def test_options_reach_the_stage_that_they_are_for(spark, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a\nb\nc\n")
    given = {
        "path": str(tmp_path / "in"),
        "config": {"topology.rate.limit": {"api": "100/s"}},
        "maxOffsetsPerTrigger": 2,
        "options": {"topology.stage.partitions": 2, "files.encoding": "utf-8"},
    }
    stream = read_stream(spark, LimitedLines, scope="cluster", **given)
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).format("parquet")
    query = writer.trigger(availableNow=True).start(str(tmp_path / "out"))
    await_query(query, exits=False)
    assert len([each for each in query.recentProgress if each["numInputRows"]]) > 1, "maxOffsetsPerTrigger is kept"
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(row.text for row in rows) == ["line a", "line b", "line c"]
    del given["maxOffsetsPerTrigger"]
    assert read(spark, LimitedLines, scope="cluster", **given).count() == 3
    with pytest.raises(TopologyError, match="'limited' takes permits"):
        read(spark, LimitedAtOnce, scope="cluster", **given)
    (tmp_path / "redis").mkdir()
    with redis_process(tmp_path / "redis") as redis:
        shared = {**given, "options": {**given["options"], "topology.rate.limit.redis": redis.url}}
        assert read(spark, LimitedAtOnce, scope="cluster", **shared).count() == 3
    with pytest.raises(OptionError, match=r"files\.encoding"):
        read(spark, LimitedLines, scope="cluster", path=str(tmp_path / "in"), options={"files.encodng": "utf-8"})


class TickedSums(Sums):
    config = {"topology.tick.tuple.freq.secs": 5}


class OrderedSums(Sums):
    tuples_between_batches = 10


@pytest.mark.parametrize(("cls", "named"), [(Sums, None), (TickedSums, "ticks"), (OrderedSums, "the order of tuples")])
def test_rows_that_differ_when_a_stage_is_run_again_are_warned_of(spark, caplog, cls, named):
    class Twice(Topology):
        rows = Input.spec(["key string", "n long"])
        first = cls.spec(inputs={rows: Grouping.fields("key")})
        second = Sums.spec(inputs={first: Grouping.GLOBAL})

    df = spark.range(3).selectExpr("string(id) AS key", "id AS n")
    key = "spark.sql.shuffle.orderIndependentChecksum.enabled"
    before = spark.conf.get(key)
    for compares in ("true", "false"):
        spark.conf.set(key, compares)
        try:
            apply(df, Twice, scope="cluster")
        finally:
            spark.conf.set(key, before)
        said = [record.getMessage() for record in caplog.records if "stage-differs" in record.getMessage()]
        assert [named in text for text in said] == ([True] if named and compares == "false" else [])


class CountsInSelf(Bolt):
    outputs = ["key string", "n long"]

    def initialize(self, conf, context):
        self.counts = Counter()

    def process(self, tup):
        self.counts[tup.values.key] += 1
        self.emit([tup.values.key, self.counts[tup.values.key]])


def test_a_bolt_that_counts_in_an_attribute_is_told_how_to_keep_a_state(spark, caplog):
    class Counts(Topology):
        rows = Input.spec(["key string", "n long"])
        count = CountsInSelf.spec(inputs={rows: Grouping.fields("key")})

    apply(spark.range(3).selectExpr("string(id) AS key", "id AS n"), Counts, scope="cluster")
    (said,) = [record.getMessage() for record in caplog.records if "state-in-self" in record.getMessage()]
    assert "counts in self.counts" in said and "derive it from StatefulBolt" in said


def test_what_is_lost_behind_a_shuffle_is_refused(spark):
    with pytest.raises(OptionError, match="includeMetadata"):
        read(spark, Joined, scope="cluster", includeMetadata=True)
    with pytest.raises(OptionError, match=r"topology\.dead\.letter\.path"):
        read(spark, Joined, scope="cluster", options={"topology.dead.letter": "stream"})
    with pytest.raises(ArgumentError, match="scope is 'task'"):
        read(spark, Joined, scope="everywhere")
    df = spark.range(3).selectExpr("string(id) AS key", "id AS n")
    with pytest.raises(ArgumentError, match="keep follows a row"):
        apply(df, Words, scope="cluster", keep="*")
    with pytest.raises(TopologyError, match=r"read with scope='cluster'"):
        read(spark, Joined)
