"""Decodes the bytes of a record's key and value into values for tuples, or into Arrow columns."""

import importlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from pystorm_source.errors import OptionError, SchemaError
from pystorm_source.errors.packages import installing
from pystorm_source.formats.json import Json
from pystorm_source.formats.options import DecodingOptions
from pystorm_source.types.arrow import arrow_type, ddl_of, field_type, nullable

Data = Sequence[bytes | None]


class Decoder(Protocol):
    """A format. None stays None. Data that cannot be decoded becomes None, too; the reason goes into ``bad`` under its
    index.

    ``type``: of the column; None if nothing declares it: then ``array`` must not be called.
    """

    type: pa.DataType | None

    def values(self, data: Data, bad: dict[int, str]) -> list[Any]:
        """The values for tuples: structs are dicts, instants are in UTC."""

    def array(self, data: Data, bad: dict[int, str]) -> pa.Array:
        """The same values as an array of ``type``."""


class Bytes:
    """The format ``bytes``: unchanged."""

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


def decoder_of(options: DecodingOptions, side: str, declared: str | None = None) -> Decoder:
    """The decoder of ``side`` (key or value), for one task. Does no I/O. ``declared``: DDL of the field.

    Raises OptionError or SchemaError for a type that is invalid, does not fit the format, or is declared twice and
    differently, and for a missing library.
    """
    type = None if declared is None else field_type(declared, f"field {side!r}")
    format = options.format_of(side) or ("string" if type == Text.type else "bytes")
    if format in _PLAIN:
        return _checked(_PLAIN[format](), type, side, format)
    schema = options.schema_of(side)
    asked = arrow_type(schema, f"option '{side}.schema'") if schema else type
    if format == "json":
        if type == Bytes.type:
            raise SchemaError(
                f"field {side!r} is declared as binary, and {side}.format is json: declare what the documents hold, "
                f"such as fields=['{side} struct<id: bigint>'], or set {side}.schema beside {side}.format in "
                "spec(config={...}). Given: 'binary'",
                code="PYSTORM_SCHEMA_MISMATCH",
            )
        return _checked(Json(asked, side), type, side, format)
    made: Decoder = getattr(_module(format, side), format.capitalize())(asked, side, options)
    return _checked(made, type, side, format)


def _module(format: str, side: str) -> Any:
    """The module of a format that has schemas of its own. Raises OptionError if a library is missing."""
    try:
        return importlib.import_module(f"pystorm_source.formats.{format}")
    except ImportError as error:
        raise OptionError(
            f"{side}.format {format} needs packages on the driver and every executor: {installing(format)}. "
            f"Given: {format!r}, and {error}",
            code="PYSTORM_PACKAGE_MISSING",
        ) from None


_PLAIN: dict[str, Callable[[], Decoder]] = {"bytes": Bytes, "string": Text}


def _checked(decoder: Decoder, declared: pa.DataType | None, side: str, format: str) -> Decoder:
    if declared is None or decoder.type == declared:
        return decoder
    if not isinstance(decoder, (Bytes, Text)):
        remedy = f"declare it so in the topology, or leave option '{side}.schema' out"
    elif format == "bytes":
        remedy = f"set {side}.format to what the bytes are: string, json, avro or protobuf"
    else:
        remedy = f"declare it as string, or set another {side}.format"
    raise SchemaError(
        f"field {side!r} is declared as {ddl_of(declared)}, and {side}.format {format} gives "
        f"{ddl_of(decoder.type)}: {remedy}. Given: {ddl_of(declared)!r}",
        code="PYSTORM_SCHEMA_MISMATCH",
    )


def column_type(config: Mapping[str, Any], side: str) -> str | None:
    """The DDL of the field of ``side`` (key or value) under this configuration, if the topology does not declare it.
    None: the type is known only when records are read. Raises SchemaError, OptionError."""
    format = config.get(f"{side}.format") or "bytes"
    if format in _PLAIN:
        return ddl_of(_PLAIN[format]().type)
    if schema := str(config.get(f"{side}.schema") or "").strip():
        return ddl_of(arrow_type(schema, f"option '{side}.schema'"))
    if format == "avro" and (text := config.get(f"{side}.avro.reader.schema")):
        return ddl_of(_module(format, side).reader_schema(text, side).type())
    path, message = (config.get(f"{side}.protobuf.{key}") for key in ("descriptor.file", "message"))
    if format == "protobuf" and path and message:
        return ddl_of(_module(format, side).described_type(path, message, side))
    return None


class Undecodable(NamedTuple):
    """A record that is left out. ``record``: its index; ``reason``: a sentence that names the record and says why."""

    record: int
    reason: str
    remedy: str

    def error(self) -> SchemaError:
        return SchemaError(f"{self.reason} {self.remedy}", code="PYSTORM_MALFORMED_RECORD")


