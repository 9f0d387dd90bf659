"""Rows of a batch on their way: how a router splits them, and what a failed tuple says of them."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cython_core.executors.bolt_executor import BoltExecutor
from cython_core.executors.spout_executor import SpoutExecutor
from cython_core.queues.queues import BatchInserter, BroadcastReader, BroadcastRing, PendingEmits, ReceiveQueue
from cython_core.routing.batch_slice import BatchSlice
from cython_core.routing.component_base import BoltBase, SpoutBase
from cython_core.routing.output_collector import SpoutOutputCollector
from cython_core.routing.route import Route
from cython_core.routing.stream_router import StreamRouter
from cython_core.tuples.tuple import TupleBatch, TupleSource


class Emits(SpoutBase):
    pass


def wired(grouping, tasks, queue=64, byte_limit=1 << 20, positions=(0,)):
    """A spout, its router, and the queues behind it."""
    queues = [ReceiveQueue(queue) for _ in range(tasks)]
    for each in queues:
        each.byte_limit = byte_limit
    inserters = tuple(BatchInserter(each, task, 1) for task, each in enumerate(queues, 1))
    pending = PendingEmits()
    route = Route(grouping, inserters, positions if grouping in ("fields", "partial_key") else (), 1)
    router = StreamRouter(TupleSource("s", "default", 1, ("n", "word")), pending, (route,))
    spout = Emits()
    spout.collector = SpoutOutputCollector(spout, {"default": router})
    return spout, queues, pending


def batch_of(total, start=0):
    numbers = range(start, start + total)
    return pa.record_batch([pa.array(numbers, pa.int64()), pa.array([f"w{n}" for n in numbers])], names=["n", "word"])


def slices(queue):
    """Payloads of the tuples in the queue."""
    taken = []
    while (tup := queue.poll()) is not None:
        taken.append(tup.values)
    return taken


def numbers_in(queue):
    return [n for each in slices(queue) for n, _ in each]


@given(
    st.sampled_from(["shuffle", "fields", "partial_key", "all", "global", "none"]), st.integers(1, 4),
    st.lists(st.integers(0, 9), min_size=1, max_size=3), st.integers(0, 5),
)  # fmt: skip
def test_a_batch_is_split_as_its_rows_are(grouping, tasks, sizes, offset):
    """Also if it lies in the middle of another one's memory."""
    spout, queues, _ = wired(grouping, tasks, 1 << 10)
    other, rows, _ = wired(grouping, tasks, 1 << 10)
    start = 0
    for size in sizes:
        batch = batch_of(size + offset, start - offset).slice(offset)
        spout.emit_batch(batch)
        for values in zip(*batch.to_pydict().values(), strict=True):
            other.emit(values)
        start += size
    for queue, same in zip(queues, rows, strict=True):
        expected = [n for n, _ in slices(same)]
        assert numbers_in(queue) == expected


def test_slices_know_their_rows_names_and_bytes():
    spout, [queue], _ = wired("shuffle", 1)
    spout.emit_batch(batch_of(3))
    [rows] = slices(queue)
    assert isinstance(rows, BatchSlice)
    assert isinstance(rows, TupleBatch)
    assert (len(rows), rows.count, rows.names) == (3, 3, ["n", "word"])
    assert list(rows) == [(0, "w0"), (1, "w1"), (2, "w2")]
    assert rows.read(1, 2, None) == [(1, "w1")]
    assert rows.read(1, 2, {0}) == [(1, None)]
    assert rows.weight == 3 * 8 + 3 * 4 + 6
    assert repr(rows) == "a batch of 3 rows"


def test_the_bytes_of_a_batch_are_shared_among_its_slices():
    spout, queues, _ = wired("shuffle", 4)
    spout.emit_batch(batch_of(100))
    weights = [rows.weight for queue in queues for rows in slices(queue)]
    assert len(weights) == 4
    assert sum(weights) == pytest.approx(100 * 12 + sum(len(f"w{n}") for n in range(100)), abs=4)


def test_no_rows_are_no_tuple():
    spout, [queue], pending = wired("shuffle", 1)
    spout.emit_batch(batch_of(0))
    assert (len(queue), len(pending)) == (0, 0)


