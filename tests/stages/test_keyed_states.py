"""Bolts that keep states, on Spark's state store."""

import contextlib
import copy
import os
import signal
import sys
import time
from random import Random

import pyspark
import pytest
from pyspark.sql import SparkSession

from cython_core.arrow.row_error import RowError
from cython_core.arrow.value_converter import Misfit
from pystorm_source import Grouping, Input, StatefulBolt, Topology, apply, await_query, explain, states_of
from pystorm_source.api.state_values import values_of
from pystorm_source.errors import OptionError
from pystorm_source.operator import cluster, state_needs
from pystorm_source.operator.state_needs import PROVIDER, ROCKS_DB
from tests.markers import is_first
from tests.stages.random_states import FIELDS, ODD, TYPES, exact_value, same
from tests.stages.test_stateful_bolt import TypedStates, Words

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(240),
]


@pytest.fixture
def rocks_db(spark):
    spark.conf.set(PROVIDER, ROCKS_DB)
    yield
    spark.conf.unset(PROVIDER)


class Job:
    """Words in files, counted by a stream that is started again with its checkpoint."""

    def __init__(self, spark, folder, words=40):
        self.spark, self.folder, self.words = spark, folder, words

    def put(self, start, end, files=1):
        rows = self.spark.range(start, end, 1, files).selectExpr(f"concat('w', id % {self.words}) AS word", "id AS n")
        rows.write.mode("append").parquet(str(self.folder / "in"))

    def start(self, made=Words, once=True, **options):
        source = self.spark.readStream.schema("word string, n long").option("maxFilesPerTrigger", 1)
        rows = apply(source.parquet(str(self.folder / "in")), made, scope="cluster", options=options)
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(self.folder / "checkpoint"))
        return (writer.trigger(availableNow=True) if once else writer).start(str(self.folder / "out"))

    def run(self, made=Words, **options):
        await_query(self.start(made, **options), exits=False)

    def failure(self, made, **options):
        """What is explained of a query that fails."""
        query = self.start(made, **options)
        with pytest.raises(pyspark.errors.StreamingQueryException):
            query.awaitTermination()
        return str(explain(query))

    def states(self):
        """The rows of its checkpoint."""
        reader = self.spark.read.format("statestore").option("stateVarName", "count")
        return states_of(reader.load(str(self.folder / "checkpoint"))).collect()

    @property
    def counts(self):
        """Word → its counts, in order: each number once, if each tuple counted once."""
        return self.counts_of("out")

    def counts_of(self, files):
        found = {}
        for row in self.spark.read.parquet(str(self.folder / files)).collect():
            found.setdefault(row.word, []).append(row.count_)
        return {word: sorted(counts) for word, counts in found.items()}


class Renamed(Topology):
    """As Words; ``count`` is a method of rows in Python."""

    config = Words.config

    class Count(StatefulBolt):
        outputs = ["word string", "count_ long"]
        state_fields = ["total long", "last array<long>"]

        def initialize(self, conf, context):
            self.marker = conf.get("kill.marker")

        def process(self, tup):
            self.state.total = (self.state.total or 0) + 1
            self.state.last = [*(self.state.last or []), tup.values.n][-2:]
            self.emit([tup.values.word, self.state.total])
            if self.marker and tup.values.n == 777 and is_first(self.marker):
                os.kill(os.getpid(), signal.SIGKILL)

    rows = Input.spec(["word string", "n long"])
    count = Count.spec(inputs={rows: Grouping.fields("word")})


def each_once(numbers):
    return {f"w{word}": list(range(1, 1 + len(range(word, numbers, 40)))) for word in range(40)}


