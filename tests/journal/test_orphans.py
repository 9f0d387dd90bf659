"""What attempts that die or fail leave behind: what no attempt can commit goes, what one may still commit stays."""

import errno
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from pystorm_source.clock import SystemClock
from pystorm_source.errors import WorldError
from pystorm_source.journal import store
from pystorm_source.journal.committed import Part, tuples_of
from pystorm_source.journal.log import Journal
from pystorm_source.journal.manifest import BatchRange, Manifest
from pystorm_source.journal.options import JournalOptions
from pystorm_source.journal.orphans import orphaned_segments
from pystorm_source.journal.rows import JournalRows
from pystorm_source.journal.writer import BatchWriter
from tests.journal.object_store import ObjectsInMemory

ROOT = Path(__file__).resolve().parents[2]
ID = "0" * 31 + "2"
BATCH = BatchRange(0, 100)
SIZE = 200_000
"""Bytes of a tuple: five fill a file system of 1 MB."""


def opened(folder):
    rows = JournalRows("lines", {"default": pa.schema([("n", pa.int64()), ("text", pa.string())])})
    return Journal(JournalOptions(path=str(folder)), "lines", ID), rows


class Attempt:
    """One attempt at the batch; ``emit`` flushes each tuple."""

    def __init__(self, folder, batch=BATCH, **options):
        self.journal, self.rows = opened(folder)
        self.writer = BatchWriter(
            self.journal, JournalOptions(path=str(folder), **options), batch, self.rows, SystemClock()
        )
        self.recovered = self.writer.recover(orphaned_segments(self.journal, batch, self.rows))

    def emit(self, *numbers, has_ids=True, size=10):
        for n in numbers:
            self.rows.append((n, "x" * size), "default", None, n)
            self.writer.flush(has_ids)
        return self

    def commit(self):
        return self.writer.commit()


def read(folder):
    journal, rows = opened(folder)
    groups = tuples_of(journal, Part(journal.opened(BATCH, 1, True)), rows, True)
    return [emit[0][0] for _, group, *_ in groups for emit in rows.emits(group)]


def sizes(folder):
    return sorted(path.stat().st_size for path in folder.glob("*/*/*.segment"))


@pytest.fixture
def folder(tmp_path):
    opened(tmp_path)[0].found()
    return tmp_path


