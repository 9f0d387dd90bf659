"""The journal's files: mutants of each, and processes killed in the middle of writing them."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from pystorm_source.clock import SystemClock
from pystorm_source.errors import CheckpointError, DataLossError
from pystorm_source.journal.committed import Part, tuples_of
from pystorm_source.journal.log import Journal
from pystorm_source.journal.manifest import BatchRange
from pystorm_source.journal.options import JournalOptions, without_credentials
from pystorm_source.journal.orphans import orphaned_segments
from pystorm_source.journal.rows import JournalRows
from pystorm_source.journal.writer import BatchWriter
from tests.spouts.mutations import COUNT, mutated

ROOT = Path(__file__).resolve().parents[2]
ID = "0" * 31 + "1"
BATCH = BatchRange(0, 100)


def opened(folder, **options):
    journal = Journal(JournalOptions(path=str(folder), **options), "lines", ID)
    return journal, JournalRows("lines", {"default": pa.schema([("n", pa.int64())])})


def committed(folder, *groups, **options):
    """A journal whose first batch holds these groups of numbers."""
    journal, rows = opened(folder, **options)
    journal.found()
    writer = BatchWriter(journal, JournalOptions(path=str(folder), **options), BATCH, rows, SystemClock())
    for group in groups:
        for n in group:
            rows.append((n,), "default", None, n)
        writer.flush(has_ids=False)
    assert writer.commit() is None
    return journal


def read(folder, fail_on_data_loss=True):
    """The numbers of the batch; None if it is open."""
    journal, rows = opened(folder)
    manifest = journal.opened(BATCH, 1, fail_on_data_loss)
    if manifest is None:
        return None
    groups = tuples_of(journal, Part(manifest), rows, fail_on_data_loss)
    return [emit[0][0] for _, group, *_ in groups for emit in rows.emits(group)]


def modes_in(folder):
    return {path.stat().st_mode & 0o7777 for path in folder.rglob("*") if path.is_file()}


def test_only_its_user_and_the_group_of_an_option_read_a_journal(tmp_path):
    committed(tmp_path / "own/journal", [1, 2])
    assert modes_in(tmp_path) == {0o600}
    assert (tmp_path / "own").stat().st_mode & 0o7777 == 0o700
    gid = os.getgid()
    journal = committed(tmp_path / "shared", [1, 2], group=str(gid))
    assert modes_in(tmp_path / "shared") == {0o660}
    for folder in (tmp_path / "shared", Path(journal.store.folder)):
        assert (folder.stat().st_mode & 0o7777, folder.stat().st_gid) == (0o2770, gid)


@pytest.mark.parametrize("fsync", ["micro-batch", "segment", "never"])
@pytest.mark.parametrize("segment_bytes", [4096, 1 << 20])
def test_committed_batches_are_read(tmp_path, fsync, segment_bytes):
    groups = [range(500), range(500, 501), range(501, 2000)]
    committed(tmp_path, *groups, fsync=fsync, segment_bytes=segment_bytes)
    assert read(tmp_path) == list(range(2000))
    segments = len(list(tmp_path.glob("*/*/*.segment")))
    assert segments == (2 if segment_bytes == 4096 else 1)
    assert not list(tmp_path.glob("*/*/*.tmp"))


@pytest.mark.parametrize("fsync", ["micro-batch", "segment", "never"])
def test_the_policy_says_when_the_disk_is_waited_for(tmp_path, monkeypatch, fsync):
    """Two segments and a manifest: `micro-batch` waits once for each segment when the batch ends."""
    committed(tmp_path, [0], fsync=fsync)  # the head
    synced = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(Path(os.readlink(f"/proc/self/fd/{number}"))))
    journal, rows = opened(tmp_path, fsync=fsync)
    writer = BatchWriter(
        journal,
        JournalOptions(path=str(tmp_path), fsync=fsync, segment_bytes=4096),
        BatchRange(100, 200),
        rows,
        SystemClock(),
    )
    for n in range(1000):
        rows.append((n,), "default", None, n)
    writer.flush(has_ids=False)
    rows.append((1000,), "default", None, 1000)
    writer.flush(has_ids=False)
    writer.commit()
    segments = [path for path in synced if path.suffix == ".segment"]
    assert len(segments) == {"micro-batch": 2, "segment": 2, "never": 0}[fsync]
    assert len(set(segments)) == len(segments)
    assert sum(path.suffix == ".tmp" for path in synced) == (fsync != "never")
    assert synced[-1:] == ([Path(journal.store.folder)] if fsync != "never" else [])


def forget(folder):
    """Cuts what segments know of their manifest."""
    for path in folder.glob("*/*/*.segment"):
        data = path.read_bytes()
        path.write_bytes(data[: data.rindex(b"PSJ1\x03")])


def mutants(path, seed):
    """Writes one after the other into the file; how many there are is up to PYSTORM_MUTATIONS."""
    data = path.read_bytes()
    rng = random.Random(seed)
    for _ in range(COUNT):
        path.write_bytes(mutated(data, rng))
        yield


@pytest.mark.parametrize("name", ["*.manifest", "*.segment"])
def test_a_mutated_file_is_an_error_that_names_it_or_changes_nothing(tmp_path, name):
    """No crash, no other rows, nothing missing in silence."""
    numbers = list(range(50))
    committed(tmp_path, numbers[:20], numbers[20:21], numbers[21:])
    forget(tmp_path)
    (path,) = tmp_path.glob(f"*/*/{name}")
    refused = 0
    for _ in mutants(path, name):
        refusal = None
        try:
            assert read(tmp_path) == numbers
        except DataLossError as error:
            refusal = str(error)
        assert refusal is None or f"Given: '{path}'" in refusal
        refused += refusal is not None
    assert refused > COUNT * 0.8


@pytest.mark.parametrize("name", ["*.manifest", "journal.json"])
def test_a_mutated_manifest_or_head_is_made_again(tmp_path, name):
    numbers = list(range(50))
    committed(tmp_path, numbers[:20], numbers[20:])
    (path,) = tmp_path.glob(f"*/*/{name}")
    whole = path.read_bytes()
    for _ in mutants(path, name):
        assert read(tmp_path) == numbers
        assert name == "journal.json" or path.read_bytes() == whole


def test_a_mutated_head_is_refused_unless_it_says_the_same(tmp_path):
    journal, _ = opened(tmp_path)
    journal.found(trimmed=100)
    refused = 0
    for _ in mutants(Path(journal.where("journal.json")), 5):
        refused += journal.trimmed() is None
        if journal.trimmed() is None:
            with pytest.raises(DataLossError, match="its head is damaged"):
                journal.opened(BatchRange(100, 200), 1, True)
        else:
            assert journal.trimmed() == 100
    assert refused > COUNT * 0.8


# --- what is gone


def gone(folder, pattern):
    """Deletes files of the journal."""
    paths = list(folder.glob(f"*/*/{pattern}"))
    assert paths
    for path in paths:
        path.unlink()


def test_a_deleted_manifest_is_made_again_from_its_segments(tmp_path, caplog):
    """Its tuples were acked: the spout would have none of them again."""
    committed(tmp_path, range(10), range(10, 1000), segment_bytes=4096)
    for survivor in range(2):
        gone(tmp_path, "*.manifest")
        assert read(tmp_path) == list(range(1000)), survivor
    assert "made again from a copy" in caplog.text


def test_a_manifest_is_found_behind_a_torn_tail(tmp_path):
    """Of a segment that was recovered from an attempt that was killed."""
    journal, rows = opened(tmp_path)
    journal.found()
    dying = BatchWriter(journal, JournalOptions(path=str(tmp_path)), BATCH, rows, SystemClock())
    rows.append((1,), "default", None, 0)
    dying.flush(has_ids=False)
    (segment,) = tmp_path.glob("*/*/*.segment")
    with segment.open("ab") as file:
        file.write(b"PSJ1\x02torn PSJ1\x03 torn")
    writer = BatchWriter(journal, JournalOptions(path=str(tmp_path)), BATCH, rows, SystemClock())
    assert writer.recover(orphaned_segments(journal, BATCH, rows)) == 1
    assert writer.commit() is None
    gone(tmp_path, "*.manifest")
    assert read(tmp_path) == [1]


def test_a_deleted_manifest_is_made_again_from_ballots(tmp_path, monkeypatch):
    """On a store that has nothing exclusive, and cannot add to a segment."""
    monkeypatch.setattr(os, "link", no_links)
    committed(tmp_path, range(10))
    assert all(b"PSJ1\x03" not in path.read_bytes() for path in tmp_path.glob("*/*/*.segment"))
    gone(tmp_path, "*.manifest")
    assert read(tmp_path) == list(range(10))


def no_links(source, target):
    raise OSError(errno.EPERM, "no hard links")


def test_a_manifest_that_is_gone_with_its_copies_is_noticed_by_what_is_beside_it(tmp_path):
    journal = committed(tmp_path, range(10))
    _, rows = opened(tmp_path)
    for start in (100, 200):
        writer = BatchWriter(
            journal, JournalOptions(path=str(tmp_path)), BatchRange(start, start + 100), rows, SystemClock()
        )
        writer.commit()
    gone(tmp_path, f"{BatchRange(100, 200).prefix}*")
    with pytest.raises(DataLossError, match=r"journal is older than the checkpoint.*failOnDataLoss=false"):
        journal.opened(BatchRange(100, 200), 1, True)
    assert journal.opened(BatchRange(100, 200), 1, False) is None


def test_a_journal_that_was_restored_from_a_backup_is_older_than_the_checkpoint(tmp_path, caplog):
    journal = committed(tmp_path, range(10))
    journal.trim(100)
    assert journal.opened(BatchRange(100, 200), 1, True) is None
    with pytest.raises(DataLossError, match="the journal is older than the checkpoint: it was restored"):
        journal.opened(BatchRange(200, 300), 1, True)
    assert journal.opened(BatchRange(200, 300), 1, False) is None
    assert "the journal is older than the checkpoint" in caplog.text


@pytest.mark.parametrize("shares", [2, 3, 8])
def test_shares_of_a_micro_batch_may_be_committed_in_any_order(tmp_path, shares):
    journal, rows = opened(tmp_path)
    journal.found(trimmed=100)
    edges = [100 + 100 * share // shares for share in range(shares + 1)]
    batches = [BatchRange(*pair) for pair in pairwise(edges)]
    for batch in random.Random(shares).sample(batches, shares):
        assert journal.opened(batch, shares, True) is None
        BatchWriter(journal, JournalOptions(path=str(tmp_path)), batch, rows, SystemClock()).commit()


def test_a_checkpoint_that_is_older_than_the_journal_is_said_in_these_words(tmp_path, caplog):
    journal = committed(tmp_path, range(10))
    journal.trim(100)
    for call in (lambda loud: journal.opened(BATCH, 1, loud), lambda loud: journal.reconcile(50, loud)):
        with pytest.raises(CheckpointError, match="the checkpoint is older than the journal: it was restored"):
            call(True)
    assert journal.opened(BATCH, 1, False).segments == ()
    assert "the checkpoint is older than the journal" in caplog.text
    assert journal.reconcile(50, False) == 100


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_text("{}")])
def test_a_head_is_made_again_from_the_checkpoint(tmp_path, spoil, caplog):
    journal = committed(tmp_path, range(10))
    spoil(Path(journal.where("journal.json")))
    assert journal.reconcile(100, True) == 100
    assert journal.trimmed() == 100
    assert "was missing or damaged. It is made again from the checkpoint" in caplog.text


def test_a_head_that_is_made_again_does_not_hide_an_older_checkpoint(tmp_path):
    journal, rows = opened(tmp_path)
    BatchWriter(journal, JournalOptions(path=str(tmp_path)), BatchRange(200, 300), rows, SystemClock()).commit()
    with pytest.raises(CheckpointError, match="the checkpoint is older than the journal"):
        journal.reconcile(100, True)


def test_without_head_and_manifest_there_is_no_journal(tmp_path, caplog):
    journal, _ = opened(tmp_path)
    with pytest.raises(DataLossError, match=r"there is no journal of spout 'lines', or its head is damaged.*false"):
        journal.opened(BATCH, 1, True)
    assert journal.opened(BATCH, 1, False) is None
    assert "there is no journal" in caplog.text
    assert journal.trimmed() == 0


def test_a_damaged_manifest_without_a_copy_is_let_go_where_loss_may_be(tmp_path, caplog):
    committed(tmp_path, range(10))
    forget(tmp_path)
    (path,) = tmp_path.glob("*/*/*.manifest")
    path.write_bytes(b"{}")
    assert read(tmp_path, fail_on_data_loss=False) == []
    assert "the manifest of offsets 0 to 100" in caplog.text


def test_a_mutated_segment_is_cut_where_loss_may_be(tmp_path, caplog):
    numbers = list(range(50))
    committed(tmp_path, numbers[:20], numbers[20:21], numbers[21:])
    (path,) = tmp_path.glob("*/*/*.segment")
    data = path.read_bytes()
    rng = random.Random(3)
    for _ in range(COUNT):
        path.write_bytes(mutated(data, rng))
        caplog.clear()
        found = read(tmp_path, fail_on_data_loss=False)
        assert found == numbers[: len(found)]
        assert found == numbers or f"{50 - len(found)} of 50 tuples are skipped" in caplog.text


def test_a_mutated_orphan_is_recovered_up_to_the_damage(tmp_path):
    journal, rows = opened(tmp_path)
    journal.found()
    options = JournalOptions(path=str(tmp_path))
    writer = BatchWriter(journal, options, BATCH, rows, SystemClock())
    for n in range(30):
        rows.append((n,), "default", None, n)
        if n % 10 == 9:
            writer.flush(has_ids=False)
    writer.give_up()
    (path,) = tmp_path.glob("*/*/*.segment")
    data = path.read_bytes()
    rng = random.Random(4)
    for _ in range(COUNT):
        path.write_bytes(mutated(data, rng))
        found = [
            emit[0][0]
            for orphan in orphaned_segments(journal, BATCH, rows)
            for group in orphan.groups
            for emit in rows.emits(group)
        ]
        assert found == list(range(len(found)))
        assert len(found) % 10 == 0


@pytest.mark.parametrize(
    "id", ["task", "..", "../../etc", "0" * 31, "0" * 33, "A" * 32, "0" * 31 + "/", "0" * 32 + "\n"]
)
def test_a_partition_that_is_no_journal_is_refused(tmp_path, id):
    with pytest.raises(CheckpointError, match="spout 'lines'.*checkpointLocation of its own"):
        Journal(JournalOptions(path=str(tmp_path)), "lines", id)


def test_credentials_of_a_uri_are_not_shown():
    assert without_credentials("s3://key:secret@bucket/a?region=x") == "s3://bucket/a"
    assert without_credentials("abfss://container@account.dfs.core.windows.net/a") == (
        "abfss://container@account.dfs.core.windows.net/a"
    )


# --- killed in the middle

POINTS = {
    # point: what is replaced by a kill, and what the next attempt finds of the two groups
    "before flush": ("segment.SegmentWriter.write", []),
    "in mid-write": ("", list(range(10))),
    "after flush, before the manifest": ("writer.BatchWriter._winner", list(range(20))),
    "manifest written, not yet linked": ("os.link", list(range(20))),
}

PROCESS = """
import importlib, os, signal, sys
from tests.journal.test_log import BATCH, JournalOptions, BatchWriter, SystemClock, opened
folder, point = sys.argv[1:]

