"""A journal that several tasks read while one polls (``journal.readers``), as Spark calls it, without Spark."""

import json
from itertools import pairwise

import pytest

from pystorm_source.errors import CheckpointError, OptionError, TupleFailed
from pystorm_source.journal import store
from pystorm_source.journal.rows import JournalRows
from pystorm_source.journal.writer import BatchWriter
from tests.source.journal_world import TOPOLOGIES, numbers, unfinished
from tests.source.spark_calls import Checkpoint, Run, through_pickle


def readers(journaled, topology="Messages", count=2, **options):
    return journaled.options(topology, journal__readers=count, **options)


def tasks_of(run, start=None, end=None):
    """The tasks of a planned micro-batch, as role, start and end; by default of the next one."""
    start = start or (json.loads(run.position) if run.position else run.reader.initialOffset())
    end = end or run.reader.latestOffset(start, run.limit)
    return [(each.partition[32:], each.start, each.end) for each in run.reader.partitions(start, end)]


def offsets_of(checkpoint):
    """Role → offset, in the last planned offset."""
    ((_, found),) = json.loads(checkpoint.offsets[-1])["offsets"].items()
    return {name[32:]: offset for name, offset in found.items()}


# --- what a micro-batch reads


def test_a_micro_batch_polls_and_reads_what_the_last_one_polled(journaled):
    journaled.messages(17)
    checkpoint = Checkpoint()
    run = Run(readers(journaled), checkpoint)
    for _ in range(4):
        run.trigger()
    assert [[n for n, _ in rows] for rows in checkpoint.rows] == [
        [],
        [0, 1, 2, 3, 4, 5, 6],
        [7, 8, 9, 10, 11, 12, 13],
        [14, 15, 16],
    ]
    assert journaled.acked() == list(range(17))
    assert offsets_of(checkpoint) == {".intake": 28, ".read": 21}


def test_one_task_polls_and_others_read_equal_parts_of_the_tuples(journaled):
    journaled.messages(5)
    checkpoint = Checkpoint()
    run = Run(readers(journaled, maxOffsetsPerTrigger=1000, batch__target__millis=30), checkpoint)
    run.trigger()
    assert tasks_of(run) == [(".intake", 1000, 2000), (".read", 0, 2), (".read", 2, 1000)]


def test_there_are_no_more_tasks_than_tuples(journaled):
    journaled.messages(2)
    run = Run(readers(journaled, count=16, batch__target__millis=30), Checkpoint())
    run.trigger()
    assert tasks_of(run) == [(".intake", 7, 14), (".read", 0, 1), (".read", 1, 7)]
    journaled.messages(0)
    run.trigger()
    assert tasks_of(run) == [(".intake", 14, 21), (".read", 7, 14)]


def test_other_options_cut_neither(journaled):
    journaled.messages(7)
    run = Run(readers(journaled, minPartitions=8, maxRecordsPerPartition=1), Checkpoint())
    run.trigger()
    assert tasks_of(run) == [(".intake", 7, 14), (".read", 0, 3), (".read", 3, 7)]


def test_a_client_is_made_only_where_the_spout_is_polled(journaled, monkeypatch):
    from tests.source import journal_topologies

    made = []
    monkeypatch.setattr(journal_topologies.BrokerSpout, "initialize", lambda self, *given: made.append(self))
    monkeypatch.setattr(journal_topologies.BrokerSpout, "next_tuple", lambda self: False)
    run = Run(readers(journaled), Checkpoint())
    start = run.reader.initialOffset()
    end = run.reader.latestOffset(start, run.limit)
    then = run.reader.latestOffset(end, run.limit)
    intake, *_ = run.reader.partitions(start, end)
    assert list(run.reader.read(intake)) == []
    assert len(made) == 1
    other = Run(readers(journaled), Checkpoint()).reader  # of another run: no warm worker
    for partition in other.partitions(end, then)[1:]:
        assert list(other.read(partition)) == []
    assert len(made) == 1


