"""Journaled spouts through Spark: a task that fails, a micro-batch that is run again after a restart."""

import json
import socket
import threading

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
