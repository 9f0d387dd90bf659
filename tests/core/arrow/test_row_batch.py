"""Rows become record batches of exactly the schema: sealing, views, roll-back, memory."""

import datetime as dt
import decimal
import gc
import os
import pickle
import sys
import threading
import tracemalloc

import pyarrow as pa
import pytest

from cython_core.arrow.row_batch import RowBatchBuilder, RowError, RowSink

FIELDS = [pa.field("word", pa.string(), metadata={"k": "v"}), pa.field("n", pa.int64(), nullable=False)]
SCHEMA = pa.schema(FIELDS, metadata={"owner": "storm"})


def opened(schema=SCHEMA, columns=None, label="count.default", max_rows=10_000, max_bytes=64 << 20, **sink):
    builder = RowBatchBuilder(schema, max_rows=max_rows, max_bytes=max_bytes)
    return builder, RowSink(builder, list(range(len(schema))) if columns is None else columns, label=label, **sink)


def rows_of(builder):
    builder.seal()
    for batch in builder.done:
        batch.validate(full=True)
        assert batch.schema.equals(builder.schema, check_metadata=True)
    return [tuple(row.values()) for batch in builder.done for row in batch.to_pylist()]


def test_rows_come_back_in_order_with_the_exact_schema():
    builder, sink = opened()
    rows = [(f"w{n}" if n % 3 else None, n) for n in range(1000)]
    for row in rows:
        sink.append_row(row)
    assert builder.rows == 1000
    assert rows_of(builder) == rows
    assert builder.rows == 0 and builder.bytes == 0
    assert len(builder.done) == 1


def test_lists_and_tuple_subclasses_are_rows():
    from collections import namedtuple

    builder, sink = opened()
    sink.append_row(["a", 1])
    sink.append_row(namedtuple("Count", "word n")("b", 2))
    assert rows_of(builder) == [("a", 1), ("b", 2)]
    with pytest.raises(TypeError, match="Given: 'ab'"):
        sink.append_row("ab")
    with pytest.raises(ValueError, match=r"has 2 values, got 1. Given: \('a',\)"):
        sink.append_row(("a",))


def test_nothing_to_seal():
    builder, _ = opened()
    builder.seal()
    assert builder.done == []


def test_validity_exists_only_where_a_null_was():
    builder, sink = opened(max_rows=2)
    for row in [("a", 1), ("b", 2), (None, 3), ("c", 4)]:
        sink.append_row(row)
    assert builder.done[0].column(0).buffers()[0] is None
    assert builder.done[1].column(0).buffers()[0] is not None
    assert builder.done[1].column(0).null_count == 1


