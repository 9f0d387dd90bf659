"""Spouts without offsets behind a journal, as Spark calls them, without Spark."""

import errno
import json
import threading
from pathlib import Path

import pytest

from pystorm_source.errors import CheckpointError, OptionError, TupleFailed
from pystorm_source.journal import store
from pystorm_source.journal.manifest import Manifest
from pystorm_source.journal.rows import JournalRows
from pystorm_source.journal.writer import BatchWriter
from pystorm_source.plan import lint
from pystorm_source.source.request import ReadRequest
from tests.source.journal_world import numbers, unfinished
from tests.source.spark_calls import Checkpoint, Run, through_pickle

# --- replay


def test_a_micro_batch_that_is_run_again_has_the_same_rows(journaled):
    journaled.messages(10)
    options = journaled.options("Messages", includeMetadata="true")
    checkpoint = Checkpoint()
    assert Run(options, checkpoint).trigger()
    rows = unfinished(checkpoint)
    assert [(row[0], row[-1]) for row in rows] == [(n, n) for n in range(7)]
    Run(options, checkpoint)
    Run(options, checkpoint).trigger()
    assert checkpoint.rows[0] == rows
    assert numbers(checkpoint) == list(range(10))


@pytest.mark.parametrize("topology", ["Messages", "InBatches"])
def test_what_nothing_takes_one_by_one_enters_the_topology_as_batches(journaled, topology, monkeypatch):
    monkeypatch.setattr("pystorm_source.journal.rows.MOST_EMITTED", 3)
    monkeypatch.setattr(JournalRows, "emits", lambda *group: pytest.fail("tuples are made"))
    journaled.messages(10)
    (journaled.world / "stumble").touch()
    options, checkpoint = journaled.options(topology), Checkpoint()
    assert Run(options, checkpoint).trigger()
    rows = unfinished(checkpoint)
    assert sorted(row[0] for row in rows) == list(range(7))
    run = Run(options, checkpoint)
    run.trigger()
    assert sorted(checkpoint.rows[0]) == sorted(rows)
    assert sorted(numbers(checkpoint)) == list(range(10))
    assert sorted(journaled.acked()) == list(range(10))


def test_offsets_name_the_journal_and_count_what_was_asked_for(journaled):
    journaled.messages(3)
    run = Run(journaled.options("Messages"), Checkpoint())
    run.trigger()
    run.trigger()
    ((spout, journals),) = json.loads(run.position)["offsets"].items()
    assert spout == "messages"
    assert list(journals.values()) == [14]
    assert [path.name for path in (journaled.path / "messages").iterdir()] == list(journals)
    assert run.reported[-1]["backlog"] == 0


def test_acks_come_when_the_manifest_is_there(journaled):
    journaled.messages(10)
    run = Run(journaled.options("Messages"), Checkpoint())
    run.trigger()
    assert journaled.verdicts() == [("ack", n, 1) for n in range(7)]


@pytest.mark.parametrize("scheduler", ["inline", "threads"])
def test_a_task_that_failed_is_tried_again_with_what_it_had_journaled(journaled, scheduler):
    journaled.messages(10)
    (journaled.world / "stumble").touch()
    options, checkpoint = journaled.options("Stumbling", topology__scheduler=scheduler), Checkpoint()
    with pytest.raises(TupleFailed, match="ZeroDivisionError: three"):
        Run(options, checkpoint).trigger()
    assert journaled.acked() == list(range(7))
    Run(options, checkpoint).trigger()
    assert numbers(checkpoint) == list(range(10))
    assert journaled.acked() == list(range(10))


