"""Files that are renamed, removed, truncated and replaced under a query."""

import gzip
import logging
import os
import random
import shutil

import pytest

from cython_core.executors.executor import ComponentFailed
from pystorm_source.errors import DataLossError, OptionError
from pystorm_source.spouts import FilesSpout
from pystorm_source.spouts.files.identity.catalog import FileCatalog
from pystorm_source.spouts.files.identity.text import FileText
from tests.spouts.drive import Driven, Query, append

HOUR = 3600.0


@pytest.fixture
def query(tmp_path, clock):
    return Query(Driven(FilesSpout.spec(path=tmp_path), clock=clock))


def lenient(path, clock, **options):
    return Query(Driven(FilesSpout.spec(path=path), {"failOnDataLoss": "false", **options}, clock))


def words(rows):
    return [word for (word,) in rows]


def test_half_a_line_waits_for_its_newline(query, tmp_path):
    append(tmp_path / "app.log", "one", "tw", end="")
    assert query.drain() == []
    append(tmp_path / "app.log", "o")
    assert words(query.drain()) == ["onetwo"]
    append(tmp_path / "app.log", "three\r", "")
    append(tmp_path / "app.log", "fo", end="")
    assert words(query.drain()) == ["three", ""]


def test_the_last_line_of_a_finished_file_needs_no_newline(query, tmp_path, clock):
    append(tmp_path / "app.log", "one")
    append(tmp_path / "app.log", "two", end="")
    append(tmp_path / "short.log", "three", end="")
    assert words(query.drain()) == ["one"]
    clock.advance(HOUR)
    assert sorted(words(query.drain())) == ["three", "two"]


def test_a_renamed_file_goes_on_where_it_was(query, tmp_path):
    append(tmp_path / "app.log", "one", "two")
    query.drain()
    append(tmp_path / "app.log", "three")
    os.rename(tmp_path / "app.log", tmp_path / "app.log.1")
    append(tmp_path / "app.log", "four")
    query.restart()
    assert sorted(words(query.drain())) == ["four", "three"]


def test_a_file_rotated_to_a_name_that_does_not_match_is_read_to_its_end(tmp_path, clock):
    append(tmp_path / "app.log", "one")
    query = Query(Driven(FilesSpout.spec(path=tmp_path / "app.log"), clock=clock))
    query.drain()
    append(tmp_path / "app.log", "two")
    os.rename(tmp_path / "app.log", tmp_path / "old-app")
    query.restart()
    assert words(query.drain()) == ["two"]
    append(tmp_path / "app.log", "three")
    append(tmp_path / "old-app", "last")
    query.restart()
    assert sorted(words(query.drain())) == ["last", "three"]
    assert len(query.known) == 2
    clock.advance(HOUR)
    os.utime(tmp_path / "app.log")
    append(tmp_path / "app.log", "four")
    assert words(query.drain()) == ["four"]
    assert [name.partition("@")[0] for name in query.known] == ["app.log"]


def test_a_file_renamed_between_planning_and_reading_is_found(query, tmp_path):
    (tmp_path / "archive").mkdir()
    for name in ("a.log", "b.log"):
        append(tmp_path / name, name)
    ranges = query.plan()
    os.rename(tmp_path / "a.log", tmp_path / "a.log.1")
    append(tmp_path / "a.log", "another")
    assert sorted(words(query.read(ranges))) == ["a.log", "b.log"]
    assert sorted(words(query.read(ranges))) == ["a.log", "b.log"]


def test_a_file_removed_between_planning_and_reading_is_data_loss(query, tmp_path, clock, caplog):
    append(tmp_path / "a.log", "one")
    ranges = query.plan()
    os.remove(tmp_path / "a.log")
    append(tmp_path / "a.log", "another file, perhaps of the same inode")
    with pytest.raises(DataLossError, match=r"a\.log"):
        query.read(ranges)
    other = lenient(tmp_path, clock)
    with caplog.at_level(logging.WARNING):
        assert other.read(ranges) == []
    assert "a.log" in caplog.text


def test_a_removed_file_that_was_read_is_no_loss(query, tmp_path):
    append(tmp_path / "a.log", "one")
    append(tmp_path / "b.log", "two")
    query.drain()
    os.remove(tmp_path / "a.log")
    append(tmp_path / "b.log", "three")
    assert words(query.drain()) == ["three"]
    assert [name.partition("@")[0] for name in query.known] == ["b.log"]


