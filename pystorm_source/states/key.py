"""A key as the text under which a store keeps it.

A text is kept as it is, so that ``WHERE key = 'ann'`` finds it; any other key is JSON: ``["ann",7]``, ``12``. A text
that could be read as JSON is a JSON string, ``"12"``: two keys never share a text.
"""

import math
import re
from collections.abc import Hashable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from pystorm_source.errors import ArgumentTypeError, given

# What begins like JSON, and control characters: PostgreSQL's text holds no NUL.
_QUOTED = re.compile(r"""[\[{"\-0-9]|(?:true|false|null)\Z|[^\x00-\x1f]*[\x00-\x1f]|\Z""")
_PARTS = (str, int, float, type(None), date, datetime, Decimal, UUID, bytes)


def key_text(key: Hashable) -> str:
    """The text of a key: of a value, or of a tuple of values. Raises ArgumentTypeError for what is neither."""
    if type(key) is str:
        return key if _QUOTED.match(key) is None else msgspec.json.encode(key).decode()
    parts = [_part(each) for each in key] if isinstance(key, tuple) else _part(key)
    return msgspec.json.encode(parts).decode()


def _part(part: Any) -> Any:
    """One value of a key, as JSON tells it."""
    if not isinstance(part, _PARTS) or (isinstance(part, float) and not math.isfinite(part)):
        raise ArgumentTypeError(
            "a key is a text, a number, a date, a time, a UUID, bytes, None, or a tuple of these; NaN is none. "
            f"Given: {given(part)}",
            code="PYSTORM_WRONG_TYPE",
        )
    if isinstance(part, datetime) and part.tzinfo is not None:
        return part.astimezone(UTC)  # else the key would change with the time zone of the session
    return part
