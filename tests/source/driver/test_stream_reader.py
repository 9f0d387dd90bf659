"""The reader, called as Spark calls it: limits, restarts, replays, a world that grows, shrinks and loses."""

import dataclasses
import json
import pickle
import re

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pystorm_source.clock import ManualClock
from pystorm_source.errors import CheckpointError, DataLossError, OptionError, SchemaError, TupleFailed, UsageError
from pystorm_source.errors.failure_block import FailureBlock
from pystorm_source.options.source import UNBOUNDED
from pystorm_source.source.data_source import PystormDataSource
from pystorm_source.source.driver.stream_reader import PystormStreamReader
from pystorm_source.source.offsets.offsets import sealed
from pystorm_source.source.request import ReadRequest
from pystorm_source.source.task.read_range import TaskReader
from pystorm_source.spark.versions import default_read_limit
from pystorm_source.worker import warm
from tests.source import topologies
from tests.source.spark_calls import Checkpoint, Run, run_all, through_pickle

limits = pytest.importorskip("pyspark.sql.streaming.datasource", reason="Spark 4.0 and 4.1 have no admission control")
ReadAllAvailable, ReadMaxRows, ReadMinRows = limits.ReadAllAvailable, limits.ReadMaxRows, limits.ReadMinRows


def numbers(part, start, end):
    return [(part, n) for n in range(start, end)]


def flat(checkpoint):
    return sorted(row for batch in checkpoint.rows for row in batch)


def test_bounded_by_the_limit(world):
    world.put(a=50, b=(10, 30))
    done = run_all(world.options(maxOffsetsPerTrigger=20))
    assert [len(rows) for rows in done.rows] == [20, 20, 20, 10]
    assert flat(done) == numbers("a", 0, 50) + numbers("b", 10, 30)
    assert json.loads(done.offsets[-1]) == sealed({"offsets": {"numbers": {"a": 50, "b": 30}}, "version": 1})


def test_limits_combine(world):
    world.put(a=50, b=10)
    done = run_all(world.options(maxOffsetsPerTrigger=20, maxOffsetsPerPartition=6))
    assert len(done.rows[0]) == 12
    assert len(done.rows[2]) == 6
    assert flat(done) == numbers("a", 0, 50) + numbers("b", 0, 10)


def test_once_lifts_all_limits(world):
    world.put(a=50, b=10)
    done = run_all(world.options(maxOffsetsPerTrigger=7, maxOffsetsPerPartition=5, minOffsetsPerTrigger=2), once=True)
    assert [len(rows) for rows in done.rows] == [60]


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({}, ReadAllAvailable()),
        ({"maxOffsetsPerTrigger": 7, "minOffsetsPerTrigger": 2}, ReadMaxRows(7)),
        ({"minOffsetsPerTrigger": 2}, ReadMinRows(2)),
        ({"maxOffsetsPerPartition": 2}, ReadMaxRows(UNBOUNDED)),
    ],
)
def test_default_read_limit(world, options, limit):
    assert Run(world.options(**options), Checkpoint()).limit == limit


def test_read_limit_of_a_controlled_query_is_not_the_one_that_lifts_all():
    assert default_read_limit(None, None, None, controlled=True) == ReadMaxRows(UNBOUNDED)
    assert default_read_limit(7, None, None, controlled=True) == ReadMaxRows(7)


def test_idle_query_gives_the_very_same_offset(world):
    world.put(a=5)
    run = Run(world.options(), Checkpoint())
    assert run.trigger()
    assert [run.trigger() for _ in range(3)] == [False] * 3
    assert not Run(world.options(), run.checkpoint).trigger()


def test_empty_world(world):
    run = Run(world.options(), Checkpoint())
    assert not run.trigger()
    world.put(a=3)
    assert run.trigger()
    assert flat(run.checkpoint) == numbers("a", 0, 3)


def test_restart_goes_on(world):
    world.put(a=5)
    checkpoint = run_all(world.options())
    world.put(a=9, b=2)
    run_all(world.options(), checkpoint)
    assert flat(checkpoint) == numbers("a", 0, 9) + numbers("b", 0, 2)
    assert len(checkpoint.rows) == 2


def test_replay_of_a_batch_that_was_not_finished(world):
    """`partitions` of the old batch comes first; a new head, a new partition and another limit must not matter."""
    world.put(a=50, b=(10, 30))
    checkpoint = Checkpoint()
    run = Run(world.options(maxOffsetsPerTrigger=20), checkpoint)
    for _ in range(2):
        run.trigger()
    first, second = checkpoint.rows
    for finished in (1, 0):
        again = Checkpoint()
        again.offsets = checkpoint.offsets[: finished + 1]
        again.finished = finished
        world.put(a=90, b=(10, 60), c=5)
        Run(world.options(maxOffsetsPerTrigger=3), again)
        assert again.rows == [(first, second)[finished]]


