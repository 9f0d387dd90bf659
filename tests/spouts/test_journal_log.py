"""The journal's files: mutants of each, and processes killed in the middle of writing them."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from pystorm_source.clock import SystemClock
from pystorm_source.errors import CheckpointError, DataLossError
from pystorm_source.spouts.journal_log import Journal, SliceWriter
from pystorm_source.spouts.journal_manifest import Slice
from pystorm_source.spouts.journal_options import JournalOptions, without_credentials
from pystorm_source.spouts.journal_rows import JournalRows
from tests.spouts.mutations import COUNT, mutated

ROOT = Path(__file__).resolve().parents[2]
ID = "0" * 31 + "1"
SLICE = Slice(0, 100)


def opened(folder, **options):
    journal = Journal(JournalOptions(path=str(folder), **options), "lines", ID)
    return journal, JournalRows("lines", {"default": pa.schema([("n", pa.int64())])})


def settled(folder, *groups, **options):
    """A journal whose first slice holds these groups of numbers."""
    journal, rows = opened(folder, **options)
    journal.found()
    writer = SliceWriter(journal, JournalOptions(path=str(folder), **options), SLICE, rows, SystemClock())
    for group in groups:
        for n in group:
            rows.append((n,), "default", None, n)
        writer.flush(has_ids=False)
    assert writer.settle() is None
    return journal


def read(folder, fail_on_data_loss=True):
    """The numbers of the slice; None where it is open."""
    journal, rows = opened(folder)
    journal.trimmed()
    manifest = journal.manifest(SLICE)
    if manifest is None:
        return None
    groups = journal.read(manifest, rows, fail_on_data_loss)
    return [emit[0][0] for group in groups for emit in rows.emits(group)]


@pytest.mark.parametrize("fsync", ["micro-batch", "segment", "never"])
@pytest.mark.parametrize("segment_bytes", [4096, 1 << 20])
def test_what_was_settled_is_read(tmp_path, fsync, segment_bytes):
    groups = [range(500), range(500, 501), range(501, 2000)]
    settled(tmp_path, *groups, fsync=fsync, segment_bytes=segment_bytes)
    assert read(tmp_path) == list(range(2000))
    segments = len(list(tmp_path.glob("*/*/*.segment")))
    assert segments == (2 if segment_bytes == 4096 else 1)
    assert not list(tmp_path.glob("*/*/*.tmp"))


@pytest.mark.parametrize("fsync", ["micro-batch", "segment", "never"])
def test_the_policy_says_when_the_disk_is_waited_for(tmp_path, monkeypatch, fsync):
    """Two segments and a manifest: `micro-batch` waits once for each segment when the slice ends."""
    settled(tmp_path, [0], fsync=fsync)  # the head
    synced = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(Path(os.readlink(f"/proc/self/fd/{number}"))))
    journal, rows = opened(tmp_path, fsync=fsync)
    writer = SliceWriter(
        journal,
        JournalOptions(path=str(tmp_path), fsync=fsync, segment_bytes=4096),
        Slice(100, 200),
        rows,
        SystemClock(),
    )
    for n in range(1000):
        rows.append((n,), "default", None, n)
    writer.flush(has_ids=False)
    rows.append((1000,), "default", None, 1000)
    writer.flush(has_ids=False)
    writer.settle()
    segments = [path for path in synced if path.suffix == ".segment"]
    assert len(segments) == {"micro-batch": 2, "segment": 2, "never": 0}[fsync]
    assert len(set(segments)) == len(segments)
    assert sum(path.suffix == ".tmp" for path in synced) == (fsync != "never")
    assert synced[-1:] == ([Path(journal.store.folder)] if fsync != "never" else [])


@pytest.mark.parametrize("name", ["*.manifest", "*.segment", "journal.json"])
def test_a_mutated_file_is_an_error_that_names_it_or_changes_nothing(tmp_path, name):
    """No crash, no other rows, nothing missing in silence."""
    numbers = list(range(50))
    settled(tmp_path, numbers[:20], numbers[20:21], numbers[21:])
    (path,) = tmp_path.glob(f"*/*/{name}")
    data = path.read_bytes()
    rng = random.Random(name)
    refused = 0
    for _ in range(COUNT):
        path.write_bytes(mutated(data, rng))
        refusal = None
        try:
            assert read(tmp_path) == numbers
        except DataLossError as error:
            refusal = str(error)
        assert refusal is None or f"Given: '{path}'" in refusal
        refused += refusal is not None
    assert refused > COUNT * 0.8


def test_a_mutated_segment_is_cut_where_loss_may_be(tmp_path, caplog):
    numbers = list(range(50))
    settled(tmp_path, numbers[:20], numbers[20:21], numbers[21:])
    (path,) = tmp_path.glob("*/*/*.segment")
    data = path.read_bytes()
    rng = random.Random(3)
    for _ in range(COUNT):
        path.write_bytes(mutated(data, rng))
        caplog.clear()
        found = read(tmp_path, fail_on_data_loss=False)
        assert found == numbers[: len(found)]
        assert found == numbers or f"{50 - len(found)} of 50 tuples are skipped" in caplog.text


def test_a_mutated_leftover_is_adopted_up_to_the_damage(tmp_path):
    journal, rows = opened(tmp_path)
    journal.found()
    options = JournalOptions(path=str(tmp_path))
    writer = SliceWriter(journal, options, SLICE, rows, SystemClock())
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
            for leftover in journal.leftovers(SLICE, rows)
            for group in leftover.groups
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
    "before flush": ("journal_segment.SegmentWriter.write", []),
    "in mid-write": ("", list(range(10))),
    "after flush, before the manifest": ("journal_log.SliceWriter._winner", list(range(20))),
    "manifest written, not yet linked": ("os.link", list(range(20))),
}

PROCESS = """
import importlib, os, signal, sys
from tests.spouts.test_journal_log import SLICE, JournalOptions, SliceWriter, SystemClock, opened
folder, point = sys.argv[1:]

