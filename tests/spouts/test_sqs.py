"""SqsSpout against moto's SQS over HTTP, behind a journal, mostly as Spark calls it, without Spark."""

import datetime
import logging
import uuid

import pytest

from pystorm_source.api.queue_spout import QueueSpout
from pystorm_source.errors import OptionError, TupleFailed
from pystorm_source.journal.writer import BatchWriter
from pystorm_source.spouts import SqsSpout
from pystorm_source.testing import verify_spout
from testbed.sqs_server import REGION, SqsServer, sqs_server
from tests.channel.reports.made_reports import wait_until
from tests.source.queries import Query
from tests.source.spark_calls import Checkpoint, Run


class Queue:
    """A queue of the server, and what a test sees of it."""

    def __init__(self, server, name, visibility=30):
        self.server, self.name = server, name
        self.client = server.client()
        attributes = {"VisibilityTimeout": str(visibility)}
        if name.endswith(".fifo"):
            attributes["FifoQueue"] = "true"
        self.url = self.client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]

    def put(self, *numbers, groups=None, **more):
        for n in numbers:
            fifo = {"MessageGroupId": f"g{n % groups}", "MessageDeduplicationId": str(n)} if groups else {}
            self.client.send_message(QueueUrl=self.url, MessageBody=str(n), **fifo, **more)

    @property
    def left(self):
        """Messages that are visible, and that are kept from others."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)["Attributes"]
        return tuple(int(found[name]) for name in names)


@pytest.fixture
def server():
    with sqs_server() as found:
        yield found


@pytest.fixture
def make(server):
    """Makes a queue of this test's own: moto keeps queues for as long as this process lives."""

    def make(suffix="", **more):
        return Queue(server, f"{uuid.uuid4().hex}{suffix}", **more)

    return make


def options(queue, folder, topology="Bodies", **more):
    return {
        "topology": f"tests.spouts.queue_topologies:{topology}",
        "sqs.queue": queue.name,
        "sqs.region_name": REGION,
        "sqs.endpoint_url": queue.server.url,
        "sqs.wait_time_seconds": "0",
        "journal.path": str(folder / "journal"),
        "batch.target.millis": "500",
        "maxOffsetsPerTrigger": "100000",
        "spout.poll.seconds": "0.05",
        **{key.replace("__", "."): str(value) for key, value in more.items()},
    }


def rows(checkpoint):
    return [row for batch in checkpoint.rows for row in batch]


def numbers(checkpoint):
    return sorted(int(row[0]) for row in rows(checkpoint))


def until(run, is_done, most=60):
    for _ in range(most):
        if is_done():
            return
        run.trigger()
    raise AssertionError(f"not done after {most} micro-batches")


@pytest.mark.parametrize("by_url", [True, False])
def test_each_message_gives_its_row_once_and_is_deleted(make, tmp_path, by_url):
    queue = make()
    queue.put(*range(95))
    found = options(queue, tmp_path, **({"sqs__queue": queue.url} if by_url else {}))
    checkpoint = Checkpoint()
    run = Run(found, checkpoint)
    until(run, lambda: len(rows(checkpoint)) >= 95)
    assert numbers(checkpoint) == list(range(95))
    assert queue.left == (0, 0)
    assert queue.server.calls["DeleteMessageBatch"] >= 10, "ten messages in a call"


def test_a_row_has_body_id_group_time_count_and_attributes(make, tmp_path):
    queue = make(".fifo")
    attributes = {
        "kind": {"DataType": "String", "StringValue": "gift"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\xff\x00"},
    }
    before = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=1)
    queue.put(7, groups=3, MessageAttributes=attributes)
    checkpoint = Checkpoint()
    until(Run(options(queue, tmp_path, "Messages"), checkpoint), lambda: rows(checkpoint))
    ((body, id, group, sent, count, found),) = rows(checkpoint)
    assert (body, group, count, dict(found)) == ("7", "g1", 1, {"kind": "gift", "raw": "/wA="})
    assert len(id) == 36
    assert before <= sent <= datetime.datetime.now(datetime.UTC)


def test_the_groups_of_a_fifo_queue_keep_their_order(make, tmp_path):
    queue = make(".fifo")
    queue.put(*range(60), groups=4)
    checkpoint = Checkpoint()
    run = Run(options(queue, tmp_path), checkpoint)
    until(run, lambda: len(rows(checkpoint)) >= 60)
    found = [int(row[0]) for row in rows(checkpoint)]
    assert sorted(found) == list(range(60))
    assert all([n for n in found if n % 4 == group] == list(range(group, 60, 4)) for group in range(4))
    assert queue.left == (0, 0)


