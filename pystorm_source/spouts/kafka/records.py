"""Kafka's messages become the fields of a stream: those that the spout declares, in its order."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

from pystorm_source.api.stream import Stream
from pystorm_source.errors import OptionError, SchemaError
from pystorm_source.formats.decoding import Decoded, Decoding, Undecodable, column_type, shortened
from pystorm_source.spouts.kafka.options import KafkaOptions
from pystorm_source.spouts.kafka.taken import SIDES, TakenRecords
from pystorm_source.spouts.kafka.topics import Partition
from pystorm_source.types.arrow import field_type, nullable

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
LISTED = frozenset({*SIDES, "headers", "timestamp", "timestampType"})
"""The fields that differ from record to record, besides the offset."""
MOST_AT_ONCE = 4000
"""Records that are decoded at once if each call of the decoder costs time. Too small: each call of Arrow's JSON reader
takes a quarter of a millisecond, as much as some hundred records. Too large: they leave the processor's cache, and as
many dead letters come at once."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_ARROW = {name: field_type(ddl, name) for name, ddl in TYPES.items()}


def typed_fields(fields: Iterable[str], config: Mapping[str, Any]) -> list[str]:
    """Gives fields without a type the type of Spark's source; key and value, the type that this configuration decodes
    them to. Raises OptionError, SchemaError."""
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
                    code="PYSTORM_SCHEMA_MISMATCH",
                )
            if options.decode_errors == "null" and name in SIDES and ddl is not None and not nullable(ddl, name):
                raise OptionError(
                    f"decode.errors=null sets {name!r} to null if it cannot be decoded, but it is declared not null: "
                    f"leave not null out, or take dead-letter, drop or fail. Given: {ddl!r} of {given_by}",
                    code="PYSTORM_SCHEMA_MISMATCH",
                )
            if name not in SIDES and ddl is not None and field_type(ddl, f"field {name!r}") != _ARROW[name]:
                raise SchemaError(
                    f"field {name!r} of a Kafka spout is declared as {TYPES[name]}. Given: {ddl!r} of {given_by}",
                    code="PYSTORM_SCHEMA_MISMATCH",
                )
        self._decoding = Decoding(options, {side: declared[side] for side in SIDES if side in declared}, logger)

    @property
    def untyped(self) -> list[str]:
        """The fields that cannot be columns, because nothing says their type."""
        return [side for side, decoder in self._decoding.decoders.items() if decoder.type is None]

    @property
    def most_at_once(self) -> int | None:
        """How many records ``batch`` should decode at once; None: any number, because it decodes nothing."""
        if not self._decoding.may_fail:
            return None
        return MOST_AT_ONCE if self._decoding.decodes_many else 1

    def taken(self, columns: bool = False) -> TakenRecords:
        """A new list of records, for ``pairs`` or, with ``columns``, for ``batch``."""
        names = {name for name in self._fields if name in LISTED}
        if self._decoding.may_fail:
            return TakenRecords(names | {"key"}, False)  # the key names what cannot be decoded
        return TakenRecords(names, columns)

    def pairs(self, at: Partition, records: TakenRecords) -> Iterator[tuple[tuple[Any, ...], int]]:
        """(values, offset) of each record that is decoded. Raises the errors of ``bury``, WorldError if the schema
        registry does not answer."""
        data = {side: records.lists[side] for side in self._decoding.decoders}
        decoded, kept = self._judged(self._decoding.decode_lists(data, self._where(at, records)), at, records)
        columns: list[Iterable[Any]] = []
        for name in self._fields:
            if name in decoded:
                columns.append(decoded[name])
            elif kept is None:
                columns.append(self._metadata(name, at, records))
            else:
                columns.append(map(list(self._metadata(name, at, records)).__getitem__, kept))
        offsets = records.offsets if kept is None else map(records.offsets.__getitem__, kept)
        return zip(zip(*columns, strict=True), offsets, strict=True)

    def batch(self, at: Partition, records: TakenRecords) -> pa.RecordBatch:
        """The records that are decoded as Arrow columns. Raises as ``pairs``."""
        decoded, kept = records.arrays(), None
        if self._decoding.may_fail:
            data = {side: records.lists[side] for side in self._decoding.decoders}
            decoded, kept = self._judged(self._decoding.decode_arrays(data, self._where(at, records)), at, records)
        arrays = []
        for name in self._fields:
            if name in decoded:
                arrays.append(decoded[name])
            else:
                whole = self._metadata_array(name, at, records)
                arrays.append(whole if kept is None else whole.take(pa.array(kept, pa.int64())))
        return pa.RecordBatch.from_arrays(arrays, names=list(self._fields))

    @property
    def nulled(self) -> int:
        """Keys and values so far that could not be decoded and are null."""
        return self._decoding.nulled

    def _where(self, at: Partition, records: TakenRecords) -> Callable[[int], str]:
        return lambda index: f"{at}, offset {records.offsets[index]}, key {shortened(records.lists['key'][index])}"

    def _judged(self, found: Decoded, at: Partition, records: TakenRecords) -> tuple[dict[str, Any], list[int] | None]:
        """Decoded keys and values, and which records they are of, None: all of them. The others are buried."""
        for each in found.lost:
            offset = records.offsets[each.record]
            self._bury(self._raw(at, records, each.record), offset, each)
        return found.columns, found.kept

    def _raw(self, at: Partition, records: TakenRecords, index: int) -> tuple[Any, ...]:
        """The fields of one record, key and value as they were read."""
        return tuple(
            records.lists[name][index] if name in SIDES else next(iter(self._metadata(name, at, records, index)))
            for name in self._fields
        )

    def _metadata(self, name: str, at: Partition, records: TakenRecords, index: int | None = None) -> Iterable[Any]:
        """Returns a metadata field of all records, or of one."""
        count = len(records) if index is None else 1
        if name == "topic":
            return repeat(at.topic, count)
        if name == "partition":
            return repeat(at.number, count)
        found = records.offsets if name == "offset" else records.lists[name]
        if index is not None:
            found = found[index : index + 1]
        if name == "timestampType":
            kinds = set(found)
            if len(kinds) == 1:
                return repeat(kinds.pop() - 1, count)
            return [kind - 1 for kind in found]  # -1: none, 0: of the producer, 1: of the broker, as in Java
        if name == "timestamp":
            return [EPOCH + timedelta(0, 0, 0, millis) for millis in found]
        return found

    def _metadata_array(self, name: str, at: Partition, records: TakenRecords) -> pa.Array:
        if name == "timestamp":
            millis = pa.array(np.fromiter(records.lists[name], np.int64, len(records)))
            return millis.view(pa.timestamp("ms", tz="UTC")).cast(_ARROW[name])
        found = records.offsets if name == "offset" else self._metadata(name, at, records)
        if isinstance(found, range):
            return pa.array(np.arange(found.start, found.stop))
        if isinstance(found, repeat):
            return pa.repeat(pa.scalar(next(found), _ARROW[name]), len(records))
        return pa.array(found, _ARROW[name])
