"""Files and directories that are away for a while, and files without a birth time: nothing is read twice."""

import gzip
import os
import shutil
import time

import pytest

from pystorm_source.clock import ManualClock, SystemClock
from pystorm_source.errors import DataLossError, WorldError
from pystorm_source.spouts import FilesSpout
from pystorm_source.spouts.files.identity import birth_time, catalog
from pystorm_source.spouts.files.listing import departed, notes
from tests.spouts.drive import Driven, Query, append
from tests.spouts.warp import WarpedClock, WarpedFiles

HOUR = 3600.0


def made(path, **options):
    clock = ManualClock(SystemClock().wall() + 1)
    return Query(Driven(FilesSpout.spec(path=path), options, clock))


@pytest.fixture(params=["true", "false"], ids=["failOnDataLoss", "lenient"])
def query(request, logs):
    return made(logs, failOnDataLoss=request.param)


def words(rows):
    return sorted(word for (word,) in rows)


def vanish(query, file):
    """The file is away for a trigger that reads something else."""
    append(file.parent / "other.log", f"while {file.name} was away")
    return words(query.drain())


def test_a_file_that_was_away_for_a_trigger_goes_on_where_it_was(query, logs, tmp_path):
    append(logs / "app.log", "one", "two")
    query.drain()
    os.rename(logs / "app.log", tmp_path / "aside")
    assert vanish(query, logs / "app.log") == ["while app.log was away"]
    assert [name.partition("@")[0] for name in query.known] == ["other.log"]
    os.rename(tmp_path / "aside", logs / "app.log")
    query.restart()
    assert query.drain() == []
    append(logs / "app.log", "three")
    assert words(query.drain()) == ["three"]
    assert not any(note.startswith("gone") for note in query.state)


def test_a_file_that_grew_while_it_was_away_gives_what_is_new(query, logs, tmp_path):
    append(logs / "app.log", "one")
    query.drain()
    os.rename(logs / "app.log", tmp_path / "aside")
    vanish(query, logs / "app.log")
    append(tmp_path / "aside", "two")
    os.rename(tmp_path / "aside", logs / "app.log.1")
    assert words(query.drain()) == ["two"]


def test_a_file_that_comes_back_compressed_gives_what_is_new(query, logs, tmp_path):
    append(logs / "app.log", "one", "two")
    query.drain()
    os.rename(logs / "app.log", tmp_path / "aside")
    vanish(query, logs / "app.log")
    append(tmp_path / "aside", "three")
    packed = gzip.compress((tmp_path / "aside").read_bytes())
    (logs / "app.log.1.gz").write_bytes(packed)
    assert words(query.drain()) == ["three"]


def test_another_file_under_the_name_of_a_vanished_one_is_new(query, logs):
    """It may have got its inode, too."""
    append(logs / "app.log", "one")
    query.drain()
    for n in range(5):
        os.remove(logs / "app.log")
        vanish(query, logs / "app.log")
        append(logs / "app.log", f"new {n}")
        assert words(query.drain()) == [f"new {n}"]


def test_half_read_files_that_vanish_and_return_are_read_to_their_end(logs, tmp_path):
    query = made(logs, failOnDataLoss="false")
    append(logs / "app.log", *(f"line {n:03}" for n in range(100)))
    first = query.step(limit=300)
    assert 0 < len(first) < 100
    os.rename(logs / "app.log", tmp_path / "aside")
    append(logs / "other.log", "other")
    snapshot = query.driven.driver.snapshot(query.known, query.state)
    lost = query.known.keys() - snapshot.heads.keys() - snapshot.retired
    assert len(lost) == 1  # Spark's side says so, and goes on
    query.known = {name: head for name, (_, head) in snapshot.heads.items()}
    query.state = dict(snapshot.state)
    os.rename(tmp_path / "aside", logs / "app.log")
    assert words(first + query.drain()) == [f"line {n:03}" for n in range(100)]


@pytest.mark.parametrize("glob", ["", "*.log", "**/*.log"])
def test_a_directory_that_is_not_there_is_an_error_and_not_the_end_of_its_files(logs, tmp_path, glob):
    query = made(logs / glob if glob else logs)
    append(logs / "app.log", "one", "two")
    query.drain()
    os.rename(logs, tmp_path / "aside")
    for _ in range(2):
        with pytest.raises(WorldError, match=r"logs.*mounted") as failed:
            query.plan()
        assert not isinstance(failed.value, DataLossError)
        query.restart()
    os.rename(tmp_path / "aside", logs)
    assert query.drain() == []
    append(logs / "app.log", "three")
    assert words(query.drain()) == ["three"]