def test_par_shares_the_micro_batch(journaled):
    checkpoint = Checkpoint()
    run = Run(journaled.options("PairOfTokens", minPartitions=4, batch__target__millis=20_000), checkpoint)
    run.trigger()
    rows = unfinished(checkpoint)
    assert sorted(rows.count(token) for token in set(rows)) == [3, 4]
    Run(journaled.options("PairOfTokens"), checkpoint)
    # Each instance keeps its order. How the two take turns depends on the time that their calls take.
    assert sorted(checkpoint.rows[0]) == sorted(rows)
    unfinished(checkpoint)
    with pytest.raises(TupleFailed, match="`par` has changed while a micro-batch was unfinished"):
        Run(journaled.options("Tokens"), checkpoint)


def test_streams_and_untyped_values_replay_in_order(journaled):
    checkpoint = Checkpoint()
    options = journaled.options("TwoStreams")
    Run(options, checkpoint).trigger()
    rows = unfinished(checkpoint)
    assert sorted(row[0] for row in rows) == list(range(9)), (
        "three emits a call: the last call goes on beyond the permits"
    )
    assert sorted(rows)[:2] == [(0, '{"half": 0, "list": [1, 2]}'), (1, "odd")]
    Run(options, checkpoint)
    assert sorted(checkpoint.rows[0]) == sorted(rows)


def test_available_now_is_one_batch(journaled):
    journaled.messages(30)
    options, checkpoint = journaled.options("Messages"), Checkpoint()
    assert Run(options, checkpoint, available_now=True).drain() == 1
    assert Run(options, checkpoint, available_now=True).drain() == 1
    assert numbers(checkpoint) == list(range(14))


def test_without_admission_control_it_is_the_same(journaled):
    journaled.messages(10)
    checkpoint = Checkpoint()
    run = Run(journaled.options("Messages"), checkpoint, admission=False)
    run.trigger()
    run.trigger()
    assert numbers(checkpoint) == list(range(10))


def test_a_batch_without_tuples_is_committed_too(journaled):
    journaled.messages(0)
    options, checkpoint = journaled.options("Messages", batch__target__millis=20), Checkpoint()
    Run(options, checkpoint).trigger()
    assert unfinished(checkpoint) == []
    journaled.messages(5)
    Run(options, checkpoint)
    assert checkpoint.rows == [[]]


def test_the_settings_that_a_journal_adds_are_no_finding(journaled):
    assert lint(ReadRequest.of(journaled.options("Messages")).plan) == ()
    assert lint(ReadRequest.of(journaled.options("Messages", journal__readers=2)).plan) == ()


# --- several attempts


def test_twins_give_the_same_rows_and_one_of_them_acks(journaled, twins):
    assert_twins_agree(journaled, twins)


def test_twins_agree_where_a_store_has_nothing_exclusive(objects, journaled, twins):
    assert_twins_agree(journaled, twins)
    assert sum(name.endswith(".manifest") for name in objects) == len(twins)


@pytest.fixture
def twins():
    """Seeds of the rounds."""
    return range(4)


def assert_twins_agree(journaled, rounds):
    for number in rounds:
        journaled.messages(7)
        (journaled.world / "verdicts.log").unlink(missing_ok=True)
        run = Run(journaled.options("Messages", batch__target__millis=40), Checkpoint())
        start = run.reader.initialOffset()
        end = run.reader.latestOffset(start, run.limit)
        (partition,) = run.reader.partitions(start, end)
        found = [[] for _ in range(3)]

        def attempt(rows, reader=run.reader, partition=partition):
            for batch in through_pickle(reader).read(through_pickle(partition)):
                rows += [tuple(row.values()) for row in batch.to_pylist()]

        threads = [threading.Thread(target=attempt, args=(rows,)) for rows in found]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert found[0] == found[1] == found[2], f"round {number}"
        assert [n for n, _ in found[0]] == list(range(7))
        assert len({delivery for _, delivery in found[0]}) == 1
        assert sorted(journaled.acked()) == list(range(7)), "the winner's, and no other's"