def die(*arguments, **named):
    os.kill(os.getpid(), signal.SIGKILL)

journal, rows = opened(folder)
journal.found()
writer = BatchWriter(journal, JournalOptions(path=folder), BATCH, rows, SystemClock())
if point and not point.startswith("os."):
    module, cls, method = point.split(".")
    setattr(getattr(importlib.import_module("pystorm_source.journal." + module), cls), method, die)
elif point:
    os.link = die
for n in range(10):
    rows.append((n,), "default", None, n)
writer.flush(has_ids=False)
if not point:
    from pystorm_source.journal import store
    write = store._LocalAppender.write
    def torn(self, data):
        write(self, memoryview(data).cast("B")[:100])
        if memoryview(data).nbytes > 100:
            die()
    store._LocalAppender.write = torn
for n in range(10, 20):
    rows.append((n,), "default", None, n)
writer.flush(has_ids=False)
writer.commit()
"""


@pytest.mark.parametrize("point", POINTS)
def test_a_process_killed_at_a_point_leaves_a_journal_that_goes_on(tmp_path, point):
    target, left = POINTS[point]
    process = subprocess.run([sys.executable, "-c", PROCESS, str(tmp_path), target], cwd=ROOT, capture_output=True)
    assert process.returncode == -signal.SIGKILL, process.stderr.decode()
    assert read(tmp_path) is None
    journal, rows = opened(tmp_path)
    options = JournalOptions(path=str(tmp_path))
    writer = BatchWriter(journal, options, BATCH, rows, SystemClock())
    assert writer.recover(orphaned_segments(journal, BATCH, rows)) == len(left)
    rows.append((99,), "default", None, 99)
    writer.flush(has_ids=False)
    assert writer.commit() is None
    assert read(tmp_path) == [*left, 99]
    journal.trim(100)
    assert [path.name for path in tmp_path.glob("*/*/*")] == ["journal.json"]


def test_a_trim_that_is_killed_leaves_no_batch_that_looks_open(tmp_path, monkeypatch):
    """Whatever has been deleted when it is killed: the batch is either whole, or below what is trimmed."""
    numbers = list(range(5))
    for deletions in range(3):
        folder = tmp_path / str(deletions)
        journal = committed(folder, numbers)
        delete, left = type(journal.store).delete, [deletions]

        def dying(self, name, delete=delete, left=left):
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            delete(self, name)

        monkeypatch.setattr(type(journal.store), "delete", dying)
        if deletions < 2:
            with pytest.raises(KeyboardInterrupt):
                journal.trim(100)
        else:
            journal.trim(100)
        monkeypatch.undo()
        assert journal.trimmed() == 100
        assert json.loads((Path(journal.store.folder) / "journal.json").read_text())["spout"] == "lines"