@pytest.mark.parametrize("count", [1, 2, 3, 5, 100])
def test_any_number_of_readers_gives_the_same_rows_with_the_same_offsets(journaled, count):
    journaled.messages(40)
    options = readers(journaled, maxOffsetsPerTrigger=20, count=count, includeMetadata="true")
    checkpoint = Checkpoint()
    run = Run(options, checkpoint)
    for _ in range(3):
        run.trigger()
    assert [(row[0], row[-1]) for rows in checkpoint.rows for row in rows] == [(n, n) for n in range(40)]


@pytest.mark.parametrize("topology", ["Messages", "InBatches"])
def test_batches_are_cut_as_batches(journaled, topology, monkeypatch):
    monkeypatch.setattr(JournalRows, "emits", lambda *group: pytest.fail("tuples are made"))
    monkeypatch.setattr("pystorm_source.journal.rows.MOST_EMITTED", 3)
    journaled.messages(20)
    (journaled.world / "stumble").touch()
    checkpoint = Checkpoint()
    run = Run(readers(journaled, topology, count=3, maxOffsetsPerTrigger=20), checkpoint)
    run.trigger()
    run.trigger()
    assert sorted(numbers(checkpoint)) == list(range(20))


def test_streams_and_untyped_values_are_cut_in_the_order_of_their_emits(journaled):
    checkpoint = Checkpoint()
    run = Run(readers(journaled, "TwoStreams", count=4), checkpoint)
    run.trigger()
    run.trigger()
    assert sorted(numbers(checkpoint)) == list(range(9)), "three emits a call: two go beyond the permits"
    run.trigger()
    assert sorted(numbers(checkpoint)) == list(range(18))


def test_segments_without_tuples_of_a_part_are_not_read(journaled, monkeypatch):
    journaled.messages(600)
    options = readers(journaled, count=6, maxOffsetsPerTrigger=600, journal__segment__bytes=4096)
    monkeypatch.setattr("pystorm_source.journal.rows.MOST_ROWS", 100)
    monkeypatch.setattr("pystorm_source.journal.polled_spout.CALLS_TO_LOOK", 50)
    checkpoint = Checkpoint()
    run = Run(options, checkpoint)
    run.trigger()
    assert len(journaled.files(".segment")) > 3
    start, read = json.loads(run.position), []
    end = run.reader.latestOffset(start, run.limit)
    whole = store.LocalStore.read
    monkeypatch.setattr(store.LocalStore, "read", lambda self, name: read.append(name) or whole(self, name))
    last = run.reader.partitions(start, end)[-1]
    read.clear()
    rows = [row["n"] for batch in run.reader.read(last) for row in batch.to_pylist()]
    assert rows == list(range(500, 600))
    assert 0 < sum(name.endswith(".segment") for name in read) < len(journaled.files(".segment"))


def test_par_shares_what_is_polled_and_what_is_read(journaled):
    journaled.messages(9)
    checkpoint = Checkpoint()
    run = Run(readers(journaled, "PairOfTokens", count=3, batch__target__millis=20_000), checkpoint)
    run.trigger()
    assert len(journaled.files(".manifest")) == 2
    run.trigger()
    tokens = numbers(checkpoint)
    assert sorted(tokens.count(token) for token in set(tokens)) == [3, 4]


# --- a micro-batch that is run again


def test_a_micro_batch_that_is_run_again_has_the_same_rows(journaled):
    journaled.messages(30)
    options, checkpoint = readers(journaled, includeMetadata="true"), Checkpoint()
    run = Run(options, checkpoint)
    for _ in range(3):
        run.trigger()
    before = [*checkpoint.rows]
    unfinished(checkpoint)
    Run(options, checkpoint).trigger()
    assert checkpoint.rows[:3] == before
    assert [row[0] for rows in checkpoint.rows for row in rows] == list(range(21))
    assert journaled.acked() == list(range(28))


