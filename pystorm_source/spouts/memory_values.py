"""Values of the rows of a MemorySpout as JSON, for its configuration: those that JSON lacks by kind and text."""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

_MARK = "$memory"
"""The key of an object that stands for such a value."""

_TO: tuple[tuple[type, str, Callable[[Any], Any]], ...] = (
    # Order: a datetime is a date.
    (datetime, "datetime", datetime.isoformat),
    (date, "date", date.isoformat),
    (Decimal, "decimal", str),
    (timedelta, "timedelta", lambda span: [span.days, span.seconds, span.microseconds]),
    (bytes, "bytes", bytes.hex),
    (bytearray, "bytes", bytearray.hex),
)
_FROM: dict[str, Callable[[Any], Any]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "decimal": Decimal,
    "timedelta": lambda parts: timedelta(*parts),
    "bytes": bytes.fromhex,
    "map": lambda items: {value_of(key): value_of(value) for key, value in items},
}


def json_of_value(value: Any) -> Any:
    """Lists for tuples; what is of another kind stays, for JSON to refuse."""
    if isinstance(value, (list, tuple)):
        return [json_of_value(each) for each in value]
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value) and _MARK not in value:
            return {key: json_of_value(each) for key, each in value.items()}
        return {_MARK: ["map", [[json_of_value(key), json_of_value(each)] for key, each in value.items()]]}
    for cls, kind, text in _TO:
        if isinstance(value, cls):
            return {_MARK: [kind, text(value)]}
    return value


def value_of(value: Any) -> Any:
    """What ``json_of_value`` was given."""
    if isinstance(value, list):
        return [value_of(each) for each in value]
    if isinstance(value, dict):
        if len(value) == 1 and _MARK in value:
            kind, text = value[_MARK]
            return _FROM[kind](text)
        return {key: value_of(each) for key, each in value.items()}
    return value
