"""Kafka's messages become the fields of a stream: those that the spout declares, in its order."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from pystorm_source.api.stream import Stream
from pystorm_source.errors import OptionError, SchemaError
from pystorm_source.formats.decoding import Decoded, Decoding, Undecodable, column_type, shortened
from pystorm_source.spouts.kafka.options import KafkaOptions
from pystorm_source.spouts.kafka.topics import Partition
from pystorm_source.types.arrow import field_type, nullable

SIDES = ("key", "value")

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

_ARROW = {name: field_type(ddl, name) for name, ddl in TYPES.items()}


def typed_fields(fields: Iterable[str], config: Mapping[str, Any]) -> list[str]:
    """The fields; those without a type have that of Spark's source, or the one that this configuration decodes key and
    value to. Raises OptionError, SchemaError."""
    types = {**TYPES, **{side: column_type(config, side) for side in SIDES}}
    return [f"{name} {ddl or types.get(name) or ''}".strip() for name, ddl in map(_name_and_type, fields)]


def _name_and_type(field: str) -> tuple[str, str | None]:
    stream = Stream([field])
    return stream.fields[0], stream.types[0]


Bury = Callable[[tuple[Any, ...], int, Undecodable], None]
"""Called for a record that cannot be decoded: its fields, key and value as bytes; its offset; why. May raise."""


class KafkaRecords:
    """Fields of the messages of one partition; messages that cannot be decoded go to ``bury`` instead.

    Raises OptionError for unknown fields, SchemaError for wrong types, and the errors of ``Decoding``.
    """

    def __init__(self, stream: Stream, given_by: str, options: KafkaOptions, logger: logging.Logger, bury: Bury):
        self._fields = stream.fields
        self._bury = bury
        declared = dict(zip(stream.fields, stream.types, strict=True))
        for name, ddl in declared.items():
            if name not in TYPES:
                raise OptionError(
                    f"a Kafka spout has the fields {', '.join(TYPES)}: declare some of them, in any order, such as "
                    f"outputs = ['key string', 'value binary']. Given: {name!r} of {given_by}",
                    code="PYSTORM_FORMAT_MISMATCH",
                )
            if options.decode_errors == "null" and name in SIDES and ddl is not None and not nullable(ddl, name):
                raise OptionError(
                    f"decode.errors=null sets {name!r} to null if it cannot be decoded, but it is declared not null: "
                    f"leave not null out, or take dead-letter, drop or fail. Given: {ddl!r} of {given_by}",
                    code="PYSTORM_FORMAT_MISMATCH",
                )
            if name not in SIDES and ddl is not None and field_type(ddl, f"field {name!r}") != _ARROW[name]:
                raise SchemaError(
                    f"field {name!r} of a Kafka spout is declared as {TYPES[name]}. Given: {ddl!r} of {given_by}",
                    code="PYSTORM_FORMAT_MISMATCH",
                )
        self._decoding = Decoding(options, {side: declared[side] for side in SIDES if side in declared}, logger)

    @property
    def untyped(self) -> list[str]:
        """The fields that cannot be columns, as nothing says their type."""
        return [side for side, decoder in self._decoding.decoders.items() if decoder.type is None]

    def pairs(
        self, at: Partition, offsets: Sequence[int], messages: Sequence[Any]
    ) -> Iterator[tuple[tuple[Any, ...], int]]:
        """(values, offset) of each message that is decoded. Raises the errors of ``bury``, WorldError if the schema
        registry does not answer."""
        decoded, offsets, messages = self._decoded(self._decoding.decode_lists, at, offsets, messages)
        columns = [
            decoded[name] if name in decoded else self._metadata(name, at, offsets, messages) for name in self._fields
        ]
        return zip(zip(*columns, strict=True), offsets, strict=True)

    def batch(self, at: Partition, offsets: Sequence[int], messages: Sequence[Any]) -> pa.RecordBatch:
        """The messages that are decoded as Arrow columns. Raises as ``pairs``."""
        decoded, offsets, messages = self._decoded(self._decoding.decode_arrays, at, offsets, messages)
        arrays = [
            decoded[name] if name in decoded else self._metadata_array(name, at, offsets, messages)
            for name in self._fields
        ]
        return pa.RecordBatch.from_arrays(arrays, names=list(self._fields))

    @property
    def nulled(self) -> int:
        """Keys and values so far that could not be decoded and are null."""
        return self._decoding.nulled

    def _decoded(
        self, decode: Callable[..., Decoded], at: Partition, offsets: Sequence[int], messages: Sequence[Any]
    ) -> tuple[dict[str, Any], Sequence[int], Sequence[Any]]:
        """Decoded keys and values, and the offsets and messages that they are of."""
        data = {side: _bytes_of(side, messages) for side in self._decoding.decoders}
        columns, kept, lost = decode(
            data, lambda index: f"{at}, offset {offsets[index]}, key {shortened(messages[index].key())}"
        )
        for each in lost:
            raw = self._raw(at, offsets[each.record], messages[each.record])
            self._bury(raw, offsets[each.record], each)
        if kept is None:
            return columns, offsets, messages
        return columns, [offsets[index] for index in kept], [messages[index] for index in kept]

    def _raw(self, at: Partition, offset: int, message: Any) -> tuple[Any, ...]:
        """The fields of one message, key and value as they were read."""
        columns = [
            _bytes_of(name, [message]) if name in SIDES else self._metadata(name, at, [offset], [message])
            for name in self._fields
        ]
        return next(zip(*columns, strict=True))

    def _metadata(self, name: str, at: Partition, offsets: Sequence[int], messages: Sequence[Any]) -> Iterable[Any]:
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

    def _metadata_array(self, name: str, at: Partition, offsets: Sequence[int], messages: Sequence[Any]) -> pa.Array:
        if name == "timestamp":
            millis = [message.timestamp()[1] for message in messages]
            return pa.array(millis, pa.timestamp("ms", tz="UTC")).cast(_ARROW[name])
        if name in ("topic", "partition"):
            only = pa.scalar(at.topic if name == "topic" else at.number, _ARROW[name])
            return pa.repeat(only, len(messages))
        return pa.array(self._metadata(name, at, offsets, messages), _ARROW[name])


def _bytes_of(name: str, messages: Sequence[Any]) -> list[bytes | None]:
    if name == "key":
        return [message.key() for message in messages]
    return [message.value() for message in messages]


def _headers(message: Any) -> list[dict[str, Any]] | None:
    """None if there are none, as in Spark."""
    return [{"key": key, "value": value} for key, value in message.headers() or ()] or None