def test_a_mount_point_without_its_mount_is_an_error(logs, tmp_path):
    """What is left of an unmounted file system is an empty directory, and another one."""
    query = made(logs)
    append(logs / "app.log", "one")
    query.drain()
    os.rename(logs, tmp_path / "aside")
    logs.mkdir()
    with pytest.raises(WorldError, match=r"logs.*mounted.*app\.log"):
        query.plan()
    logs.rmdir()
    os.rename(tmp_path / "aside", logs)
    append(logs / "app.log", "two")
    assert words(query.drain()) == ["two"]


def test_a_directory_below_that_is_away_is_an_error_or_nothing_is_read_twice(logs, tmp_path):
    for host in ("a", "b"):
        (logs / host).mkdir()
        append(logs / host / "app.log", f"one of {host}")
    strict, lenient = made(logs / "*" / "*.log"), made(logs / "*" / "*.log", failOnDataLoss="false")
    for query in (strict, lenient):
        assert words(query.drain()) == ["one of a", "one of b"]
    os.rename(logs / "a", tmp_path / "aside")
    append(logs / "b" / "app.log", "two of b")
    with pytest.raises(WorldError, match=r"logs/a'.*mounted"):
        strict.plan()
    assert words(lenient.drain()) == ["two of b"]
    os.rename(tmp_path / "aside", logs / "a")
    append(logs / "a" / "app.log", "two of a")
    assert words(strict.drain()) == ["two of a", "two of b"]
    assert words(lenient.drain()) == ["two of a"]


def test_an_emptied_directory_is_no_error(query, logs):
    append(logs / "a.log", "one")
    query.drain()
    os.remove(logs / "a.log")
    assert query.drain() == []
    append(logs / "b.log", "two")
    assert words(query.drain()) == ["two"]


def test_a_task_says_that_the_directory_is_not_there(query, logs, tmp_path):
    append(logs / "app.log", "one")
    ranges = query.plan()
    os.rename(logs, tmp_path / "aside")
    with pytest.raises(WorldError, match=r"logs.*mount") as failed:
        query.read(ranges)
    assert not isinstance(failed.value, DataLossError)
    os.rename(tmp_path / "aside", logs)
    assert words(query.read(ranges)) == ["one"]


def test_what_vanished_is_forgotten_when_its_return_is_noticed_without(logs, tmp_path):
    clock = WarpedClock(tmp_path / "probe")
    query = Query(Driven(WarpedFiles.spec(path=logs), clock=clock))
    append(logs / "app.log", "one")
    query.drain()
    os.rename(logs / "app.log", tmp_path / "aside")
    vanish(query, logs / "app.log")
    assert sum(note.startswith("gone") for note in query.state) == 1
    for n in range(3):
        clock.advance(HOUR + 1)
        append(logs / f"{n}.log", str(n))
        query.drain()
    assert not any(note.startswith("gone") for note in query.state)
    os.rename(tmp_path / "aside", logs / "app.log")
    with pytest.raises(DataLossError, match=r"app\.log.*finished"):
        query.plan()


def test_the_notes_of_vanished_files_are_bounded(logs, monkeypatch):
    monkeypatch.setattr(notes, "MOST_GONE", 3)
    query = made(logs)
    for n in range(8):
        append(logs / f"{n}.log", str(n))
        query.drain()
        os.remove(logs / f"{n}.log")
    append(logs / "last.log", "last")
    query.drain()
    assert sum(note.startswith("gone") for note in query.state) == 3
    assert sum(note.startswith("departed") for note in query.state) == 1