@pytest.mark.parametrize("ids", [False, True])
def test_what_a_killed_attempt_had_journaled_comes_again_or_is_adopted_where_nobody_can_ask_again(
    journaled, monkeypatch, ids
):
    journaled.messages(3)
    options, checkpoint = journaled.options("Messages" if ids else "Loose"), Checkpoint()
    with monkeypatch.context() as patch:
        patch.setattr("pystorm_source.journal.writer.BatchWriter.commit", lambda self, notes=None: 1 / 0)
        with pytest.raises(TupleFailed, match="ZeroDivisionError"):
            Run(options, checkpoint).trigger()
    if ids:
        assert journaled.verdicts() == [("fail", n, 0) for n in range(3)]
    else:
        assert len(journaled.files(".segment")) == 1
        journaled.messages(0)
    Run(options, checkpoint)
    assert numbers(checkpoint) == [0, 1, 2]


def test_a_reliable_spout_emits_again_what_lost(journaled, monkeypatch):
    """The batch is committed for another attempt, in which there was nothing."""
    options, checkpoint = journaled.options("Resending", maxOffsetsPerTrigger=20), Checkpoint()
    run = Run(options, checkpoint)
    start = run.reader.initialOffset()
    end = run.reader.latestOffset(start, run.limit)
    (partition,) = run.reader.partitions(start, end)
    commit = BatchWriter.commit

    def late(self, notes=None):
        self._journal.store.create(self._batch.manifest, Manifest(self._batch, ()).to_bytes())
        return commit(self, notes)

    with monkeypatch.context() as patch:
        patch.setattr(BatchWriter, "commit", late)
        assert list(run.reader.read(partition)) == []
    end_of_next = run.reader.latestOffset(end, run.limit)
    (partition,) = run.reader.partitions(end, end_of_next)
    rows = [row["n"] for batch in run.reader.read(partition) for row in batch.to_pylist()]
    assert rows == list(range(10))


def test_an_attempt_that_comes_after_the_end_counts_for_nothing(journaled):
    journaled.messages(7)
    run = Run(journaled.options("Messages"), Checkpoint())
    run.trigger()
    (journaled.world / "verdicts.log").unlink()
    run.trigger()
    run.trigger()  # commits the first: its manifest is trimmed
    start = run.reader.initialOffset()
    zombie = Run(journaled.options("Messages"), Checkpoint()).reader  # in a process of its own
    (partition,) = zombie.partitions(start, json.loads(run.checkpoint.offsets[0]))
    with pytest.raises(TupleFailed, match="after its micro-batch was finished, nothing of it counts"):
        list(zombie.read(partition))
    assert journaled.verdicts() == [], "the spout is not even polled"


def test_an_attempt_whose_micro_batch_is_finished_while_it_polls_counts_for_nothing(journaled, monkeypatch):
    journaled.messages(7)
    run = Run(journaled.options("Messages"), Checkpoint())
    start = run.reader.initialOffset()
    end = run.reader.latestOffset(start, run.limit)
    (partition,) = run.reader.partitions(start, end)
    commit = BatchWriter.commit

    def late(self, notes=None):
        self._journal.found(trimmed=7)
        return commit(self, notes)

    monkeypatch.setattr(BatchWriter, "commit", late)
    with pytest.raises(TupleFailed, match="after its micro-batch was finished"):
        list(run.reader.read(partition))
    assert [verdict for verdict, _, _ in journaled.verdicts()] == ["fail"] * 7


# --- trimming


def test_the_journal_is_trimmed_behind_commit(journaled):
    run = Run(journaled.options("Tokens"), Checkpoint())
    for _ in range(4):
        run.trigger()
    assert journaled.files(".manifest") == ["0000000000000000021-0000000000000000028.manifest"]
    (head,) = journaled.path.glob("*/*/journal.json")
    assert json.loads(head.read_text())["trimmed"] == 21
    assert len(journaled.files()) == 3, "head, manifest, segment"