@pytest.mark.parametrize("max_rows", [1, 3, 7, 8, 9, 40_000])
def test_sealed_by_rows(max_rows):
    schema = pa.schema([("b", pa.bool_()), ("s", pa.string()), ("d", pa.decimal128(5, 1)), ("n", pa.null())])
    builder, sink = opened(schema, max_rows=max_rows)
    count = max(max_rows * 2 + 1, 20)
    rows = [(n % 3 == 0 if n % 5 else None, str(n), decimal.Decimal(n % 99), None) for n in range(count)]
    for row in rows:
        sink.append_row(row)
    assert [batch.num_rows for batch in builder.done] == [max_rows] * (count // max_rows)
    assert rows_of(builder) == rows


def test_sealed_by_bytes():
    builder, sink = opened(max_bytes=1000)
    for n in range(10):
        sink.append_row(("x" * 300, n))
    assert [batch.num_rows for batch in builder.done] == [4, 4]
    assert builder.bytes == 2 * (300 + 4 + 8)
    builder, sink = opened(pa.schema([("l", pa.list_(pa.string()))]), max_bytes=1000)
    for n in range(10):
        sink.append_row((["x" * 300],))
    assert [batch.num_rows for batch in builder.done] == [4, 4]
    for name in ("max_rows", "max_bytes"):
        with pytest.raises(ValueError, match=f"{name}.*Given: 0"):
            RowBatchBuilder(SCHEMA, **{name: 0})
        with pytest.raises(ValueError, match=name):
            RowBatchBuilder(SCHEMA, **{name: 2**31})


@pytest.mark.skipif(os.environ.get("PYSTORM_LARGE_TESTS") != "1", reason="takes 4 GB; PYSTORM_LARGE_TESTS=1 runs it")
def test_string_offsets_never_overflow():
    """The second row of 1.1 GiB comes before max_bytes is reached and would not fit the batch's int32 offsets."""
    big = "x" * (1100 << 20)
    builder, sink = opened(pa.schema([("s", pa.string())]), max_bytes=2**31 - 1)
    sink.append_row((big,))
    sink.append_row((big,))
    assert [batch.num_rows for batch in builder.done] == [1]
    assert builder.rows == 1


def test_failed_row_leaves_nothing_behind():
    schema = pa.schema(
        [("a", pa.int64()), ("s", pa.string()), ("b", pa.bool_()), ("l", pa.list_(pa.int64())), ("z", pa.int8())]
    )
    builder, sink = opened(schema)
    sink.append_row((None, None, None, None, None))
    sink.append_row((1, "one", True, [1], 1))
    for bad in [(None, None, None, None, 300), (9, "nine", True, [9], "z"), (9, "n", False, ["x"], 1)]:
        with pytest.raises(RowError):
            sink.append_row(bad)
        assert builder.rows == 2
    sink.append_row((2, "two", False, [2], 2))
    assert rows_of(builder) == [(None,) * 5, (1, "one", True, [1], 1), (2, "two", False, [2], 2)]


def test_error_names_field_stream_and_value():
    builder, sink = opened()
    with pytest.raises(RowError) as caught:
        sink.append_row(("a", "abc"))
    assert str(caught.value) == (
        "field 'n' (int64) of count.default can not hold a value of type str: it takes whole numbers; "
        "row ('a', 'abc'). Given: 'abc'"
    )
    assert (caught.value.field, caught.value.value, caught.value.row) == ("n", "abc", ("a", "abc"))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.field) == (str(caught.value), "n")
    with pytest.raises(RowError, match="can not hold None: it may not be null.*Given: None"):
        sink.append_row(("a", None))
    with pytest.raises(RowError, match=r"… \(10000 characters\)"):
        sink.append_row(("a", "x" * 10_000))
    with pytest.raises(RowError, match=r"row \['a', 'b'\], offset 7\. Given: 'b'$"):
        sink.append_row(["a", "b"], 7)
    with pytest.raises(RowError, match=r"row \('x{198}… \(\d+ characters\)\. Given: 'b'$"):
        sink.append_row(("x" * 10_000, "b"))
    assert rows_of(builder) == []


def test_view_maps_values_constants_offset_and_partition():
    schema = pa.schema(
        [
            pa.field("_task", pa.int32(), nullable=False),
            pa.field("_partition", pa.string()),
            pa.field("_offset", pa.int64()),
            pa.field("b", pa.float64()),
            pa.field("a", pa.string()),
            pa.field("other", pa.list_(pa.string())),
            pa.field("price", pa.decimal128(5, 2)),
        ]
    )
    builder, sink = opened(
        schema, [4, -1, 3], constants={0: 7, 6: decimal.Decimal(1)}, offset_column=2, partition_column=1
    )
    other = RowSink(builder, [5], {0: 8}, label="split.words")
    price = decimal.Decimal("1.00")
    sink.append_row(("x", object(), 1.5), 5)
    sink.set_partition("p1")
    sink.append_row(("y", None, None), 2**62)
    other.append_row((["w"],))
    sink.append_row(("z", None, 2), -1)
    sink.set_partition(None)
    sink.append_row(("z", None, 2), 0)
    assert rows_of(builder) == [
        (7, None, 5, 1.5, "x", None, price),
        (7, "p1", 2**62, None, "y", None, price),
        (8, None, None, None, None, ["w"], None),
        (7, "p1", None, 2.0, "z", None, price),
        (7, None, 0, 2.0, "z", None, price),
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        dict(columns=[0, 0]),
        dict(columns=[0, 2]),
        dict(columns=[0, -2]),
        dict(columns=[0, 1], constants={1: 5}),
        dict(columns=[1], offset_column=1),
        dict(columns=[1], offset_column=0),
        dict(columns=[1], partition_column=7),
    ],
)
def test_view_that_does_not_fit_together(arguments):
    with pytest.raises(ValueError, match="Given: ") as caught:
        RowSink(RowBatchBuilder(SCHEMA), label="count.default", **arguments)
    assert not isinstance(caught.value, RowError)


