"""Rows of any values through a spec: they come as they were given."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystorm_source import Topology
from pystorm_source.spouts import MemorySpout
from pystorm_source.spouts.memory_values import json_of_value, value_of
from pystorm_source.testing import run_topology
from pystorm_source.types.json_values import json_copy

PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.decimals(allow_nan=False),
    st.dates(),
    st.datetimes(timezones=st.sampled_from([None, UTC, timezone(timedelta(hours=-5))])),
    st.timedeltas(),
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.dates() | st.just("$memory"), inner),
    max_leaves=10,
)


@given(VALUES)
def test_what_is_given_comes_back_out_of_the_configuration(value):
    back = value_of(json_copy(json_of_value(value)))
    assert back == value and type(back) is type(value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("d decimal(10,2)", Decimal("1.50")),
        ("d date", date(2024, 2, 29)),
        ("d timestamp", datetime(2024, 2, 29, 12, tzinfo=UTC)),
        ("d binary", b"\x00\xff"),
        ("d map<int,date>", {1: date(2024, 1, 1)}),
        ("d array<decimal(3,1)>", [Decimal("0.5")]),
    ],
)
def test_a_spec_takes_a_value_of_the_type(field, value):
    made = type("Made", (Topology,), {"rows": MemorySpout.spec(fields=[field], rows=[[value]])})
    assert run_topology(made).rows("rows") == [(value,)]


def test_what_no_field_holds_is_refused():
    with pytest.raises(TypeError, match="must be JSON"):
        MemorySpout.spec(fields=["d long"], rows=[[object()]])
