"""Values of a state as JSON, which people can read in the store."""

import json
import math
from collections.abc import Sequence
from typing import Any

import msgspec

from pystorm_source.errors import ArgumentError, ArgumentTypeError, given, said
from pystorm_source.types.json_values import JsonDecoder

NULL = "null"


class ValueText:
    """Encodes and decodes values. ``kind``: their type, if JSON does not tell it; None: JSON's own types."""

    def __init__(self, kind: Any = None):
        self.kind = kind
        self._decoder: JsonDecoder[Any] = JsonDecoder(Any if kind is None else kind)

    def encode_all(self, values: Sequence[Any]) -> list[str]:
        """The texts of many values. Raises ArgumentTypeError as ``encode`` does."""
        if self.kind is not None:
            return [self.encode(each) for each in values]
        encode, finite = self.encode, math.isfinite
        return [repr(each) if type(each) is float and finite(each) else encode(each) for each in values]

    def decode_all(self, texts: Sequence[str]) -> list[Any]:
        """The values of many texts, by one call. Raises ArgumentError as ``decode`` does."""
        if self.kind is None:
            try:
                return self._decoder.decode(f"[{','.join(texts)}]")
            except msgspec.MsgspecError:
                pass  # one of them is bad: the slow way names it
        return [self.decode(text) for text in texts]

    def encode(self, value: Any) -> str:
        """The text of a value. Raises ArgumentTypeError for a value that would not be the same when read."""
        if value is None:
            return NULL
        is_number = type(value) is int or (type(value) is float and math.isfinite(value))
        if is_number and self.kind is None:  # most values, so the quick way
            return repr(value)
        try:
            if self.kind is not None:
                text = repr(value) if is_number else msgspec.json.encode(value).decode()
                self._decoder.decode(text)  # order: before it is in the store, where no batch could read it
                return text
            text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
            if json.loads(text) == value:
                return text
            reason = "JSON gives it back as another value"
        except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
            reason = said(error)
        raise ArgumentTypeError(
            f"a state keeps values as JSON, and this one cannot be kept: {reason}. Give the state the type of its "
            f"values, such as type=Decimal, or keep lists, and dictionaries by texts. Given: {given(value)}",
            code="PYSTORM_INVALID_ARGUMENT",
        )

    def decode(self, text: str) -> Any:
        """A new object each time, so an updater may change it. Raises ArgumentError for another state's text."""
        if text == NULL:
            return None
        try:
            return self._decoder.decode(text)
        except msgspec.MsgspecError as error:
            what = "JSON" if self.kind is None else f"a {getattr(self.kind, '__name__', self.kind)} as JSON"
            raise ArgumentError(
                f"a value in the store is not {what}: {said(error)}. Give the state the type that it was written with, "
                f"or a unique name. Given: {given(text)}",
                code="PYSTORM_STATE_OF_ANOTHER_KIND",
            ) from None