@pytest.mark.parametrize("identity", ["inode", "path"])
def test_many_files_that_vanish_together_go_on_where_they_were(logs, tmp_path, monkeypatch, identity):
    """Their directory was not mounted for a while, or is removed by retention, which looks the same."""
    monkeypatch.setattr(notes, "MOST_GONE", 3)
    clock = WarpedClock(tmp_path / "probe")
    query = Query(Driven(WarpedFiles.spec(path=logs / "*" / "*"), {"files.identity": identity}, clock=clock))
    for day in (1, 2):
        (logs / f"day={day}").mkdir()
    for n in range(30):
        append(logs / "day=1" / f"{n}.log", "same", f"first of {n}")
    append(logs / "day=2" / "a.log", "two")
    assert len(query.drain()) == 61
    clock.advance(HOUR + 1)
    os.rename(logs / "day=1", tmp_path / "aside")
    append(logs / "day=2" / "a.log", "three")
    assert words(query.drain()) == ["three"]
    assert len(query.known) == 1 and len(query.state) < 10
    os.rename(tmp_path / "aside", logs / "day=1")
    for n in range(0, 30, 3):
        append(logs / "day=1" / f"{n}.log", f"late of {n}")
    query.restart()
    assert words(query.drain()) == sorted(f"late of {n}" for n in range(0, 30, 3))
    append(logs / "day=1" / "0.log", "more")
    append(logs / "day=1" / "new.log", "same")
    assert words(query.drain()) == ["more", "same"]
    assert not any(note.startswith(("gone", "departed")) for note in query.state)


def test_too_many_departed_files_are_reported_before_its_files_are_read_twice(logs, monkeypatch, caplog):
    monkeypatch.setattr(notes, "MOST_GONE", 3)
    monkeypatch.setattr(departed, "MOST", 4)
    query = made(logs)
    append(logs / "stays.log", "one")
    for n in range(8):
        append(logs / f"{n}.log", str(n))
    query.drain()
    for n in range(8):
        os.remove(logs / f"{n}.log")
    append(logs / "stays.log", "two")
    query.drain()
    assert "forgotten" in caplog.text


def test_thousands_of_files_that_are_away_are_one_warning(logs, tmp_path, caplog):
    query = made(logs / "*" / "*", failOnDataLoss="false")
    for folder in ("a", "b"):
        (logs / folder).mkdir()
    for n in range(40):
        append(logs / "a" / f"{n}.log", str(n))
    append(logs / "b" / "0.log", "one")
    query.drain()
    os.rename(logs / "a", tmp_path / "aside")
    append(logs / "b" / "0.log", "two")
    caplog.clear()
    assert words(query.drain()) == ["two"]
    (said,) = {message for message in caplog.messages if "mounted" in message}
    assert "39 others" in said


@pytest.fixture
def born_at_nought(monkeypatch):
    """What the kernel says of a file that an image builder wrote: a birth time is known, and it is 0."""
    real = birth_time._statx

    def statx(*arguments):
        status = real(*arguments)
        buffer = arguments[-1]
        buffer[birth_time._BTIME_SECONDS : birth_time._BTIME_NANOSECONDS + 4] = bytes(12)
        return status

    monkeypatch.setattr(birth_time, "_statx", statx)


def test_files_of_birth_time_nought_are_read(born_at_nought, logs, tmp_path):
    clock = WarpedClock(tmp_path / "probe")
    query = Query(Driven(WarpedFiles.spec(path=logs), clock=clock))
    append(logs / "baked.log", "one")
    assert words(query.drain()) == ["one"]
    clock.advance(HOUR + 1)
    append(logs / "later.log", "two")
    assert words(query.drain()) == ["two"]
    append(logs / "baked.log", "three")
    query.restart()
    assert words(query.drain()) == ["three"]


def test_files_of_birth_time_nought_appear_beside_others(logs, tmp_path, monkeypatch):
    """A query that has a watermark already meets a file out of an image."""
    clock = WarpedClock(tmp_path / "probe")
    query = Query(Driven(WarpedFiles.spec(path=logs), clock=clock))
    append(logs / "a.log", "a")
    query.drain()
    clock.advance(HOUR + 1)
    append(logs / "b.log", "b")
    query.drain()
    assert int(query.state["watermark"]) > 0
    append(logs / "baked.log", "one")
    inode = os.stat(logs / "baked.log").st_ino
    real = birth_time._born

    def born(raw, file, wanted):
        found = real(raw, file, wanted)
        return None if os.stat(file).st_ino == inode else found

    monkeypatch.setattr(birth_time, "_born", born)
    assert words(query.drain()) == ["one"]
    append(logs / "baked.log", "two")
    query.restart()
    assert words(query.drain()) == ["two"]


