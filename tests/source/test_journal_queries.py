"""Journaled spouts through Spark: a task that fails, a micro-batch that is run again after a restart."""

import json
import socket
import threading
import time

import pytest

from tests.source.queries import Query

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

TOPOLOGIES = "tests.source.journal_topologies"


@pytest.fixture
def query(tmp_path):
    return Query(tmp_path)


def stream(spark, tmp_path, topology, **options):
    named = {
        "topology": f"{TOPOLOGIES}:{topology}",
        "path": str(tmp_path),
        "journal.path": str(tmp_path / "journal"),
        **options,
    }
    return spark.readStream.format("pystorm").options(**named).load()


@pytest.mark.campaign
def test_a_failed_task_and_a_restarted_query_read_the_journal(spark, tmp_path, query):
    """The broker gives a message again to every process that asks, until it is acked: each arrives once."""
    (tmp_path / "messages").write_text("".join(f"{n}\n" for n in range(12)))
    (tmp_path / "stumble").touch()
    options = {"maxOffsetsPerTrigger": "8", "batch.target.millis": "300"}
    (first,) = query.run(stream(spark, tmp_path, "Stumbling", **options))
    assert not (tmp_path / "stumble").exists(), "the task has failed once"
    assert [n for n, _ in first] == list(range(8))
    query.forget_commit()
    again, second = query.run(stream(spark, tmp_path, "Stumbling", **options))
    assert again == first
    assert [n for n, _ in second] == list(range(8, 12))
    verdicts = [json.loads(line) for line in (tmp_path / "verdicts.log").read_text().splitlines()]
    assert [(verdict, n) for verdict, n, _ in verdicts] == [("ack", n) for n in range(12)]
    assert len(list(tmp_path.glob("journal/*/*/*.manifest"))) == 1, "the first one is trimmed"


@pytest.mark.campaign
def test_lines_of_a_socket_are_replayed(spark, tmp_path, query):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def send_once():
            connection, _ = server.accept()
            with connection:
                connection.sendall("one\nzwölf\nlast".encode())

        sender = threading.Thread(target=send_once, daemon=True)
        sender.start()
        options = {"host": "127.0.0.1", "port": str(server.getsockname()[1]), "batch.target.millis": "1500"}
        (lines,) = query.run(stream(spark, tmp_path, "SocketLines", **options))
        assert lines == [("last",), ("one",), ("zwölf",)]
        sender.join(20)
    query.forget_commit()  # and the server is gone
    options["batch.target.millis"] = "100"
    assert query.run(stream(spark, tmp_path, "SocketLines", **options))[0] == lines


def until(query, is_done):
    """Waits until a query has done something; raises what it does."""
    deadline = time.monotonic() + 120
    try:
        while not is_done():
            if query.exception() is not None:
                raise query.exception()
            assert time.monotonic() < deadline, "the query does not get there"
            time.sleep(0.05)
    finally:
        query.stop()


def test_a_slice_is_polled_while_the_one_before_is_read(spark, tmp_path, query):
    """The spout ends a micro-batch when the bolt has got the tuple of the micro-batch before: the poll alone would last
    for ten minutes."""
    options = {"journal.readers": "1", "batch.target.millis": "600000"}
    running = query.start(stream(spark, tmp_path, "Meeting", **options), processingTime="0 seconds")
    until(running, (tmp_path / "seen-3").exists)


@pytest.mark.campaign
def test_tasks_of_both_kinds_are_killed(spark, tmp_path, query):
    (tmp_path / "messages").write_text("".join(f"{n}\n" for n in range(30)))
    options = {"journal.readers": "3", "maxOffsetsPerTrigger": "8", "batch.target.millis": "300"}
    running = query.start(stream(spark, tmp_path, "Killed", **options), processingTime="0 seconds")
    until(running, lambda: len(query.rows) >= 30)
    assert (tmp_path / "spout killed").exists()
    assert (tmp_path / "bolt killed").exists()
    assert [n for n, _ in query.rows] == list(range(30))
    verdicts = [json.loads(line) for line in (tmp_path / "verdicts.log").read_text().splitlines()]
    assert [(verdict, n) for verdict, n, _ in verdicts] == [("ack", n) for n in range(30)]


@pytest.mark.campaign
def test_available_now_reads_what_it_polls_and_a_replay_reads_the_same(spark, tmp_path, query):
    (tmp_path / "messages").write_text("".join(f"{n}\n" for n in range(12)))
    options = {"journal.readers": "2", "maxOffsetsPerTrigger": "8", "batch.target.millis": "300"}
    batches = query.run(stream(spark, tmp_path, "Messages", **options))
    assert [n for rows in batches for n, _ in rows] == list(range(8))
    query.forget_commit()
    again, *more = query.run(stream(spark, tmp_path, "Messages", **options))
    assert again == batches[-1]
    assert [n for rows in more for n, _ in rows] == list(range(8, 12))
