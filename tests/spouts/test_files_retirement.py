"""Finished files leave the offset; nothing is lost by it, nothing read twice."""

import gzip
import logging
import os
import random
import shutil
import time

import pytest

from pystorm_source.errors import DataLossError
from pystorm_source.spouts.files.listing.retirement import FollowedFile, retire
from tests.sizes import sized
from tests.spouts.drive import Driven, Query, append
from tests.spouts.warp import WarpedClock, WarpedFiles

HOUR = 3600.0


@pytest.fixture
def clock(tmp_path):
    return WarpedClock(tmp_path / "probe")


@pytest.fixture
def query(logs, clock):
    return Query(Driven(WarpedFiles.spec(path=logs), clock=clock))


def words(rows):
    return sorted(word for (word,) in rows)


def names(query):
    return sorted(name.partition("@")[0] for name in query.known)


def test_read_and_idle_files_leave_the_offset_and_stay_away(query, logs, clock):
    for n in range(20):
        append(logs / f"{n:02}.log", f"line {n}")
    query.drain()
    assert len(query.known) == 20
    clock.advance(HOUR + 1)
    assert query.plan() == []
    assert len(query.known) == 20  # nothing to read: nothing is stored
    append(logs / "active.log", "one")
    assert words(query.drain()) == ["one"]
    assert names(query) == ["active.log"]
    for n in range(3):
        query.restart()
        append(logs / "active.log", f"more {n}")
        assert words(query.drain()) == [f"more {n}"]
    assert len(query.state) == 3  # the watermark, the directory, and how far the active file was seen


@pytest.mark.campaign
def test_thousands_of_finished_files_and_an_active_one(query, logs, clock):
    for n in range(5000):
        append(logs / f"{n}.log", f"line {n}")
    began = time.perf_counter()
    first = query.driven.driver.snapshot({}, {})
    cold = time.perf_counter() - began
    assert len(first.heads) == 5000
    query.known = {name: head for name, (_, head) in first.heads.items()}
    clock.advance(HOUR + 1)
    append(logs / "active.log", "one")
    assert words(query.drain()) == ["one"]
    assert names(query) == ["active.log"]
    assert len(query.state) == 3
    query.restart()
    began = time.perf_counter()
    assert query.plan() == []
    assert time.perf_counter() - began < 2 * cold + 1
    append(logs / "active.log", "two")
    assert words(query.drain()) == ["two"]


def test_an_unfinished_file_holds_back_the_later_ones_only(query, logs, clock):
    append(logs / "a.log", "a")
    clock.advance(1)
    append(logs / "b.log", *"bcdefgh")
    clock.advance(1)
    append(logs / "c.log", "c")
    query.known = {
        name: head if "b.log" not in name else 4
        for name, (_, head) in query.driven.driver.snapshot({}, {}).heads.items()
    }
    clock.advance(HOUR + 1)
    append(logs / "d.log", "d")
    after = query.driven.driver.snapshot(query.known, {})
    assert [name.partition("@")[0] for name in after.retired] == ["a.log"]
    assert len(query.drain()) == 6
    append(logs / "d.log", "e")
    query.drain()
    assert names(query) == ["d.log"]


def test_a_file_that_grows_after_it_was_finished_is_an_error_or_is_read_again(query, logs, clock, caplog):
    append(logs / "slow.log", "one")
    query.drain()
    clock.advance(HOUR + 1)
    append(logs / "other.log", "two")
    query.drain()
    append(logs / "slow.log", "three")
    query.restart()
    with pytest.raises(DataLossError, match=r"slow\.log.*files\.finished\.after"):
        query.plan()
    other = Query(Driven(WarpedFiles.spec(path=logs), {"failOnDataLoss": "false"}, clock))
    other.known, other.state = query.known, query.state
    with caplog.at_level(logging.WARNING):
        assert words(other.drain()) == ["one", "three"]
    assert "slow.log" in caplog.text
    append(logs / "slow.log", "four")
    other.restart()
    assert words(other.drain()) == ["four"]


