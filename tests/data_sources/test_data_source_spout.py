"""Data sources that were written for Spark, as spouts: behind a journal as Spark calls it, and in one query."""

import time

import pyarrow as pa
import pytest
from pyspark.sql import Row
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, SimpleDataSourceStreamReader

from pystorm_source import RetryLater, Topology, read_stream
from pystorm_source.data_sources import DataSourceSpout
from pystorm_source.data_sources.ranges import Ranges
from pystorm_source.errors import TopologyError, TupleFailed
from pystorm_source.testing import run_topology
from tests.data_sources import sources
from tests.source.journal_world import numbers, unfinished
from tests.source.spark_calls import Checkpoint, Run

COLUMNS = ["n", "text"]
KINDS = ["PartsTopology", "LimitedTopology", "SimpleTopology"]


class World:
    def __init__(self, folder):
        self.folder = folder
        self.fill(0)

    def fill(self, count):
        (self.folder / "count").write_text(str(count))

    def log(self, word):
        path = self.folder / "log"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line.split()[1] for line in lines if line.startswith(f"{word} ")]


@pytest.fixture
def world(tmp_path):
    (tmp_path / "world").mkdir()
    return World(tmp_path / "world")


def run(world, topology, checkpoint, **more):
    options = {
        "topology": f"tests.data_sources.sources:{topology}",
        "path": str(world.folder),
        "journal.path": str(world.folder.parent / "journal"),
        "batch.target.millis": "150",
        "maxOffsetsPerTrigger": "9",
    }
    return Run(options | more, checkpoint)


def until(found, checkpoint, count, most=60):
    for _ in range(most):
        if len(numbers(checkpoint)) >= count:
            return
        found.trigger()
    raise AssertionError(f"{numbers(checkpoint)} after {most} micro-batches")


@pytest.mark.parametrize("topology", KINDS)
def test_each_row_comes_once_over_restarts_and_what_is_safe_is_committed(world, topology):
    world.fill(31)
    checkpoint = Checkpoint()
    found = run(world, topology, checkpoint)
    until(found, checkpoint, 31)
    world.fill(45)
    until(found, checkpoint, 45)
    found.reader.stop()
    unfinished(checkpoint)
    again = run(world, topology, checkpoint)  # the last micro-batch has the rows that it had
    world.fill(50)
    until(again, checkpoint, 50)
    assert sorted(numbers(checkpoint)) == list(range(50))
    commits = [int(n) for n in world.log("commit")]
    assert commits == sorted(set(commits))
    assert commits[-1] == 50 or (topology != "SimpleTopology" and commits[-1] >= 45)


def test_a_source_that_is_told_a_limit_is(world):
    world.fill(25)
    config = {"path": str(world.folder)}
    assert [row[0] for row in run_topology(sources.LimitedTopology, config=config).rows("rows")] == list(range(25))
    assert set(world.log("limit")) == {"ReadAllAvailable"}


def test_a_source_that_needs_a_newer_spark_says_so(world, monkeypatch):
    monkeypatch.delattr(DataSourceStreamReader, "getDefaultReadLimit", raising=False)  # as Spark 4.0 and 4.1 have it
    ranges = Ranges(sources.LimitedParts({"PATH": str(world.folder)}), COLUMNS)
    with pytest.raises(TopologyError, match=r"LimitedParts.latestOffset takes a start and a limit.* pyspark>=4.2"):
        ranges.read(None, 10)


@pytest.mark.parametrize("reader", [sources.Parts, sources.LimitedParts])
@pytest.mark.parametrize("limit", [1, 3, 7, 8, 100])
def test_a_new_process_goes_on_behind_any_page(world, reader, limit):
    world.fill(40)
    options = {"PATH": str(world.folder)}
    going_on, rows, cursor, has_more = Ranges(reader(options), COLUMNS), [], None, True
    while has_more:
        page, following, has_more = Ranges(reader(options), COLUMNS).read(cursor, limit)
        assert (page, following, has_more) == going_on.read(cursor, limit)
        assert len(page) <= limit
        rows += page
        cursor = following
    assert rows == [(n, str(n)) for n in range(40)]
    assert cursor == {"offset": {"n": 40}}


def test_a_partition_is_opened_once_though_it_gives_several_pages(world):
    world.fill(21)
    config = {"path": str(world.folder)}
    assert len(run_topology(sources.PartsTopology, config=config).rows("rows")) == 21
    assert world.log("read") == ["0", "7", "14"]