def test_a_removed_file_with_unread_lines_vanishes_without_being_retired(query, tmp_path):
    append(tmp_path / "a.log", *(f"line {n}" for n in range(100)))
    query.step(limit=50)
    (name,) = query.known
    os.remove(tmp_path / "a.log")
    query.restart()
    snapshot = query.driven.driver.snapshot(query.known, query.state)
    assert name not in snapshot.heads
    assert name not in snapshot.retired


def test_an_inode_used_again_is_a_new_file(query, tmp_path):
    """RotatingFileHandler: the oldest file is removed, and the new one gets its inode."""
    expected = []
    for generation in range(12):
        for line in range(5):
            append(tmp_path / "app.log", f"same first line\n{generation} {line}")
            expected += ["same first line", f"{generation} {line}"]
        query.drain()
        if os.path.exists(tmp_path / "app.log.2"):
            os.remove(tmp_path / "app.log.2")
        for n in (1, 0):
            source = tmp_path / (f"app.log.{n}" if n else "app.log")
            if source.exists():
                os.rename(source, tmp_path / f"app.log.{n + 1}")
    assert words(query.rows) == expected


@pytest.mark.parametrize("regrown", ["", "x\n", "a new beginning that is longer than what was there\n" * 10])
def test_truncation_is_data_loss(query, tmp_path, clock, regrown, caplog):
    append(tmp_path / "app.log", "one", "two")
    query.drain()
    with open(tmp_path / "app.log", "w") as file:
        file.write(regrown)
    query.restart()
    with pytest.raises(DataLossError, match=r"app\.log.*truncated.*offset 8.*failOnDataLoss=false"):
        query.step()
    other = lenient(tmp_path, clock)
    other.known, other.state = query.known, query.state
    with caplog.at_level(logging.WARNING):
        assert words(other.drain()) == regrown.splitlines()
    assert "truncated" in caplog.text


def test_truncation_to_the_same_beginning_begins_a_new_generation(tmp_path, clock):
    query = lenient(tmp_path, clock)
    for generation in range(3):
        with open(tmp_path / "app.log", "w") as file:
            file.write("header\n" * 200 + "x\n" * (5 - generation))
        assert words(query.drain()) == ["header"] * 200 + ["x"] * (5 - generation)
        (name,) = query.known
        assert name.endswith(f"~{generation}" if generation else name)


def test_a_file_written_anew_with_the_same_first_kilobyte_and_more_than_before(query, tmp_path, clock):
    banner = "banner " * 200
    append(tmp_path / "app.log", banner, "one", "two")
    query.drain()
    for restarted in (False, True):
        if restarted:
            query.restart()
        with open(tmp_path / "app.log", "w") as file:
            file.write(banner + "\n" + "x" * 30 + " no end yet")
        assert query.step() == []
        append(tmp_path / "app.log", "", "y")
        with pytest.raises(DataLossError, match=r"app\.log.*inside a line.*truncated"):
            query.step()


def test_truncation_between_planning_and_reading_is_data_loss(query, tmp_path):
    append(tmp_path / "app.log", "one", "two", "three")
    ranges = query.plan()
    os.truncate(tmp_path / "app.log", 5)
    with pytest.raises(DataLossError, match=r"app\.log.*truncated"):
        query.read(ranges)


def test_a_replaced_file_is_a_new_one(query, tmp_path):
    append(tmp_path / "table.csv", "1", "2")
    query.drain()
    append(tmp_path / ".new", "3", "4")
    os.replace(tmp_path / ".new", tmp_path / "table.csv")
    assert words(query.drain()) == ["3", "4"]


def test_links_to_one_file_are_one_file(query, tmp_path):
    append(tmp_path / "app-1.log", "one")
    os.link(tmp_path / "app-1.log", tmp_path / "hard.log")
    os.symlink("app-1.log", tmp_path / "current.log")
    assert words(query.drain()) == ["one"]
    os.remove(tmp_path / "hard.log")
    append(tmp_path / "app-1.log", "two")
    assert words(query.drain()) == ["two"]