@pytest.mark.parametrize("groups", [None, 1])
def test_available_now_empties_the_queue_and_ends(make, tmp_path, groups):
    """A FIFO queue gives nothing of a group while messages of it are not deleted."""
    queue = make(".fifo" if groups else "")
    queue.put(*range(30), groups=groups)
    checkpoint = Checkpoint()
    run = Run(options(queue, tmp_path, sqs__wait_time_seconds=1), checkpoint, available_now=True)
    run.drain()
    assert numbers(checkpoint) == list(range(30))
    assert queue.left == (0, 0)


def test_messages_that_are_journaled_and_not_deleted_come_again_and_make_no_second_row(make, tmp_path, monkeypatch):
    queue = make(visibility=1)
    queue.put(*range(30))
    checkpoint, found = Checkpoint(), options(queue, tmp_path)
    with monkeypatch.context() as dies:
        dies.setattr(QueueSpout, "_pystorm_batch_ended", lambda self, is_journaled: 1 / 0)
        with pytest.raises(TupleFailed, match="ZeroDivisionError"):
            Run(found, checkpoint).trigger()
    assert sum(queue.left) == 30
    run = Run(found, checkpoint)  # reads the journal
    assert numbers(checkpoint) == list(range(30))
    until(run, lambda: queue.left == (0, 0))
    assert numbers(checkpoint) == list(range(30))


def test_messages_of_an_attempt_that_broke_off_come_at_once(make, tmp_path, monkeypatch):
    queue = make(visibility=600)
    queue.put(*range(15))
    checkpoint, found = Checkpoint(), options(queue, tmp_path)
    with monkeypatch.context() as fails:
        fails.setattr(BatchWriter, "commit", lambda self, notes=None: 1 / 0)
        with pytest.raises(TupleFailed, match="ZeroDivisionError"):
            Run(found, checkpoint).trigger()
    until(Run(found, checkpoint), lambda: len(rows(checkpoint)) >= 15, most=3)
    assert numbers(checkpoint) == list(range(15))
    assert queue.left == (0, 0)


def test_leases_of_the_queues_own_length_are_renewed(make, tmp_path):
    queue = make(visibility=1)
    queue.put(*range(20))
    checkpoint = Checkpoint()
    Run(options(queue, tmp_path, "Lasting", batch__target__millis=60_000), checkpoint).trigger()
    assert sorted(int(row[0]) for row in rows(checkpoint)) == list(range(20))
    assert queue.server.calls["ChangeMessageVisibilityBatch"] >= 4
    assert queue.left == (0, 0)


def test_leases_that_run_out_make_no_second_row(make, tmp_path):
    queue = make()
    queue.put(*range(40))
    checkpoint = Checkpoint()
    found = options(queue, tmp_path, "Forgetful", batch__target__millis=4000, sqs__visibility_timeout=1)
    run = Run(found, checkpoint)
    until(run, lambda: len(rows(checkpoint)) >= 40 and queue.left == (0, 0))
    assert numbers(checkpoint) == list(range(40))


@pytest.mark.parametrize("error", ["RequestThrottled", "ThrottlingException", "ServiceUnavailable"])
@pytest.mark.parametrize("action", ["GetQueueUrl", "ReceiveMessage", "DeleteMessageBatch"])
def test_a_queue_that_throttles_loses_nothing(make, tmp_path, action, error):
    queue = make()
    queue.put(*range(25))
    queue.server.refused[action] = error
    checkpoint = Checkpoint()
    run = Run(options(queue, tmp_path, batch__target__millis=300), checkpoint)
    until(run, lambda: queue.server.calls[action] >= 2)
    assert sum(queue.left) == 25
    queue.server.refused.clear()
    until(run, lambda: queue.left == (0, 0))
    assert numbers(checkpoint) == list(range(25))


def test_deletes_by_several_calls_that_are_throttled_are_made_again(make, tmp_path):
    queue = make()
    queue.put(*range(25))
    queue.server.refused["DeleteMessageBatch"] = "RequestThrottled"
    checkpoint = Checkpoint()
    run = Run(options(queue, tmp_path, batch__target__millis=2000), checkpoint)
    until(run, lambda: queue.server.calls["DeleteMessageBatch"] >= 6)  # also in a turn of the next micro-batch
    queue.server.refused.clear()
    until(run, lambda: queue.left == (0, 0))
    assert numbers(checkpoint) == list(range(25))


def test_entries_that_fail_are_deleted_again(make, tmp_path):
    queue = make()
    queue.put(*range(10))
    queue.server.undeleted = 2
    checkpoint = Checkpoint()
    until(Run(options(queue, tmp_path), checkpoint), lambda: len(rows(checkpoint)) == 10)
    calls = queue.server.calls["DeleteMessageBatch"]
    assert calls == 3, "two that failed, and the one that did it, at once"
    assert numbers(checkpoint) == list(range(10))


