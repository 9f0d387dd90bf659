"""Reads the values of Protobuf messages in the form of a declared type."""

import datetime
import decimal
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from pyarrow import types

from pystorm_source.formats.fitting import below, check_names, holds, misfit
from pystorm_source.formats.lines import Malformed
from pystorm_source.formats.protobuf_schema import UNSIGNED, is_map, scalar_type
from pystorm_source.formats.values import Form, form_of
from pystorm_source.types.arrow import ddl_of

Read = Callable[[Message], Any]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_LONGEST = datetime.timedelta(microseconds=(1 << 63) - 1)


class MessageReader:
    """``MessageReader(message, type, path)``: from messages of this descriptor to values of a struct type. ``path``: of
    the message within another.

    Unset fields are null if the message says whether they are set; otherwise they have their default, and so have
    fields of proto2 that declare one. ``columns``: one function per field of the type, from a message to its value.
    Raises Malformed, naming the field, unless all values of the fields fit.
    """

    def __init__(self, message: Descriptor, type: pa.StructType, path: str = ""):
        check_names(path, message.fields_by_name, type)
        self._class = GetMessageClass(message)
        self.columns = [self._column(message.fields_by_name.get(each.name), each, path) for each in type]
        self._named = [(field.name, read) for field, read in zip(type, self.columns, strict=True)]

    def parse(self, data: bytes) -> Message:
        """Raises ``google.protobuf.message.DecodeError``."""
        return self._class.FromString(data)

    def value(self, message: Message) -> dict[str, Any]:
        """All fields of the type. Raises Malformed."""
        values = {}
        name = ""
        try:
            for name, read in self._named:
                values[name] = read(message)
        except Malformed as error:
            raise Malformed(f"field {name!r}: {error}") from None
        return values

    def _column(self, field: FieldDescriptor | None, wanted: pa.Field, path: str) -> Read:
        if field is None:
            return lambda message: None
        path = below(path, field.name)
        if is_map(field):
            return _map(field, wanted, path)
        if field.is_repeated:
            return _list(field, wanted, path)
        return self._single(field, wanted, path)

    def _single(self, field: FieldDescriptor, wanted: pa.Field, path: str) -> Read:
        name, form = field.name, _form(field, wanted.type, wanted.nullable, path)
        if not field.has_presence or field.has_default_value:
            if form is None:
                return lambda message: getattr(message, name)
            shaped = form
            return lambda message: shaped(getattr(message, name))
        # Of the class: a field called HasField hides the message's own.
        is_set = self._class.HasField
        may_lack = wanted.nullable and not field.is_required

        def read(message: Message) -> Any:
            if is_set(message, name):
                value = getattr(message, name)
                return value if form is None else form(value)
            if not may_lack:
                raise Malformed("it may not be null" if not field.is_required else "it is required, and missing")
            return None

        return read


def _map(field: FieldDescriptor, wanted: pa.Field, path: str) -> Read:
    if not types.is_map(wanted.type):
        raise misfit(path, "a map", wanted.type, wanted.nullable)
    entry, name = field.message_type.fields_by_name, field.name
    key_form = _form(entry["key"], wanted.type.key_type, True, path + "{}") or _same
    item_form = _form(entry["value"], wanted.type.item_type, True, path + "{}") or _same
    return lambda message: {key_form(key): item_form(item) for key, item in getattr(message, name).items()}


def _list(field: FieldDescriptor, wanted: pa.Field, path: str) -> Read:
    if not types.is_list(wanted.type):
        raise misfit(path, "an array", wanted.type, wanted.nullable)
    name, form = field.name, _form(field, wanted.type.value_type, True, path + "[]")
    if form is None:
        return lambda message: list(getattr(message, name))
    shaped = form
    return lambda message: [shaped(each) for each in getattr(message, name)]


def _same(value: Any) -> Any:
    return value


def _form(field: FieldDescriptor, wanted: pa.DataType, nullable: bool, path: str) -> Form | None:
    """From one value of a field, as protobuf gives it, to the wanted type; None if they are the same."""
    given = scalar_type(field)
    if given is None:
        if not types.is_struct(wanted):
            raise misfit(path, f"the message {field.message_type.full_name}", wanted, nullable)
        return MessageReader(field.message_type, wanted, path).value
    if not holds(wanted, given):
        raise misfit(path, ddl_of(given), wanted, nullable)
    if types.is_timestamp(given):
        return _instant
    if types.is_duration(given):
        return _span
    if given == UNSIGNED:
        return _decimal(wanted)
    if field.enum_type is not None:
        return _word(field.enum_type)
    return _text if types.is_string(given) else None


def _decimal(wanted: pa.DataType) -> Form:
    if wanted == UNSIGNED:
        return decimal.Decimal
    scaled = form_of(wanted, whole=True) or _same
    return lambda number: scaled(decimal.Decimal(number))


def _word(enum: EnumDescriptor) -> Form:
    """Names of numbers, and Java's name for a number that the schema does not have, as ``from_protobuf`` gives it."""
    names = {value.number: value.name for value in reversed(enum.values)}
    return lambda number: names.get(number) or f"UNKNOWN_ENUM_VALUE_{enum.name}_{number}"


def _text(value: str | bytes) -> str:
    if not isinstance(value, str):  # proto2 lets any bytes through
        raise Malformed("it is not UTF-8")
    return value


def _instant(value: Any) -> datetime.datetime:
    # By hand: the library's ToDatetime takes seven times as long.
    try:
        return _EPOCH + datetime.timedelta(0, value.seconds, value.nanos // 1000)
    except OverflowError:
        raise Malformed(f"{value.seconds} seconds since 1970 are not between the years 1 and 9999") from None


def _span(value: Any) -> datetime.timedelta:
    nanos = value.nanos
    try:
        span = datetime.timedelta(0, value.seconds, nanos // 1000 if nanos >= 0 else -(-nanos // 1000))
    except OverflowError:
        span = datetime.timedelta.max
    if not -_LONGEST <= span <= _LONGEST:
        raise Malformed(f"{value.seconds} seconds are more than a day-time interval holds")
    return span
