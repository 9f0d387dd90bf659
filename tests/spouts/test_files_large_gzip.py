"""Gzip files that are too large to be unpacked in one look."""

import gzip
import os
import random

import pytest

from pystorm_source.spouts import FilesSpout
from pystorm_source.spouts.files.identity import gzip_members, head
from tests.spouts.drive import Driven, Query, append

BUDGET = 4096
LINES = [random.Random(number).randbytes(30).hex() for number in range(1000)]


@pytest.fixture(autouse=True)
def small_budget(monkeypatch):
    """A look unpacks a few kilobytes; the files have 35."""
    monkeypatch.setattr(head, "GZIP_BUDGET", BUDGET)
    monkeypatch.setattr(gzip_members, "_BLOCK", BUDGET)


@pytest.fixture
def query(tmp_path, clock):
    query = Query(Driven(FilesSpout.spec(path=tmp_path), clock=clock))
    query.still = False  # each look unpacks more
    return query


def text(lines):
    return "".join(f"{line}\n" for line in lines).encode()


def packed(lines, members):
    """Lines as a gzip file of so many members."""
    size = -(-len(lines) // members)
    return b"".join(gzip.compress(text(lines[at : at + size])) for at in range(0, len(lines), size))


def looked_over(query, looks=12, beside=None):
    """The lines of some looks. ``beside``: another log, whose lines have each look stored, and are left out."""
    for number in range(looks):
        if beside is not None:
            append(beside, f"beside {number}")
        query.step()
    return [line for (line,) in query.rows if not line.startswith("beside")]


@pytest.mark.parametrize("members", [1, 5])
def test_a_large_file_is_read_once_it_is_unpacked(query, tmp_path, members):
    (tmp_path / "app.log.gz").write_bytes(packed(LINES, members))
    assert looked_over(query) == LINES


@pytest.mark.parametrize("members", [1, 5])
@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("is_seen_beside", [False, True])
@pytest.mark.parametrize("has_others", [False, True])
@pytest.mark.parametrize("read", [1, 700, 1000])
def test_a_log_that_is_gone_goes_on_in_its_large_copy(
    query, tmp_path, members, is_restarted, is_seen_beside, has_others, read
):
    """If few, most or all of its lines were read, whether the copy was seen while the log was there or not."""
    log = tmp_path / "app.log"
    log.write_bytes(text(LINES[:read]))
    query.drain()
    log.write_bytes(text(LINES))
    (tmp_path / "app.log.1.gz").write_bytes(packed(LINES, members))
    if is_seen_beside:
        query.state = dict(query.driven.driver.snapshot(query.known, query.state).state)
    os.remove(log)
    if is_restarted:
        query.restart()
    assert looked_over(query, beside=tmp_path / "other.log" if has_others else None) == LINES


@pytest.mark.parametrize("members", [1, 5])
def test_a_copy_that_a_micro_batch_leaves_out_is_not_read_from_its_begin(query, tmp_path, members):
    log = tmp_path / "app.log"
    log.write_bytes(text(LINES[:700]))
    query.drain()
    (tmp_path / "app.log.1.gz").write_bytes(packed(LINES, members))
    os.remove(log)
    driver = query.driven.driver
    state = driver.snapshot(query.known, query.state).state
    query.known, query.state = {}, dict(state)
    query.restart()
    assert looked_over(query) == LINES


@pytest.mark.parametrize("members", [1, 5])
def test_a_large_file_that_goes_unread_is_missed_after_a_restart(query, tmp_path, members):
    file = tmp_path / "app.log.gz"
    file.write_bytes(packed(LINES, members))
    size = file.stat().st_size
    for _ in range(12):
        seen = query.driven.driver.snapshot({}, {})
    ((partition, heads),) = seen.heads.items()
    assert heads == (0, size)
    query.restart()
    again = query.driven.driver.snapshot({partition: 0}, dict(seen.state))
    assert again.heads == {partition: (0, size)}
    os.remove(file)
    query.restart()
    gone = query.driven.driver.snapshot({partition: 0}, dict(again.state))
    assert partition not in gone.heads and partition not in gone.retired, "it must be refused as lost"
