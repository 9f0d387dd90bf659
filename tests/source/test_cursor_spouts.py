"""Spouts that read pages from a cursor on, behind a journal, as Spark calls them, without Spark: a real HTTP server."""

import json
import re
import time
from itertools import pairwise

import pytest

from pystorm_source.errors import OptionError, TupleFailed
from pystorm_source.journal.writer import BatchWriter
from tests.source.journal_world import unfinished
from tests.source.pages import pages
from tests.source.spark_calls import Checkpoint, Run


@pytest.fixture
def server():
    with pages() as found:
        yield found


def options(server, folder, topology="Rows", **more):
    return {
        "topology": f"tests.source.pages:{topology}",
        "path": server.url,
        "journal.path": str(folder / "journal"),
        "batch.target.millis": "200",
        "maxOffsetsPerTrigger": "7",
        "spout.poll.seconds": "0.05",
        **{key.replace("__", "."): str(value) for key, value in more.items()},
    }


def ids(checkpoint):
    return [row[0] for rows in checkpoint.rows for row in rows]


def until(run, checkpoint, count, most=40):
    """Triggers until so many rows are there."""
    for _ in range(most):
        if len(ids(checkpoint)) >= count:
            return
        run.trigger()
    raise AssertionError(f"{ids(checkpoint)} after {most} micro-batches")


class SecondAttempt:
    """Stands for the TaskContext of a repeated Spark task."""

    @staticmethod
    def get():
        return SecondAttempt

    @staticmethod
    def attemptNumber():
        return 1


def journal_of(folder):
    (found,) = (folder / "journal" / "rows").iterdir()
    return found


@pytest.mark.parametrize("readers", [{}, {"journal__readers": 2}])
def test_each_page_is_read_once_and_each_row_comes_once(server, tmp_path, readers):
    server.fill(23)
    checkpoint = Checkpoint()
    run = Run(options(server, tmp_path, **readers), checkpoint)
    until(run, checkpoint, 23)
    assert sorted(ids(checkpoint)) == list(range(1, 24))
    assert [since for _, since, _ in server.asked][:5] == [0, 5, 10, 15, 20]
    assert {since for _, since, _ in server.asked[5:]} <= {23}
    server.fill(2)
    until(run, checkpoint, 25)
    assert sorted(ids(checkpoint)) == list(range(1, 26))


@pytest.mark.parametrize("readers", [{}, {"journal__readers": 2}])
def test_available_now_reads_all_there_is_and_ends(server, tmp_path, readers):
    server.fill(40)
    checkpoint, found = Checkpoint(), options(server, tmp_path, batch__target__millis=1, **readers)
    for more in (0, 7, 0, 1):
        server.fill(more)
        run = Run(found, checkpoint, available_now=True)
        assert run.drain() >= 1
        run.reader.stop()
        assert sorted(ids(checkpoint)) == list(range(1, len(server.rows[""]) + 1))


def test_available_now_ends_where_there_is_no_partition(server, tmp_path):
    server.rows = {}
    run = Run(options(server, tmp_path, "Accounts"), Checkpoint(), available_now=True)
    assert 1 <= run.drain() <= 5


def test_rows_do_not_wait_for_the_end_of_their_micro_batch(server, tmp_path):
    server.fill(3)
    checkpoint = Checkpoint()
    run = Run(options(server, tmp_path, batch__target__millis=60_000, spout__poll__seconds=30), checkpoint)
    began = time.monotonic()
    run.trigger()
    assert time.monotonic() - began < 30
    assert ids(checkpoint) == [1, 2, 3]


@pytest.mark.parametrize("readers", [{}, {"journal__readers": 2}])
def test_a_new_process_goes_on_behind_what_was_committed(server, tmp_path, readers):
    server.fill(40)
    checkpoint, found = Checkpoint(), options(server, tmp_path, **readers)
    for _ in range(12):
        run = Run(found, checkpoint)
        for _ in range(2):
            run.trigger()
        run.reader.stop()
    assert sorted(ids(checkpoint)) == list(range(1, 41))
    since = [since for _, since, _ in server.asked if since < 40]
    assert since == sorted(set(since)), "a page was read again"


def test_a_micro_batch_that_is_run_again_has_the_rows_that_it_had_though_the_source_has_changed(server, tmp_path):
    server.fill(10)
    checkpoint, found = Checkpoint(), options(server, tmp_path)
    Run(found, checkpoint).trigger()
    rows = unfinished(checkpoint)
    server.rows[""] = [{"id": row["id"], "text": "changed"} for row in server.rows[""]]
    asked = len(server.asked)
    run = Run(found, checkpoint)
    assert checkpoint.rows[0] == rows
    assert len(server.asked) == asked
    until(run, checkpoint, 10)
    assert sorted(ids(checkpoint)) == list(range(1, 11))