def test_replay_of_the_first_batch_begins_where_it_began(world):
    """startingOffsets=latest is written down, not asked again."""
    world.put(a=5)
    checkpoint = Checkpoint()
    run = Run(world.options(startingOffsets="latest"), checkpoint)
    assert run.trigger()
    world.put(a=8)
    checkpoint.finished = 0
    Run(world.options(startingOffsets="latest"), checkpoint).drain()
    assert flat(checkpoint) == numbers("a", 5, 8)


def test_starting_offsets_by_name(world):
    world.put(a=5, b=5, c=5)
    start = json.dumps({"numbers": {"a": 3, "b": -1}})
    done = run_all(world.options(startingOffsets=start))
    assert flat(done) == numbers("a", 3, 5) + numbers("c", 0, 5)
    world.put(a=6, b=6, c=6)
    run_all(world.options(startingOffsets="earliest"), done)  # a checkpoint goes before it
    assert flat(done) == numbers("a", 3, 6) + numbers("b", 5, 6) + numbers("c", 0, 6)


def test_starting_offsets_that_are_not_there(world):
    world.put(a=5)
    with pytest.raises(OptionError, match=r"'numbers' does not have now; it has \['a'\]"):
        run_all(world.options(startingOffsets='{"numbers": {"x": 1}}'))


def test_new_partition_is_read_from_its_beginning(world):
    world.put(a=5)
    checkpoint = run_all(world.options(startingOffsets="latest"))
    world.put(b=(7, 9))
    run_all(world.options(startingOffsets="latest"), checkpoint)
    assert flat(checkpoint) == numbers("b", 7, 9)


def test_what_the_lint_finds_is_said_once_in_a_run(world, caplog):
    world.put(a=6)
    done = run_all(world.options("Doubled", maxOffsetsPerTrigger=2))
    assert len(done.rows) == 3
    assert sum("[grouping-per-task]" in message for message in caplog.messages) == 1
    caplog.clear()
    run_all(world.options("Numbers"))
    assert not caplog.messages


def test_vanished_partition(world, caplog):
    world.put(a=5, b=5)
    checkpoint = run_all(world.options())
    world.remove("b")
    world.put(a=7)
    with pytest.raises(DataLossError, match=r"partition 'b' of spout 'numbers' has vanished.*failOnDataLoss=false"):
        run_all(world.options(), checkpoint)
    run_all(world.options(failOnDataLoss="false"), checkpoint)
    assert flat(checkpoint) == numbers("a", 0, 7) + numbers("b", 0, 5)
    assert sum("'b' of spout 'numbers' has vanished" in message for message in caplog.messages) == 1
    run_all(world.options(), checkpoint)  # it is forgotten


def test_rows_that_are_gone(world):
    world.put(a=5)
    checkpoint = run_all(world.options())
    world.put(a=(8, 12))
    with pytest.raises(DataLossError, match=r"offsets 5 to 8 \(exclusive\) of numbers/a are gone"):
        run_all(world.options(), checkpoint)
    run_all(world.options(failOnDataLoss="false"), checkpoint)
    assert flat(checkpoint) == numbers("a", 0, 5) + numbers("a", 8, 12)


def test_available_now_ends_at_what_was_there(world):
    world.put(a=20)
    run = Run(world.options(maxOffsetsPerTrigger=8, minOffsetsPerTrigger=8), Checkpoint(), available_now=True)
    world.put(a=25, b=5)  # after prepareForTriggerAvailableNow
    assert run.trigger()
    world.put(a=90)
    assert run.drain() == 2  # 8 and 4: no minimum
    assert flat(run.checkpoint) == numbers("a", 0, 20)
    run_all(world.options(), run.checkpoint)
    assert flat(run.checkpoint) == numbers("a", 0, 90) + numbers("b", 0, 5)


def test_available_now_after_a_replay(world):
    world.put(a=6)
    checkpoint = run_all(world.options())
    checkpoint.finished = 0
    world.put(a=9)
    run = Run(world.options(maxOffsetsPerTrigger=2), checkpoint, available_now=True)
    assert run.drain() == 2
    assert checkpoint.rows == [numbers("a", 0, 6)] * 2 + [numbers("a", 6, 8), numbers("a", 8, 9)]