def die(*arguments, **named):
    os.kill(os.getpid(), signal.SIGKILL)

journal, rows = opened(folder)
journal.found()
writer = SliceWriter(journal, JournalOptions(path=folder), SLICE, rows, SystemClock())
if point and not point.startswith("os."):
    module, cls, method = point.split(".")
    setattr(getattr(importlib.import_module("pystorm_source.spouts." + module), cls), method, die)
elif point:
    os.link = die
for n in range(10):
    rows.append((n,), "default", None, n)
writer.flush(has_ids=False)
if not point:
    from pystorm_source.spouts import journal_store
    write = journal_store._LocalAppender.write
    def torn(self, data):
        write(self, memoryview(data).cast("B")[:100])
        if memoryview(data).nbytes > 100:
            die()
    journal_store._LocalAppender.write = torn
for n in range(10, 20):
    rows.append((n,), "default", None, n)
writer.flush(has_ids=False)
writer.settle()
"""


@pytest.mark.parametrize("point", POINTS)
def test_a_process_killed_at_a_point_leaves_a_journal_that_goes_on(tmp_path, point):
    target, left = POINTS[point]
    process = subprocess.run([sys.executable, "-c", PROCESS, str(tmp_path), target], cwd=ROOT, capture_output=True)
    assert process.returncode == -signal.SIGKILL, process.stderr.decode()
    assert read(tmp_path) is None
    journal, rows = opened(tmp_path)
    options = JournalOptions(path=str(tmp_path))
    writer = SliceWriter(journal, options, SLICE, rows, SystemClock())
    assert writer.adopt(journal.leftovers(SLICE, rows)) == len(left)
    rows.append((99,), "default", None, 99)
    writer.flush(has_ids=False)
    assert writer.settle() is None
    assert read(tmp_path) == [*left, 99]
    journal.trim(100)
    assert [path.name for path in tmp_path.glob("*/*/*")] == ["journal.json"]


def test_a_trim_that_is_killed_leaves_no_slice_that_looks_open(tmp_path, monkeypatch):
    """Whatever has been deleted when it is killed: the slice is either whole, or below what is trimmed."""
    numbers = list(range(5))
    for deletions in range(3):
        folder = tmp_path / str(deletions)
        journal = settled(folder, numbers)
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
