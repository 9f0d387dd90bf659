import datetime
import decimal

import pyarrow as pa
import pytest

from cython_core.arrow.row_error import RowError
from pystorm_source.errors import DataLossError
from pystorm_source.journal.rows import UNTYPED, JournalRows

ANY = pa.field("any", pa.binary(), metadata={UNTYPED: b"msgpack"})


def round_trip(schemas, emits, direct=()):
    rows = JournalRows("spout", schemas, direct)
    for position, (stream, values, task) in enumerate(emits):
        rows.append(values, stream, task, position)
    return [tuple(emit) for emit in rows.emits(rows.take())]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), [1, None, -(2**63)]),
        (pa.int8(), [1, 2]),
        (pa.float64(), [1.5, None, float("inf")]),
        (pa.bool_(), [True, None, False]),
        (pa.string(), ["", None, "Sträßchen"]),
        (pa.binary(), [b"\0", None]),
        (pa.date32(), [datetime.date(2024, 2, 29), None]),
        (pa.timestamp("us", tz="UTC"), [datetime.datetime(2024, 2, 29, 12, 0, 0, 7, datetime.UTC), None]),
        (pa.decimal128(10, 2), [decimal.Decimal("1.25"), None]),
        (pa.list_(pa.int64()), [[1, None], [], None]),
        (pa.map_(pa.string(), pa.list_(pa.int64())), [{"a": [1]}, {}, None]),
        (
            pa.struct([("m", pa.map_(pa.string(), pa.int64())), ("s", pa.string())]),
            [{"m": {"a": 1}, "s": "x"}, None],
        ),
    ],
    ids=str,
)
def test_typed_values_come_back(kind, values):
    emits = [("default", (value,), None) for value in values]
    assert round_trip({"default": pa.schema([("v", kind)])}, emits) == [
        (values, stream, task) for stream, values, task in emits
    ]


def test_untyped_values_come_back_as_json_has_them():
    values = [None, True, 7, 1.5, "text", b"bytes", [1, [2]], {"a": [1, None]}]
    emits = [("default", [value], None) for value in (*values, (1, (2,)))]
    found = [emit[0][0] for emit in round_trip({"default": pa.schema([ANY])}, emits)]
    assert found == [*values, [1, [2]]]


class Thing:
    """Something that only pickle would take."""


@pytest.mark.parametrize("value", [Thing(), {1, 2}, decimal.Decimal(1), datetime.date(2024, 1, 1), [Thing()], 2**64])
def test_an_untyped_field_refuses_what_it_would_change(value):
    with pytest.raises(TypeError, match=r"value 0 of spout.default.*give the field a type"):
        round_trip({"default": pa.schema([ANY])}, [("default", [value], None)])


def test_streams_keep_their_common_order():
    schemas = {"a": pa.schema([("n", pa.int64())]), "b": pa.schema([]), "c": pa.schema([ANY])}
    emits = [("a", (0,), None), ("b", (), None), ("c", ("x",), None), ("a", (3,), None), ("b", (), None)]
    assert round_trip(schemas, emits) == [(values, stream, None) for stream, values, _ in emits]


def test_direct_tasks_are_kept():
    schemas = {"default": pa.schema([("n", pa.int64())])}
    assert round_trip(schemas, [("default", (1,), 7)], {"default"}) == [((1,), "default", 7)]
    with pytest.raises(ValueError, match="names a task"):
        round_trip(schemas, [("default", (1,), None)], {"default"})
    with pytest.raises(ValueError, match="direct=True"):
        round_trip(schemas, [("default", (1,), 7)])


def test_wrong_rows_are_refused_at_the_emit():
    rows = JournalRows("spout", {"default": pa.schema([("n", pa.int64())])})
    with pytest.raises(RowError, match="'n'.*'seven'"):
        rows.append(("seven",), "default", None, 0)
    with pytest.raises(ValueError, match="1 values, got 2"):
        rows.append((1, 2), "default", None, 0)
    with pytest.raises(ValueError, match="Unknown stream ID.*'default'.*'other'"):
        rows.append((1,), "other", None, 0)
    assert rows.take() == []


def test_a_segment_of_other_fields_is_refused():
    old = JournalRows("spout", {"default": pa.schema([("m", pa.int64())])})
    rows = JournalRows("spout", {"default": pa.schema([("n", pa.int64())])})
    rows.check(rows.schemas, "file")
    with pytest.raises(DataLossError, match="other streams or fields.*'m'.*old topology.*Given: 'file'"):
        rows.check(old.schemas, "file")
