"""The section ``topology`` of a progress: tasks that report over a real connection, without Spark."""

import time
from functools import partial

import pytest

from pystorm_source.channel.reports.receiver import ReportReceiver
from pystorm_source.channel.reports.server import ReportServer
from pystorm_source.errors import TupleFailed
from pystorm_source.records.record import Counts, topology_of
from tests.channel.reports.made_reports import wait_until
from tests.source.spark_calls import Checkpoint, Run


@pytest.fixture
def run_of(world):
    """Makes runs whose reader listens, as it does in the runner."""
    made = []

    def make(topology, checkpoint=None, late=0.0, **options):
        run = Run(world.options(topology, **options), checkpoint or Checkpoint())
        reader, told = run.reader, run.reader._telemetry
        command = ["java", "--master", "local[2]"]

        def add(report):
            time.sleep(late)  # the machine is busy
            told.counts.add(report)

        reader._telemetry.receiver = ReportReceiver(
            reader._request.options, here=True, driver_command=command, make=partial(ReportServer, on_report=add)
        )
        made.append(reader)
        return run

    yield make
    for reader in made:
        reader.stop()


def topology(run):
    """The section as Spark would show it now."""
    return topology_of(run.reader.reportLatestOffset().get("topology"))


def test_the_counts_of_a_micro_batch_are_in_the_progress_of_the_next_one(world, run_of):
    world.put(a=30, b=20)
    run = run_of("Doubled", maxOffsetsPerTrigger=20)
    for number in range(3):
        assert run.trigger()
        wait_until(lambda number=number: (found := topology(run)) and found.batch == number and found.whole)
    assert not run.trigger()
    sections = [report.get("topology") for report in run.reported]
    assert sections[0] is None
    shown = [topology_of(section) for section in sections[1:]]
    assert [section.batch for section in shown] == [0, 1, 2]
    assert all(section.whole for section in shown)
    assert [section.component("numbers").batch.emitted for section in shown] == [20, 20, 10]
    assert [section.component("numbers").total.emitted for section in shown] == [20, 40, 50]
    last = shown[-1]
    assert sum(len(rows) for rows in run.checkpoint.rows) == 50
    assert [edge.transferred for edge in last.edges if not edge.target] == [len(run.checkpoint.rows[-1])]
    assert last.name == "Doubled"
    assert last.run == run.reader._telemetry.run
    assert {each.spout for each in last.slow_partitions} == {"numbers"}


def test_reports_that_come_late_are_waited_for_before_the_next_micro_batch_is_planned(world, run_of):
    world.put(a=30, b=20)
    run = run_of("Doubled", maxOffsetsPerTrigger=20, late=0.05)
    run.drain()
    shown = [topology_of(report["topology"]) for report in run.reported[1:]]
    assert [(section.batch, section.whole) for section in shown] == [(0, True), (1, True), (2, True)]
    assert [report["tasks"]["rows"] for report in run.reported[1:]] == [len(rows) for rows in run.checkpoint.rows]


def test_an_attempt_that_failed_reports_its_error_and_nothing_else(world, run_of):
    world.put(a=20)
    run = run_of("FailsOnce")
    with pytest.raises(TupleFailed):
        run.trigger()
    found = wait_until(lambda: topology(run))
    once = found.component("once")
    assert not found.whole
    assert once.batch == Counts(errors=1)
    assert once.last_error.text == "RuntimeError: the first time"
    assert once.last_error.frames[0].startswith("topologies.py:")
    run._run_batch()
    found = wait_until(lambda: (found := topology(run)).whole and found)
    assert found.batch == 0
    assert (found.component("once").batch.executed, found.component("once").batch.errors) == (20, 1)
    run.trigger()
    tasks = run.reader.reportLatestOffset()["tasks"]
    assert (tasks["ranges"], tasks["failedTasks"], tasks["rows"]) == (1, 1, 20)


def test_a_restart_counts_anew_and_reads_the_planned_micro_batch_first(world, run_of):
    world.put(a=20)
    checkpoint = Checkpoint()
    run = run_of("Doubled", checkpoint)
    run.drain()
    world.put(a=25)
    again = run_of("Doubled", checkpoint)
    again.drain()
    found = wait_until(lambda: topology(again))
    assert (found.component("numbers").total.emitted, found.batch) == (5, 0)
