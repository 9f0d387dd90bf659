"""Kafka's messages become the fields of a stream: those that the spout declares, in its order."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pyarrow as pa

from pystorm_source.api.stream import Stream
from pystorm_source.errors import OptionError, SchemaError
from pystorm_source.options import parse
from pystorm_source.spouts.decoding import Decoding, column_type
from pystorm_source.spouts.decoding_options import DecodingOptions
from pystorm_source.spouts.decoding_types import arrow_type
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


SIDES = ("key", "value")


class KafkaRecords:
    """Fields of messages, keys and values decoded. One per task.

    Raises OptionError for fields that there are not, SchemaError for types that they do not have.
    """

    def __init__(self, stream: Stream, options: DecodingOptions, logger: logging.Logger, given_by: str):
        self._fields = stream.fields
        declared = dict(zip(stream.fields, stream.types, strict=True))
        for name, ddl in declared.items():
            if name not in TYPES:
                raise OptionError(
                    f"a Kafka spout has the fields {', '.join(TYPES)}: declare some of them, in any order, such as "
                    f"outputs = ['key string', 'value binary']. Given: {name!r} of {given_by}"
                )
            if name not in SIDES and ddl is not None and arrow_type(ddl, name) != _ARROW[name]:
                raise SchemaError(
                    f"field {name!r} of a Kafka spout is declared as {TYPES[name]}. Given: {ddl!r} of {given_by}"
                )
        decoding = decoding_of(options, declared)
        for side in SIDES:
            _check_type(side, declared.get(side), column_type(decoding, side), given_by)
        self._decoding = Decoding(decoding, logger)
        self._decoders = {side: getattr(self._decoding, side) for side in SIDES if side in declared}

    def begin(self) -> None:
        """A range comes next."""
        self._decoding.begin()

    def end(self) -> None:
        """The range is read: what could not be decoded is summed up in the log."""
        self._decoding.sum_up()

    def rows(
        self, at: Partition, offsets: Sequence[int], messages: Sequence[Any]
    ) -> tuple[Iterable[tuple[Any, ...]], Sequence[int]]:
        """Tuples of values, and their offsets: of all messages, or without those that ``decode.errors=drop`` drops.

        Raises SchemaError for a key or value that cannot be decoded, WorldError where the schema registry is away.
        """
        bad: dict[int, str] = {}
        sides = {side: decoder.values(_bytes_of(side, messages), bad) for side, decoder in self._decoders.items()}
        if bad:
            keys, values, kept = self._decoding.lists(str(at), offsets, *_both(messages))
            sides, offsets, messages = {"key": keys, "value": values}, *_kept(kept, offsets, messages)
        columns = [sides[name] if name in SIDES else _values(name, at, offsets, messages) for name in self._fields]
        return zip(*columns, strict=True), offsets

    def batch(self, at: Partition, offsets: Sequence[int], messages: Sequence[Any]) -> pa.RecordBatch:
        """The messages as Arrow columns. Otherwise as ``rows``."""
        bad: dict[int, str] = {}
        sides = {side: decoder.array(_bytes_of(side, messages), bad) for side, decoder in self._decoders.items()}
        if bad:
            keys, values, kept = self._decoding.arrays(str(at), offsets, *_both(messages))
            sides, offsets, messages = {"key": keys, "value": values}, *_kept(kept, offsets, messages)
        arrays = [sides[name] if name in SIDES else _array(name, at, offsets, messages) for name in self._fields]
        return pa.RecordBatch.from_arrays(arrays, names=list(self._fields))


def typed_fields(fields: Iterable[str], config: Mapping[str, Any]) -> list[str]:
    """The fields, with the type of each that has none, or, of a decoded key or value, that of the default."""
    options = parse(DecodingOptions, config)
    types = dict(TYPES)
    for side in SIDES:
        types[side] = column_type(options, side) or ""
    return [f"{name} {ddl or types.get(name, '')}".strip() for name, ddl in map(_name_and_type, fields)]


def _name_and_type(field: str) -> tuple[str, str]:
    stream = Stream([field])
    name, ddl = stream.fields[0], stream.types[0] or ""
    return name, "" if f"{name} {ddl}" in FIELDS else ddl


def decoding_of(options: DecodingOptions, declared: Mapping[str, str | None]) -> DecodingOptions:
    """The options for a stream of these fields: text where one of bytes is declared as string, and no decoding of what
    is not declared."""
    formats: dict[str, str] = {}
    for side in SIDES:
        if side not in declared:
            formats |= {f"{side}_format": "bytes", f"{side}_schema": "", f"{side}_reader_schema": ""}
        elif options.format_of(side) == "bytes" and (declared[side] or "").lower() == "string":
            formats[f"{side}_format"] = "string"
    return msgspec.structs.replace(options, **formats)


def _check_type(side: str, declared: str | None, decoded: str | None, given_by: str) -> None:
    if declared is None or decoded is None or arrow_type(declared, side) == arrow_type(decoded, side):
        return
    raise SchemaError(
        f"field {side!r} is decoded as {decoded} (options {side}.format and {side}.schema): declare it so in "
        f"`outputs`, or leave its type out of `fields` and say how it is decoded in the same spec(config={{...}}). "
        f"Given: {declared!r} of {given_by}"
    )


def _values(name: str, at: Partition, offsets: Sequence[int], messages: Sequence[Any]) -> Sequence[Any]:
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


def _array(name: str, at: Partition, offsets: Sequence[int], messages: Sequence[Any]) -> pa.Array:
    if name == "timestamp":
        millis = [message.timestamp()[1] for message in messages]
        return pa.array(millis, pa.timestamp("ms", tz="UTC")).cast(_ARROW[name])
    if name in ("topic", "partition"):
        return pa.repeat(pa.scalar(at.topic if name == "topic" else at.number, _ARROW[name]), len(messages))
    return pa.array(_values(name, at, offsets, messages), _ARROW[name])


def _bytes_of(side: str, messages: Sequence[Any]) -> list[bytes | None]:
    if side == "key":
        return [message.key() for message in messages]
    return [message.value() for message in messages]


def _both(messages: Sequence[Any]) -> tuple[list[bytes | None], list[bytes | None]]:
    return _bytes_of("key", messages), _bytes_of("value", messages)


def _kept(
    kept: list[int] | None, offsets: Sequence[int], messages: Sequence[Any]
) -> tuple[Sequence[int], Sequence[Any]]:
    if kept is None:
        return offsets, messages
    return [offsets[index] for index in kept], [messages[index] for index in kept]


def _headers(message: Any) -> list[dict[str, Any]] | None:
    """None where there are none, as in Spark."""
    return [{"key": key, "value": value} for key, value in message.headers() or ()] or None
