"""Changes as values of the fields of ``outputs``."""

import datetime
import decimal
import json
from collections.abc import Callable, Collection, Sequence
from operator import attrgetter
from typing import Any

import pyarrow as pa
from pyarrow import types

from pystorm_source.api.stream import Stream
from pystorm_source.errors import SchemaError, given
from pystorm_source.spouts.postgres.pgoutput import Change
from pystorm_source.types.arrow import field_type

FIELDS = [
    "schema string",
    "table string",
    "op string",
    "lsn long",
    "seq long",
    "commit_time timestamp",
    "xid long",
    "row map<string,string>",
    "old map<string,string>",
    "unchanged array<string>",
]
"""What a change has, whatever its table."""
_OWN = frozenset(field.split()[0] for field in FIELDS)

Values = Callable[[Change], tuple[Any, ...]]
_Reader = Callable[[Change], Any]
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def values_of(stream: Stream) -> Values:
    """A change → the values of a stream's fields. Raises SchemaError for types that no column of a table has."""
    readers = [_reader(*each) for each in zip(stream.fields, stream.types, strict=True)]
    return lambda change: tuple([reader(change) for reader in readers])


def columns_of(stream: Stream) -> list[str]:
    """The fields of a stream that are columns of tables."""
    return [name for name in stream.fields if name not in _OWN]


def check_columns(declared: Sequence[str], present: Collection[str]) -> None:
    """Raises SchemaError for a column that none of the tables has: it would be null in every row."""
    for name in declared:
        if name not in present:
            raise SchemaError(
                f"no table that PostgresSpout reads has a column {name!r}: write it in outputs as the table has it, or "
                f"leave it out. Given: {given(name)}, columns {', '.join(sorted(set(present)))}",
                code="PYSTORM_SCHEMA_MISMATCH",
            )


def _reader(name: str, ddl: str | None) -> _Reader:
    type = pa.string() if ddl is None else field_type(ddl, f"field {name!r}")
    if name in ("row", "old"):
        get = attrgetter(name)
        return (lambda change: _json(get(change))) if types.is_string(type) and ddl is not None else get
    if name == "commit_time":
        return _commit_time
    if name in ("schema", "table", "op", "lsn", "seq", "xid", "unchanged"):
        return attrgetter(name)
    converted = _converter(name, type)

    def column(change: Change) -> Any:
        text = None if change.row is None else change.row.get(name)
        if text is None:
            return None
        try:
            return converted(text)
        except (ValueError, ArithmeticError):
            return text  # which the field's type refuses, by name

    return column


def _commit_time(change: Change) -> datetime.datetime | None:
    return None if change.micros is None else _EPOCH + datetime.timedelta(microseconds=change.micros)


def _json(row: dict[str, str | None] | None) -> str | None:
    return None if row is None else json.dumps(row, ensure_ascii=False)


def _converter(name: str, type: pa.DataType) -> Callable[[str], Any]:
    """PostgreSQL's text of a value → a value of the type."""
    for fits, converted in _CONVERTERS:
        if fits(type):
            return converted
    raise SchemaError(
        f"field {name!r} of PostgresSpout cannot have this type: take string, boolean, a number, decimal, date, "
        f"timestamp, binary, or for json a struct, map or array. Given: {type}",
        code="PYSTORM_INVALID_TYPE",
    )


def _time(text: str) -> datetime.datetime:
    """Reads a time; without a zone it is in UTC, the time zone of the session."""
    found = datetime.datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=datetime.UTC)


def _naive(text: str) -> datetime.datetime:
    return _time(text).astimezone(datetime.UTC).replace(tzinfo=None)


def _bool(text: str) -> bool:
    return {"t": True, "f": False}[text] if text in ("t", "f") else bool(int(text))


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text[2:]) if text.startswith("\\x") else text.encode()


_CONVERTERS: Sequence[tuple[Callable[[pa.DataType], bool], Callable[[str], Any]]] = (
    (types.is_string, str),
    (types.is_boolean, _bool),
    (types.is_integer, int),
    (types.is_floating, float),
    (types.is_decimal, decimal.Decimal),
    (types.is_date, datetime.date.fromisoformat),
    (lambda type: types.is_timestamp(type) and type.tz is not None, _time),
    (types.is_timestamp, _naive),
    (types.is_binary, _bytes),
    (types.is_nested, json.loads),
)
