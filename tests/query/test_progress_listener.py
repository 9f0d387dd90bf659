"""What a query's progress says of admission and tasks arrives in records."""

import json

import pytest
from prometheus_client import CollectorRegistry
from pyspark.sql.streaming.listener import QueryProgressEvent

from pystorm_source import Bolt, Input, PystormProgressListener, Topology, apply, read_stream
from pystorm_source.observe import Prometheus
from pystorm_source.query.progress_listener import _FromJson
from tests.source.queries import Query
from tests.source.topologies import Numbers


@pytest.mark.spark
@pytest.mark.timeout(180)  # it may be the first query of the session
def test_a_query_tells_of_its_admission(spark, world, tmp_path):
    query = Query(tmp_path)
    world.put(a=3000, b=2000)
    seen = []
    listener = PystormProgressListener(seen.append)
    spark.streams.addListener(listener)
    try:
        options = {"path": str(world.folder), "batch.target.millis": 1000, "backpressure.initialRate": 2000}
        batches = query.run(read_stream(spark, Numbers, **options))
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    finally:
        spark.streams.removeListener(listener)
    assert sum(map(len, batches)) == 5000
    assert len(batches) > 1
    assert listener.records == seen
    # The last micro-batch comes twice: its own counts are known when the query has ended.
    last = seen.pop()
    assert (last.batch_id, last.rows, last.tasks.rows) == (seen[-1].batch_id, len(batches[-1]), len(batches[-1]))
    assert last.topology.whole and not last.counts_of_batch_before
    assert [record.rows for record in seen if record.rows] == list(map(len, batches))
    first = seen[0]
    assert (first.reason, first.throttled) == ("first batch", ("numbers/a", "numbers/b"))
    assert first.rows == first.budget == first.limit <= 2000
    assert first.backlog == 5000 - first.rows
    assert first.pressure > 1
    assert (seen[-1].backlog, seen[-1].avg_offsets_behind_latest) == (0, 0.0)
    assert (first.max_offsets_behind_latest, first.min_offsets_behind_latest) == (
        max(first.backlog_by_partition.values()),
        min(first.backlog_by_partition.values()),
    )
    assert first.avg_offsets_behind_latest == first.backlog / 2
    # From the second one on tasks have reported, of the one before.
    assert first.tasks is None and not first.counts_of_batch_before
    assert all(record.counts_of_batch_before for record in seen[1:])
    assert [record.tasks.rows for record in seen[1:] if record.rows] == list(map(len, batches))[:-1]
    assert {record.tasks.failed for record in seen[1:]} == {0}
    assert {record.reason for record in seen[1:]} <= {"rate", "probing", "overrun", "overhead", "none"}
    assert '"admission": {"numbers": {"common":' in (query.checkpoint / "offsets" / "1").read_text()


class Doubled(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.emit([2 * tup.values.n])


class Operator(Topology):
    rows = Input.spec(["n long"])
    doubled = Doubled.spec(inputs=[rows])


class Written(Bolt):
    outputs = []

    def process(self, tup):
        """Its effect."""


class Sink(Topology):
    rows = Input.spec(["n long"])
    written = Written.spec(inputs=[rows])


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_operators_and_sinks_are_told_too(spark, tmp_path):
    """Of a query whose source is another's."""
    for _ in range(3):
        spark.range(10).selectExpr("id AS n").coalesce(1).write.mode("append").json(str(tmp_path / "in"))
    metrics = Prometheus(registry=CollectorRegistry())
    listener = PystormProgressListener(metrics)
    spark.streams.addListener(listener)
    try:
        rows = spark.readStream.schema("n long").option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
        writer = apply(rows, Operator, counts="doubled").writeStream.format("pystorm").queryName("told")
        writer = writer.option("topology", f"{__name__}:Sink").option("checkpointLocation", str(tmp_path / "c"))
        assert writer.trigger(availableNow=True).start().awaitTermination(100)
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    finally:
        spark.streams.removeListener(listener)
    told = [(each.door, each.batch_id, each.rows, each.topology.whole) for each in listener.records if each.rows]
    assert sorted(told) == [(door, batch, 10, True) for door in ("operator", "sink") for batch in range(3)]
    for topology, component in (("Operator", "doubled"), ("Sink", "written")):
        labels = {"query": "told", "topology": topology, "component": component}
        labels["use"] = "doubled" if topology == "Operator" else ""
        labels["run"] = listener.records[0].run_id
        assert metrics.registry.get_sample_value("pystorm_execute_count_total", labels) == 30
        del labels["component"]
        assert metrics.registry.get_sample_value("pystorm_backlog_offsets", labels) is None


class Called:
    """An object of the JVM that knows what it was asked."""

    def __init__(self, text):
        self.text = text
        self.asked = []

    def progress(self):
        return self

    def json(self):
        self.asked.append("json")
        return self.text

    def __getattr__(self, name):
        self.asked.append(name)
        raise AttributeError(name)


def test_the_event_of_a_progress_is_made_by_one_call_of_the_jvm():
    seen = []

    class Listener(PystormProgressListener):
        def onQueryProgress(self, event):
            seen.append(event.progress)

    progress = {
        "id": "11111111-1111-1111-1111-111111111111",
        "runId": "22222222-2222-2222-2222-222222222222",
        "name": None,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "batchId": 7,
        "batchDuration": 1200,
        "numInputRows": 5,
        "durationMs": {"triggerExecution": 1200},
        "stateOperators": [],
        "sources": [],
        "sink": {"description": "noop", "numOutputRows": -1},
    }
    event = Called(json.dumps(progress))
    _FromJson(Listener()).onQueryProgress(event)
    (found,) = seen
    assert (found.batchId, found.numInputRows, found.durationMs) == (7, 5, {"triggerExecution": 1200})
    assert json.loads(found.json) == progress
    assert event.asked == ["json"]


def test_a_progress_that_has_another_form_is_made_as_pyspark_makes_it(monkeypatch):
    seen = []

    class Listener(PystormProgressListener):
        def onQueryProgress(self, event):
            seen.append(event)

    monkeypatch.setattr(QueryProgressEvent, "fromJObject", lambda jevent: ("as PySpark makes it", jevent))
    event = Called("{}")
    _FromJson(Listener()).onQueryProgress(event)
    assert seen == [("as PySpark makes it", event)]
