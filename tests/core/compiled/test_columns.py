"""Columns of a batch, read in C by a compiled bolt."""

from pathlib import Path

import pyarrow as pa
import pytest

from pystorm_source import Topology
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology
from testbed.compiled_module import compiled
from tests.both_schedulers import SCHEDULERS

pytestmark = pytest.mark.timeout(300)  # a module is compiled
COLUMNS = (
    ("read_longs", pa.int64(), [1, None, -(1 << 63), (1 << 63) - 1, 5, None, 7, 8, 9, 10]),
    ("read_doubles", pa.float64(), [0.5, float("inf"), None, -0.0, 2.5, 3.0, None, 1.0, 2.0, 4.0]),
    ("read_texts", pa.string(), ["a", "", None, "höhe", "x" * 300, "e", None, "f", "g", "h"]),
    ("read_texts", pa.binary(), [b"a", b"", None, b"\0\xff", b"x" * 300, b"e", None, b"f", b"g", b"h"]),
)


@pytest.fixture(scope="module")
def bolts():
    return compiled(Path(__file__).with_name("column_bolts.pyx"))


def as_bytes(values):
    return [value.encode() if isinstance(value, str) else value for value in values]


@pytest.mark.parametrize(("reader", "type", "values"), COLUMNS)
def test_values_and_nulls_are_those_of_arrow(bolts, reader, type, values):
    read = getattr(bolts, reader)
    whole = pa.record_batch([pa.array(range(10)), pa.array(values, type)], names=["place", "value"])
    for start in range(10):
        for rows in range(10 - start):
            assert read(whole.slice(start, rows), 1) == as_bytes(values[start : start + rows])
    full = pa.record_batch([pa.array([value for value in values if value is not None], type)], names=["value"])
    assert read(full, 0) == as_bytes(full["value"].to_pylist())
    assert read(pa.record_batch([pa.array([], type)], names=["value"]), 0) == []


def test_another_type_or_place_is_refused(bolts):
    batch = pa.record_batch([pa.array([1], pa.int32())], names=["small"])
    with pytest.raises(TypeError, match=r"column 'small' is read as int64: declare that type .* Given: int32"):
        bolts.read_longs(batch, 0)
    with pytest.raises(IndexError, match=r"the batch has 1 columns. Given: 1"):
        bolts.read_texts(batch, 1)
    with pytest.raises(IndexError, match=r"Given: -1"):
        bolts.read_texts(batch, -1)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_it_is_a_bolt_of_batches_as_any_other(bolts, scheduler):
    rows = [[n] for n in range(3_000)]

    class Passed(Topology):
        config = {"topology.max.spout.retries": 1, "topology.dead.letter": "stream"}
        numbers = MemorySpout.spec(fields=["n long"], rows=[*rows, [-1]])
        passed = bolts.NotNegative.spec(inputs=[numbers])

    result = run_topology(Passed, scheduler=scheduler)
    assert set(result.rows("passed")) == {tuple(row) for row in rows}  # those of attempts that failed, too
    assert len(result.rows("numbers", "__dead_letter")) == 1
