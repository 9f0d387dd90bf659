"""What a query's progress says of admission arrives in records."""

import json

import pytest

from pystorm_source import PystormProgressListener, read_stream
from pystorm_source.source.driver.progress_listener import AdmissionProgress
from tests.source.queries import Query
from tests.source.topologies import Numbers

PROGRESS = {"id": "q", "runId": "r", "name": None, "batchId": 3, "timestamp": "t", "numInputRows": 7}


def told(*latest):
    return AdmissionProgress.of(PROGRESS | {"sources": [{"latestOffset": offset} for offset in latest]})


def test_only_sources_of_ours_are_read():
    assert told(None, "5", "no JSON", {"offset": 1}, 3) == []


def test_both_forms_of_a_report_are_read():
    report = {"backlog": 5, "throttled": 120, "reason": "rate", "pressure": 250, "budget": 9, "targetMillis": 1500}
    expected = AdmissionProgress(
        "q", "r", None, 3, "t", 0.0, 7, 5, reason="rate", budget=9, pressure=2.5, target=1.5
    )  # fmt: skip
    assert told(report, json.dumps(report)) == [expected] * 2


def test_rows_that_only_the_sources_tell_are_added_up():
    progress = {name: value for name, value in PROGRESS.items() if name != "numInputRows"}
    ours = {"latestOffset": {"backlog": 5, "throttled": 0}, "numInputRows": 3}
    (record,) = AdmissionProgress.of(progress | {"sources": [ours, {"numInputRows": 4}]})
    assert record.rows == 7


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
    assert [record.rows for record in seen if record.rows] == list(map(len, batches))
    assert listener.records == seen
    first = seen[0]
    assert (first.reason, first.throttled) == ("first batch", ("numbers/a", "numbers/b"))
    assert first.rows == first.budget == first.limit <= 2000
    assert first.backlog == 5000 - first.rows
    assert first.pressure > 1
    assert seen[-1].backlog == 0
    # From the second one on tasks have reported, of the one before.
    assert first.tasks is None
    assert [record.tasks.rows for record in seen[1:] if record.rows] == list(map(len, batches))[:-1]
    assert {record.tasks.failed for record in seen[1:]} == {0}
    assert {record.reason for record in seen[1:]} <= {"rate", "probing", "overrun", "overhead", "none"}
    assert '"admission": {"numbers": {"common":' in (query.checkpoint / "offsets" / "1").read_text()
