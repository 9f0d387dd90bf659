"""Spark's type names, read without a JVM: the process that builds a data source has none.

Takes what Spark SQL calls data types, as far as Arrow carries them: ``bigint``, ``decimal(10,2)``, ``array<string>``,
``map<string,int>``, ``struct<a: int, b: string not null>``, ``interval day to second``. ``not null`` may follow the
type of a column or a field of a struct.
"""

import re
from typing import Any, NoReturn

from pyspark.sql import types
from pyspark.sql.types import DataType, StructField, StructType

from pystorm_source.errors import SchemaError

_SIMPLE = {
    "boolean": types.BooleanType,
    "tinyint": types.ByteType,
    "byte": types.ByteType,
    "smallint": types.ShortType,
    "short": types.ShortType,
    "int": types.IntegerType,
    "integer": types.IntegerType,
    "bigint": types.LongType,
    "long": types.LongType,
    "float": types.FloatType,
    "real": types.FloatType,
    "double": types.DoubleType,
    "string": types.StringType,
    "binary": types.BinaryType,
    "date": types.DateType,
    "timestamp": types.TimestampType,
    "timestamp_ltz": types.TimestampType,
    "timestamp_ntz": types.TimestampNTZType,
    "void": types.NullType,
}
_TIMESTAMPS = (types.TimestampType, types.TimestampNTZType)
_SHOWN_AS_TEXT = (
    types.StringType,
    types.NumericType,
    types.BooleanType,
    types.DateType,
    *_TIMESTAMPS,
    types.NullType,
)
_INTERVAL_UNITS = ("day", "hour", "minute", "second")
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|(\w+)|([<>(),:]))")


def parse_type(text: str, where: str) -> tuple[DataType, bool]:
    """The type and whether it may be null. Raises SchemaError naming ``where``, such as ``field 'n'``."""
    parser = _Parser(text, where)
    found, nullable = parser.type(), parser.nullable()
    if parser.token is not None:
        parser.refuse(f"unexpected {parser.token!r}")
    return found, nullable


def fits(declared: DataType, wanted: DataType) -> bool:
    """Whether values of the declared type can be rows of the wanted one. The row builder still looks at each value: a
    number out of range is its error."""
    if isinstance(wanted, types.StringType):
        return isinstance(declared, _SHOWN_AS_TEXT)
    if isinstance(declared, types.NullType):
        return True
    if isinstance(declared, types.ArrayType) and isinstance(wanted, types.ArrayType):
        return fits(declared.elementType, wanted.elementType)
    if isinstance(declared, types.MapType) and isinstance(wanted, types.MapType):
        return fits(declared.keyType, wanted.keyType) and fits(declared.valueType, wanted.valueType)
    if isinstance(declared, StructType) and isinstance(wanted, StructType):
        return declared.names == wanted.names and all(
            fits(mine.dataType, theirs.dataType) for mine, theirs in zip(declared, wanted, strict=True)
        )
    if isinstance(wanted, types.IntegralType):
        return isinstance(declared, (types.NumericType, types.BooleanType))
    if isinstance(wanted, types.FractionalType):
        return isinstance(declared, types.NumericType)
    if isinstance(wanted, _TIMESTAMPS):
        return isinstance(declared, _TIMESTAMPS)
    return type(declared) is type(wanted)


class _Parser:
    """Recursive descent over one type; ``token`` is the next one, None at the end."""

    def __init__(self, text: str, where: str):
        self._text = text
        self._where = where
        self._at = 0
        self.token: str | None = None
        self._step()

    def type(self) -> DataType:
        name = self._word("a type").lower()
        simple = _SIMPLE.get(name)
        if simple is not None:
            return simple()
        if name in ("decimal", "dec", "numeric"):
            return self._decimal()
        if name in ("char", "character", "varchar") and self.token == "(":
            self._numbers()  # Spark, too, reads these as strings
            return types.StringType()
        if name == "time" and hasattr(types, "TimeType"):
            return types.TimeType(*self._numbers()) if self.token == "(" else types.TimeType()
        if name == "interval":
            return self._interval()
        if name == "array":
            self._expect("<")
            element = self.type()
            self._expect(">")
            return types.ArrayType(element)
        if name == "map":
            self._expect("<")
            key = self.type()
            self._expect(",")
            value = self.type()
            self._expect(">")
            return types.MapType(key, value)
        if name == "struct":
            return self._struct()
        return self.refuse(
            f"{name!r} is none that can leave a topology; take one of {', '.join(sorted(_SIMPLE))}, decimal(p,s), "
            "array<…>, map<…,…>, struct<name: …>"
        )

    def nullable(self) -> bool:
        """Reads ``not null`` where it follows."""
        if self.token is None or self.token.lower() != "not":
            return True
        self._step()
        if self._word("null after not").lower() != "null":
            self.refuse("'not' is followed by 'null'")
        return False

    def refuse(self, reason: str) -> NoReturn:
        raise SchemaError(f"the type of {self._where} cannot be read: {reason}. Given: {self._text!r}")

    def _decimal(self) -> DataType:
        numbers = self._numbers() if self.token == "(" else []
        precision, scale = [*numbers, *(10, 0)[len(numbers) :]][:2]
        if len(numbers) > 2 or not 1 <= precision <= 38 or not 0 <= scale <= precision:
            self.refuse("a decimal has at most 38 digits, of which at most all are behind the point: decimal(10,2)")
        return types.DecimalType(precision, scale)

    def _interval(self) -> DataType:
        units = [self._word("a unit, such as day to second").lower()]
        if self.token is not None and self.token.lower() == "to":
            self._step()
            units.append(self._word("a unit").lower())
        if any(unit not in _INTERVAL_UNITS for unit in units):
            self.refuse("an interval is one of day, hour, minute, second, or a range such as day to second")
        first, last = _INTERVAL_UNITS.index(units[0]), _INTERVAL_UNITS.index(units[-1])
        if first > last:
            self.refuse(f"{units[0]} is finer than {units[-1]}")
        return types.DayTimeIntervalType(first, last)

    def _struct(self) -> DataType:
        fields = []
        self._expect("<")
        while self.token != ">":
            name = self._word("the name of a field")
            if self.token == ":":
                self._step()
            field_type = self.type()
            fields.append(StructField(name, field_type, self.nullable()))
            if self.token != ">":
                self._expect(",")
        self._expect(">")
        return StructType(fields)

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
