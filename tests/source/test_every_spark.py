"""The common tasks of a user: registration, batch, stream, admission, listener.

`.ci/gates/spark` runs them with each version of Spark that is served, and through Spark Connect: thus no
``foreachBatch``, whose function Connect runs in another process, and no ``sparkContext``.
"""

import pytest
from chispa import assert_df_equality
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming import StreamingQueryListener

from pystorm_source import PystormProgressListener, progress, read, read_stream, register
from tests.channel.reports.made_reports import wait_until
from tests.source.topologies import Doubled, Numbers

pytestmark = [pytest.mark.spark, pytest.mark.every_spark, pytest.mark.timeout(180)]  # any may be the session's first


def assert_rows(frame, expected):
    """Rows in any order."""
    made = frame.sparkSession.createDataFrame(expected, frame.schema)
    assert_df_equality(frame, made, ignore_row_order=True, ignore_nullable=True)


def numbers(part, start, end):
    return [(part, n) for n in range(start, end)]


class Copy:
    """A query that writes JSON files, and what they hold."""

    def __init__(self, frame, folder):
        self.frame, self.folder = frame, folder

    def start(self, **trigger):
        writer = self.frame.writeStream.format("json").option("checkpointLocation", str(self.folder / "checkpoint"))
        return writer.trigger(**trigger).start(str(self.folder / "rows"))

    def run(self):
        query = self.start(availableNow=True)
        assert query.awaitTermination(90), "the query did not end"
        assert query.exception() is None

    @property
    def rows(self):
        return self.frame.sparkSession.read.schema(self.frame.schema).json(str(self.folder / "rows"))


def test_registration_by_value(spark, notebook):
    topology = notebook()
    assert topology.__module__ == "__main__"
    assert register(spark, topology) == "pystorm_celltopology"
    assert_rows(spark.read.format("pystorm_celltopology").load(), [(0,), (3,), (6,), (9,)])
    edited = notebook(notebook.text.replace("FACTOR = 3", "FACTOR = 5"))
    assert_rows(read(spark, edited), [(0,), (5,), (10,), (15,)])


def test_stream_of_a_topology_by_value(spark, notebook, tmp_path):
    copy = Copy(read_stream(spark, notebook()), tmp_path)
    copy.run()
    assert_rows(copy.rows, [(0,), (3,), (6,), (9,)])


def test_batch(spark, world):
    world.put(a=5, b=(3, 5))
    frame = spark.read.format("pystorm").options(**world.options("Doubled", minPartitions=3)).load()
    assert_rows(frame, [("a", 2 * n) for n in range(5)] + [("b", 6), ("b", 8)])


def test_stream_goes_on_from_its_checkpoint(spark, world, tmp_path):
    world.put(a=9)
    copy = Copy(read_stream(spark, Doubled, path=str(world.folder)), tmp_path)
    copy.run()
    assert_rows(copy.rows, [("a", 2 * n) for n in range(9)])
    world.put(a=12, b=2)
    copy.run()
    assert_rows(copy.rows, [("a", 2 * n) for n in range(12)] + [("b", 0), ("b", 2)])


def test_limit_of_a_stream(spark, world, tmp_path):
    world.put(a=12)
    copy = Copy(spark.readStream.format("pystorm").options(**world.options(maxOffsetsPerTrigger=5)).load(), tmp_path)
    query = copy.start(processingTime="0 seconds")
    try:
        query.processAllAvailable()
        batches = [progress.sources[0].numInputRows for progress in query.recentProgress]
    finally:
        query.stop()
    assert [rows for rows in batches if rows] == [5, 5, 2]
    assert_rows(copy.rows, numbers("a", 0, 12))


class Counter(StreamingQueryListener):
    """Rows that Spark has reported; whether the query has ended."""

    rows = 0
    ended = False

    def onQueryStarted(self, event):
        pass

    def onQueryProgress(self, event):
        self.rows += sum(source.numInputRows for source in event.progress.sources)

    def onQueryTerminated(self, event):
        self.ended = True


def test_admission_and_its_listener(spark, world, tmp_path):
    world.put(a=3000, b=2000)
    options = {"path": str(world.folder), "batch.target.millis": 1000, "backpressure.initialRate": 2000}
    copy = Copy(read_stream(spark, Numbers, **options), tmp_path)
    ours, counter = PystormProgressListener(), Counter()  # Spark calls them in this order
    spark.streams.addListener(ours)
    spark.streams.addListener(counter)
    try:
        query = copy.start(processingTime="0 seconds")
        try:
            query.processAllAvailable()
            batches = [progress.sources[0].numInputRows for progress in query.recentProgress]
        finally:
            query.stop()
        wait_until(lambda: counter.ended, "the end of the query")
    finally:
        spark.streams.removeListener(counter)
        spark.streams.removeListener(ours)
    assert counter.rows == 5000
    assert_rows(copy.rows, numbers("a", 0, 3000) + numbers("b", 0, 2000))
    batches = [rows for rows in batches if rows]
    assert len(batches) > 1 and batches[0] <= 2000
    asks = hasattr(DataSourceStreamReader, "reportLatestOffset")  # Spark 4.0 and 4.1 ask a source for no report
    has_files = hasattr(query, "_jsq")  # Spark Connect has none
    if not asks and not has_files:
        assert ours.records == []
        return
    records = [record for record in ours.records if record.rows]
    if asks and has_files:  # the last one has come twice, at the end with its own counts
        assert records[-1].tasks.rows == batches[-1]
        records.pop()
    first, *others = records
    assert [first.rows, *(record.rows for record in others)] == batches
    assert (first.reason, first.throttled) == ("first batch", ("numbers/a", "numbers/b"))
    assert first.rows == first.limit
    counted = others if asks else records
    assert [record.tasks.rows for record in counted] == batches[: len(counted)]
    assert {record.counts_of_batch_before for record in counted} == {asks}
    assert ours.records[-1].backlog == 0


def test_progress_of_a_query(spark, world, tmp_path):
    """On the driver's machine also of the last micro-batch, and on the Sparks that ask for no report."""
    world.put(a=9, b=3)
    options = world.options("Doubled", maxOffsetsPerTrigger=7)
    query = Copy(spark.readStream.format("pystorm").options(**options).load(), tmp_path).start(
        processingTime="0 seconds"
    )
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    record = progress(query)
    assert (record.query_id, record.run_id) == (query.id, query.runId)
    if hasattr(query, "_jsq"):
        assert (record.batch_id, record.rows, record.tasks.rows) == (1, 5, 5)
        assert record.topology.whole and not record.counts_of_batch_before
        assert [each.batch.executed for each in record.topology.components if each.kind == "bolt"] == [5]
    else:
        assert record.batch_id >= 1
        assert record.counts_of_batch_before
