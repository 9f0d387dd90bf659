"""Replayable cursor spouts, as Spark calls them, without Spark and without a journal: a real HTTP server."""

import json
import time

import pytest

from pystorm_source import CursorSpout, RetryLater, Topology
from pystorm_source.api.replayed_cursors import ReplayedCursors, Segment, segment_of
from pystorm_source.errors import CheckpointError, TopologyError, TupleFailed
from pystorm_source.plan import compile_plan
from testbed.uncontrolled import UNCONTROLLED
from tests.source.journal_world import unfinished
from tests.source.pages import PageSpout, SparseSpout, pages
from tests.source.spark_calls import Checkpoint, Run
from tests.source.test_cursor_spouts import ids


@pytest.fixture
def server():
    with pages() as found:
        yield found


def options(server, topology="Replayable", **more):
    named = {key.replace("__", "."): str(value) for key, value in more.items()}
    return {
        "topology": f"tests.source.pages:{topology}",
        "path": server.url,
        "spout.poll.seconds": "0.05",
        **{key: str(value) for key, value in UNCONTROLLED.items()},
        **named,
    }


def until(run, checkpoint, count):
    """Triggers until so many rows are there; a trigger without any takes no time."""
    end = time.monotonic() + 30
    while len(ids(checkpoint)) < count:
        assert time.monotonic() < end, ids(checkpoint)
        run.trigger()


def segments(checkpoint, at=-1):
    return [segment_of(name) for name in json.loads(checkpoint.offsets[at])["offsets"]["rows"]]


def test_a_segment_is_read_back_from_its_name():
    made = Segment('a"b', 3, (), (), '{"since":7}', 0).then('{"since":7}', 5, "[1,null]").then("[1,null]", 2, '"x"')
    assert segment_of(made.name) == made
    assert made.begins == (0, 5)
    assert made.rows == 7


def test_each_row_comes_once_and_nothing_is_stored_but_the_offset(server):
    server.fill(23)
    checkpoint = Checkpoint()
    run = Run(options(server), checkpoint)
    until(run, checkpoint, 23)
    server.fill(2)
    until(run, checkpoint, 25)
    assert ids(checkpoint) == list(range(1, 26))


def test_a_limit_cuts_pages_and_rows_keep_their_order(server):
    server.fill(23)
    checkpoint = Checkpoint()
    run = Run(options(server, maxOffsetsPerTrigger=7), checkpoint)
    until(run, checkpoint, 23)
    assert ids(checkpoint) == list(range(1, 24))
    assert max(map(len, checkpoint.rows)) <= 7
    assert checkpoint.rows[0] == [(n, str(n)) for n in range(1, 6)], "the first page, which is not read twice"


def test_several_tasks_read_the_pages_of_a_segment(server):
    server.fill(40)
    checkpoint = Checkpoint()
    run = Run(options(server, minPartitions=4), checkpoint, available_now=True)
    run.drain()
    ends = json.loads(checkpoint.offsets[-1])
    assert len(run.reader.partitions(run.reader.initialOffset(), ends)) == 4
    assert sorted(ids(checkpoint)) == list(range(1, 41))


def test_a_micro_batch_that_is_run_again_has_the_rows_that_it_had_though_its_last_page_has_grown(server):
    server.fill(8)
    checkpoint, found = Checkpoint(), options(server)
    Run(found, checkpoint).trigger()
    assert len(ids(checkpoint)) == 8
    rows = unfinished(checkpoint)
    server.fill(20)
    run = Run(found, checkpoint)
    assert checkpoint.rows == [rows]
    until(run, checkpoint, 28)
    assert ids(checkpoint) == list(range(1, 29))


def test_a_new_process_goes_on_wherever_the_old_one_was(server):
    server.fill(40)
    checkpoint, found = Checkpoint(), options(server, maxOffsetsPerTrigger=3)
    while len(ids(checkpoint)) < 40:
        run = Run(found, checkpoint)
        assert run.trigger()
        run.reader.stop()
    assert ids(checkpoint) == list(range(1, 41))


def test_empty_pages_are_passed_over(server):
    checkpoint = Checkpoint()
    run = Run(options(server, "Sparse", spout__poll__seconds=0.01), checkpoint)
    until(run, checkpoint, 3)
    assert ids(checkpoint) == [0, 4, 5]


def test_a_task_passes_over_the_empty_pages_of_a_segment():
    segment = Segment("", 0, (), (), "", 0).then("null", 1, "1").then("4", 1, "5").then("5", 1, "6")
    spout, found = ReplayedCursors(SparseSpout), []
    spout._start({}, {})
    spout.emit = lambda values, offset: found.append((values[0], offset))
    spout.open(segment.name, 0, 3)
    while spout.next_tuple() is not False:
        pass
    assert found == [(0, 0), (4, 1), (5, 2)]