def test_a_finished_file_that_is_only_touched_is_not_read_again(query, logs, clock, caplog):
    append(logs / "old.log", "one")
    query.drain()
    clock.advance(HOUR + 1)
    append(logs / "other.log", "two")
    query.drain()
    os.rename(logs / "old.log", logs / "older.log")
    with pytest.raises(DataLossError, match=r"older\.log"):
        query.plan()
    other = Query(Driven(WarpedFiles.spec(path=logs), {"failOnDataLoss": "false"}, clock))
    other.known, other.state = query.known, query.state
    with caplog.at_level(logging.WARNING):
        assert other.drain() == []
    assert "older.log" in caplog.text
    clock.advance(HOUR + 1)
    append(logs / "other.log", "three")
    assert words(other.drain()) == ["three"]


def test_numbered_rotation_may_rename_finished_files(query, logs, clock):
    rows = []
    for day in range(6):
        for n in (3, 2, 1, 0):
            source = logs / (f"app.log.{n}" if n else "app.log")
            if source.exists():
                os.rename(source, logs / f"app.log.{n + 1}") if n < 3 else os.remove(source)
        append(logs / "app.log", f"day {day}")
        rows += query.drain()
        clock.advance(24 * HOUR)
        query.restart()
        append(logs / "app.log", f"end of day {day}")
        rows += query.drain()
        clock.advance(2 * HOUR)
    assert words(rows) == words((f"{what}{day}",) for day in range(6) for what in ("day ", "end of day "))
    assert len(query.known) <= 4


def test_empty_files_that_are_written_to_much_later_are_new(query, logs, clock):
    (logs / "empty.log").touch()
    (logs / "half.log").write_text("")
    append(logs / "a.log", "a")
    query.drain()
    clock.advance(HOUR + 1)
    append(logs / "b.log", "b")
    query.drain()
    assert names(query) == ["b.log"]
    assert sum(key.startswith("waiting") for key in query.state) == 2
    clock.advance(HOUR + 1)
    query.restart()
    append(logs / "empty.log", "at last")
    append(logs / "half.log", "no newline", end="")
    assert words(query.drain()) == ["at last"]
    clock.advance(HOUR + 1)
    assert words(query.drain()) == ["no newline"]
    append(logs / "b2.log", "c")
    query.drain()
    clock.advance(HOUR + 1)
    append(logs / "b3.log", "d")
    query.drain()
    assert len(query.state) == 3  # the watermark, the directory, and how far the active file was seen


def test_files_of_which_nothing_was_admitted_yet_stay_new(logs, clock):
    """Admission may leave new files out for long, while others are read and retired."""
    query = Query(Driven(WarpedFiles.spec(path=logs), clock=clock), seed=3)
    append(logs / "waits.log", "waited")
    driver = query.driven.driver
    for n in range(4):
        clock.advance(HOUR + 1)
        append(logs / f"{n}.log", str(n))
        snapshot = driver.snapshot(query.known, query.state)
        kept = {name: head for name, (_, head) in snapshot.heads.items() if "waits" not in name}
        query.known, query.state = {n: o for n, o in kept.items() if n not in snapshot.retired}, dict(snapshot.state)
        query.restart()
        driver = query.driven.driver
    assert words(query.drain()) == ["waited"]


def test_old_files_that_are_copied_in_are_new_whatever_their_times(query, logs, clock, tmp_path):
    append(tmp_path / "old.log", "from the archive")
    os.utime(tmp_path / "old.log", (1_000_000_000, 1_000_000_000))
    append(logs / "a.log", "a")
    query.drain()
    clock.advance(HOUR + 1)
    append(logs / "b.log", "b")
    query.drain()
    shutil.copy2(tmp_path / "old.log", logs / "old.log")
    assert words(query.drain()) == ["from the archive"]


def test_files_that_are_made_elsewhere_and_moved_in_are_new(query, logs, clock, tmp_path):
    append(logs / "a.log", "a")
    query.drain()
    clock.advance(HOUR + 1)
    append(tmp_path / "staged", "complete", end="")
    append(logs / "b.log", "b")
    query.drain()
    os.rename(tmp_path / "staged", logs / "c.log")
    assert query.drain() == []
    clock.advance(HOUR + 1)
    assert words(query.drain()) == ["complete"]