@pytest.mark.parametrize(
    ("rows", "limit", "taken"),
    [
        ([4, 4, 1], 1 << 20, 2),  # rows: eight fit
        ([9, 1], 1 << 20, 1),  # too large, and alone
        ([1, 9], 1 << 20, 1),
        ([2, 2, 2], 60, 2),  # bytes: 28 each
        ([2, 2], 1, 1),
    ],
)
def test_a_queue_is_bounded_in_rows_and_bytes(rows, limit, taken):
    spout, [queue], pending = wired("shuffle", 1, 8, limit)
    for count in rows:
        spout.emit_batch(batch_of(count))
    assert (len(queue), len(pending)) == (taken, len(rows) - taken)
    assert queue.held_rows == sum(rows[:taken])


def test_a_ring_is_bounded_for_its_slowest_reader():
    ring = BroadcastRing(8, {"1": (), "2": ()})
    ring.byte_limit = 60
    inserter = BatchInserter(ring, 1, 1)
    pending = PendingEmits()
    router = StreamRouter(TupleSource("s", "default", 1, ("n", "word")), pending, (Route("all", (inserter,)),))
    spout = Emits()
    spout.collector = SpoutOutputCollector(spout, {"default": router})
    for _ in range(3):
        spout.emit_batch(batch_of(2))
    assert (len(ring), len(pending)) == (2, 1)
    assert len(BroadcastReader(ring, "1").drain(8)) == 2
    assert len(ring) == 2  # of the other reader


def test_a_batch_has_a_column_for_each_field():
    spout, _, _ = wired("shuffle", 1)
    with pytest.raises(
        ValueError, match=r"a batch has a column for each field.*declares \['n', 'word'\]; Given: \['n'\]"
    ):
        spout.emit_batch(pa.record_batch([pa.array([1])], names=["n"]))
    with pytest.raises(TypeError, match=r"emit_batch takes rows in columns.*Given: \[\[1, 'a'\]\]"):
        spout.emit_batch([[1, "a"]])


class Twice:
    """The first task gets even rows twice, the second one the others."""

    def choose_tasks(self, task, values):
        return [1, 1] if values[0] % 2 == 0 else [2]


def test_a_row_that_goes_to_a_task_twice_is_not_taken_for_the_next_one():
    """The task gets as many rows as the batch has, and not the batch."""
    queues = [ReceiveQueue(64) for _ in range(2)]
    inserters = tuple(BatchInserter(each, task, 1) for task, each in enumerate(queues, 1))
    route = Route("custom", inserters, (), 1, False, Twice())
    router = StreamRouter(TupleSource("s", "default", 1, ("n", "word")), PendingEmits(), (route,))
    spout = Emits()
    spout.collector = SpoutOutputCollector(spout, {"default": router})
    spout.emit_batch(batch_of(2))
    assert [numbers_in(each) for each in queues] == [[0, 0], [1]]


def test_a_batch_that_has_left_the_pending_emits_is_published_while_others_wait():
    """It holds room of its queue: its consumer must get it, or the producers of two queues wait for each other."""
    queues = [ReceiveQueue(64) for _ in range(2)]
    for each in queues:
        each.byte_limit = 1
    pending = PendingEmits()
    route = Route("shuffle", tuple(BatchInserter(each, task, 2) for task, each in enumerate(queues, 1)), (), 0)
    router = StreamRouter(TupleSource("s", "default", 1, ("n", "word")), pending, (route,))
    spout = Emits()
    executor = SpoutExecutor("s", 1, spout, pending, {"default": router})
    for start in (0, 2):
        spout.emit_batch(batch_of(2, start))
    assert len(pending) == 2  # each queue holds a batch, and waits for its consumer
    executor.take_turn()
    assert [numbers_in(each) for each in queues] == [[0], [1]]
    queues[0].clear()
    executor.take_turn()
    assert [numbers_in(each) for each in queues] == [[2], []]
    assert len(pending) == 1


class Reads(BoltBase):
    def process(self, tup):
        self.found.append(tuple(tup.values))


def test_a_bolt_of_rows_reads_a_batch_that_nothing_else_holds():
    """In a debug build, with its assertions: a batch is no tuple, whose type could be changed in place."""
    spout, queues, _ = wired("shuffle", 1)
    bolt = Reads()
    bolt.found = []
    executor = BoltExecutor("b", 1, bolt, PendingEmits(), {}, queues[0])
    spout.emit_batch(batch_of(3))
    executor.take_turn()
    assert bolt.found == [(0, "w0"), (1, "w1"), (2, "w2")]
    assert queues[0].held_rows == 0
