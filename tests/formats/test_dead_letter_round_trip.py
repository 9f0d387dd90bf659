"""Values of every declared type, through the text of a dead letter and back."""

import datetime
import decimal
import json
import string

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cython_core.arrow.value_converter import converter
from pystorm_source.formats.dead_letter_lines import letter_values
from pystorm_source.formats.lines import Malformed
from pystorm_source.formats.values import as_float32
from pystorm_source.types.arrow import field_type
from pystorm_source.types.json_text import json_text

FLOATS = st.floats(width=32)
KEYS = {
    "boolean": st.booleans(),
    "tinyint": st.integers(-(2**7), 2**7 - 1),
    "smallint": st.integers(-(2**15), 2**15 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "float": FLOATS.map(as_float32),
    "double": st.floats(),
    "string": st.text(st.characters(exclude_categories=["Cs"])),
    "binary": st.binary(),
    "date": st.dates(),
    "timestamp": st.datetimes(
        datetime.datetime(2, 1, 1), datetime.datetime(9998, 1, 1), timezones=st.just(datetime.UTC)
    ),
    "timestamp_ntz": st.datetimes(),
    "time": st.times(),
    "interval day to second": st.timedeltas(datetime.timedelta(-(10**7)), datetime.timedelta(10**7)),
    "decimal(9,3)": st.decimals(-99999, 99999, places=3),
    "decimal(38,0)": st.integers(-(10**38) + 1, 10**38 - 1).map(decimal.Decimal),
}


@st.composite
def typed(draw, deep=2):
    """The DDL of a type, and values of it."""
    kind = draw(st.sampled_from(["simple", "array", "map", "struct"])) if deep else "simple"
    if kind == "simple":
        ddl = draw(st.sampled_from([*KEYS, "void"]))
        return ddl, KEYS[ddl] if ddl in KEYS else st.none()
    if kind == "array":
        ddl, items = draw(typed(deep - 1))
        return f"array<{ddl}>", st.lists(st.none() | items, max_size=3)
    if kind == "map":
        key = draw(st.sampled_from(list(KEYS)))
        ddl, items = draw(typed(deep - 1))
        return f"map<{key}, {ddl}>", st.dictionaries(KEYS[key], st.none() | items, max_size=3)
    names = draw(st.lists(st.text(string.ascii_letters, min_size=1, max_size=3), min_size=1, max_size=3, unique=True))
    fields = {name: draw(typed(deep - 1)) for name in names}
    ddl = ", ".join(f"`{name}`: {each}" for name, (each, _) in fields.items())
    return f"struct<{ddl}>", st.fixed_dictionaries({name: st.none() | each for name, (_, each) in fields.items()})


def in_column(ddl, value):
    """As the column of a DataFrame has it; NaN is itself there."""
    type = field_type(ddl, "a field")
    return repr(pa.array([converter(type)(value)], type).to_pylist())


@given(st.data())
def test_every_type_comes_back(data):
    ddl, values = data.draw(typed())
    value = data.draw(st.none() | values, ddl)
    text = json_text((value,))
    json.loads(text)
    (found,) = letter_values(("field",), (ddl,))(text)
    assert in_column(ddl, found) == in_column(ddl, value)


@given(st.data(), st.sampled_from(list(KEYS)))
def test_every_key_of_a_map_comes_back(data, kind):
    value = {data.draw(KEYS[kind]): 1}
    (found,) = letter_values(("field",), (f"map<{kind}, int>",))(json_text((value,)))
    assert in_column(f"map<{kind}, int>", found) == in_column(f"map<{kind}, int>", value)


@given(KEYS["interval day to second"])
def test_a_time_span_may_be_one_of_iso_8601(span):
    iso = msgspec.json.encode([span]).decode()
    assert letter_values(("field",), ("interval day to second",))(iso) == (span,)


@pytest.mark.parametrize(
    ("ddl", "text"),
    [
        ("map<boolean, int>", '[{"yes please": 1}]'),
        ("map<tinyint, int>", '[{"128": 1}]'),
        ("map<double, int>", '[{"much": 1}]'),
        ("map<decimal(3,1), int>", '[{"1234.5": 1}]'),
        ("map<interval day to second, int>", '[{"soon": 1}]'),
        ("interval day to second", '["soon"]'),
        ("interval day to second", "[7]"),
    ],
)
def test_what_is_no_such_value_is_said(ddl, text):
    with pytest.raises(Malformed):
        letter_values(("field",), (ddl,))(text)