def test_a_process_that_dies_before_its_commit_leaves_the_pages_to_the_next(server, tmp_path, monkeypatch):
    server.fill(12)
    checkpoint, found = Checkpoint(), options(server, tmp_path)
    commit = BatchWriter.commit
    monkeypatch.setattr(BatchWriter, "commit", lambda self, notes=None: 1 / 0)
    with pytest.raises(TupleFailed, match="ZeroDivisionError"):
        Run(found, checkpoint).trigger()
    monkeypatch.setattr(BatchWriter, "commit", commit)
    until(Run(found, checkpoint), checkpoint, 12)
    assert ids(checkpoint) == list(range(1, 13))


def test_an_attempt_that_lost_goes_on_behind_the_one_that_won(server, tmp_path, monkeypatch):
    server.fill(12)
    checkpoint, found = Checkpoint(), options(server, tmp_path)
    run = Run(found, checkpoint)
    commit = BatchWriter.commit

    def after_a_twin(self, notes=None):
        monkeypatch.setattr(BatchWriter, "commit", commit)
        twin = Run(found, Checkpoint())
        twin.checkpoint.offsets, twin.checkpoint.finished = checkpoint.offsets[:], len(checkpoint.offsets) - 1
        server.rows[""] = server.rows[""][:3] + [{"id": n, "text": "later"} for n in range(4, 15)]
        twin._run_batch()
        return commit(self, notes)

    monkeypatch.setattr(BatchWriter, "commit", after_a_twin)
    until(run, checkpoint, 14)
    assert ids(checkpoint) == list(range(1, 15))
    assert [text for rows in checkpoint.rows for _, text in rows][3:] == ["later"] * 11


def test_accounts_that_come_and_go_keep_their_cursors(server, tmp_path):
    server.rows = {}
    server.fill(6, "a")
    server.fill(2, "b")
    checkpoint = Checkpoint()
    run = Run(options(server, tmp_path, "Accounts"), checkpoint)
    until(run, checkpoint, 8)
    gone = server.rows.pop("b")
    server.fill(3, "c")
    until(run, checkpoint, 11)
    server.rows["b"] = gone
    server.fill(1, "b")
    until(Run(options(server, tmp_path, "Accounts"), checkpoint), checkpoint, 12)
    texts = sorted(text for rows in checkpoint.rows for _, text in rows)
    assert texts == ["a1", "a2", "a3", "a4", "a5", "a6", "b1", "b2", "b3", "c1", "c2", "c3"]


def test_rows_that_come_late_or_change_are_found_and_no_row_comes_twice(server, tmp_path):
    server.rows[""] = [{"id": n, "text": str(n)} for n in (1, 2, 4, 5, 6, 7, 8)]
    checkpoint, found = Checkpoint(), options(server, tmp_path, "Late")
    until(Run(found, checkpoint), checkpoint, 7)
    server.rows[""].append({"id": 9, "text": "9"})
    server.rows[""][5]["text"] = "7, changed"
    until(Run(found, checkpoint), checkpoint, 9)  # a new process, which has never seen these rows
    server.rows[""].append({"id": 3, "text": "too late"})
    run = Run(found, checkpoint)
    for _ in range(3):
        run.trigger()
    texts = [text for rows in checkpoint.rows for _, text in rows]
    assert sorted(texts) == ["1", "2", "4", "5", "6", "7", "7, changed", "8", "9"]


def test_an_idle_source_is_asked_at_the_interval(server, tmp_path):
    server.fill(3)
    checkpoint = Checkpoint()
    run = Run(options(server, tmp_path, spout__poll__seconds=0.5), checkpoint)
    for _ in range(10):
        run.trigger()
    times = [at for _, _, at in server.asked]
    assert ids(checkpoint) == [1, 2, 3]
    assert len(times) <= (times[-1] - times[0]) / 0.5 + 1.1


def test_a_server_that_is_busy_or_breaks_off_a_page_loses_nothing(server, tmp_path):
    server.fill(5)
    server.busy = 3
    checkpoint, found = Checkpoint(), options(server, tmp_path)
    run = Run(found, checkpoint)
    until(run, checkpoint, 5)
    server.garbled = 1
    server.fill(7)
    with pytest.raises(TupleFailed, match="read"):
        until(run, checkpoint, 12)
    until(Run(found, checkpoint), checkpoint, 12)
    assert ids(checkpoint) == list(range(1, 13))


def test_pages_that_raise_what_is_worth_a_retry_are_read_again(server, tmp_path, caplog):
    server.fill(12)
    server.garbled = 3
    checkpoint = Checkpoint()
    run = Run(options(server, tmp_path, topology__retry__on='{"IncompleteRead": "retry"}'), checkpoint)
    until(run, checkpoint, 12)
    assert ids(checkpoint) == list(range(1, 13))
    times = [at for _, since, at in server.asked if since == 0]
    assert all(after - before > 0.45 * 2**n for n, (before, after) in enumerate(pairwise(times[:4])))
    assert "spout 'rows' is unavailable: read() raised IncompleteRead" in caplog.text
    assert "spout 'rows' is available again" in caplog.text


