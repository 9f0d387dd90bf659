"""Records from the progress that Spark gives, in the forms of classic Spark and of Connect."""

import json

import msgspec
import pytest

from pystorm_source.records.from_spark import records_of
from pystorm_source.records.record import PystormProgress
from tests.records.samples import progress as sample

PROGRESS = {"id": "q", "runId": "r", "name": None, "batchId": 3, "timestamp": "t", "numInputRows": 7}
REPORT = {"backlog": 5, "throttled": 120, "reason": "rate", "pressure": 250, "budget": 9, "targetMillis": 1500}


def records(*latest, **changes):
    return records_of(PROGRESS | {"sources": [{"latestOffset": offset} for offset in latest]} | changes)


def test_only_sources_of_ours_are_read():
    assert records(None, "5", "no JSON", {"offset": 1}, 3) == {}


def test_sources_are_told_apart_by_their_position():
    assert list(records(None, REPORT, {"offset": 1}, REPORT)) == [1, 3]


def test_both_forms_of_a_report_are_read():
    expected = PystormProgress(
        query_id="q", run_id="r", batch_id=3, timestamp="t", rows=7, backlog=5, reason="rate", budget=9, pressure=2.5,
        target=1.5,
    )  # fmt: skip
    assert list(records(REPORT, json.dumps(REPORT)).values()) == [expected] * 2


def test_rows_that_only_the_sources_have_are_added_up():
    progress = {name: value for name, value in PROGRESS.items() if name != "numInputRows"}
    ours = {"latestOffset": {"backlog": 5, "throttled": 0}, "numInputRows": 3}
    assert records_of(progress | {"sources": [ours, {"numInputRows": 4}, {"numInputRows": None}]})[0].rows == 7


def test_the_duration_is_that_of_the_trigger():
    assert records(REPORT, durationMs={"triggerExecution": 250, "addBatch": 200})[0].seconds == 0.25


def test_the_lag_has_the_names_and_the_form_of_the_kafka_source():
    report = REPORT | {
        "avgOffsetsBehindLatest": "2.5",
        "maxOffsetsBehindLatest": "5",
        "minOffsetsBehindLatest": "0",
    }
    (record,) = records(report).values()
    assert record.avg_offsets_behind_latest == 2.5
    assert (record.max_offsets_behind_latest, record.min_offsets_behind_latest) == (5, 0)


def test_components_come_through_and_are_of_the_micro_batch_before():
    topology = sample().topology
    (record,) = records(REPORT | {"topology": msgspec.to_builtins(topology)}).values()
    assert record.topology == topology
    assert record.counts_of_batch_before


@pytest.mark.parametrize("section", [5, {"components": 5}, {"batch": "x"}])
def test_a_topology_that_cannot_be_read_leaves_the_rest(section):
    (record,) = records(REPORT | {"topology": section}).values()
    assert (record.topology, record.backlog) == (None, 5)
    assert not record.counts_of_batch_before