def test_a_reading_task_that_failed_is_tried_again_and_nothing_is_polled_twice(journaled):
    journaled.messages(20)
    (journaled.world / "stumble").touch()
    options, checkpoint = readers(journaled, "Stumbling"), Checkpoint()
    run = Run(options, checkpoint)
    run.trigger()
    with pytest.raises(TupleFailed, match="ZeroDivisionError: three"):
        run.trigger()
    Run(options, checkpoint).trigger()
    assert numbers(checkpoint) == list(range(14))
    assert journaled.acked() == list(range(21))[:20]


@pytest.mark.parametrize("ids", [False, True])
def test_a_polling_task_that_failed_is_tried_again(journaled, monkeypatch, ids):
    journaled.messages(3)
    options, checkpoint = readers(journaled, "Messages" if ids else "Loose"), Checkpoint()
    with monkeypatch.context() as patch:
        patch.setattr(BatchWriter, "commit", lambda self, notes=None: 1 / 0)
        with pytest.raises(TupleFailed, match="ZeroDivisionError"):
            Run(options, checkpoint).trigger()
    if not ids:
        journaled.messages(0)  # nothing gives them again
    Run(options, checkpoint).trigger()
    assert numbers(checkpoint) == [0, 1, 2]


def test_twins_of_a_polling_task_commit_once(objects, journaled):
    journaled.messages(7)
    checkpoint = Checkpoint()
    run = Run(readers(journaled, batch__target__millis=40), checkpoint)
    start = run.reader.initialOffset()
    end = run.reader.latestOffset(start, run.limit)
    (intake,) = run.reader.partitions(start, end)
    for _ in range(2):
        assert list(through_pickle(run.reader).read(through_pickle(intake))) == []
    assert journaled.acked() == list(range(7))
    then = run.reader.latestOffset(end, run.limit)
    for _ in range(2):
        rows = [
            row["n"]
            for each in run.reader.partitions(end, then)[1:]
            for batch in run.reader.read(each)
            for row in batch.to_pylist()
        ]
        assert rows == list(range(7))


def test_retries_and_dead_letters_are_those_of_the_reading_tasks(journaled):
    journaled.messages(7)
    options = readers(
        journaled, "Failing", topology__dead__letter="stream", topology__max__spout__retries=1, streams="all"
    )
    checkpoint = Checkpoint()
    run = Run(options, checkpoint)
    run.trigger()
    run.trigger()
    rows = checkpoint.rows[1]
    assert len(rows) == 7
    assert sum("ZeroDivisionError" in str(row) for row in rows) == 1, "3 is a dead letter"
    assert journaled.acked() == list(range(7))


# --- runs that end


def test_available_now_reads_what_it_polls(journaled):
    journaled.messages(30)
    options, checkpoint = readers(journaled), Checkpoint()
    assert Run(options, checkpoint, available_now=True).drain() == 2
    assert numbers(checkpoint) == list(range(7))
    assert Run(options, checkpoint, available_now=True).drain() == 2
    assert numbers(checkpoint) == list(range(14))


def test_available_now_reads_what_a_query_without_end_has_left(journaled):
    journaled.messages(30)
    options, checkpoint = readers(journaled), Checkpoint()
    run = Run(options, checkpoint)
    run.trigger()
    run.trigger()
    assert numbers(checkpoint) == list(range(7))
    assert Run(options, checkpoint, available_now=True).drain() == 2
    assert numbers(checkpoint) == list(range(21))
    assert offsets_of(checkpoint) == {".intake": 21, ".read": 21}


@pytest.mark.parametrize("spark", [{"admission": False}, {"once": True}])
def test_a_run_of_one_micro_batch_reads_what_it_polls(journaled, spark):
    journaled.messages(30)
    options, checkpoint = readers(journaled), Checkpoint()
    for n in (7, 14):
        Run(options, checkpoint, **spark).trigger()
        assert numbers(checkpoint) == list(range(n))
    assert offsets_of(checkpoint) == {".intake": 14, ".read": 14}


