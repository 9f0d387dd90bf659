"""Any values as JSON, for records: values that JSON cannot represent become text, and nothing raises."""

import base64
import datetime
import enum
import json
import math
from collections.abc import Iterable, Mapping, Set
from typing import Any

DEEPEST = 100
"""Levels of lists and objects; deeper or circular ones become text."""


def json_text(values: Iterable[Any]) -> str:
    """The values as a JSON array, ASCII only. Never raises.

    Numbers, str, bool and None stay; lists, tuples, sets and numpy arrays are arrays, mappings objects with their keys
    as text, members of an ``Enum`` their values, bytes base64, dates and times ISO 8601, other floats "NaN", "Infinity"
    or "-Infinity" (Spark's ``from_json`` reads all of these back by the column's type). Everything else (Decimal, UUID,
    any object) is ``str(value)``.
    """
    return json.dumps([_plain(value, DEEPEST) for value in values])


def plain(value: Any) -> Any:
    """The value as ``json_text`` writes it, in what JSON has: None, bool, int, float, str, list, dict. Never raises."""
    return _plain(value, DEEPEST)


def _plain(value: Any, deep: int) -> Any:
    try:
        return _converted(value, deep)
    except Exception:
        return _text(value)


def _converted(value: Any, deep: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, enum.Enum):
        return _plain(value.value, deep - 1) if deep > 0 else _text(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        int.__repr__(value)  # raises if it has more digits than CPython prints
        return int(value)
    if isinstance(value, float):
        return _number(float(value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode("ascii")
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if hasattr(value, "dtype") and hasattr(value, "tolist"):  # numpy's scalars and arrays
        plain = value.astype(str).tolist() if value.dtype.kind in "mM" else value.tolist()
        return _text(value) if type(plain) is type(value) else _plain(plain, deep)
    if deep > 0:
        if isinstance(value, Mapping):
            return {_key(key): _plain(item, deep - 1) for key, item in value.items()}
        if isinstance(value, (list, tuple, Set)):
            return [_plain(item, deep - 1) for item in value]
    return _text(value)


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _key(key: Any) -> str:
    plain = _plain(key, 0)
    return plain if isinstance(plain, str) else json.dumps(plain)


def _text(value: Any) -> str:
    try:
        return str.__str__(str(value))
    except Exception:
        return f"<{type(value).__name__} that does not print>"