def test_a_source_that_always_has_more_is_asked_once_a_page(world):
    class Endless(sources.Parts):
        asked = 0

        def latestOffset(self):
            self.asked += 3
            return {"n": self.asked}

    ranges = Ranges(Endless({"PATH": str(world.folder)}), COLUMNS)
    rows, cursor, has_more = ranges.read(None, 1000)
    assert ([row[0] for row in rows], has_more) == ([0, 1, 2], True)
    assert [row[0] for row in ranges.read(cursor, 1000)[0]] == [3, 4, 5]


def test_no_offset_is_committed_whose_rows_are_still_being_read(world):
    world.fill(20)
    ranges = Ranges(sources.Parts({"PATH": str(world.folder)}), COLUMNS)
    cursor = None
    for _ in range(4):
        _, cursor, _ = ranges.read(cursor, 5)
        ranges.commit(cursor)
    assert world.log("commit") == ["0"]
    ranges.commit(ranges.read(cursor, 5)[1])
    assert world.log("commit") == ["0", "20"]


@pytest.mark.parametrize("spout", [sources.PartsSpout, sources.LimitedSpout])
def test_no_offset_is_committed_that_only_an_attempt_has_reached_which_does_not_count(world, spout):
    world.fill(10)
    made = spout()
    made.initialize({"path": str(world.folder)}, {})
    made.emit = lambda values: None
    made._pystorm_resume(None)
    made.next_tuple()
    notes = made._pystorm_notes()
    for _ in range(4):  # to the end of the range
        made.next_tuple()
    made._pystorm_batch_ended(False)
    made._pystorm_resume(notes)
    made.next_tuple()
    made._pystorm_batch_ended(True)
    assert world.log("commit") == ["0"]


@pytest.mark.parametrize("spout", [sources.PartsSpout, sources.SimpleSpout])
def test_columns_are_those_of_the_source(spout):
    assert spout.outputs == ["n int not null", "text string"]


def spout_of(columns, rows, following=None):
    """The spout of a source that gives these rows once."""

    class Once(SimpleDataSourceStreamReader):
        def initialOffset(self):
            return {"n": 0}

        def read(self, start):
            return iter(rows if start == {"n": 0} else []), following or {"n": 1}

    class OnceSource(DataSource):
        def schema(self):
            return self.options.get("columns", columns)

        def simpleStreamReader(self, schema):
            return Once()

    class OnceSpout(DataSourceSpout):
        source = OnceSource

    return OnceSpout


def rows_of(spout):
    return run_topology(type("Reading", (Topology,), {"rows": spout.spec()})).rows("rows")


