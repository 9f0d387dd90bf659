"""A task of an operator, called as Spark calls it."""

import threading

import pyarrow as pa
import pytest

from pystorm_source.errors import TupleFailed
from tests.operator import topologies
from tests.operator.tasks import batches, function_of, reading_threads, rows_of, schedulers

ONE = {"topology.scheduler": "inline"}


@schedulers
def test_a_bolt_of_rows_gets_each_row_once(scheduler):
    function = function_of(topologies.Doubles, **{"topology.scheduler": scheduler})
    assert sorted(rows_of(function(batches(5)))) == [(i, 2 * i) for i in range(5_000)]
    assert reading_threads() == []


@schedulers
def test_a_bolt_of_batches_gets_columns(scheduler):
    function = function_of(topologies.Evens, **{"topology.scheduler": scheduler})
    batch = pa.RecordBatch.from_pydict({"id": [1, 2, 4], "text": pa.array(["a", None, "c"], pa.large_string())})
    assert sorted(rows_of(function(iter([batch])))) == [(2, None), (4, "c")]


def test_the_batches_have_exactly_the_schema_of_the_output():
    function = function_of(topologies.Doubles, **{"output.batch.rows": 700})
    given = list(function(batches(3)))
    assert {batch.schema for batch in given} == {pa.schema([("id", pa.int64()), ("twice", pa.int64())])}
    assert [batch.num_rows for batch in given] == [700, 700, 700, 700, 200]


def test_an_empty_partition_gives_no_rows():
    assert rows_of(function_of(topologies.Doubles)(iter([]))) == []


@schedulers
def test_rows_of_a_failed_attempt_do_not_leave(scheduler):
    function = function_of(topologies.Retried, **{"topology.scheduler": scheduler})
    assert sorted(rows_of(function(batches(3)))) == [(i,) for i in range(3_000)]


def test_an_exception_names_the_component_and_leaves_no_thread():
    with pytest.raises(TupleFailed, match="'odd'") as raised:
        rows_of(function_of(topologies.Breaks)(batches(3)))
    assert "seven" in str(raised.value)
    assert "input 'rows'" in str(raised.value)
    assert reading_threads() == []


def test_dead_letters_leave_as_rows_beside_the_others():
    function = function_of(topologies.DeadLetters, streams="all")
    found = [row for batch in function(batches(1, 10)) for row in batch.to_pylist()]
    assert sorted(row["id"] for row in found if row["_stream"] == "default") == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    (letter,) = [row for row in found if row["_stream"] == "__dead_letter"]
    assert letter["_component"] == "rows"
    assert "three" in str(letter)


def test_requests_of_several_batches_are_in_flight_at_once():
    topologies.Enrich.most = 0
    function = function_of(topologies.Enriched, **{"topology.async.max.pending": 1_000})
    assert sorted(rows_of(function(batches(10, 50)))) == [(i,) for i in range(500)]
    assert topologies.Enrich.most > 100


@schedulers
def test_a_bolt_of_batches_works_while_no_batch_is_there(scheduler):
    """The rows of the first leave while the second is waited for."""
    goes_on = threading.Event()

    def input_of_two():
        yield pa.RecordBatch.from_pydict({"id": [2], "text": ["a"]})
        assert goes_on.wait(60)
        yield pa.RecordBatch.from_pydict({"id": [4], "text": ["b"]})

    running = function_of(topologies.Evens, **{"output.batch.rows": 1, "topology.scheduler": scheduler})(input_of_two())
    assert rows_of([next(running)]) == [(2, "a")]
    goes_on.set()
    assert rows_of(running) == [(4, "b")]


def test_rows_leave_before_all_is_read():
    goes_on = threading.Event()

    def input_of_two():
        yield from batches(1)
        assert goes_on.wait(60)
        yield from batches(1)

    running = function_of(topologies.Doubles, **{"output.batch.rows": 100})(input_of_two())
    assert next(running).num_rows == 100
    goes_on.set()
    assert sum(batch.num_rows for batch in running) == 1_900


def test_64_mb_leave_before_the_second_batch_is_there():
    left = threading.Event()

    def waits_for_output():
        yield from batches(1, 1_500)
        assert left.wait(60)
        yield from batches(1, 10)

    size = 0
    running = function_of(topologies.Widened)(waits_for_output())
    for batch in running:
        size += batch.nbytes
        if size >= 64 << 20:
            left.set()
    assert left.is_set()
    assert size > 64 << 20


@schedulers
def test_all_is_read_before_the_first_row_leaves(scheduler):
    read = []
    function = function_of(topologies.Counted, **{"topology.scheduler": scheduler})
    assert rows_of(function(batches(200, read=read))) == [(200_000,)]
    assert len(read) == 200


def test_a_closed_iterator_leaves_no_thread_and_reads_little_more():
    read = []
    running = function_of(topologies.Doubles, **{"output.batch.rows": 10})(batches(1_000, read=read))
    next(running)
    running.close()
    assert reading_threads() == []
    assert len(read) < 200


def test_an_input_that_raises_ends_the_task():
    def broken():
        yield from batches(1)
        raise EOFError("the socket is closed")

    with pytest.raises(TupleFailed, match="the socket is closed"):
        rows_of(function_of(topologies.Doubles)(broken()))
    assert reading_threads() == []
