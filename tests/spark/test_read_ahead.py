"""Batches that a thread reads ahead."""

import threading

import pyarrow as pa
import pytest

from pystorm_source.api.input import NOTHING_NOW
from pystorm_source.spark.read_ahead import ReadAhead
from tests.operator.tasks import batches


def taken(feed):
    """The next that is no pause. The deadline of the test ends a feed that gives nothing."""
    pause = threading.Event()
    while (batch := feed.take()) is NOTHING_NOW:
        pause.wait(0.001)
    return batch


def all_of(feed):
    found = []
    while (batch := taken(feed)) is not None:
        found.append(batch)
    return found


def test_gives_all_in_order_and_then_none():
    feed = ReadAhead(batches(20, 10))
    feed.start()
    assert [batch["id"][0].as_py() for batch in all_of(feed)] == list(range(0, 200, 10))
    assert feed.take() is None


def test_batches_without_rows_are_left_out():
    empty = pa.RecordBatch.from_pydict({"id": pa.array([], pa.int64())})
    feed = ReadAhead(iter([empty, *batches(1), empty]))
    feed.start()
    assert len(all_of(feed)) == 1


@pytest.mark.parametrize("bounds", [{"most_rows": 30}, {"most_bytes": 240}])
def test_no_more_than_the_bounds_is_read_ahead(bounds):
    read = []
    feed = ReadAhead(batches(100, 10, read), **bounds)
    feed.start()
    for i in range(100):
        assert taken(feed) is not None
        assert len(read) <= i + 1 + 3 + 1  # taken, waiting, and one for which there is no room
    assert taken(feed) is None


def test_a_batch_larger_than_the_bounds_passes():
    feed = ReadAhead(batches(3, 1_000), most_rows=10, most_bytes=10)
    feed.start()
    assert len(all_of(feed)) == 3


def test_close_ends_a_thread_that_waits_for_room():
    feed = ReadAhead(batches(100), most_rows=1)
    feed.start()
    taken(feed)
    feed.close()
    assert not feed._thread.is_alive()


def test_an_error_comes_behind_the_batches_before_it():
    def broken():
        yield from batches(2)
        raise OSError("gone")

    feed = ReadAhead(broken())
    feed.start()
    assert taken(feed) is not None
    assert taken(feed) is not None
    with pytest.raises(OSError, match="gone"):
        taken(feed)