def test_gzip_counts_once_it_is_complete(query, tmp_path):
    whole = gzip.compress(b"".join(b"line %d\n" % n for n in range(10000)))
    for end in (10, len(whole) // 2, len(whole) - 1):
        (tmp_path / "app.log.gz").write_bytes(whole[:end])
        assert query.drain() == []
    (tmp_path / "app.log.gz").write_bytes(whole)
    assert words(query.drain(limit=10)) == [f"line {n}" for n in range(10000)]
    assert query.batches == 1
    with open(tmp_path / "app.log.gz", "ab") as file:
        file.write(gzip.compress(b"another member\n"))
    query.restart()
    assert words(query.drain()) == ["another member"]


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_copy_without_new_lines_may_be_removed_before_its_turn(query, tmp_path, is_restarted):
    """Nothing is lost then, and the query goes on."""
    append(tmp_path / "app.log", "one", "two")
    query.drain()
    (tmp_path / "app.log.1.gz").write_bytes(gzip.compress(b"one\ntwo\n"))
    os.remove(tmp_path / "app.log")
    seen = query.driven.driver.snapshot(query.known, query.state)
    ((partition, (earliest, latest)),) = seen.heads.items()
    assert (earliest, latest) == (latest, os.path.getsize(tmp_path / "app.log.1.gz"))
    os.remove(tmp_path / "app.log.1.gz")
    if is_restarted:
        query.restart()
    gone = query.driven.driver.snapshot({partition: earliest}, dict(seen.state))
    assert gone.retired == {partition}
    append(tmp_path / "app.log", "three")
    assert words(query.drain()) == ["three"]


def test_a_gzip_file_that_is_cut_off_is_named(query, tmp_path, clock, caplog):
    whole = gzip.compress(os.urandom(50000).hex().encode().replace(b"0", b"\n"))
    (tmp_path / "app.log.gz").write_bytes(whole[:-100])
    assert query.plan() == []
    clock.advance(HOUR)
    ranges = query.plan()
    with pytest.raises(ComponentFailed) as failed:
        query.read(ranges)
    assert "app.log.gz" in str(failed.value.__cause__)
    other = Query(Driven(FilesSpout.spec(path=tmp_path), {"files.malformed": "skip"}, clock))
    with caplog.at_level(logging.WARNING):
        assert len(other.read(ranges)) > 1000
    assert "app.log.gz" in caplog.text


def test_gzip_can_be_ignored(tmp_path, clock):
    query = Query(Driven(FilesSpout.spec(path=tmp_path), {"files.gzip": "ignore"}, clock))
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"x\n"))
    append(tmp_path / "a.log", "one")
    assert words(query.drain()) == ["one"]


