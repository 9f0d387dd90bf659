"""Spouts that take messages of a queue, behind a journal, as Spark calls them, without Spark: a real Redis."""

import pytest

from pystorm_source.api.queue_spout import QueueSpout
from pystorm_source.errors import OptionError, TupleFailed
from pystorm_source.journal.writer import BatchWriter
from tests.source.redis_queue import Queue
from tests.source.spark_calls import Checkpoint, Run
from tests.states.redis_process import redis_process


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    with redis_process(tmp_path_factory.mktemp("redis")) as found:
        yield found


@pytest.fixture
def queue(redis):
    found = Queue(redis.url)
    yield found
    found.redis.flushall()


def options(redis, folder, topology="Orders", **more):
    return {
        "topology": f"tests.source.redis_queue:{topology}",
        "path": redis.url,
        "journal.path": str(folder / "journal"),
        "batch.target.millis": "300",
        "maxOffsetsPerTrigger": "7",
        "spout.poll.seconds": "0.05",
        **{key.replace("__", "."): str(value) for key, value in more.items()},
    }


def numbers(checkpoint):
    return sorted(n for rows in checkpoint.rows for (n,) in rows)


def settle(run, queue):
    for _ in range(60):
        if queue.waiting == 0:
            break
        run.trigger()
    assert (queue.waiting, queue.received) == (0, 0)


def until(run, checkpoint, count, most=60):
    """Triggers until so many rows are there."""
    for _ in range(most):
        if len(numbers(checkpoint)) >= count:
            return
        run.trigger()
    raise AssertionError(f"{numbers(checkpoint)} after {most} micro-batches")


@pytest.mark.parametrize("readers", [{}, {"journal__readers": 2}])
def test_each_message_gives_its_row_once_and_is_acknowledged(redis, queue, tmp_path, readers):
    queue.put(*range(40))
    checkpoint = Checkpoint()
    run = Run(options(redis, tmp_path, **readers), checkpoint)
    until(run, checkpoint, 40)
    assert numbers(checkpoint) == list(range(40))
    assert (queue.waiting, queue.received) == (0, 0)
    assert queue.calls("acknowledge") <= len(checkpoint.offsets), "one call for the messages of a micro-batch"


@pytest.mark.parametrize("readers", [{}, {"journal__readers": 2}])
def test_available_now_empties_the_queue_and_ends(redis, queue, tmp_path, readers):
    checkpoint, found = Checkpoint(), options(redis, tmp_path, **readers)
    for count in (30, 0, 5):
        queue.put(*range(count))
        run = Run(found, checkpoint, available_now=True)
        run.drain()
        run.reader.stop()
        assert (queue.waiting, queue.received) == (0, 0)
    assert numbers(checkpoint) == sorted([*range(30), *range(5)])


def test_messages_that_are_journaled_and_not_acknowledged_make_no_second_row(redis, queue, tmp_path, monkeypatch):
    """The process dies between its manifest and the acknowledgement: what other journals cannot close."""
    queue.put(*range(10))
    checkpoint, found = Checkpoint(), options(redis, tmp_path, "Impatient")
    with monkeypatch.context() as dies:
        dies.setattr(QueueSpout, "_pystorm_batch_ended", lambda self, is_journaled: 1 / 0)
        with pytest.raises(TupleFailed, match="ZeroDivisionError"):
            Run(found, checkpoint).trigger()
    assert queue.received == 10
    run = Run(found, checkpoint)  # reads the journal
    assert numbers(checkpoint) == list(range(10))
    for _ in range(60):
        run.trigger()
        if queue.waiting == 0:
            break
    assert (queue.waiting, queue.received) == (0, 0)
    assert numbers(checkpoint) == list(range(10))


def test_messages_of_an_attempt_that_broke_off_are_released_and_come_at_once(redis, queue, tmp_path, monkeypatch):
    queue.put(*range(10))
    checkpoint, found = Checkpoint(), options(redis, tmp_path)
    with monkeypatch.context() as fails:
        fails.setattr(BatchWriter, "commit", lambda self, notes=None: 1 / 0)
        with pytest.raises(TupleFailed, match="ZeroDivisionError"):
            Run(found, checkpoint).trigger()
    assert (queue.calls("release"), queue.calls("acknowledge")) == (1, 0)
    until(Run(found, checkpoint), checkpoint, 10, most=3)
    assert numbers(checkpoint) == list(range(10))


def test_leases_are_renewed_while_a_micro_batch_lasts(redis, queue, tmp_path):
    queue.put(*range(40))
    checkpoint = Checkpoint()
    Run(options(redis, tmp_path, "Short", batch__target__millis=60_000, maxOffsetsPerTrigger=40), checkpoint).trigger()
    assert numbers(checkpoint) == list(range(40))
    assert queue.calls("extend") >= 5
    assert queue.delivered_again == 0
    assert queue.waiting == 0


def test_a_message_that_is_delivered_twice_in_a_micro_batch_is_one(redis, queue, tmp_path):
    """Leases that are not renewed run out while others come."""
    queue.put(*range(40))
    checkpoint = Checkpoint()
    found = options(redis, tmp_path, "Forgetful", batch__target__millis=4000, maxOffsetsPerTrigger=1000)
    until(Run(found, checkpoint), checkpoint, 40)
    assert numbers(checkpoint) == list(range(40))
    assert queue.delivered_again > 0
    assert (queue.waiting, queue.received) == (0, 0)


@pytest.mark.parametrize("method", ["receive", "acknowledge"])
def test_a_queue_that_is_busy_loses_nothing(redis, queue, tmp_path, method):
    queue.put(*range(10))
    queue.busy(method, 3)
    checkpoint = Checkpoint()
    run = Run(options(redis, tmp_path), checkpoint)
    until(run, checkpoint, 10)
    settle(run, queue)
    assert numbers(checkpoint) == list(range(10))


@pytest.mark.parametrize("method", ["receive", "acknowledge", "extend"])
def test_calls_that_raise_what_is_worth_a_retry_are_made_again(redis, queue, tmp_path, caplog, method):
    queue.put(*range(10))
    queue.raises(method, 2)
    checkpoint = Checkpoint()
    more = {"topology.retry.on": '{"ConnectionError": "retry"}', "batch.target.millis": 2000}
    run = Run(options(redis, tmp_path, "Short", **more), checkpoint)
    until(run, checkpoint, 10)
    settle(run, queue)
    assert numbers(checkpoint) == list(range(10))
    assert f"spout 'orders' is unavailable: {method}() raised ConnectionAbortedError: gone" in caplog.text


def test_an_acknowledgement_that_raises_anything_else_is_named(redis, queue, tmp_path):
    queue.put(1)
    queue.raises("acknowledge", 1)
    with pytest.raises(
        TupleFailed, match=r"(?s)PYSTORM_TUPLE_FAILED.*acknowledge\(\) raised ConnectionAbortedError: gone"
    ):
        Run(options(redis, tmp_path), Checkpoint()).trigger()


def test_an_empty_queue_is_asked_at_the_interval(redis, queue, tmp_path):
    run = Run(options(redis, tmp_path, spout__poll__seconds=0.5, batch__target__millis=2000), Checkpoint())
    run.trigger()
    assert 1 <= queue.calls("receive") <= 2 / 0.5 + 2


def test_without_a_journal_a_stream_is_refused(redis, queue, tmp_path):
    found = options(redis, tmp_path, delivery__guarantee="best-effort")
    del found["journal.path"]
    with pytest.raises(OptionError, match="keeps in the journal how far it is"):
        Run(found, Checkpoint()).trigger()
