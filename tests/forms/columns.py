"""Columns of all types, and their values: those of a row follow from the row's number."""

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from pystorm_source.types.arrow import field_type

DAY = datetime.datetime(1969, 12, 30)


def moment(n: int) -> datetime.datetime:
    return DAY + datetime.timedelta(hours=n, microseconds=n)


VALUES = {
    "long": lambda n: n - 50,
    "int": lambda n: n % 1000,
    "float": lambda n: n / 8,
    "double": lambda n: n / 10,
    "boolean": lambda n: n % 3 == 0,
    "string": lambda n: "wörd" * (n % 3) + str(n % 7),
    "binary": lambda n: bytes([n % 256]) * (n % 4),
    "date": lambda n: moment(n).date(),
    "timestamp": lambda n: moment(n).replace(tzinfo=datetime.UTC),
    "timestamp_ntz": moment,
    "decimal(20,3)": lambda n: Decimal(n).scaleb(-3),
    "array<int>": lambda n: [None if i == 1 else n for i in range(n % 4)],
    "struct<a: int, b: string>": lambda n: {"a": n, "b": None if n % 4 == 0 else str(n)},
    "array<struct<a: date>>": lambda n: [{"a": moment(n).date()}] * (n % 3),
    "map<string, int>": lambda n: {str(n): n, "": n % 2},
}
NULL_EVERY = 5
HASHED = [ddl for ddl in VALUES if not ddl.startswith("map")]
"""What may select a task: a list of pairs, as Arrow reads a map, has not the hash of a dict."""


def value_of(ddl: str, n: int) -> Any:
    return None if n % NULL_EVERY == NULL_EVERY - 1 else VALUES[ddl](n)


def values_of(types: tuple[str, ...], root: int) -> tuple[Any, ...]:
    """Those of the columns behind ``root`` and ``n``."""
    return tuple(value_of(ddl, root + place) for place, ddl in enumerate(types))


def fields_of(types: tuple[str, ...]) -> list[str]:
    """As ``outputs`` declares them."""
    return ["root long", "n long", *(f"v{place} {ddl}" for place, ddl in enumerate(types))]


def schema_of(types: tuple[str, ...]) -> pa.Schema:
    declared = (field.split(" ", 1) for field in fields_of(types))
    return pa.schema([(name, field_type(ddl, name)) for name, ddl in declared])


def batch_of(rows: list[tuple[Any, ...]], types: tuple[str, ...], build: str = "plain") -> pa.RecordBatch:
    """The rows as columns. ``build``: plain; ``sliced``: out of the middle of others; ``other``: of types that become
    the declared ones."""
    spare = rows[:1] * 3 if build == "sliced" else []
    columns = zip(*spare, *rows, *spare, strict=True) if rows else [()] * (2 + len(types))
    arrays = []
    for values, field in zip(columns, schema_of(types), strict=True):
        pairs = [list(v.items()) if isinstance(v, dict) else v for v in values]
        array = pa.array(pairs if pa.types.is_map(field.type) else list(values), field.type)
        arrays.append(other_form(array) if build == "other" else array)
    batch = pa.record_batch(arrays, names=schema_of(types).names)
    return batch.slice(len(spare), len(rows))


def other_form(array: pa.Array) -> pa.Array:
    """The same values as a type that may stand for the declared one."""
    if pa.types.is_string(array.type):
        forms = [pa.large_string(), *[pa.string_view() for _ in range(hasattr(pa, "string_view"))]]
        return array.cast(forms[len(array) % len(forms)]) if len(array) % 3 else array.dictionary_encode()
    if pa.types.is_binary(array.type):
        return array.cast(pa.large_binary())
    if pa.types.is_int32(array.type):
        return array.cast(pa.int64())
    return array


def frozen(value: Any) -> Any:
    """Comparable and hashable; a map is the same as a dict or as pairs."""
    if isinstance(value, dict):
        return tuple((key, frozen(item)) for key, item in sorted(value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(frozen(item) for item in value)
    return value


def frozen_row(row: Any, types: tuple[str, ...]) -> tuple[Any, ...]:
    values = [
        dict(value) if value is not None and ddl.startswith("map") else value
        for value, ddl in zip(row[2:], types, strict=True)
    ]
    return (*row[:2], *(frozen(value) for value in values))