def test_a_run_of_one_micro_batch_reads_what_is_left_and_what_it_polls(journaled):
    journaled.messages(30)
    options, checkpoint = readers(journaled), Checkpoint()
    Run(options, checkpoint).trigger()
    run = Run(options, checkpoint, once=True)
    run.trigger()
    assert sorted(numbers(checkpoint)) == list(range(14))
    rows = unfinished(checkpoint)
    Run(options, checkpoint)
    assert checkpoint.rows[-1] == rows


def test_without_admission_control_it_is_the_same_from_the_second_micro_batch_on(journaled):
    journaled.messages(30)
    checkpoint = Checkpoint()
    run = Run(readers(journaled), checkpoint, admission=False)
    for _ in range(4):
        run.trigger()
    assert [len(rows) for rows in checkpoint.rows] == [7, 0, 7, 7]
    assert numbers(checkpoint) == list(range(21))


def test_the_next_run_reads_what_was_polled_and_not_read(journaled):
    journaled.messages(10)
    options, checkpoint = readers(journaled), Checkpoint()
    for _ in range(5):
        run = Run(options, checkpoint)
        run.trigger()
        run.reader.stop()
    assert numbers(checkpoint) == list(range(10))


# --- turned on and off


def test_readers_go_on_with_the_checkpoint_of_a_query_without(journaled):
    journaled.messages(40)
    checkpoint = Checkpoint()
    run = Run(journaled.options("Messages"), checkpoint)
    run.trigger()
    run.trigger()
    run = Run(readers(journaled), checkpoint)
    for _ in range(3):
        run.trigger()
    assert numbers(checkpoint) == list(range(28))
    assert offsets_of(checkpoint) == {".intake": 35, ".read": 28}


def test_a_query_without_readers_reads_first_what_they_have_left(journaled):
    journaled.messages(40)
    checkpoint = Checkpoint()
    run = Run(readers(journaled), checkpoint)
    run.trigger()
    run.trigger()
    run = Run(journaled.options("Messages"), checkpoint)
    for _ in range(3):
        run.trigger()
    assert [[n for n, _ in rows] for rows in checkpoint.rows[2:]] == [
        list(range(7, 14)),
        list(range(14, 21)),
        list(range(21, 28)),
    ]
    assert offsets_of(checkpoint) == {"": 28}


@pytest.mark.parametrize("before", [None, 3])
@pytest.mark.parametrize("after", [None, 2])
def test_an_unfinished_micro_batch_is_run_again_with_other_readers(journaled, before, after):
    journaled.messages(60)

    def options(count):
        return readers(journaled, count=count) if count else journaled.options("Messages")

    checkpoint = Checkpoint()
    run = Run(options(before), checkpoint)
    for _ in range(3):
        run.trigger()
    rows = unfinished(checkpoint)
    run = Run(options(after), checkpoint)
    assert checkpoint.rows[-1] == rows
    for _ in range(3):
        run.trigger()
    found = numbers(checkpoint)
    assert found == list(range(len(found)))
    assert len(found) >= 28


def test_readers_are_turned_on_and_off_again_and_again(journaled):
    journaled.messages(200)
    checkpoint = Checkpoint()
    for count in (0, 2, 0, 3, 0, 1, 2, 0):
        run = Run(readers(journaled, count=count) if count else journaled.options("Messages"), checkpoint)
        for _ in range(2):
            run.trigger()
    found = numbers(checkpoint)
    assert found == list(range(len(found)))


def test_what_is_left_may_exceed_a_limit_that_was_lowered(journaled):
    journaled.messages(40)
    checkpoint = Checkpoint()
    Run(readers(journaled, maxOffsetsPerTrigger=20), checkpoint).trigger()
    run = Run(journaled.options("Messages", maxOffsetsPerTrigger=3), checkpoint)
    for _ in range(9):
        run.trigger()
    assert numbers(checkpoint) == list(range(26))
    unfinished(checkpoint)
    run = Run(readers(journaled, maxOffsetsPerTrigger=3), checkpoint)
    run.trigger()
    run.trigger()
    assert numbers(checkpoint) == list(range(29))


