"""The grammar of Spark's type names, for every maker of types: Spark's own, Arrow's.

The data types of Spark SQL that Arrow has: ``bigint``, ``decimal(10,2)``, ``array<string>``, ``map<string,int>``,
``struct<a: int, b: string not null>``, ``interval day to second``. ``not null`` may follow the type of a column or a
field of a struct.
"""

import re
from collections.abc import Iterable
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from pystorm_source.errors import SchemaError
from pystorm_source.types.foreign_types import sparks_name, without_null

T = TypeVar("T")

ALIASES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "timestamp_ltz": "timestamp",
}
"""Spark's second names, which no maker of types sees."""

_INTERVAL_UNITS = ("day", "hour", "minute", "second")
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|(\w+)|([<>(),:]))")
_TYPE_ALONE = re.compile(rf"\s*(?:\w+\s*(?:[<(].*)?|interval\s+(?:{'|'.join(_INTERVAL_UNITS)})\b.*)", re.DOTALL | re.I)


class TypeMaker(Protocol[T]):
    """Makes types from the parsed text."""

    def simple_names(self) -> Iterable[str]:
        """The names of the types without parameters, without ``ALIASES``."""

    def simple(self, name: str) -> T | None:
        """The type of this name, in lower case; None if there is no such type."""

    def decimal(self, precision: int, scale: int) -> T: ...

    def time(self, precision: int | None) -> T | None:
        """The time of day; None if there is no such type."""

    def interval(self, first: int, last: int) -> T:
        """An interval from unit to unit: 0 day, 1 hour, 2 minute, 3 second."""

    def array(self, element: T) -> T: ...

    def map(self, key: T, value: T) -> T: ...

    def struct(self, fields: list[tuple[str, T, bool]]) -> T:
        """A struct of fields, each (name, type, whether it may be null)."""


def parse_type(text: str, where: str, maker: TypeMaker[T]) -> tuple[T, bool]:
    """The type and whether it may be null. Raises SchemaError naming ``where``, such as ``field 'n'``."""
    parser = _Parser(text, where, maker)
    found, nullable = parser.type(), parser.nullable()
    parser.end()
    return found, nullable


def parse_schema(text: str, where: str, maker: TypeMaker[T]) -> T:
    """The type, or the struct that a list of columns makes: ``struct<id: bigint>`` or ``id bigint``, both as in Spark's
    ``from_json``. Raises SchemaError naming ``where``."""
    parser = _Parser(text, where, maker)
    found = parser.type() if _TYPE_ALONE.fullmatch(text) else maker.struct(parser.fields(None))
    parser.end()
    return found


def schema_text(columns: Iterable[tuple[str, str | None]]) -> str:
    """The DDL string of a schema with these names and types; ``string`` where the type is None."""
    return ", ".join(f"{quoted_name(name)} {ddl or 'string'}" for name, ddl in columns)


def quoted_name(name: str) -> str:
    """The name as Spark's parser takes it: in backticks unless it is a plain word."""
    return name if name.isidentifier() and name.isascii() else f"`{name.replace('`', '``')}`"