@pytest.mark.every_spark
def test_each_tuple_counts_once_over_a_killed_task_a_restart_and_a_repartitioning(spark, tmp_path, caplog):
    """Whatever the shuffle partitions are. And the session gets the state store that is needed, if it has none."""
    job, marker = Job(spark, tmp_path), tmp_path / "marker"
    spark.conf.unset(PROVIDER)
    before = spark.conf.get("spark.sql.shuffle.partitions")

    def run(start, end, partitions):
        job.put(start, end, files=2)
        spark.conf.set("spark.sql.shuffle.partitions", partitions)
        try:
            with caplog.at_level("INFO", logger="pystorm.operator"):
                job.run(Renamed, config={"kill.marker": str(marker)})
        finally:
            spark.conf.set("spark.sql.shuffle.partitions", before)
            spark.conf.unset(PROVIDER)

    run(0, 1000, "2")
    assert marker.exists()
    run(1000, 1300, "5")
    assert job.counts == each_once(1300)
    assert f"set {PROVIDER}={ROCKS_DB}" in caplog.text
    if not isinstance(spark, SparkSession) or not hasattr(SparkSession, "_streamingCheckpointManager"):
        return  # Spark 4.2 has it, in a classic session
    spark.conf.set(PROVIDER, ROCKS_DB)
    spark._streamingCheckpointManager.repartition(str(tmp_path / "checkpoint"), 5)
    run(1300, 1500, "2")
    # The repartitioning is a micro-batch that the sink's own log does not have, and is not read without it.
    assert job.counts_of("out/*.parquet") == each_once(1500)
    states = spark.read.format("statestore").option("stateVarName", "count").load(str(tmp_path / "checkpoint"))
    assert {row.key.word: row.state.total for row in job.states()} == {
        word: len(counts) for word, counts in each_once(1500).items()
    }
    assert {row.partition_id for row in states.collect()} > {0, 1}


def test_tuples_that_fail_count_once_and_bolts_behind_need_no_shuffle(spark, rocks_db, tmp_path):
    job = Job(spark, tmp_path)
    job.put(0, 200)
    query = job.start()
    await_query(query, exits=False)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted((row.word, row["count"]) for row in rows) == sorted(
        (word, count) for word, counts in each_once(200).items() for count in counts
    )
    assert {row.key.word: row.state["count"] for row in job.states()} == dict.fromkeys(each_once(200), 5)


@pytest.mark.campaign
def test_states_come_back_as_tuples_have_their_values(spark, rocks_db, tmp_path):
    """Times in UTC, structs and maps as dicts; every NaN is one key, and so are both zeros."""
    rows = "(VALUES (0.0D, 1), (CAST('NaN' AS DOUBLE), 2), (-0.0D, 3), (CAST('NaN' AS DOUBLE), 4)) AS t(key, n)"
    one = spark.sql(f"SELECT key, TIMESTAMP '2024-07-01 03:00:00' AS at FROM {rows}").coalesce(1)
    for _ in range(2):
        one.write.mode("append").parquet(str(tmp_path / "in"))
    source = spark.readStream.schema("key double, at timestamp").option("maxFilesPerTrigger", 1)
    stream = apply(source.parquet(str(tmp_path / "in")), TypedStates, scope="cluster")
    writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    await_query(writer.trigger(availableNow=True).start(str(tmp_path / "out")), exits=False)
    found = sorted(row.kept for row in spark.read.parquet(str(tmp_path / "out")).collect())
    at = "2024-07-01 03:00:00+00:00"
    kept = [f"{n} {at} {n} {at} {{'a': {n}}}" for n in (1, 2, 3)]
    assert found == sorted(2 * ["None None None None", *kept])


@pytest.mark.campaign
def test_another_number_of_buckets_is_refused(spark, rocks_db, tmp_path):
    job = Job(spark, tmp_path)
    job.put(0, 200)
    job.run(Renamed)
    job.put(200, 400)
    assert "set topology.state.buckets=64" in job.failure(Renamed, **{"topology.state.buckets": 32})
    job.run(Renamed)
    assert job.counts == each_once(400)


CASES = 400


