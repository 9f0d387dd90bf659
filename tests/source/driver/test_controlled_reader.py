"""A reader with its controller, called as Spark calls it: what bounds which partition, and what an offset keeps."""

import json
import logging
import re

import pytest

from pystorm_source.clock import ManualClock
from pystorm_source.source.driver.stream_reader import PystormStreamReader
from pystorm_source.source.request import ReadRequest

pytest.importorskip("pyspark.sql.streaming.datasource", reason="4.0 and 4.1 have no admission control")


class Query:
    """Plans micro-batches as Spark does; each takes so many seconds."""

    def __init__(self, world, start=None, **options):
        request = ReadRequest.of(
            {name.lower(): value for name, value in world.options(controlled=True, **options).items()}
        )
        self.clock = ManualClock(1000.25)
        self.reader = PystormStreamReader(
            request, request.rows.output(request.rows.schema()), self.clock, controlled=True
        )
        self.at = start or self.reader.initialOffset()

    def plan(self, seconds=1.0):
        """Offsets that a micro-batch reads."""
        end = json.loads(json.dumps(self.reader.latestOffset(self.at, self.reader.getDefaultReadLimit())))
        if end == self.at:
            return 0
        size = sum(part.end - part.start for part in self.reader.partitions(self.at, end))
        self.at = end
        self.clock.advance(seconds)
        return size

    @property
    def report(self):
        return self.reader.reportLatestOffset()


@pytest.fixture
def endless(world):
    world.put(a=10**12, b=10**12)
    return world


def test_the_first_micro_batch_is_bounded(endless):
    query = Query(endless)
    assert 100 < query.plan() <= 400
    assert query.report["reason"] == "first batch"
    assert query.report["limit"] == query.report["budget"]
    assert query.report["pressure"] > 100
    assert query.report["throttledBy"] == {"first batch": 2}


def test_the_initial_rate_is_the_users(endless):
    assert Query(endless, backpressure__initialRate=100).plan() <= 200


def test_the_target_is_the_users(endless):
    assert 1000 < Query(endless, batch__target__millis=10_000).plan() <= 2000


def test_feedback_off_leaves_the_users_limits_alone(endless):
    query = Query(endless, feedback="off", maxOffsetsPerTrigger=10**9)
    assert query.plan() == 10**9
    assert query.report["reason"] == "user limit"
    assert "budget" not in query.report
    assert not set(query.at) & {"admission"}


@pytest.mark.parametrize("limit", ["maxOffsetsPerTrigger", "maxOffsetsPerPartition"])
def test_the_users_limits_win_downwards(endless, limit):
    query = Query(endless, **{limit: 10})
    assert query.plan() <= 20
    assert query.report["reason"] == "user limit"
    assert query.report["limits"] == {limit: 10}
    assert Query(endless, **{limit: 10**9}).plan() <= 400


def test_available_now_is_rate_controlled(endless):
    query = Query(endless)
    query.reader.prepareForTriggerAvailableNow()
    assert query.plan() <= 400


def test_no_pressure_reads_all_and_an_idle_trigger_gives_the_very_same_offset(world):
    world.put(a=50, b=2)
    query = Query(world)
    assert query.plan() == 52
    assert (query.report["reason"], query.report["throttled"]) == ("none", [])
    assert "limit" not in query.report
    assert [query.plan() for _ in range(3)] == [0, 0, 0]


def test_without_reports_micro_batches_follow_their_time(endless):
    query = Query(endless)
    query.plan(seconds=10.0)  # starts processes, and tells nothing
    second = query.plan(seconds=10.0)
    assert query.plan(seconds=1.0) < second / 2
    assert query.report["reason"] == "no report"


def test_offsets_are_read_as_before_whatever_the_controller_has_written(endless):
    query = Query(endless)
    start = query.at
    query.plan()
    end = {name: section for name, section in query.at.items() if name != "admission"}
    with_admission = [(part.start, part.end) for part in query.reader.partitions(start, query.at)]
    assert [(part.start, part.end) for part in query.reader.partitions(start, end)] == with_admission


def test_a_change_of_the_limit_is_said_once(endless, caplog):
    caplog.set_level(logging.INFO, "pystorm.source")
    query = Query(endless)
    for _ in range(3):
        query.plan(seconds=0.5)
    said = [record.getMessage() for record in caplog.records if "micro-batches read at most" in record.getMessage()]
    assert len(said) == 1
    assert re.search(r"\(first batch\): the \d+ that wait fill [\d.,]+ micro-batches of \d+ ms \(", said[0])


def test_a_limit_of_the_users_own_is_no_news(endless, caplog):
    caplog.set_level(logging.INFO, "pystorm.source")
    query = Query(endless, maxOffsetsPerTrigger=10)
    assert [query.plan(seconds=0.01) for _ in range(3)] == [10, 10, 10]
    assert query.report["reason"] == "user limit"
    assert not [message for message in caplog.messages if "micro-batches" in message]


def test_a_controller_that_fails_ends_no_query(endless, monkeypatch, caplog):
    query = Query(endless)
    query.plan()

    def fail(*given):
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr("pystorm_source.source.admission.controller.batch_budget", fail)
    assert query.plan() > 10**9
    assert "micro-batches are not measured out any more" in caplog.text
    monkeypatch.undo()
    endless.put(a=2 * 10**12, b=10**12)
    assert query.plan() == 10**12
    assert query.report["reason"] == "none"