def test_available_now_reads_all_there_is_and_ends(server):
    checkpoint, found = Checkpoint(), options(server, maxOffsetsPerTrigger=9)
    for more in (40, 7, 0, 1):
        server.fill(more)
        run = Run(found, checkpoint, available_now=True)
        run.drain()
        run.reader.stop()
        assert sorted(ids(checkpoint)) == list(range(1, len(server.rows[""]) + 1))


def test_offsets_keep_only_the_last_finished_segments(server):
    server.rows = {}
    server.fill(6, "a")
    server.fill(2, "b")
    checkpoint = Checkpoint()
    run = Run(options(server, "ReplayableAccounts"), checkpoint)
    until(run, checkpoint, 8)
    gone = server.rows.pop("b")
    for round in range(1, 6):
        server.fill(3, "a")
        until(run, checkpoint, 8 + 3 * round)
    assert sorted(each.partition for each in segments(checkpoint)) == ["a", "a", "b"]
    server.rows["b"] = gone
    server.fill(1, "b")
    until(Run(options(server, "ReplayableAccounts"), checkpoint), checkpoint, 24)
    texts = [text for rows in checkpoint.rows for _, text in rows]
    assert len(set(texts)) == len(texts) == 24


def test_a_server_that_is_busy_loses_nothing(server):
    server.fill(12)
    server.busy = 5
    checkpoint = Checkpoint()
    run = Run(options(server), checkpoint)
    until(run, checkpoint, 12)
    server.busy = 3
    server.fill(5)
    until(run, checkpoint, 17)
    assert ids(checkpoint) == list(range(1, 18))


class HalfBusy(CursorSpout):
    """Of its partitions, `busy` has a service that never answers."""

    outputs = ["n long"]
    replayable = True
    poll_seconds = 30.0
    names = ("busy", "idle")

    def partitions(self):
        return self.names

    def read(self, cursor, limit):
        if self.partition == "busy":
            raise RetryLater(1)
        return [[1]][cursor or 0 :], 1


def test_a_partition_that_is_busy_holds_up_no_other_one():
    spout = ReplayedCursors(HalfBusy)
    spout._start({}, {})
    for _ in range(2):
        assert [segment_of(name).partition for name in spout.snapshot({}, {}).heads] == ["idle"]
    (name,) = spout.snapshot({}, {}).heads
    assert spout.snapshot({name: 1}, {}).heads == {name: (0, 1)}
    alone = ReplayedCursors(type("AllBusy", (HalfBusy,), {"names": ("busy",)}))
    alone._start({}, {})
    with pytest.raises(RetryLater):
        alone.snapshot({}, {})


def test_pages_that_raise_what_is_worth_a_retry_are_read_again_in_a_task(server, monkeypatch, caplog):
    server.fill(8)
    checkpoint, opens = Checkpoint(), ReplayedCursors.open

    def opened(*arguments):
        server.garbled = 2
        opens(*arguments)

    monkeypatch.setattr(ReplayedCursors, "open", opened)
    run = Run(options(server, topology__retry__on='{"IncompleteRead": "retry"}'), checkpoint)
    run.drain()
    assert ids(checkpoint) == list(range(1, 9))
    assert "spout 'rows' is unavailable: read() raised IncompleteRead" in caplog.text


@pytest.mark.parametrize("fails", [True, False])
def test_rows_that_the_source_no_longer_has_are_an_error(server, fails):
    server.fill(8)
    checkpoint, found = Checkpoint(), options(server, failOnDataLoss=str(fails).lower())
    Run(found, checkpoint).trigger()
    unfinished(checkpoint)
    del server.rows[""][6:]
    if fails:
        with pytest.raises(TupleFailed, match=r"rows 6 to 8 \(exclusive\) behind cursor null are gone"):
            Run(found, checkpoint)
    else:
        Run(found, checkpoint)
        assert ids(checkpoint) == [1, 2, 3, 4, 5, 6]


def test_a_checkpoint_of_a_journal_is_refused(server, tmp_path):
    server.fill(3)
    checkpoint = Checkpoint()
    Run(options(server, "Rows", journal__path=tmp_path, batch__target__millis=50), checkpoint).trigger()
    with pytest.raises(CheckpointError, match="has no cursors in its offsets"):
        Run(options(server), checkpoint).trigger()


def test_a_replayable_spout_remembers_nothing():
    class Both(PageSpout):
        replayable = True
        remembered = 1000

    class Feeds(Topology):
        rows = Both.spec()

    with pytest.raises(TopologyError, match="its cursor never goes back"):
        compile_plan(Feeds)


def test_cuts_are_begins_of_pages(server):
    name = Segment("", 0, (), (), "null", 0)
    for at in range(4):
        name = name.then(str(at * 5), 5, str(at * 5 + 5))
    spout = ReplayedCursors(PageSpout)
    assert spout.align(name.name, 0, 13) == 10
    assert spout.align(name.name, 10, 13) == 13
    assert spout.align(name.name, 0, 20) == 20
    assert spout.split(name.name, 0, 20, 2) == [10]
    assert spout.split(name.name, 3, 20, 8) == [5, 10, 15]
    assert spout.split(name.name, 6, 9, 4) == []