def test_what_a_broken_off_trim_has_left_goes_with_the_next(journaled, monkeypatch):
    options, checkpoint = journaled.options("Tokens"), Checkpoint()
    run = Run(options, checkpoint)
    run.trigger()
    monkeypatch.setattr(store.LocalStore, "delete", lambda self, name: 1 / 0)
    with pytest.raises(TupleFailed, match="ZeroDivisionError"):
        run.trigger()
    monkeypatch.undo()
    run = Run(options, checkpoint)
    run.trigger()
    assert len(journaled.files(".manifest")) == 1


# --- what goes wrong


def test_without_a_journal_it_is_refused_with_both_remedies(journaled):
    options = journaled.options("Messages")
    del options["journal.path"]
    with pytest.raises(OptionError, match=r"spout 'messages'.*journal\.path.*delivery\.guarantee=best-effort"):
        ReadRequest.of(options)


@pytest.mark.parametrize("path", ["journal", "./journal", "ftp://host/journal", "nope://x"])
def test_paths_that_cannot_be_shared_are_refused(journaled, path):
    journaled.options_path = path
    with pytest.raises(OptionError, match="journal.path.*absolute path.*URI"):
        ReadRequest.of(journaled.options("Messages"))


def test_a_batch_read_has_no_use_for_a_journal(journaled):
    with pytest.raises(OptionError, match=r"journal.path.*for streams.*best-effort"):
        ReadRequest.of(journaled.options("Messages")).check_batch()


def replayed_without(journaled, *names, **options):
    """A micro-batch of five acked tuples that is run again when files of the journal are gone: its rows."""
    journaled.messages(5)
    checkpoint = Checkpoint()
    Run(journaled.options("Messages"), checkpoint).trigger()
    rows = unfinished(checkpoint)
    assert len(rows) == 5
    for name in names:
        (gone,) = journaled.path.glob(f"*/*/{name}")
        gone.unlink()
    Run(journaled.options("Messages", **options), checkpoint)
    return rows, checkpoint.rows[0]


@pytest.mark.parametrize("names", [["journal.json"], ["*.manifest"], ["journal.json", "*.manifest"]])
def test_a_deleted_manifest_or_head_loses_no_acked_tuple(journaled, names):
    rows, again = replayed_without(journaled, *names)
    assert again == rows


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["*.segment"], "a segment of the journal of spout 'messages' is damaged, it is missing"),
        (["*.segment", "*.manifest", "journal.json"], "there is no journal of spout 'messages'"),
    ],
)
def test_a_journal_that_is_gone_is_data_loss(journaled, names, says):
    with pytest.raises(TupleFailed, match=f"DataLossError.*{says}.*Given: "):
        replayed_without(journaled, *names)


@pytest.mark.parametrize("names", [["*.segment"], ["*.segment", "*.manifest", "journal.json"]])
def test_without_fail_on_data_loss_the_query_gets_past_a_journal_that_is_gone(journaled, names, caplog):
    _, again = replayed_without(journaled, *names, failOnDataLoss="false")
    assert again == []
    assert "it is missing" in caplog.text or "there is no journal" in caplog.text


def test_a_query_goes_on_with_a_head_that_it_has_made_again(journaled):
    journaled.messages(20)
    options, checkpoint = journaled.options("Messages"), Checkpoint()
    run = Run(options, checkpoint)
    run.trigger()
    run.trigger()
    for path in journaled.path.glob("*/*/journal.json"):
        path.unlink()
    Run(options, checkpoint).trigger()
    assert numbers(checkpoint) == list(range(20))
    assert journaled.files(".manifest") == ["0000000000000000014-0000000000000000021.manifest"]
    assert journaled.files(".json") == ["journal.json"]


def older(checkpoint):
    """A backup of the checkpoint, two micro-batches back."""
    backup = Checkpoint()
    backup.offsets, backup.finished = checkpoint.offsets[:-2], len(checkpoint.offsets) - 2
    return backup


