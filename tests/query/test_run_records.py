"""The records of a run's files, for a listener: each once, when its micro-batch has ended and all was reported."""

import os

import pytest
from msgspec.structs import replace

from pystorm_source.query.run_records import RunRecords
from pystorm_source.records.record_file import Begin
from pystorm_source.records.record_writer import RecordWriter
from tests.records.samples import progress

RUN = "a3b4"


@pytest.fixture
def file(tmp_path):
    return RecordWriter(tmp_path, Begin(topology="Sample", run="0123", process=os.getpid()))


@pytest.fixture
def run(tmp_path):
    return RunRecords(RUN, tmp_path, first=0)


def record(batch, whole=True, **changed):
    made = progress(batch, components=2)
    return replace(made, topology=replace(made.topology, whole=whole), **changed)


def reported(run, batch, rows=5):
    run.reported({"batchId": batch, "name": "slow", "timestamp": "now", "numInputRows": rows, "sources": []})


def batches(records):
    return [each.batch_id for each in records]


def test_each_is_given_once(file, run):
    found = []
    for batch in range(4):
        file.write(record(batch))
        reported(run, batch)
        found += run.new()
        assert run.new() == []
    file.end(0.0)
    assert run.rest() == []
    assert batches(found) == [0, 1, 2, 3]


def test_it_has_sparks_name_and_time(file, run):
    file.write(record(0))
    reported(run, 0)
    (found,) = run.new()
    assert (found.name, found.timestamp) == ("slow", "now")


def test_what_tasks_have_still_to_say_is_waited_for(file, run):
    file.write(record(0, whole=False))
    reported(run, 0)
    assert run.new() == []
    file.write(record(0, rows=7))
    assert [each.rows for each in run.new()] == [7]


def test_what_was_never_said_is_not_waited_for_when_the_next_one_runs(file, run):
    file.write(record(0, whole=False))
    file.write(record(1))
    reported(run, 1)
    assert batches(run.new()) == [0, 1]


def test_the_rest_comes_at_the_end(file, run):
    file.write(record(0))
    reported(run, 0)
    assert batches(run.new()) == [0]
    file.write(record(1, whole=False))
    reported(run, 1)
    file.end(0.0)
    assert batches(run.rest()) == [1]


def test_what_was_missing_when_it_was_given_comes_once_more_at_the_end(file, run):
    """Of the record that Spark has, too."""
    file.write(record(0, whole=False))
    file.write(record(0, rows=7))
    file.write(record(1, whole=False))
    reported(run, 1)
    run.given(replace(record(0, whole=False), counts_of_batch_before=True))
    run.given(replace(record(1, whole=False), counts_of_batch_before=True))
    file.end(0.0)
    assert [(each.batch_id, each.rows) for each in run.rest()] == [(0, 7)]
    assert run.rest() == []


def test_a_file_of_a_run_that_ends_before_its_first_report_is_waited_for(file, run):
    file.write(record(0, whole=False, run_id=""))

    class Clock:
        def monotonic(self):
            return 0.0

        def sleep(self, seconds):
            file.write(record(0))
            file.end(0.0)

    reported(run, 0)
    assert batches(run.rest(Clock())) == [0]


def test_a_micro_batch_that_was_cut_off_is_not_given(file, run):
    file.write(record(0))
    file.write(record(1))
    reported(run, 0)
    assert batches(run.new()) == [0]
    file.end(0.0)
    assert run.rest() == []


def test_those_that_run_ahead_of_spark_are_not_lost(file, run):
    for batch in range(5):
        file.write(record(batch))
    for batch in range(4):
        reported(run, batch)
        assert batches(run.new()) == [batch]


def test_what_spark_itself_has_reported_is_not_given_again(file, run):
    """Its progress of a micro-batch has the counts of the one before."""
    for batch in range(3):
        file.write(record(batch))
        reported(run, batch)
    run.given(replace(record(1), batch_id=2, counts_of_batch_before=True))
    file.end(0.0)
    assert batches(run.rest()) == [2]


def test_micro_batches_before_the_listener_was_added_are_not_given(file, tmp_path):
    for batch in range(3):
        file.write(record(batch))
    run = RunRecords(RUN, tmp_path, first=2)
    reported(run, 2)
    assert batches(run.new()) == [2]


def test_other_runs_are_passed_over(file, run, tmp_path):
    other = RecordWriter(tmp_path, Begin(topology="Sample", run="4567", process=os.getpid()))
    other.write(record(0, run_id="another"))
    file.write(record(0))
    reported(run, 0)
    assert [each.run_id for each in run.new()] == [RUN]


def test_each_source_of_a_query_has_a_file(file, run, tmp_path):
    other = RecordWriter(tmp_path, Begin(topology="Other", run="4567", process=os.getpid()))
    made = record(0)
    other.write(replace(made, topology=replace(made.topology, name="Other", run="4567")))
    file.write(made)
    reported(run, 0)
    assert sorted(each.topology.name for each in run.new()) == ["Other", "Sample"]


def test_the_sink_of_a_query_is_asked_for_by_its_door(file, run, tmp_path):
    """Spark tells of a source itself, and of a sink nothing."""
    sink = RecordWriter(tmp_path, Begin(topology="Sink", run="4567", process=0))
    made = record(0, door="sink")
    sink.write(replace(made, topology=replace(made.topology, name="Sink", run="4567")))
    file.write(record(0))
    reported(run, 0)
    assert [(each.door, each.name) for each in run.new("sink")] == [("sink", "slow")]
    assert run.new("sink") == []
    assert [each.door for each in run.new()] == ["source"]


def test_a_runner_that_was_killed_is_not_waited_for(tmp_path, run):
    file = RecordWriter(tmp_path, Begin(topology="Sample", run="0123", process=2**22 + 1))
    file.write(record(0, whole=False))
    reported(run, 0)
    assert batches(run.rest(NoClock())) == [0]


class NoClock:
    def monotonic(self):
        return 0.0

    def sleep(self, seconds):
        pytest.fail("waits")
