"""What tasks report is added up for people, and every field of a report is read."""

import json
from types import SimpleNamespace

import msgspec
import pytest

from pystorm_source.channel.reports.task_report import SUMMARISED, Latency, RangeReport, TaskReport
from pystorm_source.clock import ManualClock
from pystorm_source.counts.summary import ReportSummary
from pystorm_source.records.from_spark import tasks_of
from pystorm_source.records.record import TaskProgress
from pystorm_source.source.driver.stream_reader import PystormStreamReader
from pystorm_source.source.request import ReadRequest
from pystorm_source.worker.component_columns import ComponentColumns
from tests.channel.reports.made_reports import report


def arrived(**changes):
    sent = report(**changes)
    return TaskReport(**{name: getattr(sent, name) for name in RangeReport.__struct_fields__}, arrived=1.0)


def summed(*reports, **told):
    summary = ReportSummary(1024)
    summary.add(reports)
    return summary.to_json(**told)


def test_nothing_was_reported():
    assert summed() is None
    assert summed(dropped={}) is None


def test_counts_are_summed_and_the_largest_of_the_rest_is_shown():
    one = arrived(
        rows=90,
        seconds=0.5,
        acked=80,
        failed=20,
        stalls={"downstream_full": 0.25, "input_empty": 0.1},
        components=ComponentColumns(retries=(10, 0, 5), dead_letters=(5,), queue_high_mark=(0, 512, 7)),
        latency=Latency(p50=1e-5, p95=2e-3, p99=3e-3),
    )
    two = arrived(
        partition="b",
        offsets=40,
        seconds=1.5,
        stalls={"downstream_full": 0.125},
        components=ComponentColumns(queue_high_mark=(0, 7)),
        latency=Latency(p50=2e-5, p95=1e-3, p99=4e-3),
    )
    assert summed(one, two) == summed(two, one) == {
        "acked": 180,
        "deadLetters": 5,
        "failed": 20,
        "latencyMicros": {"p50": 20, "p95": 2000, "p99": 4000},
        "longestMillis": 1500,
        "offsets": 140,
        "queueCapacity": 1024,
        "queueHighMark": 512,
        "ranges": 2,
        "retriedTasks": 0,
        "retries": 15,
        "rows": 190,
        "stallMillis": {"downstream_full": 250, "input_empty": 100},
    }  # fmt: skip


def test_a_range_that_was_read_twice_counts_once():
    assert summed(arrived(), arrived(attempt=1), arrived(start=50, offsets=50))["ranges"] == 2
    assert summed(arrived(), arrived(attempt=1)) == summed(arrived(attempt=1), arrived())


def test_ranges_that_a_later_attempt_has_read_are_counted():
    assert summed(arrived(), arrived(start=50, offsets=50, attempt=2))["retriedTasks"] == 1
    assert summed(arrived(attempt=1), arrived())["retriedTasks"] == 1


def test_reports_that_were_dropped_are_shown_even_alone():
    told = summed(dropped={"wrong mac": 2, "malformed": 1})
    assert told["reportsDropped"] == {"malformed": 1, "wrong mac": 2}
    assert told["ranges"] == 0


def test_its_size_does_not_grow_with_the_reports():
    few, many = (summed(*(arrived(partition=f"p{n}") for n in range(count))) for count in (3, 3000))
    assert few.keys() == many.keys()
    assert len(json.dumps(many)) < 600


def test_the_record_has_all_of_it():
    sent = arrived(components=ComponentColumns(dead_letters=(3,), queue_high_mark=(0, 3)))
    told = summed(sent, dropped={"overflow": 1})
    assert tasks_of(json.loads(json.dumps(told))) == TaskProgress(
        ranges=1,
        offsets=100,
        rows=100,
        acked=100,
        dead_letters=3,
        longest=0.5,
        queue_high_mark=3,
        queue_capacity=1024,
        stalls={"downstream_full": 0.1},
        latency={"p50": 1e-6, "p95": 2e-6, "p99": 3e-6},
        reports_dropped={"overflow": 1},
    )


class Read:
    """A report that notes which of its fields are read."""

    def __init__(self, reported, names, within=""):
        self._reported, self._names, self._within = reported, names, within

    def __getattr__(self, name):
        value = getattr(self._reported, name)
        self._names.add(self._within + name)
        return Read(value, self._names, f"{name}.") if isinstance(value, msgspec.Struct) else value


class Query:
    """A reader, asked as Spark asks it; ``told``: what tasks have reported by the next question."""

    def __init__(self, world, **options):
        request = ReadRequest.of(
            {name.lower(): value for name, value in world.options(controlled=True, **options).items()}
        )
        self.clock = ManualClock(1000.25)
        self.reader = PystormStreamReader(
            request, request.rows.output(request.rows.schema()), self.clock, controlled=True
        )
        self.at = self.reader.initialOffset()
        self.reported = []
        self.reader._telemetry.receiver.take = self.take

    def take(self):
        reported, self.reported = self.reported, []
        return reported

    def plan(self):
        """Ranges of the next micro-batch."""
        pytest.importorskip("pyspark.sql.streaming.datasource", reason="4.0 and 4.1 have no admission control")
        end = json.loads(json.dumps(self.reader.latestOffset(self.at, self.reader.getDefaultReadLimit())))
        ranges = self.reader.partitions(self.at, end)
        self.at = end
        self.clock.advance(1)
        return ranges

    @property
    def tasks(self):
        return self.reader.reportLatestOffset().get("tasks")


def done(ranges, **changes):
    """Reports of these ranges."""
    return [
        arrived(
            batch=each.batch,
            spout=each.component,
            partition=each.partition,
            start=each.start,
            end=each.end,
            offsets=each.end - each.start,
            **changes,
        )
        for each in ranges
    ]


def test_every_field_that_a_task_reports_is_read(world):
    world.put(a=10**6)
    query = Query(world)
    read = set()
    query.reported = [Read(each, read) for each in done(query.plan())]
    query.plan()
    inner = {f"components.{name}" for name in SUMMARISED}
    inner |= {f"latency.{name}" for name in Latency.__struct_fields__}
    inner.add("paused")  # of the components' limits
    assert read == inner | set(TaskReport.__struct_fields__) - {
        "v",
        "query",
    }  # the decoder and the recorder read these


def test_progress_tells_of_the_micro_batch_before(world):
    world.put(a=10**6)
    query = Query(world)
    query.reported = done(query.plan(), rows=11)
    assert query.tasks is None
    query.reported = done(query.plan(), rows=22)
    assert query.tasks["rows"] == 11
    query.plan()
    assert query.tasks["rows"] == 22
    query.plan()
    assert query.tasks is None


def test_a_trigger_without_data_forgets_nothing(world):
    world.put(a=10)
    query = Query(world)
    ranges = query.plan()
    assert query.plan() == []
    assert query.tasks is None
    query.reported = done(ranges, rows=7)  # late
    assert query.plan() == []
    assert query.plan() == []
    world.put(a=20)
    query.plan()
    assert query.tasks["rows"] == 7


def test_reports_are_shown_if_no_controller_runs(world):
    world.put(a=10)
    query = Query(world)
    query.reader._is_controlled = False
    query.reported = done(query.plan())
    query.plan()
    assert query.tasks["ranges"] == 1


def test_a_summary_that_fails_ends_no_query(world, caplog):
    world.put(a=10**6)
    query = Query(world)
    query.reported = [SimpleNamespace(broken_off=False), *done(query.plan())]
    assert query.plan()
    assert "reports of tasks are not added up" in caplog.text
