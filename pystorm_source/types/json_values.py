"""JSON that users and Spark write. A document that is nested deeper than Python's stack raises a ValueError like any
other unreadable one: callers need not know the parser's limit.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec

TOO_DEEP = "nested too deeply"

T = TypeVar("T")


def json_of(text: str) -> Any:
    """``json.loads``. Raises json.JSONDecodeError, a ValueError, for anything that cannot be read."""
    try:
        return json.loads(text)
    except RecursionError:
        raise json.JSONDecodeError(TOO_DEEP, "", 0) from None


def json_copy(value: Any) -> Any:
    """The value after a round trip through JSON. Raises TypeError or ValueError if JSON cannot hold it."""
    try:
        return json.loads(json.dumps(value))
    except RecursionError:
        raise ValueError(TOO_DEEP) from None


def utf8_json(value: Any) -> bytes:
    """The JSON of a struct whose texts may come from users, by ``msgspec``. A lone surrogate, which UTF-8 does not
    have, becomes U+FFFD: one odd name is no reason to lose a report."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_well_formed(msgspec.to_builtins(value)))


def well_formed(text: str) -> str:
    """The text with U+FFFD in place of each lone surrogate, so that UTF-8 can hold it."""
    return _LONE.sub("\ufffd", text)


def _well_formed(value: Any) -> Any:
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, dict):
        return {_well_formed(key): _well_formed(each) for key, each in value.items()}
    return list(map(_well_formed, value)) if isinstance(value, (list, tuple)) else value


class JsonDecoder(Generic[T]):
    """As ``msgspec.json.Decoder``, for bytes from outside: anything that it cannot read is a msgspec.DecodeError, a
    ValueError, even text that is no UTF-8, and JSON that is nested too deeply."""

    def __init__(self, kind: Any):
        self._decode = msgspec.json.Decoder(kind).decode

    def decode(self, data: bytes | str) -> T:
        """Raises msgspec.DecodeError."""
        try:
            return self._decode(data)
        except msgspec.DecodeError:
            raise
        except ValueError as error:
            raise msgspec.DecodeError(str(error)) from None
        except RecursionError:
            raise msgspec.DecodeError(TOO_DEEP) from None


_encoder = msgspec.json.Encoder()
_LONE = re.compile("[\ud800-\udfff]")


def object_in(text: Any) -> Mapping[str, Any]:
    """The object in the JSON of Spark's progress; an empty one if it is something else, or a word.

    ``text``: what a progress has for a source: a str, an object already, or None.
    """
    if isinstance(text, str):
        try:
            text = json_of(text)
        except ValueError:
            return {}
    return text if isinstance(text, Mapping) else {}