def test_old_files_that_are_moved_in_are_an_error_that_says_so(query, logs, clock, tmp_path):
    append(tmp_path / "staged", "old")
    append(logs / "a.log", "a")
    query.drain()
    clock.advance(HOUR + 1)
    append(logs / "b.log", "b")
    query.drain()
    clock.advance(HOUR + 1)
    append(logs / "b.log", "b")
    query.drain()
    clock.advance(HOUR + 1)
    append(logs / "c.log", "b")
    query.drain()
    os.rename(tmp_path / "staged", logs / "d.log")
    with pytest.raises(DataLossError, match=r"d\.log.*moved"):
        query.drain()


def test_without_birth_times_nothing_retires(query, logs, clock, monkeypatch):
    monkeypatch.setattr("pystorm_source.spouts.files.identity.catalog.birth_time_ns", lambda path, inode: None)
    rows = []
    for n in range(4):
        append(logs / f"{n}.log", str(n))
        append(logs / "0.log", f"again {n}")
        rows += query.drain()
        clock.advance(HOUR + 1)
        query.restart()
    assert words(rows) == words([(w,) for n in range(4) for w in (str(n), f"again {n}")])
    assert len(query.known) == 4


def test_files_known_by_path_retire_without_birth_times(logs, clock, monkeypatch):
    monkeypatch.setattr("pystorm_source.spouts.files.identity.catalog.birth_time_ns", lambda path, inode: None)
    query = Query(Driven(WarpedFiles.spec(path=logs), {"files.identity": "path"}, clock))
    rows = []
    for n in range(4):
        append(logs / f"{n}.log", str(n))
        rows += query.drain()
        clock.advance(HOUR + 1)
        query.restart()
    assert words(rows) == list("0123")
    assert names(query) == ["3.log"]


def test_finished_gzip_files_retire(query, logs, clock):
    for n in range(5):
        (logs / f"{n}.gz").write_bytes(gzip.compress(b"line %d\n" % n))
    assert len(query.drain()) == 5
    clock.advance(HOUR + 1)
    append(logs / "a.log", "a")
    query.drain()
    assert names(query) == ["a.log"]
    query.restart()
    assert query.drain() == []


@pytest.mark.parametrize("seed", range(sized(10)))
def test_a_long_life(logs, clock, seed):
    """Files come, grow, stay for ever or are removed; hours pass, the driver restarts, admission leaves files out."""
    rng = random.Random(seed)
    query = Query(Driven(WarpedFiles.spec(path=logs), clock=clock), seed)
    expected: list[str] = []
    active: dict[str, float] = {}
    number = 0
    longest = 0
    for _ in range(150):
        for name in [name for name, last in active.items() if clock.wall() - last > 0.2 * HOUR or rng.random() < 0.1]:
            # A writer never pauses for as long as files.finished.after.
            del active[name]
        if len(active) < 3 and rng.random() < 0.5:
            number += 1
            active[f"{number}.log"] = clock.wall()
            (logs / f"{number}.log").touch()
        for name in active:
            if rng.random() < 0.5:
                lines = [f"{name} {rng.random()}" for _ in range(rng.randint(1, 4))]
                append(logs / name, *lines)
                expected += lines
                active[name] = clock.wall()
        if rng.random() < 0.3:
            clock.advance(rng.choice((1, 600, 0.7 * HOUR)))
        query.step(limit=rng.choice((None, 20, 60)), some=True)
        longest = max(longest, len(query.known))
        if rng.random() < 0.1:
            query.restart()
    query.drain()
    assert sorted(word for (word,) in query.rows) == sorted(expected)
    assert number > 20
    assert longest < number


def test_the_watermark_never_passes_what_is_not_done():
    """The pure rule, over random files: whatever lies at or below the watermark is done."""
    rng = random.Random(5)
    for _ in range(2000):
        before = rng.randint(0, 5)
        files = [
            FollowedFile(
                changed_ns=rng.randint(before + 1, 12),
                done=rng.random() < 0.7,
                partition=f"p{n}" if rng.random() < 0.6 else None,
                note=f"n{n}",
                born_ns=rng.randint(0, 12),
                keep=rng.random() < 0.1,
            )
            for n in range(rng.randint(0, 6))
        ]
        after = retire(files, before)
        assert after.watermark >= before
        for file in files:
            passed = file.changed_ns <= after.watermark
            assert file.done or not passed
            assert (file.partition in after.retired) == (passed and file.partition is not None and not file.keep)
            assert (file.note in after.waiting) == (file.partition is None and file.born_ns <= after.watermark)