def test_a_service_that_is_down_for_a_while_loses_nothing(make, server, tmp_path):
    queue = make()
    queue.put(*range(25))
    checkpoint = Checkpoint()
    run = Run(options(queue, tmp_path, maxOffsetsPerTrigger=10), checkpoint)
    until(run, lambda: rows(checkpoint))
    port = int(server.url.rpartition(":")[2])
    server.stop()
    for _ in range(3):
        run.trigger()
    again = SqsServer(port)  # the queues are those of this process
    try:
        until(run, lambda: len(rows(checkpoint)) == 25 and queue.left == (0, 0))
        assert numbers(checkpoint) == list(range(25))
    finally:
        again.stop()


def test_an_empty_queue_is_asked_by_one_call_at_the_interval(make, tmp_path):
    queue = make()
    run = Run(options(queue, tmp_path, spout__poll__seconds=0.5, batch__target__millis=2000), Checkpoint())
    run.trigger()
    assert 1 <= queue.server.calls["ReceiveMessage"] <= 2 / 0.5 + 2


def test_behind_a_full_answer_several_calls_are_made_at_once(make, tmp_path):
    queue = make()
    queue.put(*range(200))
    checkpoint = Checkpoint()
    until(Run(options(queue, tmp_path), checkpoint), lambda: len(rows(checkpoint)) == 200)
    assert numbers(checkpoint) == list(range(200))
    assert queue.server.most_at_once >= 2


@pytest.mark.parametrize("name", ["nowhere", "https://sqs.us-east-1.amazonaws.com/123456789012/nowhere"])
def test_a_queue_that_is_not_there_is_named(make, tmp_path, name):
    found = options(make(), tmp_path, sqs__queue=name)
    with pytest.raises(
        TupleFailed, match=r"PYSTORM_EXTERNAL_FAILURE.*does not exist.*See that the queue is there"
    ) as raised:
        Run(found, Checkpoint()).trigger()
    assert name in str(raised.value)


def test_refused_access_names_what_is_to_be_allowed_and_no_secret(make, tmp_path, caplog, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2hunter2")
    queue = make()
    queue.server.refused["ReceiveMessage"] = "AccessDeniedException"
    caplog.set_level(logging.DEBUG, "pystorm")
    with pytest.raises(TupleFailed, match=r"AccessDenied.*sqs:ReceiveMessage, sqs:DeleteMessage") as raised:
        Run(options(queue, tmp_path), Checkpoint()).trigger()
    assert "hunter2" not in str(raised.value) + caplog.text


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"sqs.wait_time_seconds": "20"}, "sqs.wait_time_seconds"),
        ({"sqs.visibility_timeout": "0"}, "visibility_timeout"),
        ({"sqs.queue": "ftp://sqs/1/orders"}, r"'sqs\.queue' is a queue's name, or its URL"),
        ({"sqs.queue": "https:///1/orders"}, r"'sqs\.queue' is a queue's name, or its URL"),
        ({"sqs.endpoint_url": "localhost:9324"}, r"'sqs\.endpoint_url' is a URL .*Given: 'localhost:9324'"),
        ({"sqs.endpoint_url": "http://word@h"}, r"'sqs\.endpoint_url' has no user .*Given: 'http://h'"),
    ],
)
def test_wrong_options_are_refused(make, tmp_path, wrong, what):
    with pytest.raises(OptionError, match=what):
        Run(options(make(), tmp_path) | wrong, Checkpoint()).trigger()


def test_a_queue_is_needed():
    with pytest.raises(OptionError, match=r"'sqs\.queue' is needed"):
        SqsSpout().initialize({}, {})


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_a_task_that_is_killed_before_it_deletes_makes_no_second_row(spark, make, tmp_path):
    """The service throttles for a while besides."""
    queue = make(visibility=2)
    queue.put(*range(50))
    marker = tmp_path / "killed"
    found = options(queue, tmp_path, "KilledSqs", path=marker)
    query = Query(tmp_path)
    running = query.start(spark.readStream.format("pystorm").options(**found).load(), processingTime="0 seconds")
    try:
        wait_until(lambda: marker.exists() and len(query.rows) == 50)
        wait_until(lambda: queue.left == (0, 0))
        queue.server.refused["ReceiveMessage"] = "RequestThrottled"
        calls = queue.server.calls["ReceiveMessage"]
        wait_until(lambda: queue.server.calls["ReceiveMessage"] >= calls + 2)
        queue.server.refused.clear()
        queue.put(*range(50, 70))
        wait_until(lambda: len(query.rows) == 70 and queue.left == (0, 0))
    finally:
        running.stop()
    assert running.exception() is None
    assert sorted(int(body) for (body,) in query.rows) == list(range(70))


def test_it_keeps_the_laws_of_queues(make, tmp_path):
    queue = make()
    queue.put(*range(23))
    given = {key: value for key, value in options(queue, tmp_path).items() if key.startswith("sqs.")}
    verify_spout(SqsSpout, given)
    assert queue.left == (0, 0)
