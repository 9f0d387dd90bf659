"""JSON, a document per key or value.

msgspec decodes a document directly into the declared type. Confluent's ``JSONDeserializer``, which parses it and then
checks it against a JSON schema, takes 40 times as long.
"""

from collections.abc import Sequence
from itertools import count
from typing import Any

import msgspec
import pyarrow as pa
from pyarrow import types

from pystorm_source.errors import OptionError
from pystorm_source.formats.json_columns import JsonColumns
from pystorm_source.formats.json_kinds import KEPT, kind_or_null
from pystorm_source.formats.lines import Malformed
from pystorm_source.formats.values import form_of
from pystorm_source.types.arrow import ddl_of

FRAME = 5
"""Bytes that Confluent's JSON serializer writes before the text: 0, and the id of a schema in four bytes."""


class Json:
    """``Json(type, side)``. ``type``: of the column; None: values as JSON gives them. ``side``: key or value.

    Fields are matched by name: a missing one is null, others are ignored. Numbers, strings, true and false are JSON's;
    dates, times and timestamps are ISO 8601 (a timestamp without zone is UTC, a timestamp_ntz has no zone), decimals
    are numbers or strings, binary is base64. Anything else cannot be decoded. The frame of Confluent's JSON serializer
    is skipped. Raises OptionError for a type that JSON does not have.

    Columns of numbers, text, booleans, dates, timestamps, decimals, and lists and structs of these are built from many
    documents at once.
    """

    def __init__(self, type: pa.DataType | None, side: str):
        self.type = type
        self._form = None if type is None else form_of(type, whole=True)
        self._nested = type is not None and types.is_nested(type)
        self._fields = list(type) if isinstance(type, pa.StructType) else []
        self._columns = JsonColumns.of(pa.schema(self._fields))
        try:
            self._decode = msgspec.json.Decoder(Any if type is None else kind_or_null(type, count())).decode
        except TypeError as error:
            raise OptionError(
                f"{side}.format json needs a type that JSON can be read as: {error}. Given: {ddl_of(type)!r}",
                code="PYSTORM_SCHEMA_MISMATCH",
            ) from None

    @property
    def at_once(self) -> bool:
        """Whether ``array`` reads many documents at once, if they allow it."""
        return self._columns is not None

    def values(self, data: Sequence[bytes | None], bad: dict[int, str]) -> list[Any]:
        return [None if each is None else self._value(index, each, bad) for index, each in enumerate(data)]

    def array(self, data: Sequence[bytes | None], bad: dict[int, str]) -> pa.Array:
        found = self._read_at_once(data)
        return pa.array(self.values(data, bad), self.type) if found is None else found

    def _read_at_once(self, data: Sequence[bytes | None]) -> pa.Array | None:
        """The documents as one array; None if they must be read one by one."""
        if self._columns is None:
            return None
        documents = [each for each in data if each is not None]
        if documents and documents[0][:1] == b"\0":
            documents = [each[FRAME:] if each[:1] == b"\0" else each for each in documents]
        columns = self._columns.documents(documents)
        if columns is None:
            return None
        found = pa.StructArray.from_arrays(columns.columns, fields=self._fields)
        if len(documents) == len(data):
            return found
        places = iter(range(len(documents)))
        return found.take(pa.array([None if each is None else next(places) for each in data], pa.int64()))

    def _value(self, index: int, data: bytes, bad: dict[int, str]) -> Any:
        try:
            value = self._decode(data if data[:1] != b"\0" else data[FRAME:])
            if self._nested:
                value = msgspec.to_builtins(value, builtin_types=KEPT)
            return value if self._form is None or value is None else self._form(value)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, Malformed) as error:
            bad[index] = str(error)
            return None
