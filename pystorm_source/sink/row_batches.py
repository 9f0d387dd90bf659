"""Rows as Spark 4.0 gives them to a writer, as record batches: from 4.1 on, writers get these themselves."""

import datetime
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from pystorm_source.sink.request import InputColumns

ROWS_OF_BATCH = 1_000
"""Too many: a slow DataFrame's first rows wait for the others. Too few: each batch costs more than its rows."""


def row_batches(rows: Iterator[Any], columns: InputColumns) -> Iterator[pa.RecordBatch]:
    """Yields the Input's columns of pyspark's ``Row`` objects, in order, followed by the key's columns."""
    names = [name for name, _ in columns.types] + ["key"] * (len(columns.places) - len(columns.types))
    while taken := list(islice(rows, ROWS_OF_BATCH)):
        arrays = [
            pa.array([_plain(row[place], kind) for row in taken], kind)
            for place, kind in zip(columns.places, columns.given, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=names)


def _plain(value: Any, kind: pa.DataType) -> Any:
    """The value as pyarrow takes it for that type: pyspark's time stamps are local ones without a zone."""
    if value is None:
        return None
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return value.astimezone(datetime.UTC)
    if pa.types.is_struct(kind):
        return {field.name: _plain(part, field.type) for field, part in zip(kind, value, strict=True)}
    if pa.types.is_map(kind):
        return [(_plain(key, kind.key_type), _plain(item, kind.item_type)) for key, item in value.items()]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_plain(part, kind.value_type) for part in value]
    return value
