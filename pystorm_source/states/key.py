"""The text that a store keeps a key under.

A text is kept as it is, so that ``WHERE key = 'ann'`` finds it; any other key is JSON: ``["ann",7]``, ``12``. A text
that could be read as JSON is a JSON string, ``"12"``; types that JSON does not have are named,
``{"date":"2026-03-01"}``. So two keys never share a text.
"""

import math
from collections.abc import Hashable, Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from pystorm_source.errors import ArgumentTypeError, given

_JSON_BEGINS = frozenset('[{"-0123456789')
_JSON_WORDS = frozenset(("true", "false", "null", ""))  # and the empty text, which could not be seen
_NAMED = ((date, "date"), (Decimal, "decimal"), (UUID, "uuid"), (bytes, "bytes"))
"""Types that JSON does not have: without the type, their values would have the same text as a str."""
_PARTS = (str, int, float, type(None), date, datetime, Decimal, UUID, bytes)


def key_texts(keys: Iterable[Hashable]) -> list[str]:
    """The texts of many keys. Raises ArgumentTypeError for anything else."""
    plain, begins, words = str.isprintable, _JSON_BEGINS, _JSON_WORDS
    return [
        key if type(key) is str and plain(key) and key not in words and key[0] not in begins else key_text(key)
        for key in keys
    ]


def key_text(key: Hashable) -> str:
    """The text of a key, which is a value or a tuple of values. Raises ArgumentTypeError for anything else.

    It has no control characters or line breaks: they are escaped as in JSON.
    """
    if isinstance(key, str):
        key = str.__str__(key)  # of a subclass, too: they are equal
        if key in _JSON_WORDS or key[0] in _JSON_BEGINS or any(each < " " for each in key):
            return msgspec.json.encode(key).decode()
        return key
    parts = [_part(each) for each in key] if isinstance(key, tuple) else _part(key)
    return msgspec.json.encode(parts).decode()


def _part(part: Any) -> Any:
    """One value of a key, in the form that JSON gets."""
    if not isinstance(part, _PARTS) or (isinstance(part, float) and not math.isfinite(part)):
        raise ArgumentTypeError(
            "a key is a text, a number, a date, a time, a UUID, bytes, None, or a tuple of these; NaN is none. "
            f"Given: {given(part)}",
            code="PYSTORM_INVALID_ARGUMENT",
        )
    if isinstance(part, datetime):
        # In UTC: otherwise the key would change with the session's time zone.
        return {"time": part if part.tzinfo is None else part.astimezone(UTC)}
    for kind, name in _NAMED:
        if isinstance(part, kind):
            return {name: part}
    if isinstance(part, float):
        return float(part) + 0.0  # -0.0 and 0.0 are equal
    return str.__str__(part) if isinstance(part, str) else part