def test_available_now_over_files_that_were_renamed(world):
    """What FilesSpout calls a file depends on what the query knows, so its world is frozen at the first look."""
    log = world.folder / "app.log"
    log.write_text("one\n")
    checkpoint = run_all(world.options("Lines"), available_now=True)
    with log.open("a") as more:
        more.write("two\nthree\n")
    log.rename(world.folder / "app.log.1")
    log.write_text("four\n")
    run = Run(world.options("Lines", maxOffsetsPerTrigger=4), checkpoint, available_now=True)
    assert run.trigger()
    with log.open("a") as more:
        more.write("later\n")
    (world.folder / "new.log").write_text("later\n")
    run.drain()
    assert flat(checkpoint) == [("four",), ("one",), ("three",), ("two",)]
    run_all(world.options("Lines"), checkpoint, available_now=True)
    assert flat(checkpoint)[1:3] == [("later",), ("later",)]


def test_notes_and_retired_partitions(world):
    """Finished partitions leave the offset; one that comes during AvailableNow is not forgotten by the notes."""
    world.put(a_done=3, live=2)
    checkpoint = run_all(world.options("Noting"))
    assert json.loads(checkpoint.offsets[-1])["state"] == {"numbers": {"done": "a_done"}}
    world.put(live=4)
    run = Run(world.options("Noting", maxOffsetsPerTrigger=1), checkpoint, available_now=True)
    run.trigger()
    world.put(b_done=2)
    run.drain()
    offset = json.loads(checkpoint.offsets[-1])
    assert offset["offsets"] == {"numbers": {"b_done": 0, "live": 4}}
    assert offset["state"] == {"numbers": {"done": "b_done"}}
    run_all(world.options("Noting"), checkpoint)
    assert flat(checkpoint) == numbers("a_done", 0, 3) + numbers("b_done", 0, 2) + numbers("live", 0, 4)


def test_alignment(world):
    world.put(a=35, b=12)
    done = run_all(world.options("Tens", maxOffsetsPerTrigger=4))
    # A limit of 4 cannot cut a line of 10: one partition moves at a time, but for the last 2 of b, which fit.
    assert [len(rows) for rows in done.rows] == [10, 2, 10, 10, 10, 5]
    assert flat(done) == numbers("a", 0, 35) + numbers("b", 0, 12)


def test_min_partitions(world):
    world.put(a=40, b=10)
    run = Run(world.options(minPartitions=5), Checkpoint())
    end = run.reader.latestOffset(run.reader.initialOffset(), run.limit)
    parts = run.reader.partitions(run.reader.initialOffset(), end)
    assert [(p.partition, p.start, p.end) for p in parts] == [
        ("a", 0, 10),
        ("a", 10, 20),
        ("a", 20, 30),
        ("a", 30, 40),
        ("b", 0, 10),
    ]


def test_min_offsets_wait_for_the_delay(world):
    source = PystormDataSource(world.options(minOffsetsPerTrigger=5, maxTriggerDelay="60s"))
    clock = ManualClock()
    reader = PystormStreamReader(source.request, source.request.rows.output(source.schema()), clock)
    start = reader.initialOffset()
    world.put(a=3)
    assert reader.latestOffset(start, ReadMinRows(5)) is start
    assert reader.reportLatestOffset()["backlog"] == 3
    clock.advance(60)
    end = reader.latestOffset(start, ReadMinRows(5))
    assert end["offsets"] == {"numbers": {"a": 3}}
    world.put(a=7)
    assert reader.latestOffset(end, ReadMinRows(5)) is end
    world.put(a=8)
    assert reader.latestOffset(end, ReadMinRows(5))["offsets"] == {"numbers": {"a": 8}}


def test_commit_reaches_the_spout_one_batch_late(world):
    world.put(a=9)
    run_all(world.options(maxOffsetsPerTrigger=4))
    assert world.committed == [{"a": 4}, {"a": 8}]


def test_stop_cleans_up_once_and_may_come_first(world):
    world.put(a=1)
    run = Run(world.options(), Checkpoint())
    run.reader.stop()
    assert not (world.folder / "cleaned.log").exists()
    run.drain()
    run.reader.stop()
    (world.folder / "cleaned.log").unlink()
    run.reader.stop()
    assert not (world.folder / "cleaned.log").exists()


def test_cleanup_that_raises_is_logged(world, monkeypatch, caplog):
    monkeypatch.setattr(topologies.NumberSpout, "cleanup", lambda self: 1 / 0)
    run = Run(world.options(), Checkpoint())
    run.drain()
    run.reader.stop()
    assert "cleanup() of spout 'numbers', on the driver, raised" in caplog.text


def test_reader_travels_without_its_spouts(world):
    world.put(a=5)
    run = Run(world.options(), Checkpoint())
    run.drain()
    twin = pickle.loads(pickle.dumps(run.reader))
    assert isinstance(twin, TaskReader)