def test_columns_that_may_not_be_null_must_get_a_value():
    builder = RowBatchBuilder(SCHEMA)
    with pytest.raises(RowError, match="'n'.*brings nothing"):
        RowSink(builder, [0])
    with pytest.raises(RowError, match="'n'.*Given: 'x'"):
        RowSink(builder, [0], {1: "x"})
    with pytest.raises(RowError, match="'n'.*no offset"):
        RowSink(builder, [0], offset_column=1).append_row(("a",))
    schema = pa.schema([pa.field("p", pa.string(), nullable=False)])
    sink = RowSink(RowBatchBuilder(schema), [], partition_column=0)
    with pytest.raises(RowError, match="'p'.*no value was set"):
        sink.append_row(())


@pytest.mark.parametrize("metadata", [None, {"k": "v"}])
def test_no_columns_at_all(metadata):
    builder, sink = opened(pa.schema([], metadata=metadata), [-1], max_rows=3)
    for _ in range(5):
        sink.append_row((1,))
    sink.add_batch(pa.RecordBatch.from_pydict({"x": [1, 2]}))
    assert [batch.num_rows for batch in builder.done] == [3, 2, 2]
    assert all(batch.schema.equals(builder.schema, check_metadata=True) for batch in builder.done)


def test_conversion_may_append_to_the_same_builder():
    builder, sink = opened()

    class Nested:
        def __str__(self):
            sink.append_row(("inner", 1))
            builder.seal()
            return "outer"

    sink.append_row((Nested(), 2))
    sink.append_row([Nested(), 3])
    assert rows_of(builder) == [("inner", 1), ("outer", 2), ("inner", 1), ("outer", 3)]


def test_threads_that_convert_do_not_mix_their_rows():
    builder, sink = opened(max_rows=64)
    count = 1_000

    class Slow:
        def __init__(self, text):
            self.text = text

        def __str__(self):
            return "".join(letter for letter in self.text)

    def work(name):
        for n in range(count):
            sink.append_row((Slow(f"{name}-{n}") if n % 2 else f"{name}-{n}", n))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(interval)
    rows = rows_of(builder)
    for name in "abc":
        assert [row for row in rows if row[0].startswith(name)] == [(f"{name}-{n}", n) for n in range(count)]
    assert len(rows) == 3 * count


def test_batches_outlive_their_builder():
    builder, sink = opened()
    sink.append_row(("kept", 1))
    builder.seal()
    batch = builder.done[0]
    slice_ = batch.column(0)
    del builder, sink, batch
    gc.collect()
    assert slice_.to_pylist() == ["kept"]


def test_no_reference_is_kept_or_lost():
    schema = pa.schema([("i", pa.int64()), ("s", pa.string()), ("t", pa.timestamp("us")), ("l", pa.list_(pa.string()))])
    builder, sink = opened(schema, max_rows=16)
    values = [10**17 + 1, "".join(["some", "é"]), dt.datetime(2024, 1, 1), ["".join(["a", "b"])]]
    row, bad = tuple(values), (*values[:3], [b"", object()])
    constants = (values, row, bad, schema, None, True)

    def counts():
        return [sys.getrefcount(value) for value in (*values, values[3][0], row, bad, None)]

    sink.repeat_row(row, 100)
    builder.seal()
    before = counts()
    sink.repeat_row(row, 100)
    for _ in range(100):
        sink.append_row(row)
        sink.append_row((None,) * 4)
        with pytest.raises(RowError):
            sink.append_row((*values[:3], 5))
    builder.done.clear()
    builder.seal()
    builder.done.clear()
    gc.collect()
    after = counts()
    assert after[:-1] == before[:-1]
    assert abs(after[-1] - before[-1]) < 50 or sys.version_info >= (3, 12)
    assert constants


