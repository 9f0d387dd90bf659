"""Random declared types with values of them, and decoders asked both ways."""

import datetime
import decimal
import struct
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from pystorm_source.formats.decoding import Decoder

NAMES = ["a", "b", "c d", "select", "Größe"]
AVRO_NAMES = ["a", "b", "c_d", "select"]


def plain(found: list[Any] | pa.Array, decoder: Decoder) -> list[Any]:
    """What was decoded, as tuples have it: dicts for maps, instants in UTC of the standard library."""
    if isinstance(found, list):
        return found
    assert found.type == decoder.type
    found.validate(full=True)
    return [as_tuples_have_it(value, found.type) for value in found.to_pylist()]


def as_tuples_have_it(value: Any, type: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(type):
        return {field.name: as_tuples_have_it(value[field.name], field.type) for field in type}
    if pa.types.is_list(type):
        return [as_tuples_have_it(item, type.value_type) for item in value]
    if pa.types.is_map(type):
        return {as_tuples_have_it(key, type.key_type): as_tuples_have_it(item, type.item_type) for key, item in value}
    if pa.types.is_timestamp(type) and type.tz:
        return value.astimezone(datetime.UTC)
    return value


def agreed(decoder: Decoder, data: list[bytes | None]) -> tuple[list[Any], dict[int, str]]:
    """What a decoder makes of data, and what it cannot, which must be the same for both deliveries."""
    bad_values: dict[int, str] = {}
    bad_array: dict[int, str] = {}
    values = decoder.values(data, bad_values)
    array = decoder.array(data, bad_array)
    assert bad_values == bad_array and len(array) == len(values) == len(data)
    assert repr(plain(array, decoder)) == repr(values)  # in which -0.0 is not 0.0
    assert all(values[index] is None for index in bad_values)
    return values, bad_values


_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_INSTANTS = st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30))
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "double": _FLOATS,
    "string": st.text(max_size=5),
    "binary": st.binary(max_size=5),
    "date": st.dates(),
    "timestamp": _INSTANTS.map(lambda each: each.replace(tzinfo=datetime.UTC)),
    "timestamp_ntz": _INSTANTS,
    "decimal(10,2)": st.integers(-(10**10) + 1, 10**10 - 1).map(lambda n: decimal.Decimal(n).scaleb(-2)),
    "decimal(38,20)": st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: decimal.Decimal((n < 0, _digits(n), -20))),
}


def _digits(number: int) -> tuple[int, ...]:
    return tuple(map(int, str(abs(number))))


def _typed(avro: bool) -> st.SearchStrategy[tuple[str, st.SearchStrategy[Any]]]:
    """(DDL, values that are not null)."""
    scalar = st.sampled_from(sorted(SCALARS)).map(lambda ddl: (ddl, SCALARS[ddl]))
    return st.recursive(scalar, lambda inner: _lists(inner) | _maps(inner) | _structs(inner, avro), max_leaves=5)


def _lists(inner: Any) -> Any:
    return inner.map(lambda each: (f"array<{each[0]}>", st.lists(st.none() | each[1], max_size=3)))


def _maps(inner: Any) -> Any:
    keys = st.text(max_size=3)
    return inner.map(lambda each: (f"map<string,{each[0]}>", st.dictionaries(keys, st.none() | each[1], max_size=3)))


def _structs(inner: Any, avro: bool) -> Any:
    names = st.lists(st.sampled_from(AVRO_NAMES if avro else NAMES), min_size=1, max_size=3, unique=True)
    return names.flatmap(lambda chosen: st.tuples(*[inner] * len(chosen)).map(lambda types: _struct(chosen, types)))


def _struct(names: list[str], types: tuple[tuple[str, Any], ...]) -> tuple[str, Any]:
    fields = [f"`{name}`: {ddl}" for name, (ddl, _) in zip(names, types, strict=True)]
    values = {name: st.none() | values for name, (_, values) in zip(names, types, strict=True)}
    return f"struct<{', '.join(fields)}>", st.fixed_dictionaries(values)


@st.composite
def ddl_and_values(draw: Any, avro: bool) -> tuple[str, list[Any]]:
    """A struct type and some values of it, or null."""
    ddl, values = draw(_structs(_typed(avro), avro))
    return ddl, draw(st.lists(st.none() | values, max_size=4))


def rounded(value: float) -> float:
    """As 32 bits hold it."""
    return struct.unpack("<f", struct.pack("<f", value))[0]