def test_named_rows_and_batches_fill_the_columns_of_their_names_as_in_spark():
    rows = [
        Row(text="a", n=1),
        Row(n=2, text="b"),
        pa.RecordBatch.from_pydict({"text": ["c"], "n": [3]}),
        Row(4, "d"),
        (5, "e"),
    ]
    expected = [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")]
    assert rows_of(spout_of("n int, text string", rows)) == expected

    class Renamed(spout_of("n int, text string", rows)):
        outputs = ["number int", "words string"]

    assert rows_of(Renamed) == expected


@pytest.mark.parametrize("row", [Row(n=1, words="a"), pa.RecordBatch.from_pydict({"n": [1], "words": ["a"]})])
def test_rows_of_other_names_are_refused(row):
    with pytest.raises(TupleFailed, match=r"PYSTORM_SCHEMA_MISMATCH.*\['n', 'text'\]. Given: \['n', 'words'\]"):
        rows_of(spout_of("n int, text string", [row]))


def test_a_simple_reader_whose_offset_stands_still_is_refused():
    with pytest.raises(TupleFailed, match=r"Once.read has returned 1 rows, and the offset from which it"):
        rows_of(spout_of("n int", [(1,)], following={"n": 0}))


def test_a_subclass_with_other_options_or_another_source_has_other_columns():
    base = spout_of("n int, text string", [("a", 1)])

    class Same(base):
        page_rows = 10

    class Swapped(base):
        source_options = {"columns": "text string, n int"}

    class Other(base):
        source = spout_of("text string, m int", []).source

    class Named(base):
        source_options = {"columns": "text string, n int"}
        outputs = ["words string", "number int"]

    class Derived(Named):
        source_options = {"columns": "text string, n long"}

    assert Same.outputs == ["n int", "text string"]
    assert Swapped.outputs == ["text string", "n int"]
    assert Other.outputs == ["text string", "m int"]
    assert Named.outputs == Derived.outputs == ["words string", "number int"]
    assert rows_of(Swapped) == [("a", 1)]


def test_a_busy_source_is_waited_for(world):
    class Busy(SimpleDataSourceStreamReader):
        calls = 0

        def initialOffset(self):
            return {}

        def read(self, start):
            Busy.calls += 1
            if Busy.calls < 3:
                raise RetryLater(0.01, "busy")
            return iter([(1,)] if not start else []), {"read": True}

    class BusySource(DataSource):
        def schema(self):
            return "n int"

        def simpleStreamReader(self, schema):
            return Busy()

    class BusySpout(DataSourceSpout):
        source = BusySource

    class Asking(Topology):
        rows = BusySpout.spec()

    assert run_topology(Asking).rows("rows") == [(1,)]


@pytest.mark.parametrize("at", range(9))
@pytest.mark.parametrize("limit", [1, 3, 100])
def test_a_partition_that_breaks_off_is_read_anew(world, at, limit):
    world.fill(9)

    class Breaks(sources.Parts):
        breaks = True

        def read(self, partition):
            for n in range(partition.first, partition.end):
                if n == at and self.breaks:
                    self.breaks = False
                    raise ConnectionError("gone")
                yield n, str(n)

    ranges = Ranges(Breaks({"PATH": str(world.folder)}), COLUMNS)
    rows, cursor, has_more = [], None, True
    while has_more:
        try:
            page, cursor, has_more = ranges.read(cursor, limit)
        except ConnectionError:  # a spout with exit_on_exception = False asks again
            continue
        rows += page
    assert [n for n, _ in rows] == list(range(9))


def test_a_partition_that_raises_what_is_worth_a_retry_is_read_again():
    class Parts(DataSourceStreamReader):
        refused = 2

        def initialOffset(self):
            return {"n": 0}

        def latestOffset(self):
            return {"n": 4}

        def partitions(self, start, end):
            return [sources.Part(start["n"], end["n"])] if start != end else []

        def read(self, partition):
            for n in range(partition.first, partition.end):
                if n == 2 and Parts.refused:
                    Parts.refused -= 1
                    raise ConnectionError("gone")
                yield (n,)

    class PartsSource(DataSource):
        def schema(self):
            return "n int"

        def streamReader(self, schema):
            return Parts()

    class PartsSpout(DataSourceSpout):
        source = PartsSource
        page_rows = 3

    class Asking(Topology):
        config = {"topology.retry.on": {"ConnectionError": "retry"}}
        rows = PartsSpout.spec()

    assert run_topology(Asking).rows("rows") == [(n,) for n in range(4)]


def test_what_is_no_streaming_source_is_refused():
    class Batch(DataSource):
        def schema(self):
            return "n int"

    class BatchSpout(DataSourceSpout):
        source = Batch

    with pytest.raises(TopologyError, match="Batch cannot be read as a stream"):
        BatchSpout().read(None, 1)
    with pytest.raises(TopologyError, match="must set `source` to a class of pyspark"):

        class Other(DataSourceSpout):
            source = dict

    with pytest.raises(TopologyError, match="must set `source`"):
        DataSourceSpout().read(None, 1)


@pytest.mark.every_spark
@pytest.mark.spark
def test_in_a_query(spark, world, tmp_path):
    options = {"journal.path": str(tmp_path / "journal"), "batch.target.millis": 200}

    def rows_of_a_query(count):
        world.fill(count)
        query = (
            read_stream(spark, sources.PartsTopology, path=str(world.folder), options=options)
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start(str(tmp_path / "rows"))
        )
        deadline, found = time.monotonic() + 60, []
        try:
            while len(found) < count and query.isActive and time.monotonic() < deadline:
                query.awaitTermination(0.2)
                if (tmp_path / "rows" / "_spark_metadata").exists():
                    found = spark.read.schema("n int, text string").parquet(str(tmp_path / "rows")).collect()
        finally:
            query.stop()
        assert query.exception() is None
        return sorted((row.n, row.text) for row in found)

    assert rows_of_a_query(30) == [(n, str(n)) for n in range(30)]
    assert rows_of_a_query(37) == [(n, str(n)) for n in range(37)]