# --- telemetry


def test_report(world):
    world.put(a=50, b=2)
    run = Run(world.options(maxOffsetsPerTrigger=10), Checkpoint())
    run.trigger()
    assert run.reported == [
        {
            "avgOffsetsBehindLatest": "21.0",
            "backlog": 42,
            "backlogByPartition": {"numbers/a": 42, "numbers/b": 0},
            "limit": 10,
            "limits": {"maxOffsetsPerTrigger": 10},
            "maxOffsetsBehindLatest": "42",
            "minOffsetsBehindLatest": "0",
            "offsets": {"numbers": {"a": 50, "b": 2}},
            "polls": {"numbers": 1},
            "reason": "user limit",
            "throttled": ["numbers/a"],
            "throttledBy": {"user limit": 1},
            "version": 1,
        }
    ]


def test_report_stays_small(world):
    world.put(**{f"p{i}": 3 for i in range(101)})
    run = Run(world.options(maxOffsetsPerTrigger=200), Checkpoint())
    run.trigger()
    assert run.reported == [
        {
            "avgOffsetsBehindLatest": str(103 / 101),
            "backlog": 103,
            "limit": 200,
            "limits": {"maxOffsetsPerTrigger": 200},
            "maxOffsetsBehindLatest": "2",
            "minOffsetsBehindLatest": "1",
            "polls": {"numbers": 1},
            "reason": "user limit",
            "throttled": 101,
            "throttledBy": {"user limit": 101},
            "version": 1,
        }
    ]


def test_report_shows_what_came_after_available_now(world):
    world.put(a=5)
    run = Run(world.options(), Checkpoint(), available_now=True)
    world.put(a=8)
    run.trigger()
    assert run.reported[0]["backlog"] == 3


def test_report_before_anything_is_known_and_when_it_breaks(world, monkeypatch, caplog):
    world.put(a=5)
    run = Run(world.options(), Checkpoint())
    assert run.reader.reportLatestOffset() is None
    run.trigger()
    monkeypatch.setattr("pystorm_source.source.driver.backlog.Backlog.to_json", lambda self: 1 / 0)
    assert run.reader.reportLatestOffset() is None
    assert "no backlog is reported" in caplog.text


# --- spouts without offsets


def test_best_effort_slices(world):
    options = world.options("Ticks", delivery__guarantee="best-effort", maxOffsetsPerTrigger=7)
    run = Run(options, Checkpoint())
    assert run.trigger()
    assert run.trigger()
    assert [len(rows) for rows in run.checkpoint.rows] == [7, 7]
    assert json.loads(run.position) == sealed({"offsets": {"ticks": {"task": 14}}, "version": 1})
    assert run.reported[-1]["backlog"] == 0


def test_best_effort_available_now_is_one_slice(world):
    options = world.options("Ticks", delivery__guarantee="best-effort", maxOffsetsPerTrigger=7)
    checkpoint = Checkpoint()
    assert Run(options, checkpoint, available_now=True).drain() == 1
    assert Run(options, checkpoint, available_now=True).drain() == 1
    assert json.loads(checkpoint.offsets[-1])["offsets"] == {"ticks": {"task": 14}}


# --- what goes wrong


def test_offset_of_another_topology(world):
    world.put(a=5)
    checkpoint = run_all(world.options())
    with pytest.raises(CheckpointError, match=r"knows the spouts \['numbers'\], this one has \['ticks'\]"):
        Run(world.options("Ticks", delivery__guarantee="best-effort"), checkpoint).trigger()


def test_failing_bolt_says_where(world, monkeypatch):
    def process(self, tup):
        if tup.values[1] == 3:
            raise ZeroDivisionError("three")
        self.emit((tup.values[0], 0))

    monkeypatch.setattr(topologies.DoubleBolt, "process", process)
    world.put(a=5)
    checkpoint = Checkpoint()
    with pytest.raises(TupleFailed) as failed:
        Run(world.options("Doubled"), checkpoint).trigger()
    block = FailureBlock.found_in(str(failed.value))
    assert block.what == "component 'doubled', task 3: process() raised ZeroDivisionError: three"
    assert block.place.startswith("tuple ('a', 3) of numbers.default; offset 3; in partition 'a' [0, 5)")
    assert block.line.endswith('in process: raise ZeroDivisionError("three")')
    (frames,) = failed.value.__notes__
    assert frames.count("  File ") == 1
    monkeypatch.undo()
    Run(world.options("Doubled"), checkpoint).drain()
    assert flat(checkpoint) == [("a", 2 * n) for n in range(5)]