def test_memory_of_many_batches_is_given_back():
    schema = pa.schema([("i", pa.int64()), ("s", pa.string()), ("b", pa.bool_()), ("d", pa.decimal128(5, 1))])

    def turn():
        builder, sink = opened(schema, max_rows=500)
        sink.repeat_row((1, "word" * 50, None, decimal.Decimal(1)), 2_250)
        ready = pa.record_batch([[1], ["x"], [True], [decimal.Decimal("1.5")]], schema=schema)
        sink.add_batch(ready)
        assert len(builder.done) == 6
        sink.append_row((1, "left behind", None, None))

    tracemalloc.start()
    try:
        turn()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(20):
            turn()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 20_000  # one column of one batch is 100 kB
    finally:
        tracemalloc.stop()


def test_small_batches_do_not_keep_the_room_for_large_ones():
    builder, sink = opened()
    sink.append_row(("a", 1))
    builder.seal()
    assert builder.done[0].get_total_buffer_size() < 100


def test_ready_batch_that_fits_is_passed_on_as_it_is():
    builder, sink = opened()
    ready = pa.record_batch([["a"], [1]], schema=SCHEMA)
    sink.append_row(("before", 0))
    sink.add_batch(ready)
    sink.append_row(("after", 2))
    assert builder.done[1] is ready
    assert rows_of(builder) == [("before", 0), ("a", 1), ("after", 2)]


def test_ready_batch_is_conformed():
    schema = pa.schema(
        [
            pa.field("_task", pa.int32(), nullable=False),
            pa.field("p", pa.string()),
            pa.field("o", pa.int64()),
            pa.field("n", pa.int32()),
            pa.field("s", pa.struct([("x", pa.int8())]), metadata={"k": "v"}),
        ]
    )
    builder, sink = opened(schema, [3, -1], constants={0: 7, 4: (3,)}, offset_column=2, partition_column=1)
    sink.set_partition("p1")
    sink.add_batch(pa.RecordBatch.from_pydict({"a": pa.array([1, None], pa.int64()), "b": ["unused", "unused"]}))
    sink.add_batch(pa.RecordBatch.from_pydict({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())}))
    assert rows_of(builder) == [(7, "p1", None, 1, {"x": 3}), (7, "p1", None, None, {"x": 3})]
    same = pa.array([5, 6], pa.int32())
    sink.add_batch(pa.record_batch([same, pa.nulls(2)], names=["a", "b"]))
    assert builder.done[-1].column(3).buffers()[1].address == same.buffers()[1].address


def test_ready_batch_that_does_not_fit():
    builder, sink = opened()
    sink.append_row(("kept", 0))
    with pytest.raises(RowError, match=r"field 'n' \(int64\) of count.default can not hold .*Given: 1.5") as caught:
        sink.add_batch(pa.RecordBatch.from_pydict({"w": ["a", "b"], "n": [1.0, 1.5]}))
    assert (caught.value.field, caught.value.value) == ("n", 1.5)
    with pytest.raises(RowError, match="may not be null"):
        sink.add_batch(pa.RecordBatch.from_pydict({"w": ["a"], "n": pa.array([None], pa.int64())}))
    with pytest.raises(ValueError, match=r"has 2 columns.*Given: \['w'\]"):
        sink.add_batch(pa.RecordBatch.from_pydict({"w": ["a"]}))
    without_n = RowSink(builder, [0], offset_column=1, label="count.default")
    with pytest.raises(RowError, match="'n'.*may not be null and a batch brings nothing"):
        without_n.add_batch(pa.RecordBatch.from_pydict({"w": ["a"]}))
    assert rows_of(builder) == [("kept", 0)]