def test_rotation_is_followed_without_birth_times(born_at_nought, query, logs):
    for n in range(6):
        append(logs / "app.log", f"{n} one", f"{n} two")
        query.step(limit=8)
        for old in range(n, -1, -1):
            source = logs / (f"app.log.{old}" if old else "app.log")
            os.rename(source, logs / f"app.log.{old + 1}")
    query.drain()
    assert words(query.rows) == [f"{n} {word}" for n in range(6) for word in ("one", "two")]


def test_a_whole_tree_that_is_moved_away_and_back_is_read_once(query, logs, tmp_path):
    for n in range(3):
        (logs / str(n)).mkdir()
    other = made(logs / "*" / "*.log", failOnDataLoss="false")
    for n in range(3):
        append(logs / str(n) / "app.log", f"one {n}")
    assert len(other.drain()) == 3
    shutil.move(logs / "1", tmp_path / "aside")
    append(logs / "2" / "app.log", "two 2")
    other.drain()
    other.restart()
    shutil.move(tmp_path / "aside", logs / "1")
    assert other.drain() == []


@pytest.fixture
def days(tmp_path, logs):
    """A query over logs/day=N/app.log, of which three days were read, and its clock."""
    clock = WarpedClock(tmp_path / "probe")
    for day in (1, 2, 3):
        (logs / f"day={day}").mkdir()
        append(logs / f"day={day}" / "app.log", f"of day {day}")
    query = Query(Driven(WarpedFiles.spec(path=logs / "*" / "*.log"), clock=clock))
    query.drain()
    return query, clock


def test_a_finished_folder_that_retention_removes_is_over(days, logs):
    query, clock = days
    clock.advance(HOUR + 1)
    shutil.rmtree(logs / "day=1")
    append(logs / "day=3" / "app.log", "more")
    assert words(query.drain()) == ["more"]
    assert not any("day=1" in partition for partition in query.known)
    shutil.rmtree(logs / "day=2")
    query.restart()
    assert query.drain() == []


def test_a_folder_that_is_away_before_its_files_are_finished_is_an_error(days, logs):
    query, _ = days
    shutil.rmtree(logs / "day=1")
    with pytest.raises(WorldError, match=r"day=1'.*mounted"):
        query.plan()


def test_a_folder_that_is_removed_before_it_was_read_is_an_error(days, logs):
    query, clock = days
    append(logs / "day=1" / "app.log", *(f"line {n}" for n in range(100)))
    assert query.step(limit=50)
    clock.advance(HOUR + 1)
    shutil.rmtree(logs / "day=1")
    with pytest.raises(WorldError, match=r"day=1'.*mounted"):
        query.plan()


def test_folders_that_are_all_away_are_an_error_though_each_was_finished(days, logs):
    query, clock = days
    clock.advance(HOUR + 1)
    (logs / "lists.txt").write_text("not a folder")
    for day in (1, 2, 3):
        shutil.rmtree(logs / f"day={day}")
    with pytest.raises(WorldError, match="mounted"):
        query.plan()


def test_a_month_of_finished_folders_is_removed_at_once(tmp_path, logs):
    clock = WarpedClock(tmp_path / "probe")
    for month, day in ((1, 1), (1, 2), (2, 1)):
        (logs / str(month) / str(day)).mkdir(parents=True)
        append(logs / str(month) / str(day) / "app.log", f"{month} {day}")
    query = Query(Driven(WarpedFiles.spec(path=logs), {"files.recursive": "true"}, clock))
    assert len(query.drain()) == 3
    clock.advance(HOUR + 1)
    shutil.rmtree(logs / "1")
    append(logs / "2" / "1" / "app.log", "more")
    assert words(query.drain()) == ["more"]


def test_a_finished_folder_that_was_only_away_is_not_read_twice(days, logs, tmp_path):
    query, clock = days
    clock.advance(HOUR + 1)
    os.rename(logs / "day=1", tmp_path / "aside")
    append(logs / "day=3" / "app.log", "more")
    assert words(query.drain()) == ["more"]
    os.rename(tmp_path / "aside", logs / "day=1")
    append(logs / "day=1" / "app.log", "late")
    query.restart()
    assert words(query.drain()) == ["late"]