class _Parser(Generic[T]):
    """Recursive descent over one type; ``token`` is the next one, None at the end."""

    def __init__(self, text: str, where: str, maker: TypeMaker[T]):
        self._text = text
        self._where = where
        self._maker = maker
        self._at = 0
        self.token: str | None = None
        self._step()

    def type(self) -> T:
        name = self._word("a type").lower()
        simple = self._maker.simple(ALIASES.get(name, name))
        if simple is not None:
            return simple
        found: T | None = None
        if name in ("decimal", "dec", "numeric"):
            return self._decimal()
        if name in ("char", "character", "varchar") and self.token == "(":
            self._numbers()  # Spark, too, reads these as strings
            found = self._maker.simple("string")
        if name == "time":
            found = self._maker.time(self._numbers()[0] if self.token == "(" else None)
        if name == "interval":
            return self._interval()
        if name == "array":
            self._expect("<")
            element = self.type()
            self._expect(">")
            return self._maker.array(element)
        if name == "map":
            self._expect("<")
            key = self.type()
            self._expect(",")
            value = self.type()
            self._expect(">")
            return self._maker.map(key, value)
        if name == "struct":
            self._expect("<")
            fields = self.fields(">")
            self._expect(">")
            return self._maker.struct(fields)
        if found is not None:
            return found
        names = ", ".join(sorted({*self._maker.simple_names(), *ALIASES}))
        if sparks := sparks_name(name):
            return self.refuse(f"{name!r} is no type of Spark's: write {sparks!r}")
        return self.refuse(
            f"{name!r} is none that can leave a topology; take one of {names}, decimal(p,s), array<…>, map<…,…>, "
            "struct<name: …>"
        )

    def fields(self, end: str | None) -> list[tuple[str, T, bool]]:
        """Reads columns up to ``end``, which stays: name, type and whether it may be null."""
        fields = []
        while self.token != end:
            name = self._word("the name of a field")
            if self.token == ":":
                self._step()
            fields.append((name, self.type(), self.nullable()))
            if self.token != end:
                self._expect(",")
        return fields

    def nullable(self) -> bool:
        """Reads ``not null`` if it follows."""
        if self.token is None or self.token.lower() != "not":
            return True
        self._step()
        if self._word("null after not").lower() != "null":
            self.refuse("'not' is followed by 'null'")
        return False

    def end(self) -> None:
        if self.token is not None:
            self.refuse(f"unexpected {self.token!r}")

    def refuse(self, reason: str) -> NoReturn:
        if inner := without_null(self._text):
            reason = f"every field may be null already: write {inner!r}; or '{inner} not null' if it never is"
        elif reason.startswith("unexpected") and (sparks := sparks_name(self._text)):
            reason = f"it is no type of Spark's: write {sparks!r}"
        raise SchemaError(
            f"the type of {self._where} cannot be read: {reason}. Given: {self._text!r}", code="PYSTORM_INVALID_TYPE"
        )

    def _decimal(self) -> T:
        numbers = self._numbers() if self.token == "(" else []
        precision, scale = [*numbers, *(10, 0)[len(numbers) :]][:2]
        if len(numbers) > 2 or not 1 <= precision <= 38 or not 0 <= scale <= precision:
            self.refuse("a decimal has at most 38 digits, of which at most all come after the point: decimal(10,2)")
        return self._maker.decimal(precision, scale)

    def _interval(self) -> T:
        units = [self._word("a unit, such as day to second").lower()]
        if self.token is not None and self.token.lower() == "to":
            self._step()
            units.append(self._word("a unit").lower())
        if any(unit not in _INTERVAL_UNITS for unit in units):
            self.refuse("an interval is one of day, hour, minute, second, or a range such as day to second")
        first, last = _INTERVAL_UNITS.index(units[0]), _INTERVAL_UNITS.index(units[-1])
        if first > last:
            self.refuse(f"{units[0]} is finer than {units[-1]}")
        return self._maker.interval(first, last)

    def _numbers(self) -> list[int]:
        self._expect("(")
        numbers = [int(self._word("a number", str.isdecimal))]
        while self.token == ",":
            self._step()
            numbers.append(int(self._word("a number", str.isdecimal)))
        self._expect(")")
        return numbers

    def _word(self, meaning: str, is_one: Any = lambda token: token[0] not in "<>(),:") -> str:
        token = self.token
        if token is None or not is_one(token):
            self.refuse(f"{meaning} is missing" if token is None else f"{meaning} is needed where {token!r} stands")
        self._step()
        return token[1:-1].replace("``", "`") if token.startswith("`") else token

    def _expect(self, token: str) -> None:
        if self.token != token:
            self.refuse(
                f"{token!r} is missing" if self.token is None else f"{token!r} is needed where {self.token!r} stands"
            )
        self._step()

    def _step(self) -> None:
        if not self._text[self._at :].strip():
            self.token = None
            return
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            self.token = self._text[self._at :].strip()[0]
            self.refuse(f"unexpected {self.token!r}")
        self._at = match.end()
        self.token = match[1] or match[2] or match[3]