class KeepAll(StatefulBolt):
    """Of each key a field with a value that its number gives: set in the first micro-batch, looked at and replaced by
    an odd one in the second, looked at in the third."""

    outputs = ["n long", "fault string"]
    state_fields = ["kept boolean", *(f"{name} {ddl}" for name, ddl in FIELDS.items())]

    def process(self, tup):
        n = tup.values.n
        name = sorted(FIELDS)[n % len(FIELDS)]
        values = [exact_value(Random(n), TYPES[name]), ODD[n * 7 % len(ODD)]]
        for number, value in enumerate(values[: tup.values.round]):
            try:
                wanted = values_of(TYPES[name]).of(copy.deepcopy(value)) if value is not None else None
            except Misfit:
                wanted = values[0]
            if number == tup.values.round - 1 and not same(getattr(self.state, name), wanted):
                self.emit([n, f"{name}: {value!r} is {getattr(self.state, name)!r}"])
        if tup.values.round < len(values):
            self.state.kept = True  # a state whose values are all None is none
            with contextlib.suppress(RowError):
                setattr(self.state, name, copy.deepcopy(values[tup.values.round]))
        else:
            self.emit([n, ""])


class AllKept(Topology):
    rows = Input.spec(["n long", "round int"])
    keep = KeepAll.spec(inputs={rows: Grouping.fields("n")})


def test_a_state_has_in_the_next_micro_batch_what_it_had_in_the_last(spark, rocks_db, tmp_path):
    """Values of every type, exact and odd ones."""
    for number in range(3):
        rows = spark.range(0, CASES, 1, 1).selectExpr("id AS n", f"{number} AS round")
        rows.write.mode("append").parquet(str(tmp_path / "in"))
    source = spark.readStream.schema("n long, round int").option("maxFilesPerTrigger", 1)
    stream = apply(
        source.parquet(str(tmp_path / "in")), AllKept, scope="cluster", options={"topology.state.buckets": 2}
    )
    writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    await_query(writer.trigger(availableNow=True).start(str(tmp_path / "out")), exits=False)
    found = [tuple(row) for row in spark.read.parquet(str(tmp_path / "out")).collect()]
    assert [each for each in found if each[1]] == []
    assert len(found) == CASES


def test_pages_that_split_lose_no_key_over_a_killed_task_and_a_restart(spark, rocks_db, tmp_path):
    """Two buckets of 300 keys at first, and of 2,000 in the end: some 2 pages, then 16."""
    job, marker = Job(spark, tmp_path, words=600), tmp_path / "marker"
    options = {"topology.state.buckets": 2, "config": {"kill.marker": str(marker)}}
    job.put(0, 1000, files=2)
    job.run(Renamed, **options)
    assert marker.exists()
    job.words = 4000
    job.put(1000, 6000, files=2)
    job.run(Renamed, **options)
    numbers = {}
    for n in range(6000):
        numbers.setdefault(f"w{n % (600 if n < 1000 else 4000)}", []).append(n)
    assert job.counts == {word: list(range(1, 1 + len(each))) for word, each in numbers.items()}
    kept = job.states()
    assert {row.key.word: row.state.total for row in kept} == {word: len(each) for word, each in numbers.items()}
    assert all({*row.state["last"]} <= {*numbers[row.key.word]} for row in kept)
    assert len(kept) == 4000
    pages = spark.read.format("statestore").option("stateVarName", "count").load(str(tmp_path / "checkpoint")).count()
    assert 2 * 8 < pages < 2 * 24


NO_DATA_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"


class Expiring(Topology):
    class Count(Renamed.Count):
        state_ttl_secs = 3600

    config = Words.config
    rows = Input.spec(["word string", "n long"])
    count = Count.spec(inputs={rows: Grouping.fields("word")})


def test_states_that_expire_are_entries_and_their_checkpoint_is_no_other_bolts(spark, rocks_db, tmp_path):
    """Nor is that of an older version, which had entries for all."""
    job = Job(spark, tmp_path)
    spark.conf.set(NO_DATA_BATCHES, "false")
    try:
        job.put(0, 200)
        job.run(Expiring)
        job.put(200, 400)
        job.run(Expiring)
        assert job.counts == each_once(400)
        assert {row.key.word: row.state.total for row in job.states()} == dict.fromkeys(each_once(400), 10)
        job.put(400, 600)
        assert "if an older pystorm-source wrote the checkpoint" in job.failure(Renamed)
    finally:
        spark.conf.unset(NO_DATA_BATCHES)


