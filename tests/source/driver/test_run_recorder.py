"""The record of a run: what the runner knows of each micro-batch is in the run's file."""

import os
import tempfile
import threading

import pytest
from msgspec.structs import replace

from pystorm_source.channel.leases.messages import granted_decoder
from pystorm_source.clock import ManualClock
from pystorm_source.counts.run_outline import begin_of
from pystorm_source.records.record import TopologyProgress
from pystorm_source.records.record_file import RecordFile
from pystorm_source.records.record_folder import files_in, private_folder
from pystorm_source.source.driver import run_recorder
from pystorm_source.source.driver.run_recorder import QUIET_SECONDS, RunRecorder
from pystorm_source.source.driver.stream_reader import PystormStreamReader
from pystorm_source.source.request import ReadRequest
from pystorm_source.source.task.range_partition import ranges_of
from tests.counts.test_summary import arrived

pytest.importorskip("pyspark.sql.streaming.datasource", reason="4.0 and 4.1 ask without a limit")


@pytest.fixture(autouse=True)
def private(tmp_path, monkeypatch):
    """The private folder of the driver."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return private_folder(os.getppid())


class Reader:
    """A reader, asked as Spark asks it, whose runs are recorded."""

    def __init__(self, world, topology="Numbers", **options):
        request = ReadRequest.of({name.lower(): value for name, value in world.options(topology, **options).items()})
        output = request.rows.output(request.rows.schema())
        self.clock = ManualClock(1_767_225_600.0)
        self.reader = PystormStreamReader(request, output, self.clock, recorded=True)
        self.at = self.reader.initialOffset()

    def plan(self):
        """The ranges of the next micro-batch."""
        end = self.reader.latestOffset(self.at, self.reader.getDefaultReadLimit())
        if end == self.at:
            return []
        tasks = self.reader.partitions(self.at, end)
        self.at = end
        return [each for task in tasks for each in ranges_of(task)]

    def ask_in_vain(self, waited):
        now = self.clock.monotonic(), self.clock.wall()
        self.reader._telemetry.recorder.answered(now, None, waited)

    def report(self, *ranges, seconds=0.5, broken_off=False):
        for each in ranges:
            self.clock.advance(seconds)
            sent = arrived(
                batch=each.batch,
                spout=each.component,
                partition=each.partition,
                start=each.start,
                end=each.end,
                offsets=each.end - each.start,
                rows=0 if broken_off else each.end - each.start,
                seconds=seconds,
                broken_off=broken_off,
            )
            self.reader._telemetry.recorder.reported(replace(sent, arrived=self.clock.monotonic()))


def run_in(folder):
    (path,) = files_in(folder)
    return RecordFile(path).read()


def rows(folder):
    return [record.rows for record in run_in(folder).records]


def test_each_micro_batch_has_a_record_when_the_next_one_is_planned(world, private):
    world.put(a=9)
    reader = Reader(world, maxOffsetsPerTrigger=4)
    reader.report(*reader.plan())
    reader.clock.advance(1.5)  # the sink
    reader.report(*reader.plan())
    reader.plan()
    run = run_in(private)
    first, second = run.records
    assert (first.rows, first.backlog, first.reason, first.limit) == (4, 5, "user limit", 4)
    assert (first.timestamp, first.seconds) == ("2026-01-01T00:00:00.000Z", 2.0)
    assert first.tasks.ranges == 1 and not first.counts_of_batch_before
    assert (second.rows, second.topology.batch, second.timestamp) == (4, 1, "2026-01-01T00:00:02.000Z")
    assert run.ended is None


def test_the_first_line_draws_the_topology(world, private):
    world.put(a=9)
    reader = Reader(world, "Doubled")
    reader.report(*reader.plan())
    begin = run_in(private).begin
    assert (begin.topology, begin.process) == ("Doubled", os.getpid())
    assert [(each.name, each.kind, each.tasks) for each in begin.components] == [
        ("numbers", "spout", 1),
        ("doubled", "bolt", 2),
    ]
    assert [(each.source, each.target) for each in begin.edges] == [("numbers", "doubled"), ("doubled", "")]


def test_a_record_is_written_as_soon_as_all_ranges_are_reported(world, private):
    world.put(a=9, b=5)
    reader = Reader(world)
    first, second = reader.plan()
    reader.report(first)
    assert (rows(private), run_in(private).records[0].topology.whole) == ([9], False)
    reader.report(second)
    assert (rows(private), run_in(private).records[0].topology.whole) == ([14], True)


def test_a_micro_batch_that_takes_long_is_written_now_and_then(world, private):
    world.put(**{f"p{n}": 1 for n in range(20)})
    reader = Reader(world)
    ranges = reader.plan()
    reader.report(ranges[0])
    reader.report(*ranges[1:3], seconds=QUIET_SECONDS / 4)
    assert rows(private) == [1]
    reader.report(*ranges[3:5], seconds=QUIET_SECONDS / 4)
    assert rows(private) == [5]


def test_the_last_micro_batch_is_written_at_the_end_of_the_run(world, private):
    world.put(a=9, b=5)
    reader = Reader(world)
    first, _ = reader.plan()
    reader.report(first)
    reader.reader.stop()
    run = run_in(private)
    assert [(record.rows, record.topology.whole) for record in run.records] == [(9, False)]
    assert run.ended == reader.clock.wall()
    reader.reader.stop()


def test_the_end_of_a_run_waits_for_reports_on_their_way(world, private, monkeypatch):
    monkeypatch.setattr(run_recorder, "LAST_SECONDS", 60)
    monkeypatch.setattr(run_recorder, "CUT_OFF_SECONDS", 0)
    world.put(a=9, b=5)
    reader = Reader(world)
    first, second = reader.plan()
    reader.plan()  # Spark asks for the next one: this one has ended
    cleaned = threading.Event()
    reader.reader._spouts.cleanup = cleaned.set
    ending = threading.Thread(target=reader.reader.stop)
    ending.start()
    assert cleaned.wait(60), "what the next run needs is given back first"
    reader.report(first)
    assert run_in(private).ended is None
    reader.report(second)
    ending.join(60)
    assert (rows(private), run_in(private).ended) == ([14], reader.clock.wall())


def test_what_is_known_is_written_before_the_end_waits(world, private, monkeypatch):
    """Whoever ends the process, as the end of its container does, leaves a record."""
    monkeypatch.setattr(run_recorder, "LAST_SECONDS", 60)
    world.put(a=9, b=5)
    reader = Reader(world)
    first, _ = reader.plan()
    reader.plan()
    reader.report(first)
    reader.reader._telemetry.recorder.settle()
    assert (rows(private), run_in(private).ended) == ([9], None)


def test_the_end_of_a_run_waits_for_a_moment_if_its_micro_batch_may_be_cut_off(world, private, monkeypatch):
    monkeypatch.setattr(run_recorder, "LAST_SECONDS", 600)
    monkeypatch.setattr(run_recorder, "CUT_OFF_SECONDS", 0.01)
    world.put(a=9, b=5)
    reader = Reader(world)
    first, _ = reader.plan()
    reader.report(first)
    reader.reader.stop()
    assert (rows(private), run_in(private).ended) == ([9], reader.clock.wall())


def test_the_end_of_a_run_waits_for_nothing_if_a_task_has_failed(world, private, monkeypatch):
    monkeypatch.setattr(run_recorder, "CUT_OFF_SECONDS", 600)
    world.put(a=9, b=5)
    reader = Reader(world)
    _, second = reader.plan()
    reader.report(second, broken_off=True)
    reader.reader.stop()
    assert (rows(private), run_in(private).ended) == ([0], reader.clock.wall())


def test_reports_that_get_lost_all_the_time_do_not_keep_the_process(world, private, monkeypatch):
    monkeypatch.setattr(run_recorder, "LAST_SECONDS", 600)
    monkeypatch.setattr(run_recorder, "CUT_OFF_SECONDS", 0.01)
    world.put(a=9, b=9)
    reader = Reader(world, maxOffsetsPerTrigger=4)
    for _ in range(2):
        reader.report(reader.plan()[0])
    reader.ask_in_vain(waited=False)
    reader.reader.stop()
    assert [each.topology.whole for each in run_in(private).records] == [False, False]


def test_a_micro_batch_that_was_cut_off_before_its_first_report_has_no_record(world, private):
    world.put(a=9)
    reader = Reader(world, maxOffsetsPerTrigger=4)
    reader.report(*reader.plan())
    reader.plan()
    reader.reader.stop()
    assert rows(private) == [4]


def test_reports_of_the_micro_batch_before_correct_its_record_until_the_next_one_is_written(world, private):
    world.put(a=9, b=9)
    reader = Reader(world, maxOffsetsPerTrigger=4)
    late, early = reader.plan()
    reader.report(early)
    after = reader.plan()
    assert rows(private) == [2]
    reader.report(late)
    assert rows(private) == [4]
    reader.report(*after)
    late, early = reader.plan()
    reader.report(early)
    reader.report(*reader.plan())
    reader.report(late)
    assert rows(private) == [4, 4, 2, 4]


def test_reports_that_come_late_correct_the_record(world, private):
    world.put(a=9, b=5)
    reader = Reader(world)
    first, second = reader.plan()
    reader.report(first)
    reader.plan()
    assert rows(private) == [9]
    reader.report(second)
    assert rows(private) == [14]


def test_time_that_the_query_waits_for_its_trigger_is_no_part_of_a_micro_batch(world):
    world.put(a=9)
    reader = Reader(world)
    (only,) = reader.plan()
    reader.report(only, seconds=0.5)
    reader.clock.advance(9.5)
    reader.ask_in_vain(waited=True)
    (record,) = run_in(private_folder(os.getppid())).records
    assert record.seconds == 0.5


def test_a_micro_batch_of_the_run_before_has_a_record_without_admission(world, private):
    world.put(a=9)
    planned = Reader(world)
    planned.plan()
    again = Reader(world)
    again.report(*again.reader.partitions(planned.reader.initialOffset(), planned.at))
    (record,) = run_in(private).records
    assert (record.rows, record.reason, record.budget) == (9, "none", None)


def test_reports_that_could_not_be_used_are_counted(world, private):
    world.put(a=9)
    reader = Reader(world)
    reader.reader._telemetry.recorder._dropped = lambda: {"wrong mac": 2}
    reader.report(*reader.plan())
    (record,) = run_in(private).records
    assert record.tasks.reports_dropped == {"wrong mac": 2}


def test_counts_of_components_are_those_of_the_micro_batch(world, private):
    world.put(a=9)
    reader = Reader(world, maxOffsetsPerTrigger=4)
    counted = TopologyProgress(name="Numbers", batch=0, seconds=5.0)
    reader.reader._telemetry.recorder._topology = {0: counted}.get
    reader.report(*reader.plan())
    reader.report(*reader.plan())
    first, second = run_in(private).records
    assert first.topology == counted
    assert (second.topology.batch, second.topology.seconds) == (1, 0.0)


@pytest.mark.parametrize(("head", "why"), [(9, "waits for Spark"), (4, None)], ids=["backlog", "no backlog"])
def test_what_a_micro_batch_costs_besides_its_tasks_is_named_if_it_holds_the_query_back(world, private, head, why):
    world.put(a=head)
    reader = Reader(world, maxOffsetsPerTrigger=4)
    reader.reader._telemetry.recorder._topology = lambda number: TopologyProgress(batch=number + 1, elapsed=0.5)
    reader.report(*reader.plan(), seconds=0.5)
    reader.clock.advance(4.5)  # the sink
    reader.plan()
    (record,) = run_in(private).records
    assert (record.bottleneck and record.bottleneck.why) == why


def test_a_folder_of_the_user_has_the_file_and_the_private_one_a_link(world, private, tmp_path):
    world.put(a=9)
    reader = Reader(world, progress__path=str(tmp_path / "kept" / "runs"))
    reader.report(*reader.plan())
    (path,) = (tmp_path / "kept" / "runs").iterdir()
    assert not path.is_symlink()
    (link,) = files_in(private)
    assert link.resolve() == path
    assert rows(private) == [9]


@pytest.mark.parametrize("given", ["s3://bucket/runs", "file:///runs"])
def test_a_uri_is_no_folder_of_the_driver(world, given):
    with pytest.raises(ValueError, match=r"without scheme.*Given: '" + given):
        Reader(world, progress__path=given)


def test_a_folder_that_cannot_be_written_ends_no_query_and_is_logged_once(world, private, tmp_path, caplog):
    (tmp_path / "file").write_text("")
    world.put(a=9)
    reader = Reader(world, maxOffsetsPerTrigger=4, progress__path=str(tmp_path / "file"))
    for _ in range(3):
        reader.report(*reader.plan())
    reader.reader.stop()
    (said,) = [said for said in caplog.messages if "progress.path" in said]
    assert "has gaps" in said and f"Given: progress.path='{tmp_path / 'file'}'" in said


def test_a_private_folder_that_another_user_has_made_is_not_used(world, private, caplog):
    private.mkdir(mode=0o777)
    private.chmod(0o777)
    world.put(a=9)
    reader = Reader(world)
    reader.report(*reader.plan())
    assert files_in(private) == []
    assert "only this user may enter" in caplog.text


def test_a_folder_that_was_removed_is_made_again(world, private):
    world.put(a=9)
    reader = Reader(world, maxOffsetsPerTrigger=4)
    reader.report(*reader.plan())
    files_in(private)[0].unlink()
    private.rmdir()
    reader.report(*reader.plan())
    assert rows(private) == [4, 4]


def test_a_failure_of_its_own_ends_no_query(world, private, caplog):
    world.put(a=9)
    reader = Reader(world)
    reader.reader._telemetry.recorder._topology = lambda number: 1 / 0
    reader.report(*reader.plan())
    assert "ZeroDivisionError" in caplog.text


def test_outside_of_the_runner_nothing_is_written(world, private):
    world.put(a=9)
    request = ReadRequest.of({name.lower(): value for name, value in world.options().items()})
    output = request.rows.output(request.rows.schema())
    clock = ManualClock(1.0)
    recorder = RunRecorder(begin_of(request.plan, output, "r", 1.0, {}), clock, lambda: None, dict)
    recorder.begun("b", 1)
    recorder.close()
    assert not private.exists()


def limited(world, **options):
    limit = {"topology__rate__limit": '{"api": "10/s"}', "topology__circuit__breaker__pause__secs": 5}
    return Reader(world, maxOffsetsPerTrigger=4, **limit, **options)


def test_a_breaker_that_opens_while_a_micro_batch_waits_is_in_the_last_line(world, private):
    """The micro-batch that waits has no report, and is not written itself."""
    world.put(a=90)
    reader = limited(world)
    reader.report(*reader.plan())
    running = reader.plan()
    assert run_in(private).records[-1].outages == ()
    ask = reader.reader._telemetry.leases.answer
    ask("task", b'{"limit": "api", "bad": 10, "error": "OSError: refused"}')
    said = run_in(private).records[-1]
    assert (said.topology.batch, said.rows) == (0, 4)
    (outage,) = said.outages
    assert (outage.name, outage.rate, outage.failed, outage.calls) == ("api", "10/s", 10, 10)
    assert outage.probe_at == pytest.approx(reader.clock.wall() + 5, abs=0.01)
    assert said.bottleneck.why == "waits for a circuit breaker" and "'api' (10/s) is open" in said.bottleneck.advice

    reader.clock.advance(6)
    probe = granted_decoder.decode(ask("task", b'{"limit": "api", "wanted": 1}')).probe
    ask("task", f'{{"limit": "api", "probe": {probe}, "works": false}}'.encode())
    again = run_in(private).records[-1].outages[0]
    assert again.probe_at == pytest.approx(reader.clock.wall() + 10, abs=0.01), "the pause has doubled"

    reader.report(*running)
    reader.clock.advance(11)
    probe = granted_decoder.decode(ask("task", b'{"limit": "api", "wanted": 1}')).probe
    assert run_in(private).records[-1].outages, "of the micro-batch that has waited"
    ask("task", f'{{"limit": "api", "probe": {probe}, "works": true}}'.encode())
    last = run_in(private).records[-1]
    assert (last.topology.batch, last.outages) == (1, ())


def test_an_outage_before_the_first_report_is_written(world, private):
    world.put(a=90)
    reader = limited(world)
    reader.plan()
    reader.reader._telemetry.leases.answer("task", b'{"limit": "api", "bad": 10}')
    assert "'api'" in run_in(private).records[-1].bottleneck.advice


def test_a_micro_batch_that_a_restart_runs_again_has_no_known_backlog(world, private):
    world.put(a=9)
    reader = Reader(world)
    end = reader.reader.latestOffset(reader.at, reader.reader.getDefaultReadLimit())
    again = Reader(world)
    ranges = [each for task in again.reader.partitions(again.at, end) for each in ranges_of(task)]
    again.report(*ranges)
    assert not run_in(private).records[-1].admitted