def test_worker_is_kept_after_a_clean_end_only(world):
    world.put(a=30)
    options = world.options("Numbers", output__batch__rows=5)
    run = Run(options, Checkpoint())
    end = run.reader.latestOffset(run.reader.initialOffset(), run.limit)
    (partition,) = run.reader.partitions(run.reader.initialOffset(), end)
    warm._idle.clear()
    rows = run.reader.read(partition)
    next(rows)
    rows.close()  # LIMIT
    assert not warm._idle
    assert sum(batch.num_rows for batch in run.reader.read(partition)) == 30
    (worker,) = warm._idle.values()
    assert sum(batch.num_rows for batch in through_pickle(run.reader).read(partition)) == 30
    assert list(warm._idle.values()) == [worker]


def test_partition_of_another_version_is_not_read(world):
    world.put(a=3)
    run = Run(world.options(), Checkpoint())
    end = run.reader.latestOffset(run.reader.initialOffset(), run.limit)
    (partition,) = run.reader.partitions(run.reader.initialOffset(), end)
    partition.planned = dataclasses.replace(partition.planned, version="0.0")
    with pytest.raises(UsageError, match=r"driver runs pystorm-source 0\.0"):
        list(run.reader.read(partition))


def test_schema_that_does_not_fit_is_said_by_the_first_call(world):
    source = PystormDataSource(world.options())
    reader = source.streamReader(StructType([StructField("other", StringType())]))
    for call in (
        reader.initialOffset,
        reader.latestOffset,
        reader.getDefaultReadLimit,
        reader.prepareForTriggerAvailableNow,
        lambda: reader.partitions({}, {}),
        lambda: reader.read(None),
    ):
        with pytest.raises(SchemaError, match=r"\['part', 'n'\].* Given: \['other'\]"):
            call()
    reader.stop()


@pytest.mark.parametrize("given", ['{"numbers": {"a": 3}}', "latest"])
def test_ending_offsets_are_not_for_streams(world, given):
    source = PystormDataSource(world.options(endingOffsets=given))
    with pytest.raises(OptionError, match=rf"'endingOffsets' is for spark\.read: .* Given: {re.escape(repr(given))}"):
        source.streamReader(source.schema()).initialOffset()


def test_user_schema_is_met(world):
    world.put(a=2)
    schema = StructType([StructField("n", LongType()), StructField("part", StringType())])
    done = run_all(world.options("Untyped"), schema=schema)
    assert done.rows == [[(0, "a"), (1, "a")]]


def test_all_streams(world):
    world.put(a=4)
    done = run_all(world.options("Parted", streams="all"))
    assert sorted(done.rows[0], key=lambda row: row[0]) == [
        (0, 0.0, None, "parted", "even"),
        (1, None, "1", "parted", "odd"),
        (2, 1.0, None, "parted", "even"),
        (3, None, "3", "parted", "odd"),
    ]


def test_metadata(world):
    world.put(a=(5, 7))
    done = run_all(world.options("Doubled", includeMetadata="true"))
    assert {row[:4] + row[5:] for row in done.rows[0]} == {
        ("a", 10, "doubled", "default", "a", 5),
        ("a", 12, "doubled", "default", "a", 6),
    }
    assert {row[4] for row in done.rows[0]} <= {2, 3}


def test_no_micro_batch_is_planned_while_a_circuit_breaker_is_open(world):
    clock = ManualClock()
    limit = {"topology__rate__limit": '{"api": "10/s"}', "topology__circuit__breaker__pause__secs": 5}
    request = ReadRequest.of(world.options(**limit))
    reader = PystormStreamReader(request, request.rows.output(request.rows.schema()), clock, controlled=False)
    world.put(a=10)
    start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    world.put(a=20)
    reader._telemetry.leases.answer("task", b'{"limit": "api", "bad": 10}')

    assert reader.latestOffset(start, ReadAllAvailable()) == start
    assert reader.reportLatestOffset()["pausedMillis"] == {"api": 5000}
    clock.advance(6)
    assert reader.latestOffset(start, ReadAllAvailable()) != start
    assert "pausedMillis" not in reader.reportLatestOffset()


def test_rate_limits_without_reports_need_fixed_shares(world):
    limit = {"topology__rate__limit": '{"api": "10/s"}', "feedback": "off"}
    request = ReadRequest.of(world.options(**limit))
    with pytest.raises(OptionError, match=r"feedback=off has no process that gives .*topology.rate.limit.tasks"):
        request.check_streaming()
    ReadRequest.of(world.options(topology__rate__limit__tasks=2, **limit)).check_streaming()