def test_a_page_that_raises_for_too_long_has_one_error(server, tmp_path):
    server.garbled = 10**9
    more = {"spout.unavailable.timeout": "1s", "topology.retry.on": '{"IncompleteRead": "retry"}'}
    run = Run(options(server, tmp_path, **more), Checkpoint())
    with pytest.raises(TupleFailed, match=r"(?s)PYSTORM_SPOUT_UNAVAILABLE.*'rows', task 1: read\(\) raised Incomplete"):
        until(run, Checkpoint(), 1)


def test_an_outage_lasts_over_micro_batches_until_the_server_answers(server, tmp_path, caplog):
    server.fill(5)
    server.busy = 12
    checkpoint = Checkpoint()
    run = Run(options(server, tmp_path), checkpoint)
    until(run, checkpoint, 5)
    assert len(checkpoint.rows) > 2
    said = [record.getMessage() for record in caplog.records if record.name == "pystorm.source"]
    assert [re.sub(r"[\d.]+ s", "# s", line) for line in said] == [
        "the source of spout 'rows' is unavailable: read() raised RetryLater: again after # s: "
        "429 Too Many Requests; asked again in # s, for at most 10m (spout.unavailable.timeout)",
        "the source of spout 'rows' is available again, after # s and 13 attempts",
    ]


def test_a_repeated_attempt_waits_for_the_source_beyond_the_time_of_its_micro_batch(server, tmp_path, monkeypatch):
    """Otherwise it would end without rows, and the outage that has failed the attempt before would never end the
    query."""
    server.fill(5)
    server.busy = 12
    monkeypatch.setattr("pystorm_source.source.task.read_range.TaskContext", SecondAttempt)
    checkpoint = Checkpoint()
    Run(options(server, tmp_path), checkpoint).trigger()
    assert ids(checkpoint) == [1, 2, 3, 4, 5]


def test_an_outage_that_lasts_too_long_fails_though_each_micro_batch_is_short(server, tmp_path):
    server.busy = 10**9
    run = Run(options(server, tmp_path, spout__unavailable__timeout="1s"), Checkpoint())
    with pytest.raises(TupleFailed, match=r"(?s)PYSTORM_SPOUT_UNAVAILABLE.* read\(\).*spout.unavailable.timeout"):
        until(run, Checkpoint(), 1)


def test_a_spout_that_goes_on_after_an_exception_asks_at_the_interval(server, tmp_path):
    server.fill(12)
    server.garbled = 3
    checkpoint = Checkpoint()
    run = Run(options(server, tmp_path, "Enduring", spout__poll__seconds=0.5), checkpoint)
    until(run, checkpoint, 12)
    assert ids(checkpoint) == list(range(1, 13))
    first = [at for _, since, at in server.asked if since == 0]
    assert len(first) == 4
    assert all(later - at > 0.4 for at, later in pairwise(first))


def test_cursors_outlive_the_trimming_of_the_journal(server, tmp_path):
    server.fill(30)
    checkpoint, found = Checkpoint(), options(server, tmp_path)
    run = Run(found, checkpoint)
    until(run, checkpoint, 20)
    run.reader.commit(json.loads(checkpoint.offsets[-1]))
    assert not list(journal_of(tmp_path).glob("*.manifest"))
    until(Run(found, checkpoint), checkpoint, 30)
    assert ids(checkpoint) == list(range(1, 31))


@pytest.mark.parametrize("fails", [True, False])
def test_a_head_that_is_lost_with_the_cursors_is_an_error(server, tmp_path, fails):
    server.fill(20)
    checkpoint, found = Checkpoint(), options(server, tmp_path, failOnDataLoss=str(fails).lower())
    run = Run(found, checkpoint)
    until(run, checkpoint, 10)
    run.reader.commit(json.loads(checkpoint.offsets[-1]))
    (journal_of(tmp_path) / "journal.json").unlink()
    before = ids(checkpoint)
    if fails:
        with pytest.raises(TupleFailed, match="does not say where the spout was at offset"):
            Run(found, checkpoint).trigger()
    else:
        until(Run(found, checkpoint), checkpoint, len(before) + 20)
        assert ids(checkpoint) == before + list(range(1, 21))


def test_without_a_journal_a_stream_is_refused(server, tmp_path):
    found = options(server, tmp_path, delivery__guarantee="best-effort")
    del found["journal.path"]
    with pytest.raises(OptionError, match="keeps in the journal how far it is"):
        Run(found, Checkpoint()).trigger()
