"""Lines of dead letters: JSON objects, whose ``values`` are the JSON array of a tuple's values, as text."""

import logging
import re
from collections.abc import Callable
from typing import Any

import msgspec

from pystorm_source.errors import OptionError
from pystorm_source.formats.lines import Faults, Malformed, Pairs, one_by_one
from pystorm_source.formats.ndjson import NdJson


class Letter(msgspec.Struct, frozen=True):
    """A line. Spark's JSON sink leaves out what is null."""

    values: str
    component: str = ""
    reason: str = ""
    attempts: int | None = None
    partition: str | None = None
    offset: int | None = None
    time: str | None = None


ABOUT = ("component", "reason", "attempts", "partition", "offset", "time")
"""What is known about a letter, besides its values."""


class DeadLetterLines(NdJson):
    """The values of a letter by place, and behind them what is asked for about it.

    ``fields``, ``types``: of the values, then of ``about``. Letters of another ``component``, if it is not empty, or
    whose reason does not match ``reason`` anywhere give no tuple. A line is malformed if it is no dead letter, or its
    values are not as many as the fields, or not of their types.
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
        self.schema = None  # order: behind the base's, which reads whole blocks as columns where it has one
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
        """The values of a letter, and what is asked for about it. Raises Malformed if they do not fit."""
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
    """The function from a letter's ``values`` to those of fields of these types, by place. It raises Malformed."""
    faults = Faults("fail", logging.getLogger("pystorm.formats"), lambda _: False)
    lines = DeadLetterLines(fields, types, (), "", re.compile(""), faults)
    return lambda values: lines.values_of(Letter(values))