def test_what_a_directory_holds(tmp_path, clock):
    for name in ("a.log", ".hidden", "_SUCCESS", "deep/er/b.log", "deep/c.log", "_tmp/d.log", ".git/e.log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        append(tmp_path / name, name)
    os.mkfifo(tmp_path / "pipe")
    os.symlink(tmp_path, tmp_path / "deep" / "loop")

    def read(path, **options):
        return sorted(words(Query(Driven(FilesSpout.spec(path=path), options, clock)).drain()))

    assert read(tmp_path) == ["a.log"]
    assert read(f"file://{tmp_path}") == ["a.log"]
    assert read(tmp_path, **{"files.recursive": "true"}) == ["a.log", "deep/c.log", "deep/er/b.log"]
    assert read(tmp_path / "deep") == ["deep/c.log"]
    assert read(tmp_path / "a.log") == ["a.log"]
    assert read(tmp_path / "*") == ["_SUCCESS", "a.log"]
    assert read(tmp_path / "*" / "*.log") == ["_tmp/d.log", "deep/c.log"]
    assert read(tmp_path / "**" / "?.log") == ["a.log", "deep/c.log", "deep/er/b.log"]
    assert read(tmp_path / "deep" / "[!x]r" / "*") == ["deep/er/b.log"]


def test_names_that_are_no_utf8(query, tmp_path):
    path = os.fsencode(tmp_path) + b"/caf\xe9 100%@home.log"
    with open(path, "w") as file:
        file.write("one\n")
    ranges = query.plan()
    ranges[0][0].encode()
    assert words(query.read(ranges)) == ["one"]
    os.rename(path, path + b".1")
    assert words(query.read(ranges)) == ["one"]


def test_paths_that_do_not_exist_are_refused_unless_they_may_match_later(tmp_path, clock):
    for path in (tmp_path / "no", tmp_path / "no.log"):
        with pytest.raises(OptionError, match=r"path.*glob.*Given: "):
            Query(Driven(FilesSpout.spec(path=path))).plan()
    with pytest.raises(OptionError, match="mount"):
        Driven(FilesSpout.spec(path="s3://bucket/logs"))
    query = Query(Driven(FilesSpout.spec(path=tmp_path / "later" / "*.log"), clock=clock))
    assert query.drain() == []
    (tmp_path / "later").mkdir()
    append(tmp_path / "later" / "a.log", "one")
    assert words(query.drain()) == ["one"]


def test_offsets_of_another_spout_are_refused(query):
    with pytest.raises(OptionError, match="startingOffsets"):
        query.driven.driver.snapshot({"topic-0": 5}, {})


def pack(path):
    """What gzip(1) does: writes beside the file, keeps its mtime, removes it."""
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    os.utime(packed, ns=(os.stat(path).st_mtime_ns,) * 2)
    os.remove(path)


def test_a_file_that_rotation_compresses_is_not_read_twice(query, tmp_path):
    append(tmp_path / "app.log", "banner", "one", "two")
    query.drain()
    os.rename(tmp_path / "app.log", tmp_path / "app.log.1")
    pack(tmp_path / "app.log.1")
    append(tmp_path / "app.log", "banner", "three")
    query.restart()
    assert words(query.drain()) == ["banner", "three"]
    for n in (1, 0):
        os.rename(tmp_path / f"app.log{'.1.gz' if n else ''}", tmp_path / f"app.log.{n + 1}{'.gz' if n else ''}")
    append(tmp_path / "app.log", "four")
    query.restart()
    assert words(query.drain()) == ["four"]


def test_the_rest_of_a_file_that_was_compressed_meanwhile_is_read(query, tmp_path):
    append(tmp_path / "app.log", *(f"line {n}" for n in range(1000)))
    first = query.step(limit=5000)
    assert 0 < len(first) < 1000
    append(tmp_path / "app.log", "last", end="")
    pack(tmp_path / "app.log")
    query.restart()
    assert words(first + query.drain()) == [f"line {n}" for n in range(1000)] + ["last"]


def test_a_range_of_a_file_that_was_compressed_before_it_was_read(query, tmp_path):
    append(tmp_path / "a.log", *(f"line {n}" for n in range(1000)))
    append(tmp_path / "b.log", "other")
    ranges = query.plan()
    for name in ("a.log", "b.log"):
        pack(tmp_path / name)
    for _ in range(3):
        assert sorted(words(query.read(ranges))) == sorted([*(f"line {n}" for n in range(1000)), "other"])
    assert query.drain() == []


def test_a_compressed_copy_beside_its_original_waits(query, tmp_path):
    append(tmp_path / "a.log", "one", "two")
    query.drain()
    (tmp_path / "a.log.gz").write_bytes(gzip.compress((tmp_path / "a.log").read_bytes()))
    assert query.drain() == []
    os.remove(tmp_path / "a.log")
    append(tmp_path / "b.log", "three")
    assert words(query.drain()) == ["three"]
    assert words(query.drain()) == []


def test_another_compressed_file_with_the_same_first_line_is_read(query, tmp_path):
    append(tmp_path / "app.log", "banner", "one", "two")
    query.drain()
    (tmp_path / "old.log.gz").write_bytes(gzip.compress(b"banner\nlong ago\n"))
    assert words(query.drain()) == ["banner", "long ago"]


def copytruncate(path, number):
    """What logrotate does with that option, while nothing is written."""
    shutil.copyfile(path, path.with_name(f"{path.name}.{number}"))
    os.truncate(path, 0)


@pytest.mark.parametrize("banner", ["", "the same first line of every file\n"])
def test_copytruncate_goes_on_in_the_copy_and_begins_anew(query, tmp_path, banner):
    log = tmp_path / "app.log"
    for n in range(4):
        with open(log, "a") as file:
            file.write(banner)
        append(log, f"{n} one", f"{n} two")
        query.step(limit=12)
        append(log, f"{n} three")
        copytruncate(log, n)
        query.restart()
    append(log, "last")
    query.drain()
    expected = [f"{n} {word}" for n in range(4) for word in ("one", "two", "three")] + ["last"]
    assert sorted(words(query.rows)) == sorted(expected + [banner[:-1]] * (4 if banner else 0))


def test_copytruncate_of_a_single_followed_file_is_read_out_of_its_copy(tmp_path, clock):
    query = Query(Driven(FilesSpout.spec(path=tmp_path / "app.log"), clock=clock))
    append(tmp_path / "app.log.1", "of long ago")
    append(tmp_path / "app.log", "one")
    assert words(query.drain()) == ["one"]
    append(tmp_path / "app.log", "two")
    copytruncate(tmp_path / "app.log", 2)
    append(tmp_path / "app.log", "three")
    assert sorted(words(query.drain())) == ["three", "two"]


def test_a_copy_in_the_making_is_not_read_beside_its_original(query, tmp_path):
    lines = [f"line {n}" for n in range(5000)]
    append(tmp_path / "app.log", *lines)
    assert len(query.drain()) == 5000
    whole = (tmp_path / "app.log").read_bytes()
    for end in (3, 8, 20_000, len(whole)):
        (tmp_path / "app.log.1").write_bytes(whole[:end])
        query.restart()
        assert query.drain() == []
    append(tmp_path / "app.log", "after the copy")
    assert words(query.drain()) == ["after the copy"]


def test_a_range_of_a_file_that_was_copied_and_truncated_before_it_was_read(query, tmp_path, monkeypatch):
    left, forget = [], FileCatalog.forget
    monkeypatch.setattr(FileCatalog, "forget", lambda self: forget(self) or left.append(self._files))
    banner = "the same first line of every file"
    append(tmp_path / "app.log", banner, *(f"line {n}" for n in range(1000)))
    ranges = query.plan()
    copytruncate(tmp_path / "app.log", 1)
    append(tmp_path / "app.log", banner, *(f"new {n}" for n in range(2000)))
    for _ in range(2):
        assert words(query.read(ranges)) == [banner, *(f"line {n}" for n in range(1000))]
    assert left and not any(left)  # a task keeps no listing
    assert words(query.drain()) == [banner, *(f"new {n}" for n in range(2000))]


def test_a_file_that_is_truncated_while_a_task_reads_it_goes_on_in_its_copy(query, tmp_path, monkeypatch):
    """Between two blocks of one range."""
    lines = [f"line {n:07}" for n in range(200_000)]
    append(tmp_path / "app.log", *lines)
    (ranges,) = query.plan()
    read, blocks = FileText.read, 0

    def slow(self, count, at):
        nonlocal blocks
        blocks += count > 1
        if blocks == 2:
            blocks += 1
            copytruncate(tmp_path / "app.log", 1)
            append(tmp_path / "app.log", *(f"other {n:07}" for n in range(300_000)))
        return read(self, count, at)

    monkeypatch.setattr(FileText, "read", slow)
    assert [word for _, (word,) in query.driven.read(*ranges)] == lines
    assert blocks > 3


def test_a_compressed_copy_that_stays_beside_its_original_is_never_read(query, tmp_path, clock):
    """gzip -k."""
    append(tmp_path / "app.log.1", *(f"line {n}" for n in range(300)))
    query.drain()
    (tmp_path / "app.log.1.gz").write_bytes(gzip.compress((tmp_path / "app.log.1").read_bytes()))
    for n in range(3):
        append(tmp_path / "app.log", f"new {n}")
        assert words(query.drain()) == [f"new {n}"]
        clock.advance(HOUR)
        os.utime(tmp_path / "app.log")
        query.restart()
    os.remove(tmp_path / "app.log.1")
    append(tmp_path / "app.log", "last")
    assert words(query.drain()) == ["last"]


def test_a_gzip_file_under_another_name_is_not_read_as_text(query, tmp_path, caplog):
    text = b"".join(b"line %d\n" % n for n in range(3000))
    packed = gzip.compress(text)
    for end in (1, 100, len(packed)):
        (tmp_path / "app.log.1.gz.tmp").write_bytes(packed[:end])
        with caplog.at_level(logging.WARNING):
            assert query.drain() == []
    assert "app.log.1.gz.tmp" in caplog.text
    os.rename(tmp_path / "app.log.1.gz.tmp", tmp_path / "app.log.1.gz")
    assert len(query.drain()) == 3000


def test_a_plain_file_that_was_named_as_gzip_is_read_under_its_own_name(query, tmp_path):
    (tmp_path / "app.log.gz").write_text("a\nb\n")
    assert query.drain() == []
    os.rename(tmp_path / "app.log.gz", tmp_path / "app.log")
    assert words(query.drain()) == ["a", "b"]


def test_several_files_that_may_be_the_vanished_one_are_an_error_if_they_differ_in_what_was_read(query, tmp_path):
    """The fingerprint is of the first kilobyte; behind it two copies differ."""
    begin = ["the same"] * 200
    append(tmp_path / "app.log", *begin, "one", "two")
    query.drain()
    os.remove(tmp_path / "app.log")
    for n, last in enumerate(("one", "two")):
        data = "".join(line + "\n" for line in [*begin, "xxx", last, *begin])
        (tmp_path / f"app.log.{n + 1}.gz").write_bytes(gzip.compress(data.replace("xxx", last).encode()))
    with pytest.raises(DataLossError, match=r"app\.log\.1\.gz.*app\.log\.2\.gz.*remove the wrong one"):
        query.plan()


def test_nothing_is_new_while_no_two_listings_agree_on_what_became_of_a_file(query, tmp_path, monkeypatch, caplog):
    """Rather than to guess, a trigger gives nothing, and says so."""
    append(tmp_path / "app.log", "one")
    query.drain()
    query.still = False
    scan, names = FileCatalog.scan, iter(range(1000))

    def restless(self):
        found = scan(self)
        (tmp_path / f"app.log.{next(names)}.gz").write_bytes(gzip.compress(b"other\n"))
        return found

    os.remove(tmp_path / "app.log")
    append(tmp_path / "new.log", "two")
    monkeypatch.setattr(FileCatalog, "scan", restless)
    assert query.plan() == []
    assert "quicker than they could be looked at" in caplog.text
    monkeypatch.undo()
    assert "two" in words(query.drain())


def test_a_folder_in_which_files_always_come_and_go_is_read(query, tmp_path, monkeypatch):
    append(tmp_path / "app.log", "one")
    query.drain()
    query.still = False
    scan, names = FileCatalog.scan, iter(range(1000))

    def restless(self):
        n = next(names)
        append(tmp_path / f"job-{n}", f"job {n}")
        found = scan(self)
        append(tmp_path / f"later-{n}", f"later {n}")
        os.remove(tmp_path / f"job-{n}")
        os.rename(tmp_path / "app.log", tmp_path / "other.log")
        os.rename(tmp_path / "other.log", tmp_path / "app.log")
        return found

    monkeypatch.setattr(FileCatalog, "scan", restless)
    append(tmp_path / "app.log", "two")
    assert any(partition.startswith("app.log@") for partition, _, _ in query.plan())


@pytest.mark.parametrize(
    "names", [["job-1", "job-2", "job-3"], ["r-2024-01-01.csv", "r-2024-01-02.csv"], ["a.txt"] * 3]
)
def test_a_new_file_of_the_text_of_one_that_was_removed_is_new(query, tmp_path, names):
    """A spool whose files are removed behind the reader: a heartbeat a file."""
    for n in range(len(names)):  # before any is removed: none gets the inode of one that was made in the same tick
        append(tmp_path.parent / f"{tmp_path.name}-{n}", "ping")
    for n, name in enumerate(names):
        (tmp_path.parent / f"{tmp_path.name}-{n}").rename(tmp_path / name)
        assert words(query.drain()) == ["ping"], name
        if names.count(name) == 1:
            os.remove(tmp_path / name)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_number_before_the_extension_tells_no_delivery_from_a_rotated_file(query, tmp_path, clock, is_there):
    """r-01.csv is removed, or not, and r-02.csv.gz begins with its text: renamed and compressed, or another one?"""
    lines = [f"{n},the same in every delivery" for n in range(100)]
    append(tmp_path / "r-01.csv", *lines)
    query.drain()
    (tmp_path / "r-02.csv.gz").write_bytes(gzip.compress((tmp_path / "r-01.csv").read_bytes()))
    if not is_there:
        os.remove(tmp_path / "r-01.csv")
    with pytest.raises(DataLossError, match=r"r-02\.csv\.gz.*its name does not say which.*r-01\.csv\.gz"):
        query.plan()
    other = lenient(tmp_path, clock)
    other.known, other.state = dict(query.known), dict(query.state)
    assert words(other.drain()) == lines
    os.rename(tmp_path / "r-02.csv.gz", tmp_path / "r-01.csv.gz")
    assert query.drain() == []


@pytest.mark.parametrize("is_there", [True, False])
def test_a_date_tells_a_delivery_from_a_rotated_file(query, tmp_path, is_there):
    lines = [f"{n},the same on every day" for n in range(100)]
    append(tmp_path / "r-2024-02-28.csv", *lines)
    query.drain()
    (tmp_path / "r-2024-02-29.csv.gz").write_bytes(gzip.compress((tmp_path / "r-2024-02-28.csv").read_bytes()))
    if not is_there:
        os.remove(tmp_path / "r-2024-02-28.csv")
    assert words(query.drain()) == lines
    assert query.drain() == []


@pytest.mark.parametrize("name", ["app.1.log.gz", "app-1.log.gz", "app-2024-02-29.log.gz"])
def test_rotation_may_put_its_number_before_the_extension(query, tmp_path, name):
    append(tmp_path / "app.log", "one", "two")
    query.drain()
    data = (tmp_path / "app.log").read_bytes() + b"three\n"
    os.remove(tmp_path / "app.log")
    (tmp_path / name).write_bytes(gzip.compress(data))
    append(tmp_path / "app.log", "four")
    assert sorted(words(query.drain())) == ["four", "three"]


def test_a_log_with_a_number_is_no_copy_of_the_one_without(query, tmp_path):
    """They may begin alike: only a kilobyte of the same text says that one was copied."""
    for name in ("worker.log", "worker-1.log", "worker-2.log"):
        append(tmp_path / name, "started")
    assert words(query.drain()) == ["started"] * 3
    append(tmp_path / "worker.log", "more")
    assert words(query.drain()) == ["more"]
    (tmp_path / "worker.log").unlink()
    append(tmp_path / "worker-1.log", "last")
    assert words(query.drain()) == ["last"]


def test_copytruncate_may_put_its_number_before_the_extension(query, tmp_path):
    log = tmp_path / "app.log"
    append(log, "one" * 400, "two")
    query.drain()
    append(log, "three")
    shutil.copyfile(log, tmp_path / "app.1.log")
    assert words(query.drain()) == ["three"]  # the copy waits
    os.truncate(log, 0)
    append(log, "four")
    assert words(query.drain()) == ["four"]


@pytest.mark.parametrize("is_anew", [True, False])
@pytest.mark.parametrize("name", ["app.log-20240229", "app-2024-02-29.log", "app.log.1", "app.log-20240229.gz"])
def test_a_file_known_by_path_is_followed_to_the_name_that_rotation_gives_it(tmp_path, clock, name, is_anew):
    query = Query(Driven(FilesSpout.spec(path=tmp_path), {"files.identity": "path"}, clock))
    append(tmp_path / "app.log", "one", "two")
    query.drain()
    append(tmp_path / "app.log", "three")
    os.rename(tmp_path / "app.log", tmp_path / name.removesuffix(".gz"))
    if name.endswith(".gz"):
        pack(tmp_path / name.removesuffix(".gz"))
    if is_anew:
        append(tmp_path / "app.log", "four")
    query.restart()
    query.drain()
    append(tmp_path / "app.log", "five")
    query.drain()
    assert sorted(words(query.rows)) == sorted(["one", "two", "three", "five", *(["four"] if is_anew else [])])


def test_files_known_by_path_that_are_renamed_in_a_row_are_data_loss(tmp_path, clock):
    query = Query(Driven(FilesSpout.spec(path=tmp_path), {"files.identity": "path"}, clock))
    for number in (1, 2):
        append(tmp_path / "app.log", f"of {number}")
        query.drain()
        if number == 2:
            os.rename(tmp_path / "app.log.1", tmp_path / "app.log.2")
        os.rename(tmp_path / "app.log", tmp_path / "app.log.1")
    append(tmp_path / "app.log", "of 3")
    with pytest.raises(DataLossError, match=r"app\.log.* was truncated or overwritten"):
        query.plan()


@pytest.mark.parametrize("alike", [True, False])
def test_what_vanishes_in_large_numbers_is_looked_for_in_proportion(query, tmp_path, monkeypatch, alike):
    """Each file that may be an heir is opened a few times, however many have vanished."""
    opened = []
    real = FileText.__init__

    def count(self, path, inode=0):
        opened.append(path)
        real(self, path, inode)

    def opens(number):
        folder = tmp_path / str(number)
        folder.mkdir()
        query = Query(Driven(FilesSpout.spec(path=folder)))
        query.still = False
        for n in range(number):
            append(folder / f"app.log.{n}", "ping" if alike else f"ping {n}")
        query.drain()
        for n in range(number):
            pack(folder / f"app.log.{n}")
            os.rename(folder / f"app.log.{n}.gz", folder / f"app.log.{n + 1000}.gz")
            append(folder / f"app.log.{n + 2000}", f"new {n}")
        opened.clear()
        monkeypatch.setattr(FileText, "__init__", count)
        assert len(query.plan()) == number, "a copy has no line that was not read"
        monkeypatch.setattr(FileText, "__init__", real)
        return len(opened)

    few, many = opens(20), opens(80)
    assert many <= 5 * few


@pytest.mark.parametrize("seed", range(8))
def test_every_line_once_while_a_writer_appends_rotates_and_compresses(tmp_path, clock, seed):
    """Odd chunks, renames, removal of the oldest file, restarts, limits, replayed batches; contents are compared."""
    rng = random.Random(seed)
    query = Query(Driven(FilesSpout.spec(path=tmp_path), clock=clock), seed)
    written: dict[str, str] = {}
    number = 0

    def chunk(name):
        nonlocal number
        text = ""
        for _ in range(rng.randint(0, 20)):
            number += 1
            text += f"{number} {'é' * rng.choice((0, 3, 200))}" + rng.choice(("\n", "\n", "\r\n"))
        return text

    unsent = dict.fromkeys(("a.log", "b.log"), "")
    for _ in range(60):
        name = rng.choice(list(unsent))
        unsent[name] += chunk(name)
        raw = unsent[name].encode()
        cut = rng.randint(0, len(raw))
        while cut < len(raw) and raw[cut] & 0xC0 == 0x80:
            cut += 1
        with open(tmp_path / name, "ab") as file:
            file.write(raw[:cut])
        written[name] = written.get(name, "") + raw[:cut].decode()
        unsent[name] = raw[cut:].decode()
        turned = rng.random() < 0.15 and not unsent[name] and (tmp_path / name).exists()
        if turned and any((tmp_path / f"{name}.3{gz}").exists() for gz in ("", ".gz")):
            query.drain(limit=1000)
            (tmp_path / f"{name}.3").unlink(missing_ok=True)
            (tmp_path / f"{name}.3.gz").unlink(missing_ok=True)
        ranges = query.plan(limit=rng.choice((None, 30, 1000)), some=True)
        for n in (2, 1, 0) if turned else ():
            for gz in ("", ".gz"):
                source = tmp_path / (f"{name}.{n}{gz}" if n else name)
                if source.exists():
                    os.rename(source, tmp_path / f"{name}.{n + 1}{gz}")
        if turned and rng.random() < 0.7 and (tmp_path / f"{name}.1").exists():
            pack(tmp_path / f"{name}.1")
        rows = query.read(ranges)
        if rng.random() < 0.1:
            query.restart()
            again = len(query.rows)
            assert sorted(query.read(ranges)) == sorted(rows)
            del query.rows[again:]
        clock.advance(rng.choice((0.0, 0.1)))
    for name, rest in unsent.items():
        append(tmp_path / name, rest + "\n", end="")
        written[name] = written.get(name, "") + rest + "\n"
    query.drain(limit=500)
    expected = [line.removesuffix("\r") for text in written.values() for line in text.split("\n")[:-1]]
    assert sorted(words(query.rows)) == sorted(expected)
    shutil.rmtree(tmp_path)


def test_a_file_that_is_where_it_was_is_found_without_listing_its_folder(query, tmp_path, monkeypatch):
    for number in range(3):
        append(tmp_path / f"{number}.log", str(number))
    listed = []
    partitions = query.driven.driver.snapshot({}, {}).heads
    monkeypatch.setattr(os, "scandir", listed.append)
    for partition, (start, end) in partitions.items():
        assert len(query.driven.read(partition, start, end)) == 1
    assert listed == []