def test_fields_change_after_a_run_that_leaves_nothing_unread(journaled):
    journaled.messages(10)
    checkpoint = Checkpoint()
    Run(readers(journaled), checkpoint).trigger()
    other = {**readers(journaled), "topology": f"{TOPOLOGIES}:Renamed"}
    with pytest.raises(TupleFailed, match=r"had other streams or fields.*trigger\(availableNow=True\)"):
        Run(other, checkpoint).trigger()
    Run(readers(journaled), checkpoint, available_now=True).drain()
    run = Run(other, checkpoint)
    run.trigger()
    run.trigger()
    assert numbers(checkpoint) == list(range(10))


# --- limits


def test_a_limit_counts_each_tuple_once(journaled):
    """Else intake and readers would share it, and neither could keep up with the other."""
    journaled.messages(100)
    checkpoint = Checkpoint()
    run = Run(readers(journaled, maxOffsetsPerTrigger=10), checkpoint)
    for _ in range(5):
        run.trigger()
    assert [len(rows) for rows in checkpoint.rows] == [0, 10, 10, 10, 10]
    assert run.reported[-1]["backlog"] == 0
    assert run.reported[-1]["throttled"] == []


def test_no_limit_and_no_controller_are_not_taken_for_a_trigger_that_lifts_limits(journaled):
    journaled.messages(10)
    options = readers(journaled, batch__target__millis=30, feedback="off")
    del options["maxOffsetsPerTrigger"]
    checkpoint = Checkpoint()
    run = Run(options, checkpoint)
    run.trigger()
    run.trigger()
    assert [len(rows) for rows in checkpoint.rows] == [0, 10]


def test_another_spout_has_its_share_of_a_limit(journaled):
    journaled.messages(100)
    checkpoint = Checkpoint()
    run = Run(readers(journaled, "WithSquares", maxOffsetsPerTrigger=20, streams="all", feedback="off"), checkpoint)
    for _ in range(3):
        run.trigger()
    offsets = [json.loads(each)["offsets"] for each in checkpoint.offsets]
    for before, after in pairwise([{"messages": {}, "squares": {}}, *offsets]):
        ends = {name[32:]: end for name, end in after["messages"].items()}
        starts = {name[32:]: end for name, end in before["messages"].items()}
        assert ends[".read"] == starts.get(".intake", 0)
        moved = ends[".intake"] - starts.get(".intake", 0) + after["squares"]["all"] - before["squares"].get("all", 0)
        assert moved == 20


# --- trimming and loss


def test_the_journal_is_trimmed_behind_the_readers(journaled):
    run = Run(readers(journaled, "Tokens"), Checkpoint())
    for _ in range(5):
        run.trigger()
    assert journaled.files(".manifest") == [
        "0000000000000000021-0000000000000000028.manifest",
        "0000000000000000028-0000000000000000035.manifest",
    ]
    (head,) = journaled.path.glob("*/*/journal.json")
    assert json.loads(head.read_text())["trimmed"] == 21


def two_batches(journaled, **options):
    """The second is planned, and reads what the first one has polled."""
    journaled.messages(20)
    checkpoint = Checkpoint()
    run = Run(readers(journaled, **options), checkpoint)
    run.trigger()
    run.trigger()
    unfinished(checkpoint)
    return checkpoint


def lose(journaled, *names):
    for name in names:
        for path in journaled.path.glob(f"*/*/{name}"):
            path.unlink()


