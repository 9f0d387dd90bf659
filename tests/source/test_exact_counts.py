"""The counts of a run are those of its sink: exactly, and if Python workers are killed as far as they were reported."""

from contextlib import contextmanager

import pytest
from prometheus_client import CollectorRegistry

from pystorm_source import PystormProgressListener, progress
from pystorm_source.observe import Prometheus
from pystorm_source.records.record_file import RecordFile
from tests.channel.reports.made_reports import wait_until
from tests.operator import counted
from tests.source.watched import DEADLY

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]  # any may be the session's first


class Watch(Prometheus):
    """The metrics, and whether the query that they are of has ended."""

    def __init__(self):
        super().__init__(registry=CollectorRegistry())
        self.has_ended = False

    def query_ended(self, run_id):
        super().query_ended(run_id)
        self.has_ended = True

    def counter(self, name):
        """Component, or nothing → value, added up over streams."""
        found = {}
        for family in self.registry.collect():
            for sample in family.samples:
                if sample.name == f"pystorm_{name}_total":
                    component = sample.labels.get("component", "")
                    found[component] = found.get(component, 0) + sample.value
        return found


@contextmanager
def listening(spark, **more):
    listener = PystormProgressListener(Watch(), **more)
    spark.streams.addListener(listener)
    try:
        yield listener, listener._callback
    finally:
        spark.streams.removeListener(listener)


def ran(spark, options, folder, watch):
    """The query at its end, and the rows of its sink."""
    frame = spark.readStream.format("pystorm").options(**options).load()
    writer = frame.writeStream.format("json").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(processingTime="0 seconds").start(str(folder / "rows"))
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    wait_until(lambda: watch.has_ended, "the listener's last call")
    rows = spark.read.schema(frame.schema).json(str(folder / "rows")).collect()
    return query, sorted(map(tuple, rows))


def rows_by_batch(query):
    found = {
        each["batchId"]: sum(source["numInputRows"] for source in each["sources"]) for each in query.recentProgress
    }
    return {batch: rows for batch, rows in found.items() if rows}


@pytest.mark.every_spark
def test_without_faults_they_are_the_sinks(spark, world, tmp_path):
    """On the driver's machine the last micro-batch is included; Spark Connect's progress never has it."""
    world.put(a=23, b=9)
    with listening(spark) as (listener, metrics):
        query, rows = ran(spark, world.options("Doubled", maxOffsetsPerTrigger=12), tmp_path, metrics)
    assert rows == [("a", 2 * n) for n in range(23)] + [("b", 2 * n) for n in range(9)]
    of_batch = rows_by_batch(query)
    counted = len(rows) if hasattr(query, "_jsq") else len(rows) - of_batch[max(of_batch)]
    by_batch = {each.topology.batch: each.topology for each in listener.records if each.topology is not None}
    assert all(each.whole for each in by_batch.values())
    assert sum(topology.component("numbers").batch.emitted for topology in by_batch.values()) == counted
    assert sum(topology.component("numbers").batch.acked for topology in by_batch.values()) == counted
    assert sum(topology.component("doubled").batch.executed for topology in by_batch.values()) == counted
    assert sum(edge.transferred for each in by_batch.values() for edge in each.edges if not edge.target) == counted
    assert metrics.counter("rows") == {"": len(rows)}
    assert metrics.counter("batches") == {"": len(of_batch)}
    assert metrics.counter("emit_count") == {"numbers": counted, "doubled": counted}
    assert metrics.counter("ack_count") == {"numbers": counted, "doubled": counted}
    assert metrics.counter("ranges")[""] == sum(2 if batch < 2 else 1 for batch in by_batch)
    last = progress(query)
    assert last.topology.component("doubled").total.executed == counted


def test_source_and_sink_of_one_query_have_the_counts_of_the_model(spark, tmp_path):
    """Of ten rows two fail for good in the source; of the eight that leave it two fail once in the sink."""
    options = {"topology.max.spout.retries": 1, "topology.dead.letter": "drop"}
    source = spark.readStream.format("pystorm").options(**options, **{"progress.path": str(tmp_path / "source")})
    rows = source.option("topology", "tests.operator.counted:Source").load()
    sink = rows.writeStream.format("pystorm").options(**options, **{"progress.path": str(tmp_path / "sink")})
    sink = sink.option("topology", "tests.operator.counted:RowSink")
    query = sink.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    read, written = (
        [each for each in RecordFile(next((tmp_path / door).iterdir())).read().records if each.rows]
        for door in ("source", "sink")
    )
    of_source = counted.model(range(10), 1, "drop")
    of_sink = counted.model([n for n in range(10) if counted.failures_of(n) <= 1], 1, "drop")
    assert [counted.of_progress(each.topology) for each in read] == [of_source]
    assert [counted.of_progress(each.topology) for each in written] == [counted.without_rows(of_sink)]
    assert (read[0].tasks.dead_letters, written[0].tasks.dead_letters) == (2, 0)


@pytest.mark.campaign
def test_under_kills_what_is_missing_is_said(spark, world, tmp_path):
    """A range counts once, by the attempt that was reported; a report dies with its worker."""
    world.put(a=80, b=80)
    folder = tmp_path / "runs"
    options = world.options(maxOffsetsPerTrigger=80, progress__path=str(folder))
    options["topology"] = "tests.source.watched:Killed"
    with listening(spark) as (_, metrics):
        query, rows = ran(spark, options, tmp_path, metrics)
    assert rows == [(part, n) for part in "ab" for n in range(80)]
    assert len(list(world.folder.glob("*-died"))) == 2 * len(DEADLY)
    (file,) = folder.iterdir()
    records = RecordFile(file).read().records
    assert [each.batch_id for each in records] == sorted(rows_by_batch(query))
    for record in records:
        missing = 2 - record.tasks.ranges
        assert (missing == 0) == record.topology.whole
        # Each range of it was read by a second attempt, if it was reported.
        assert record.tasks.retried_tasks == record.tasks.ranges
        for component in record.topology.components:
            assert component.batch.acked == component.batch.emitted == record.tasks.rows == 80 - 40 * missing
    reported = sum(each.tasks.rows for each in records)
    assert metrics.counter("ack_count") == {"numbers": reported, "dies": reported, "last": reported}
    assert metrics.counter("task_retries") == {"": sum(each.tasks.retried_tasks for each in records)}
