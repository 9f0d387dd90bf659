"""Rows as Arrow batches in one value each, on their way into a stage with states."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

from pystorm_source.operator.packed_rows import PACKED, ROWS_OF_BATCH, Pack, Unpack, pack, unpack
from pystorm_source.stages.crossing import AT

AT_3 = datetime.datetime(2024, 7, 1, 3, 0, tzinfo=datetime.UTC)
COLUMNS = (
    ("word", pa.string()),
    ("at", pa.timestamp("us", "UTC")),
    ("by", pa.map_(pa.string(), pa.int64())),
    ("both", pa.struct([("x", pa.int64()), ("y", pa.list_(pa.float64()))])),
)


def rows(numbers):
    made = [
        {"word": f"w{n}" if n % 3 else None, "at": AT_3, "by": [("a", n)], "both": {"x": n, "y": [n / 2] * (n % 4)}}
        for n in numbers
    ]
    return pa.RecordBatch.from_pylist(made, pa.schema(COLUMNS))


@pytest.mark.parametrize("place", [0, 2, 4])
def test_each_bucket_gets_its_rows_in_their_order(place):
    numbers = list(range(1000))
    buckets = np.random.default_rng(1).integers(0, 7, len(numbers))
    batch = rows(numbers)
    batch = batch.add_column(place, AT, pa.array(buckets, pa.int32()))
    packed = list(Pack(COLUMNS)(iter([batch.slice(0, 300), batch.slice(300, 0), batch.slice(300)])))
    found = {}
    for each in packed:
        assert len(set(each[AT].to_pylist())) == each.num_rows, "a value for each bucket"
        for bucket, value in zip(each[AT].to_pylist(), each[PACKED].to_pylist(), strict=True):
            found.setdefault(bucket, []).extend(unpack(value, pa.schema(COLUMNS)).to_pylist())
    assert found == {
        bucket: rows([n for n in numbers if buckets[n] == bucket]).to_pylist() for bucket in set(buckets.tolist())
    }


def test_columns_come_out_as_they_are_declared():
    given = rows([1, 2]).set_column(0, "word", pa.array(["a", "b"], pa.large_string()))
    given = given.set_column(1, "at", pa.array([AT_3, AT_3], pa.timestamp("us", "Europe/Berlin")))
    given = given.append_column(AT, pa.array([1, 1], pa.int32()))
    ((value,),) = [each[PACKED].to_pylist() for each in Pack(COLUMNS)(iter([given]))]
    assert unpack(value, pa.schema(COLUMNS)).schema == pa.schema(COLUMNS)


def test_many_small_values_come_out_as_few_batches_and_all_rows_in_order():
    values = [pack(rows(range(n, n + 30))) for n in range(0, 9000, 30)]
    given = [
        pa.RecordBatch.from_arrays([pa.array(part, pa.binary())], [PACKED]) for part in (values[:200], values[200:])
    ]
    found = list(Unpack(pa.schema(COLUMNS))(iter(given)))
    assert pa.Table.from_batches(found).to_pylist() == rows(range(9000)).to_pylist()
    assert len(found) <= 2 + 9000 / ROWS_OF_BATCH
    assert list(Unpack(pa.schema(COLUMNS))(iter([given[0].slice(0, 0)]))) == []