@pytest.mark.parametrize("names", [["journal.json"], ["*007.manifest"], ["*007.manifest", "journal.json"]])
def test_a_deleted_manifest_or_head_loses_nothing(journaled, names):
    checkpoint = two_batches(journaled)
    lose(journaled, *names)
    Run(readers(journaled), checkpoint)
    assert numbers(checkpoint) == list(range(7))


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["0000000000000000000-*.segment"], "it is missing"),
        (["0000000000000000000-*"], "an earlier micro-batch has committed them"),
        (["*"], "there is no journal of spout 'messages'"),
    ],
)
def test_journaled_tuples_that_are_gone_are_data_loss(journaled, names, says, caplog):
    checkpoint = two_batches(journaled)
    lose(journaled, *names)
    with pytest.raises(TupleFailed, match=f"DataLossError.*{says}.*Given: "):
        Run(readers(journaled), checkpoint)
    run = Run(readers(journaled, failOnDataLoss="false"), checkpoint)
    assert checkpoint.rows[-1] == []
    run.trigger()
    assert says in caplog.text


def test_a_damaged_segment_costs_its_own_tuples_alone_however_it_is_cut(journaled):
    journaled.messages(20)
    options = readers(journaled, "PairOfTokens", count=1, maxOffsetsPerTrigger=20, failOnDataLoss="false")
    checkpoint = Checkpoint()
    run = Run(options, checkpoint)
    run.trigger()
    segment = sorted(journaled.path.glob("*/*/*.segment"))[0]
    segment.write_bytes(segment.read_bytes()[:300])
    run.trigger()
    whole = unfinished(checkpoint)
    assert len(whole) == 10
    Run({**options, "journal.readers": "5"}, checkpoint)
    assert sorted(checkpoint.rows[-1]) == sorted(whole)


def test_a_reading_task_that_comes_after_the_end_counts_for_nothing(journaled):
    journaled.messages(40)
    run = Run(readers(journaled), Checkpoint())
    for _ in range(4):
        run.trigger()
    zombie = Run(readers(journaled), Checkpoint()).reader
    start, end = (json.loads(run.checkpoint.offsets[i]) for i in (0, 1))
    for partition in zombie.partitions(start, end):
        with pytest.raises(TupleFailed, match="no notice|after its micro-batch was finished"):
            list(zombie.read(partition))


def test_a_restored_checkpoint_is_older_than_the_journal(journaled):
    journaled.messages(60)
    checkpoint = Checkpoint()
    run = Run(readers(journaled), checkpoint)
    for _ in range(6):
        run.trigger()
    backup = Checkpoint()
    backup.offsets, backup.finished = checkpoint.offsets[:-3], len(checkpoint.offsets) - 3
    with pytest.raises(CheckpointError, match="the checkpoint is older than"):
        Run(readers(journaled), backup).trigger()
    run = Run(readers(journaled, failOnDataLoss="false"), backup)
    run.trigger()
    run.trigger()
    assert numbers(backup) == list(range(28, 35))


def test_a_folder_that_is_listed_late_is_no_loss(journaled, monkeypatch):
    """An NFS client may list an old state of a folder, until it writes there."""
    checkpoint = two_batches(journaled)
    names, replace, stale = store.LocalStore.names, store.LocalStore.replace, [True]

    def old(self):
        return [name for name in names(self) if not (stale[0] and name.endswith(".manifest"))]

    def written(self, name, data):
        stale[0] = False
        replace(self, name, data)

    monkeypatch.setattr(store.LocalStore, "names", old)
    monkeypatch.setattr(store.LocalStore, "replace", written)
    monkeypatch.setattr("pystorm_source.journal.log.Journal._from_copy", lambda *given: None)
    Run(readers(journaled), checkpoint)
    assert numbers(checkpoint) == list(range(7))


def test_readers_without_a_journal_are_refused(journaled):
    options = readers(journaled, delivery__guarantee="best-effort")
    del options["journal.path"]
    with pytest.raises(OptionError, match=r"journal\.readers.*journal\.path.*Given: 2"):
        Run(options, Checkpoint())


@pytest.mark.parametrize("count", ["0", "-1", "many"])
def test_odd_counts_are_refused(journaled, count):
    with pytest.raises(Exception, match=r"journal\.readers"):
        Run(readers(journaled, count=count), Checkpoint())
