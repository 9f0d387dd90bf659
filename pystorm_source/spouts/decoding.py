"""The bytes of a record's key and value become values, for tuples or as Arrow columns."""

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from pystorm_source.errors import OptionError, SchemaError
from pystorm_source.spouts.decoding_json import Json
from pystorm_source.spouts.decoding_options import DecodingOptions
from pystorm_source.spouts.decoding_types import arrow_type, ddl_of

Data = Sequence[bytes | None]


class Decoder(Protocol):
    """A format. None stays None. What cannot be decoded is None, too, and why is put into ``bad`` by its index.

    ``type``: of the column; None where nothing declares it, and then ``array`` is not for calling.
    """

    type: pa.DataType | None

    def values(self, data: Data, bad: dict[int, str]) -> list[Any]:
        """A value each, as tuples hold it: structs are dicts, times of an instant are in UTC."""

    def array(self, data: Data, bad: dict[int, str]) -> pa.Array:
        """The same values as an array of ``type``."""


class Bytes:
    """The format ``bytes``: as they are."""

    type = pa.binary()

    def values(self, data: Data, bad: dict[int, str]) -> list[Any]:
        return list(data)

    def array(self, data: Data, bad: dict[int, str]) -> pa.Array:
        return pa.array(data, self.type)


class Text:
    """The format ``string``: UTF-8."""

    type = pa.string()

    def values(self, data: Data, bad: dict[int, str]) -> list[Any]:
        try:
            return [None if each is None else each.decode() for each in data]
        except UnicodeDecodeError:
            return [None if each is None else self._text(index, each, bad) for index, each in enumerate(data)]

    def array(self, data: Data, bad: dict[int, str]) -> pa.Array:
        try:
            return pa.array(data, pa.binary()).cast(self.type)
        except pa.ArrowInvalid:
            return pa.array(self.values(data, bad), self.type)

    @staticmethod
    def _text(index: int, data: bytes, bad: dict[int, str]) -> str | None:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            bad[index] = f"byte {data[error.start]:#04x} at position {error.start} is not UTF-8"
            return None


def decoder_of(options: DecodingOptions, side: str) -> Decoder:
    """The decoder of ``side`` (key or value), for one task. Asks nobody anything.

    Raises OptionError, SchemaError for a type that its format cannot have, or a library that is missing.
    """
    format, schema, key = options.format_of(side), options.schema_of(side), f"{side}.schema"
    if format == "bytes":
        return Bytes()
    if format == "string":
        return Text()
    declared = arrow_type(schema, key) if schema else None
    if format == "json":
        return Json(declared, key)
    try:
        from pystorm_source.spouts.decoding_avro import Avro
    except ImportError as error:
        raise OptionError(
            f"{side}.format avro needs the packages of pystorm-source[avro] on the driver and every executor: {error}. "
            f"Given: {format!r}"
        ) from None
    return Avro(declared, side, options)


def column_type(options: DecodingOptions, side: str) -> str | None:
    """The DDL of the column of ``side`` (key or value), as ``outputs`` declares it; None where nothing says it."""
    declared = decoder_of(options, side).type
    return None if declared is None else ddl_of(declared)


class Columns(NamedTuple):
    """Decoded keys and values: lists or arrays. ``kept``: the indices of the records that these are of, None: all."""

    keys: Any
    values: Any
    kept: list[int] | None


class Decoding:
    """``Decoding(options, logger)``: key and value of one task's records, and what happens to those that cannot be
    decoded (``decode.errors``).

    Under ``drop`` a record whose key or value cannot be decoded is left out of what is answered; its offset is read
    like any other. ``null`` keeps the record. ``decoded``, ``nulled`` and ``dropped`` count.
    """

    def __init__(self, options: DecodingOptions, logger: logging.Logger):
        self.key = decoder_of(options, "key")
        self.value = decoder_of(options, "value")
        self.nulled = 0
        self.dropped = 0
        self._formats = {"key": options.key_format, "value": options.value_format}
        self._policy = options.decode_errors
        self._logger = logger
        self._logged = False
        self._begun = (0, 0)

    def begin(self) -> None:
        """A range comes next."""
        self._logged = False
        self._begun = (self.nulled, self.dropped)

    def lists(self, where: str, offsets: Sequence[int], keys: Data, values: Data) -> Columns:
        """Values for tuples. ``where``: topic and partition, for messages. Raises SchemaError for what cannot be
        decoded under ``fail``, WorldError where the schema registry does not answer."""
        bad_keys: dict[int, str] = {}
        bad_values: dict[int, str] = {}
        found = Columns(self.key.values(keys, bad_keys), self.value.values(values, bad_values), None)
        kept = self._judged(where, offsets, keys, values, bad_keys, bad_values)
        if kept is None:
            return found
        return Columns([found.keys[index] for index in kept], [found.values[index] for index in kept], kept)

    def arrays(self, where: str, offsets: Sequence[int], keys: Data, values: Data) -> Columns:
        """Arrow columns; otherwise as ``lists``."""
        bad_keys: dict[int, str] = {}
        bad_values: dict[int, str] = {}
        found = Columns(self.key.array(keys, bad_keys), self.value.array(values, bad_values), None)
        kept = self._judged(where, offsets, keys, values, bad_keys, bad_values)
        if kept is None:
            return found
        indices = pa.array(kept, pa.int64())
        return Columns(found.keys.take(indices), found.values.take(indices), kept)

    def sum_up(self) -> None:
        """The range is read: logs how many could not be decoded."""
        nulled, dropped = self.nulled - self._begun[0], self.dropped - self._begun[1]
        if nulled or dropped:
            self._logger.warning(
                "of this range %d keys and values that cannot be decoded are null, %d records are dropped",
                nulled, dropped,
            )  # fmt: skip
        self.begin()

    def _judged(
        self,
        where: str,
        offsets: Sequence[int],
        keys: Data,
        values: Data,
        bad_keys: dict[int, str],
        bad_values: dict[int, str],
    ) -> list[int] | None:
        """Which records stay, None for all of them."""
        if not bad_keys and not bad_values:
            return None
        bad = bad_keys.keys() | bad_values.keys()
        first = min(bad)
        if self._policy == "fail" or not self._logged:
            side, reason = ("key", bad_keys[first]) if first in bad_keys else ("value", bad_values[first])
            data = (keys if side == "key" else values)[first]
            said = (
                f"the {side} of the record at {where}, offset {offsets[first]}, key {_short(keys[first])}, cannot be "
                f"decoded as {self._formats[side]}: {reason}."
            )
            if self._policy == "fail":
                raise SchemaError(
                    f"{said} Set {side}.format and {side}.schema to what was written, or decode.errors to null or "
                    f"drop. Given: {_short(data)}"
                )
            self._logger.warning("%s decode.errors=%s; further ones are counted. Given: %s",
                                 said, self._policy, _short(data))  # fmt: skip
            self._logged = True
        if self._policy == "null":
            self.nulled += len(bad_keys) + len(bad_values)
            return None
        self.dropped += len(bad)
        return [index for index in range(len(offsets)) if index not in bad]


def _short(data: bytes | None) -> str:
    return repr(data if data is None or len(data) <= 100 else data[:100] + b"...")