PROCESS = """
import os, signal, sys
from tests.journal.test_orphans import Attempt
folder, size, has_ids = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "True"
attempt = Attempt(folder)
try:
    for n in range(4):
        attempt.emit(n, has_ids=has_ids, size=size)
finally:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(folder, size=10, has_ids=True):
    """A process that journals four tuples and is killed."""
    command = [sys.executable, "-c", PROCESS, str(folder), str(size), str(has_ids)]
    process = subprocess.run(command, cwd=ROOT, capture_output=True)
    assert process.returncode == -signal.SIGKILL, process.stderr.decode()


# --- a full disk


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MB of its own."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root may mount a small file system")
    try:
        opened(disk)[0].found()
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@contextmanager
def ballast(disk, size):
    """Something else that needs room for a while."""
    path = disk / "ballast"
    path.write_bytes(bytes(size))
    yield
    path.unlink()


def test_a_disk_that_was_full_heals_after_an_attempt_that_failed(small_disk):
    with ballast(small_disk, 500_000):
        attempt = Attempt(small_disk)
        with pytest.raises(WorldError, match="No space left on device"):
            attempt.emit(*range(4), size=SIZE)
        attempt.writer.give_up()
    assert sizes(small_disk) == []
    assert Attempt(small_disk).emit(*range(4), size=SIZE).commit() is None
    assert read(small_disk) == [0, 1, 2, 3]


def test_a_disk_that_was_full_heals_after_an_attempt_that_was_killed(small_disk):
    with ballast(small_disk, 500_000):
        killed(small_disk, SIZE)
    assert sum(sizes(small_disk)) > 300_000
    assert Attempt(small_disk).emit(*range(4), size=SIZE).commit() is None
    assert read(small_disk) == [0, 1, 2, 3]


def test_tuples_without_ids_survive_a_full_disk(small_disk):
    with ballast(small_disk, 500_000):
        killed(small_disk, SIZE, has_ids=False)
    attempt = Attempt(small_disk)
    assert attempt.recovered == 2
    assert attempt.emit(2, has_ids=False, size=SIZE).commit() is None
    assert read(small_disk) == [0, 1, 2]


def test_a_manifest_that_found_no_room_leaves_nothing_behind(small_disk):
    attempt = Attempt(small_disk).emit(0, size=SIZE)
    room = os.statvfs(small_disk)
    with ballast(small_disk, room.f_bavail * room.f_bsize):
        with pytest.raises(WorldError, match="No space left on device"):
            attempt.commit()
        attempt.writer.give_up()
    assert [path.name for path in small_disk.glob("*/*/*")] == ["journal.json"]


def test_a_full_disk_is_trimmed(small_disk):
    """The new head has no room before a segment has gone."""
    assert Attempt(small_disk).emit(0, size=SIZE).commit() is None
    room = os.statvfs(small_disk)
    with ballast(small_disk, room.f_bavail * room.f_bsize):
        opened(small_disk)[0].trim(100)
    assert [path.name for path in small_disk.glob("*/*/*")] == ["journal.json"]
    assert opened(small_disk)[0].trimmed() == 100


def test_a_full_disk_takes_no_ack_back(small_disk, caplog):
    """The copies of the manifest find no room: it counts all the same."""
    attempt = Attempt(small_disk).emit(0)
    extend = attempt.journal.store.extend
    room = os.statvfs(small_disk)
    path = small_disk / "ballast"

    def full(name, data):
        path.write_bytes(bytes((room.f_bavail - 1) * room.f_bsize))
        extend(name, data * 100)

    attempt.journal.store.extend = full
    assert attempt.commit() is None
    assert "no copy of its manifest" in caplog.text
    assert read(small_disk) == [0]


# --- what may still be committed


def test_garbage_of_attempts_that_die_is_bounded(folder):
    for _ in range(3):
        killed(folder)
        assert len(sizes(folder)) == 1, "the one before is gone"


def test_what_a_killed_attempt_had_journaled_without_ids_is_kept(folder):
    for count in (4, 8):
        killed(folder, has_ids=False)
        assert Attempt(folder).recovered == count


def test_behind_the_first_tuple_with_an_id_nothing_is_kept(folder):
    dead = Attempt(folder, segment_bytes=4096).emit(0, 1, has_ids=False, size=100)
    before = sizes(folder)
    dead.emit(2, size=5000).emit(3, has_ids=False, size=5000)
    assert len(sizes(folder)) == 2
    dead.writer._release()  # as its death would
    assert Attempt(folder).recovered == 2
    assert sizes(folder) == before


@pytest.mark.parametrize("has_ids", [True, False])
def test_a_twin_that_is_still_running_keeps_all_that_it_has_journaled(folder, has_ids):
    """A speculative attempt begins when the first one has journaled, and loses."""
    first = Attempt(folder, segment_bytes=4096).emit(0, 1, 2, has_ids=has_ids, size=5000)
    second = Attempt(folder)
    assert len(sizes(folder)) == 3
    first.emit(3, has_ids=has_ids)
    assert first.commit() is None
    assert second.commit() is not None
    assert read(folder) == [0, 1, 2, 3]


def test_a_running_process_is_not_taken_for_dead(folder):
    """Its lock is seen by another process, too."""
    running = Attempt(folder).emit(0)
    killed(folder)
    assert len(sizes(folder)) == 2
    assert running.commit() is None
    assert read(folder) == [0]


def test_the_loser_deletes_what_the_winner_does_not_name(folder):
    loser = Attempt(folder).emit(0, 1)
    winner = Attempt(folder).emit(2)
    assert winner.commit() is None
    assert len(sizes(folder)) == 2
    assert isinstance(loser.commit(), Manifest)
    assert len(sizes(folder)) == 1
    assert read(folder) == [2]


def test_the_loser_keeps_what_the_winner_has_recovered_from_it(folder):
    loser = Attempt(folder).emit(0, 1, has_ids=False)
    winner = Attempt(folder)
    assert winner.recovered == 2
    assert winner.commit() is None
    loser.emit(2, has_ids=False)
    assert loser.commit() is not None
    assert read(folder) == [0, 1]


def test_an_attempt_that_fails_after_its_manifest_is_there_deletes_nothing(folder, monkeypatch):
    """The link was made, then the disk failed: the batch is committed, though this attempt does not know."""
    attempt = Attempt(folder).emit(0)

    def broken(self):
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(store.LocalStore, "_sync_folder", broken)
    with pytest.raises(WorldError, match="broken"):
        attempt.commit()
    monkeypatch.undo()
    attempt.writer.give_up()
    assert read(folder) == [0]


def test_segments_that_vanish_before_the_commit_are_no_commit(folder):
    """Another attempt has taken a running one for dead: it fails, and its tuples come again."""
    attempt = Attempt(folder, fsync="never").emit(0)
    for path in folder.glob("*/*/*.segment"):
        path.unlink()
    with pytest.raises(WorldError, match="FileNotFoundError"):
        attempt.commit()
    attempt.writer.give_up()
    assert opened(folder)[0].opened(BATCH, 1, True) is None


def test_on_an_object_store_nobody_is_taken_for_dead(tmp_path, monkeypatch):
    handler = ObjectsInMemory()
    monkeypatch.setattr(store, "file_system", lambda path: (handler.file_system(), "bucket/journal"))
    opened("s3://bucket/journal")[0].found()
    dying = Attempt("s3://bucket/journal", segment_bytes=4096).emit(0, size=5000)
    other = Attempt("s3://bucket/journal")
    assert dying.commit() is None
    assert other.commit() is not None


def test_a_ballot_keeps_the_segments_of_an_attempt_that_was_killed(folder, monkeypatch):
    """Where there are no links: others may carry on its manifest."""

    def no_links(source, target):
        raise OSError(errno.EPERM, "no hard links")

    monkeypatch.setattr(os, "link", no_links)
    dying = Attempt(folder).emit(0)
    monkeypatch.setattr(store.LocalStore, "replace", replace_but_no_manifest)
    with pytest.raises(KeyboardInterrupt):
        dying.commit()
    monkeypatch.setattr(store.LocalStore, "replace", REPLACE)
    dying.writer._release()
    assert Attempt(folder).recovered == 0
    assert read(folder) == [0]


REPLACE = store.LocalStore.replace


def replace_but_no_manifest(self, name, data):
    if name.endswith(".manifest"):
        raise KeyboardInterrupt
    REPLACE(self, name, data)
