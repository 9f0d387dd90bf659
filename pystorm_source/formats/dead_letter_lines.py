"""Lines of dead letters: JSON objects whose ``values`` are a tuple's values: a JSON array as text."""

import logging
import re
from collections.abc import Callable
from typing import Any

import msgspec

from pystorm_source.errors import OptionError
from pystorm_source.formats.lines import Faults, Malformed, Pairs, one_by_one
from pystorm_source.formats.ndjson import NdJson


class Letter(msgspec.Struct, frozen=True):
    """A line. Spark's JSON sink leaves nulls out."""

    values: str
    component: str = ""
    reason: str = ""
    attempts: int | None = None
    partition: str | None = None
    offset: int | None = None
    time: str | None = None


ABOUT = ("component", "reason", "attempts", "partition", "offset", "time")
"""What is known about a dead letter, besides its values."""


class DeadLetterLines(NdJson):
    """Reads the values of a dead letter by position, followed by the requested facts about it.

    ``fields``, ``types``: of the values, then of ``about``. Dead letters of other components than ``component`` (if it
    is given), or without a match of ``reason`` in their reasons, give no tuple. A line is malformed if it is not a dead
    letter, or if the number of its values or their types do not match the fields.
    """

    _words = True

    def __init__(
        self,
        fields: tuple[str, ...],
        types: tuple[str | None, ...],
        about: tuple[str, ...],
        component: str,
        reason: "re.Pattern[str]",
        faults: Faults,
    ):
        super().__init__(fields, types, faults)
        self.schema = None  # order: after the base class's, which reads complete blocks as columns if it has a schema
        self._columns = None
        if about and fields[-len(about) :] != about:
            raise OptionError(
                f"dead.letters.about is {list(about)!r}, so the last fields are these. Given: {list(fields)!r}",
                code="PYSTORM_SCHEMA_MISMATCH",
            )
        self._names = [msgspec.json.encode(field) for field in fields[: len(fields) - len(about)]]
        self._about = [(msgspec.json.encode(name), name) for name in about]
        self._component = component
        self._reason = reason
        self._letter = msgspec.json.Decoder(Letter).decode
        self._parts = msgspec.json.Decoder(list[msgspec.Raw]).decode

    def pairs(self, data: bytes, offset: int, fixed: bool) -> Pairs:
        return one_by_one(data, offset, fixed, self._tuple_of, self._faults)

    def _tuple_of(self, line: bytes) -> tuple[Any, ...] | None:
        try:
            letter = self._letter(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Malformed(f"no dead letter: {error}") from None
        if (self._component and letter.component != self._component) or not self._reason.search(letter.reason):
            return None
        return self.values_of(letter)

    def values_of(self, letter: Letter) -> tuple[Any, ...]:
        """The values of a dead letter, and the requested facts about it. Raises Malformed if they do not fit."""
        try:
            parts = self._parts(letter.values)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Malformed(f"no dead letter: {error}") from None
        if len(parts) != len(self._names):
            raise Malformed(f"the letter has {len(parts)} values, and {len(self._names)} fields are declared for them")
        values = [b"%b:%b" % (name, bytes(part)) for name, part in zip(self._names, parts, strict=True)]
        values += [b"%b:%b" % (name, msgspec.json.encode(getattr(letter, key))) for name, key in self._about]
        return self._values(b"{" + b",".join(values) + b"}")


def letter_values(fields: tuple[str, ...], types: tuple[str | None, ...]) -> Callable[[str], tuple[Any, ...]]:
    """Returns the function from a dead letter's ``values`` to the values of fields of these types, by position. It
    raises Malformed."""
    faults = Faults("fail", logging.getLogger("pystorm.formats"), lambda _: False)
    lines = DeadLetterLines(fields, types, (), "", re.compile(""), faults)
    return lambda values: lines.values_of(Letter(values))