class Decoded(NamedTuple):
    """Decoded keys and values: side → list or array. ``kept``: the indices of their records, None for all. ``lost``:
    the other records."""

    columns: dict[str, Any]
    kept: list[int] | None = None
    lost: Sequence[Undecodable] = ()


class Decoding:
    """``Decoding(options, declared, logger)``: keys and values of one task's records.

    ``declared``: key, value or both → DDL of the field, None if it has no type. Undeclared sides are not decoded. A
    record with a key or value that cannot be decoded, or is null and declared ``not null``, goes to ``lost`` instead of
    the result. If ``decode.errors`` is ``null``, it stays: the first one is logged, and ``nulled`` counts the keys and
    values. Raises as ``decoder_of``.
    """

    def __init__(self, options: DecodingOptions, declared: Mapping[str, str | None], logger: logging.Logger):
        self.decoders = {side: decoder_of(options, side, ddl) for side, ddl in declared.items()}
        self.nulled = 0
        self._never_null = {side for side, ddl in declared.items() if ddl is not None and not nullable(ddl, side)}
        self._nulls = options.decode_errors == "null"
        self._logger = logger

    @property
    def may_fail(self) -> bool:
        """Whether some bytes cannot be decoded."""
        return bool(self._never_null) or not all(isinstance(each, Bytes) for each in self.decoders.values())

    @property
    def decodes_many(self) -> bool:
        """Whether ``decode_arrays`` has a high cost per call, besides the cost per record."""
        return any(isinstance(decoder, Json) and decoder.at_once for decoder in self.decoders.values())

    def decode_lists(self, data: Mapping[str, Data], where: Callable[[int], str]) -> Decoded:
        """Values for tuples. ``data``: side → its bytes in each record; ``where(index)`` names a record in messages.

        Raises WorldError if the schema registry does not answer.
        """
        bad: dict[str, dict[int, str]] = {side: {} for side in self.decoders}
        columns = {side: decoder.values(data[side], bad[side]) for side, decoder in self.decoders.items()}
        for side in self._never_null:
            _refuse_nulls(columns[side], bad[side])
        kept, lost = self._judged(data, bad, where) if any(bad.values()) else (None, ())
        if kept is not None:
            columns = {side: [column[index] for index in kept] for side, column in columns.items()}
        return Decoded(columns, kept, lost)

    def decode_arrays(self, data: Mapping[str, Data], where: Callable[[int], str]) -> Decoded:
        """Arrow columns; otherwise as ``decode_lists``."""
        bad: dict[str, dict[int, str]] = {side: {} for side in self.decoders}
        columns = {side: decoder.array(data[side], bad[side]) for side, decoder in self.decoders.items()}
        for side in self._never_null:
            if columns[side].null_count:
                _refuse_nulls(columns[side].is_valid().to_pylist(), bad[side], False)
        kept, lost = self._judged(data, bad, where) if any(bad.values()) else (None, ())
        if kept is not None:
            columns = {side: column.take(pa.array(kept, pa.int64())) for side, column in columns.items()}
        return Decoded(columns, kept, lost)

    def _judged(
        self, data: Mapping[str, Data], bad: dict[str, dict[int, str]], where: Callable[[int], str]
    ) -> tuple[list[int] | None, Sequence[Undecodable]]:
        """``kept`` and ``lost``."""
        spoilt = sorted(set().union(*bad.values()))
        if self._nulls:
            if not self.nulled:
                said = _undecodable(data, bad, spoilt[0], where).reason
                self._logger.warning(
                    "%s It is null, as decode.errors says; further ones are counted by the report", said
                )
            self.nulled += sum(map(len, bad.values()))
            return None, ()
        lost = [_undecodable(data, bad, index, where) for index in spoilt]
        count = len(next(iter(data.values())))
        left_out = set(spoilt)
        return [index for index in range(count) if index not in left_out], lost


def _refuse_nulls(values: Sequence[Any], bad: dict[int, str], null: object = None) -> None:
    for index, value in enumerate(values):
        if value is null:
            bad.setdefault(index, "it is null, and the field is declared not null: leave that out if it may")


def _undecodable(
    data: Mapping[str, Data], bad: dict[str, dict[int, str]], index: int, where: Callable[[int], str]
) -> Undecodable:
    side = next(side for side, reasons in bad.items() if index in reasons)
    return Undecodable(
        index,
        f"the {side} of the record at {where(index)} cannot be decoded: {bad[side][index]}.",
        f"Set {side}.format and the type of field {side!r} to what was written, or go on without such records by "
        "topology.dead.letter=stream or drop (with decode.errors=dead-letter), or by decode.errors=null. Given: "
        f"{shortened(data[side][index])}",
    )


def shortened(data: bytes | None) -> str:
    """Bytes as messages show them."""
    return repr(data if data is None or len(data) <= 100 else data[:100] + b"...")