def use_inode_again(path, name, *lines):
    """What the file system may do when a file is removed and another one is made: the same inode, other text."""
    path.write_text("")
    os.rename(path, path.with_name(name))
    append(path.with_name(name), *lines)


def test_an_inode_that_is_used_again_is_a_new_file_without_birth_times(born_at_nought, logs):
    query = made(logs)
    append(logs / "job-1", "one")
    query.drain()
    for n in range(2, 6):
        use_inode_again(logs / f"job-{n - 1}", f"job-{n}", f"of {n}", "x" * n)
        assert words(query.drain()) == sorted([f"of {n}", "x" * n])
        query.restart()
    assert len(query.known) == 1


def test_an_inode_that_is_used_again_within_a_tick_of_the_clock_is_a_new_file(query, logs, monkeypatch):
    """The birth times are the same: a file was made, read and removed before the clock of the file system ticked."""
    tick = time.time_ns()
    monkeypatch.setattr(catalog, "birth_time_ns", lambda path, inode: tick if os.path.isfile(path) else 1)
    append(logs / "job-1", "one")
    query.drain()
    for n in range(2, 6):
        use_inode_again(logs / f"job-{n - 1}", f"job-{n}", f"of {n}", "x" * n)
        assert words(query.drain()) == sorted([f"of {n}", "x" * n])
        query.restart()
    (logs / "job-6.gz").write_bytes(gzip.compress((logs / "job-5").read_bytes() + b"of 6\n"))
    os.rename(logs / "job-6.gz", logs / "job-5")
    os.rename(logs / "job-5", logs / "job-5.gz")
    assert words(query.drain()) == ["of 6"]


def test_rotation_uses_the_inode_of_the_oldest_file_again_without_birth_times(born_at_nought, logs):
    """RotatingFileHandler: the new app.log gets the inode of app.log.2, which was app.log once."""
    query = made(logs)
    log = logs / "app.log"
    for n in range(8):
        append(log, f"{n} one", f"{n} two")
        query.drain()
        query.restart()
        aside = logs.parent / "aside"
        if (logs / "app.log.2").exists():
            os.rename(logs / "app.log.2", aside)
        for number in (1, 0):
            source = logs / (f"app.log.{number}" if number else "app.log")
            if source.exists():
                os.rename(source, logs / f"app.log.{number + 1}")
        if aside.exists():
            aside.write_text("")
            os.rename(aside, log)
    assert words(query.rows) == sorted(f"{n} {word}" for n in range(8) for word in ("one", "two"))


def test_a_file_written_anew_under_its_name_is_an_error_that_names_the_missing_birth_times(born_at_nought, logs):
    query = made(logs)
    append(logs / "app.log", "one", "two")
    query.drain()
    (logs / "app.log").write_text("other\n")
    with pytest.raises(DataLossError, match=r"app\.log.*no birth times.*new names"):
        query.plan()


def test_a_gzip_file_that_gets_the_inode_of_one_of_its_name_is_new_without_birth_times(born_at_nought, logs):
    """app.log.2.gz was app.log.1.gz once; it is removed, and the next app.log.1.gz gets its inode."""
    query = made(logs)
    for n in range(4):
        (logs / "app.log.1.gz").write_bytes(gzip.compress(f"of {n}\n".encode() * (n + 1)))
        assert words(query.drain()) == [f"of {n}"] * (n + 1)
        query.restart()


def test_unread_lines_of_an_inode_that_is_used_again_are_data_loss(born_at_nought, logs):
    query = made(logs)
    append(logs / "job-1", *(f"line {n}" for n in range(100)))
    assert 0 < len(query.step(limit=300)) < 100
    use_inode_again(logs / "job-1", "job-2", "two")
    with pytest.raises(DataLossError, match="job-2"):
        query.plan()


def test_a_copy_of_a_file_whose_inode_is_used_again_is_refused_without_birth_times(born_at_nought, logs):
    """Renamed, copied and truncated; or removed, and there are two new files, one of them of the old text."""
    query = made(logs)
    append(logs / "job-1", *["ping"] * 300)
    query.drain()
    shutil.copyfile(logs / "job-1", logs / "job-3")
    use_inode_again(logs / "job-1", "job-2", "two")
    with pytest.raises(DataLossError, match=r"job-3.*its name does not say which"):
        query.plan()