class Wider(Topology):
    class Count(Renamed.Count):
        state_fields = ["total long", "last array<long>", "first long"]

    rows = Input.spec(["word string", "n long"])
    count = Count.spec(inputs={rows: Grouping.fields("word")})


@pytest.mark.campaign
def test_other_fields_of_a_state_are_explained(spark, rocks_db, tmp_path):
    job = Job(spark, tmp_path)
    job.put(0, 200)
    job.run(Renamed)
    job.put(200, 400)
    assert "remedy: the checkpoint has states of other fields" in job.failure(Wider)


def test_another_store_than_rocks_db_is_refused_with_all_that_is_missing(spark, tmp_path, monkeypatch):
    job = Job(spark, tmp_path)
    job.put(0, 1)
    other = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    spark.conf.set(PROVIDER, other)
    try:
        with pytest.raises(OptionError, match=rf"spark\.conf\.set\('{PROVIDER}'.*Given: {PROVIDER}='{other}'"):
            job.start(Renamed)
        assert spark.conf.get(PROVIDER) == other
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "google.protobuf", None)
            patch.setattr(state_needs, "states_take_rows", lambda: False)
            patch.setitem(sys.modules, "pandas", None)
            with pytest.raises(OptionError) as raised:
                job.start(Renamed)
    finally:
        spark.conf.unset(PROVIDER)
    said = str(raised.value)
    assert "pip install 'protobuf>=6.33.5' pandas, here and where Spark's tasks run; and spark.conf.set(" in said
    assert "no protobuf" in said and "no pandas" in said


def test_in_a_batch_query_each_key_begins_anew(spark, rocks_db):
    df = spark.range(0, 80, 1, 2).selectExpr("concat('w', id % 40) AS word", "id AS n")
    for _ in range(2):
        found = apply(df, Renamed, scope="cluster").collect()
        assert sorted((row.word, row.count_) for row in found) == sorted(
            (word, count) for word, counts in each_once(80).items() for count in counts
        )


class Quiet(StatefulBolt):
    """How many tuples a word had, when it had none for two seconds."""

    outputs = ["word string", "total long"]
    state_fields = ["total long"]

    def initialize(self, conf, context):
        self.marker = conf.get("kill.marker")

    def process(self, tup):
        self.state.total = (self.state.total or 0) + 1
        self.set_timer(2)

    def process_timer(self, key):
        self.emit([key.word, self.state.total])
        self.state.clear()
        if self.marker and key.word == "w7" and is_first(self.marker):
            os.kill(os.getpid(), signal.SIGKILL)


class Quieted(Topology):
    rows = Input.spec(["word string", "n long"])
    quiet = Quiet.spec(inputs={rows: Grouping.fields("word")})


@pytest.mark.every_spark
def test_timers_of_keys_outlive_the_query_and_a_killed_task(spark, rocks_db, tmp_path, caplog):
    job, marker = Job(spark, tmp_path), tmp_path / "marker"

    def totals():
        found = {}
        for row in spark.read.schema("word string, total long").parquet(str(tmp_path / "out")).collect():
            found[row.word] = found.get(row.word, 0) + row.total
        return found

    job.put(0, 400, files=2)
    spark.conf.set(NO_DATA_BATCHES, "false")
    try:
        with caplog.at_level("WARNING", logger="pystorm.operator"):
            job.run(Quieted)
        assert "never-ends" not in caplog.text
    finally:
        spark.conf.unset(NO_DATA_BATCHES)
    job.put(400, 480)
    cluster._said.clear()
    query = job.start(Quieted, once=False, config={"kill.marker": str(marker)})
    try:
        deadline = time.monotonic() + 120
        while sum(totals().values()) < 480 and query.isActive and time.monotonic() < deadline:
            time.sleep(0.2)
    finally:
        query.stop()
    assert "availableNow" in caplog.text
    assert marker.exists()
    assert totals() == {f"w{word}": 12 for word in range(40)}


def test_in_a_batch_query_no_timer_is_due(spark, rocks_db):
    df = spark.range(0, 80, 1, 2).selectExpr("concat('w', id % 40) AS word", "id AS n")
    assert apply(df, Quieted, scope="cluster").collect() == []