def test_a_restored_checkpoint_is_older_than_the_journal(journaled, caplog):
    journaled.messages(40)
    options, checkpoint = journaled.options("Messages"), Checkpoint()
    run = Run(options, checkpoint)
    for _ in range(4):
        run.trigger()
    with pytest.raises(CheckpointError, match="the checkpoint is older than .*ends at offset 14 .*below 21"):
        Run(options, older(checkpoint)).trigger()
    again = older(checkpoint)
    Run({**options, "failOnDataLoss": "false"}, again).trigger()
    assert numbers(again) == list(range(21, 28)), "of the batch that is still there"
    assert "are gone, it begins at 21 now; skipped" in caplog.text


def test_a_restored_checkpoint_whose_last_batch_is_unfinished_is_older_than_the_journal(journaled):
    journaled.messages(40)
    options, checkpoint = journaled.options("Messages"), Checkpoint()
    run = Run(options, checkpoint)
    for _ in range(4):
        run.trigger()
    again = older(checkpoint)
    again.finished -= 1
    with pytest.raises(
        TupleFailed,
        match=r"CheckpointError: \[PYSTORM_CHECKPOINT_DAMAGED\] offsets 7 to 14 .*checkpoint is older than the journal",
    ):
        Run(options, again)
    assert journaled.acked() == list(range(28)), "and the spout was not polled"


def test_without_fail_on_data_loss_a_damaged_segment_is_cut(journaled, caplog):
    journaled.messages(5)
    checkpoint = Checkpoint()
    Run(journaled.options("Messages"), checkpoint).trigger()
    unfinished(checkpoint)
    (segment,) = journaled.path.glob("*/*/*.segment")
    segment.write_bytes(segment.read_bytes()[:300])
    Run(journaled.options("Messages", failOnDataLoss="false"), checkpoint)
    assert checkpoint.rows == [[]]
    assert "5 of 5 tuples are skipped" in caplog.text


def test_a_task_that_finds_the_disk_full_leaves_room_for_the_next(journaled, monkeypatch):
    journaled.messages(10)
    options, checkpoint = journaled.options("Messages"), Checkpoint()
    write, calls = store._write, []

    def full(file, data):
        calls.append(data)
        if len(calls) > 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(file, data)

    with monkeypatch.context() as patch:
        patch.setattr(store, "_write", full)
        with pytest.raises(TupleFailed, match="No space left on device"):
            Run(options, checkpoint).trigger()
    assert journaled.files() == ["journal.json"]
    Run(options, checkpoint)
    assert numbers(checkpoint) == list(range(7))


def test_a_journal_cannot_take_over_a_checkpoint_of_best_effort(journaled):
    journaled.messages(5)
    options = journaled.options("Messages")
    best_effort = {key: value for key, value in options.items() if key != "journal.path"}
    checkpoint = Checkpoint()
    Run({**best_effort, "delivery.guarantee": "best-effort"}, checkpoint).trigger()
    with pytest.raises(CheckpointError, match="journal of spout 'messages' that cannot be"):
        Run(options, checkpoint).trigger()


def test_task_ids_cannot_be_asked_for(journaled):
    with pytest.raises(TupleFailed, match="leave need_task_ids"):
        Run(journaled.options("Asking"), Checkpoint()).trigger()


def test_a_spout_that_goes_on_after_an_exception_is_asked_again(journaled, caplog):
    checkpoint = Checkpoint()
    Run(journaled.options("Surviving", maxOffsetsPerTrigger=3), checkpoint).trigger()
    assert numbers(checkpoint) == [2, 4, 6]
    assert "ValueError: odd" in caplog.text


def test_a_folder_that_cannot_be_made_is_named(journaled):
    Path(journaled.options_path).touch()
    run = Run(journaled.options("Tokens"), Checkpoint())
    with pytest.raises(Exception, match=r"cannot be read or written.*journal\.path") as raised:
        run.trigger()
    assert journaled.options_path in str(raised.value)
