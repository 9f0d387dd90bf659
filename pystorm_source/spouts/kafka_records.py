"""Kafka's messages become the fields of a stream: those that the spout declares, in its order."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import pyarrow as pa

from pystorm_source.api.stream import Stream
from pystorm_source.errors import OptionError, SchemaError
from pystorm_source.spouts.kafka_topics import Partition

TYPES = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "long",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key:string,value:binary>>",
}
"""The columns of Spark's Kafka source."""

FIELDS = [f"{name} {ddl}" for name, ddl in TYPES.items() if name != "headers"]
HEADERS = f"headers {TYPES['headers']}"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_ARROW: dict[str, pa.DataType] = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}


class Decoder(Protocol):
    """What makes values of keys or values. None stays None."""

    def values(self, data: list[bytes | None]) -> list[Any]:
        """For tuples."""

    def array(self, data: list[bytes | None]) -> pa.Array:
        """As an Arrow column."""


class Bytes:
    """As they are."""

    def values(self, data: list[bytes | None]) -> list[Any]:
        return data

    def array(self, data: list[bytes | None]) -> pa.Array:
        return pa.array(data, pa.binary())


class Text:
    """UTF-8. Raises UnicodeDecodeError."""

    def values(self, data: list[bytes | None]) -> list[Any]:
        return [None if each is None else each.decode() for each in data]

    def array(self, data: list[bytes | None]) -> pa.Array:
        try:
            return pa.array(data, pa.binary()).cast(pa.string())
        except pa.ArrowInvalid:
            return pa.array(self.values(data), pa.string())


class KafkaRecords:
    """Fields of the messages of one partition. Raises OptionError for fields that there are not."""

    def __init__(self, stream: Stream, given_by: str):
        self._fields = stream.fields
        for name, ddl in zip(stream.fields, stream.types, strict=True):
            if name not in TYPES:
                raise OptionError(
                    f"a Kafka spout has the fields {', '.join(TYPES)}: declare some of them, in any order, such as "
                    f"outputs = ['key string', 'value binary']. Given: {name!r} of {given_by}"
                )
            allowed = ("binary", "string") if name in ("key", "value") else (TYPES[name],)
            if ddl is not None and _plain(ddl) not in map(_plain, allowed):
                raise OptionError(
                    f"field {name!r} of a Kafka spout is declared as {' or '.join(allowed)}. Given: {ddl!r} of "
                    f"{given_by}"
                )
        self._decoders = {
            name: Text() if ddl and _plain(ddl) == "string" else Bytes()
            for name, ddl in zip(stream.fields, stream.types, strict=True)
            if name in ("key", "value")
        }

    def rows(self, at: Partition, offsets: Sequence[int], messages: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
        """A tuple of values for each message. Raises SchemaError for a key or value that cannot be decoded."""
        return zip(*[self._values(name, at, offsets, messages) for name in self._fields], strict=True)

    def batch(self, at: Partition, offsets: Sequence[int], messages: Sequence[Any]) -> pa.RecordBatch:
        """The messages as Arrow columns. Raises as ``rows``."""
        arrays = [self._array(name, at, offsets, messages) for name in self._fields]
        return pa.RecordBatch.from_arrays(arrays, names=list(self._fields))

    def _values(self, name: str, at: Partition, offsets: Sequence[int], messages: Sequence[Any]) -> Iterable[Any]:
        if name in self._decoders:
            with _named(name, at, offsets):
                return self._decoders[name].values(_bytes_of(name, messages))
        if name == "topic":
            return [at.topic] * len(messages)
        if name == "partition":
            return [at.number] * len(messages)
        if name == "offset":
            return offsets
        if name == "headers":
            return [_headers(message) for message in messages]
        stamps = [message.timestamp() for message in messages]
        if name == "timestampType":
            return [kind - 1 for kind, _ in stamps]  # -1: none, 0: of the producer, 1: of the broker, as in Java
        return [EPOCH + timedelta(0, 0, 0, millis) for _, millis in stamps]

    def _array(self, name: str, at: Partition, offsets: Sequence[int], messages: Sequence[Any]) -> pa.Array:
        if name in self._decoders:
            with _named(name, at, offsets):
                return self._decoders[name].array(_bytes_of(name, messages))
        if name == "timestamp":
            millis = [message.timestamp()[1] for message in messages]
            return pa.array(millis, pa.timestamp("ms", tz="UTC")).cast(_ARROW[name])
        if name in ("topic", "partition"):
            only = pa.scalar(at.topic if name == "topic" else at.number, _ARROW[name])
            return pa.repeat(only, len(messages))
        return pa.array(self._values(name, at, offsets, messages), _ARROW[name])


@contextmanager
def _named(name: str, at: Partition, offsets: Sequence[int]) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise SchemaError(
            f"a {name} of {at}, offsets {offsets[0]} to {offsets[-1]}, is not what its field declares: {error}. "
            f"Declare the field {name} as binary, and decode it in a bolt. Given: field {name!r}"
        ) from error


def _bytes_of(name: str, messages: Sequence[Any]) -> list[bytes | None]:
    if name == "key":
        return [message.key() for message in messages]
    return [message.value() for message in messages]


def _headers(message: Any) -> list[dict[str, Any]] | None:
    """None where there are none, as in Spark."""
    return [{"key": key, "value": value} for key, value in message.headers() or ()] or None


def _plain(ddl: str) -> str:
    names = {"bigint": "long", "integer": "int"}
    short = ddl.lower().replace(" ", "")
    return names.get(short, short)
