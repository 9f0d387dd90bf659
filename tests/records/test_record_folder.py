"""The private folder of a driver's record files."""

import os
import subprocess
import tempfile

import pytest

from pystorm_source.clock import ManualClock
from pystorm_source.records import record_folder
from pystorm_source.records.record_folder import (
    KEPT_SECONDS,
    MOST_FILES,
    files_in,
    folder_above,
    is_private,
    make_private,
    private_folder,
    private_folders,
    sweep,
)


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def ended():
    """The id of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def written(folder, name="a.jsonl", at=1_000.0):
    make_private(folder)
    path = folder / name
    path.write_text("{}\n")
    os.utime(path, (at, at))
    os.utime(folder, (at, at))
    return path


def test_it_is_named_by_the_jvm_and_open_to_this_user_alone(temporary):
    folder = private_folder(4711)
    make_private(folder)
    make_private(folder)
    assert folder.name == f"pystorm-source-{os.getuid()}-progress-4711"
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_may_enter_is_refused():
    folder = private_folder(1)
    folder.mkdir()
    folder.chmod(0o755)
    with pytest.raises(PermissionError, match="only this user may enter"):
        make_private(folder)


def test_that_of_the_jvm_above_is_made_or_there_is_none(monkeypatch):
    """Commits of a sink meet there: no query ends because they cannot."""
    monkeypatch.setattr(record_folder, "jvm_above", lambda: 4711)
    assert folder_above() == folder_above() == private_folder(4711)
    assert is_private(private_folder(4711))
    private_folder(4711).chmod(0o755)  # as if another user had put it there
    assert folder_above() is None
    monkeypatch.setattr(record_folder, "jvm_above", lambda: None)
    assert folder_above() is None


def test_a_link_in_its_place_is_refused(temporary):
    (temporary / "elsewhere").mkdir(mode=0o700)
    private_folder(1).symlink_to(temporary / "elsewhere")
    with pytest.raises(PermissionError, match="only this user may enter"):
        make_private(private_folder(1))
    assert private_folders() == []


def test_files_come_in_the_order_of_their_last_lines():
    folder = private_folder(1)
    later, earlier = written(folder, "a.jsonl", at=2.0), written(folder, "b.jsonl", at=1.0)
    (folder / "c.new").write_text("")
    assert files_in(folder) == [earlier, later]
    assert files_in(folder / "none") == []


def test_folders_come_in_the_order_of_their_last_lines():
    written(private_folder(1), at=20.0)
    written(private_folder(2), at=10.0)
    assert private_folders() == [private_folder(2), private_folder(1)]


def test_the_folder_of_a_jvm_that_has_ended_is_removed_a_day_later(ended):
    written(private_folder(ended))
    sweep(private_folder(os.getpid()), ManualClock(1_000 + KEPT_SECONDS))
    assert private_folders() == [private_folder(ended)]
    sweep(private_folder(os.getpid()), ManualClock(1_001 + KEPT_SECONDS))
    assert private_folders() == []


def test_folders_of_jvms_that_run_and_what_is_not_ours_stay(temporary, ended):
    written(private_folder(os.getpid()))
    foreign = temporary / f"pystorm-source-{os.getuid()}-progress-{ended}x"
    foreign.mkdir(mode=0o700)
    kept = temporary / "kept"
    kept.mkdir(mode=0o700)
    private_folder(ended).symlink_to(kept)
    sweep(private_folder(os.getpid()), ManualClock(10 * KEPT_SECONDS))
    assert private_folders() == [private_folder(os.getpid())]
    assert foreign.exists() and kept.exists()


def test_the_oldest_files_of_a_driver_make_room():
    folder = private_folder(os.getpid())
    paths = [written(folder, f"{n:03}.jsonl", at=1_000.0 + n) for n in range(MOST_FILES + 3)]
    sweep(folder, ManualClock(2_000))
    assert files_in(folder) == paths[3:]
