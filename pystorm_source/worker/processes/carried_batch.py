"""A record batch on its way to another process: the bytes of Arrow's IPC message, with its schema.

Pickle would carry each column and each type by itself, which takes ten times as long for a batch of two columns.
"""

import pickle
from functools import lru_cache
from typing import Any

import pyarrow as pa

_MOST_SCHEMAS = 16
_known: list[tuple[pa.Schema, bytes | None]] = []


class CarriedBatch:
    """Pickles so that the other process gets ``batch``. For a slice, only the buffers of its rows are sent."""

    __slots__ = ("batch",)

    def __init__(self, batch: pa.RecordBatch):
        self.batch = batch

    def __reduce_ex__(self, protocol: Any) -> Any:
        batch = self.batch
        schema = _written(batch.schema)
        if schema is None:
            return _compact(batch).__reduce_ex__(protocol)
        return _read, (schema, pickle.PickleBuffer(memoryview(batch.serialize()).toreadonly()))


def _read(schema: bytes, message: memoryview) -> pa.RecordBatch:
    return pa.ipc.read_record_batch(pa.py_buffer(message), _schema_of(schema))


@lru_cache(maxsize=64)
def _schema_of(written: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(written))


def _written(schema: pa.Schema) -> bytes | None:
    """The schema's IPC message. None if that is not enough: dictionaries are separate messages, and a user's type may
    not be registered in the other process."""
    for known, written in _known:
        if known.equals(schema, check_metadata=True):
            return written
    has_all = not (_has(schema, "dictionary<") or _has(schema, "extension<"))
    written = schema.serialize().to_pybytes() if has_all else None
    _known.insert(0, (schema, written))
    del _known[_MOST_SCHEMAS:]
    return written


def _has(schema: pa.Schema, kind: str) -> bool:
    """Whether the schema has a type of that kind, at any depth."""
    return any(kind in str(field.type) for field in schema)


def _compact(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows in buffers with little else: a slice of a large batch would take the complete batch along."""
    if batch.nbytes * 2 >= batch.get_total_buffer_size():
        return batch
    schema = batch.schema
    if not _has(schema, "dictionary<"):
        return pa.ipc.read_record_batch(batch.serialize(), schema)
    if _has(schema, "extension<"):  # a stream would give the storage type, and a message no dictionary
        return batch
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, schema) as writer:
        writer.write_batch(batch)
    with pa.ipc.open_stream(stream.getvalue()) as reader:
        return reader.read_next_batch()
