"""run_topology(T, rows=...): the class that apply() runs, in a test."""

import pyarrow as pa
import pytest

from pystorm_source.errors import ArgumentError, SchemaError, TupleFailed
from pystorm_source.testing import run_topology
from tests.operator import topologies
from tests.operator.test_apply_errors import Source


@pytest.mark.parametrize(
    "rows", [[(1,), [2]], [{"id": 1, "more": "x"}, {"id": 2}], pa.RecordBatch.from_pydict({"id": [1, 2]})]
)
def test_rows_of_any_form(rows):
    assert run_topology(topologies.Doubles, rows=rows).rows("double") == [(1, 2), (2, 4)]


def test_bolts_of_batches():
    result = run_topology(topologies.Evens, rows=[(1, "a"), (2, None)])
    assert result.rows("even") == [(2, None)]


def test_no_rows():
    assert run_topology(topologies.Counted, rows=[]).rows("last") == [(0,)]


def test_retries():
    result = run_topology(topologies.Retried, rows=[(i,) for i in range(50)])
    assert set(result.rows("flaky")) == {(i,) for i in range(50)}  # with those of failed attempts, as the kit shows all
    assert result.failed["rows"] > 0


def test_an_exception_names_the_component():
    with pytest.raises(TupleFailed, match="odd"):
        run_topology(topologies.Breaks, rows=[(7,)])


def test_what_does_not_fit():
    with pytest.raises(ArgumentError, match="rows="):
        run_topology(topologies.Doubles)
    with pytest.raises(ArgumentError, match="has none"):
        run_topology(Source, rows=[(1,)])
    with pytest.raises(ArgumentError, match="a row is"):
        run_topology(topologies.Doubles, rows=[(1, 2)])
    with pytest.raises(SchemaError, match="'id'"):
        run_topology(topologies.Doubles, rows=[("x",)])
