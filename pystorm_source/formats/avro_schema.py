"""Avro schemas: whether they can be read, their column type, and whether they fit a declared type."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec
import pyarrow as pa
from fastavro.repository import AbstractSchemaRepository
from fastavro.repository.base import SchemaRepositoryError
from fastavro.schema import load_schema
from pyarrow import types

from pystorm_source.formats.fitting import WIDENED, below, check_names, holds, misfit, named
from pystorm_source.formats.lines import Malformed
from pystorm_source.types.arrow import ddl_of

_INSTANT, _LOCAL = pa.timestamp("us", tz="UTC"), pa.timestamp("us")
_PLAIN: dict[Any, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
_LOGICAL: dict[tuple[Any, Any], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time64("ns"),
    ("long", "time-micros"): pa.time64("ns"),
    ("long", "timestamp-millis"): _INSTANT,
    ("long", "timestamp-micros"): _INSTANT,
    ("long", "local-timestamp-millis"): _LOCAL,
    ("long", "local-timestamp-micros"): _LOCAL,
}
_MOST_DIGITS = 1 << 20
_MOST_LOADED = 200


class _Texts(AbstractSchemaRepository):
    """A schema, called ``""``, and the schemas that it refers to, by name."""

    def __init__(self, texts: Mapping[str, str]):
        self._texts = texts
        self._loaded = 0

    def load(self, name: str) -> Any:
        self._loaded += 1
        # Guarantee: schemas that refer to each other in a circle end here, not at the stack's end (fastavro has no
        # limit).
        if name not in self._texts or self._loaded > _MOST_LOADED:
            raise SchemaRepositoryError(f"{name!r} is referred to, but not there, or refers to itself")
        return _json(self._texts[name])


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text  # a bare name such as string, which some registries store without its quotes


class AvroSchema:
    """``AvroSchema(text, references)``: a schema as JSON, and the schemas that it refers to, by name.

    ``parsed``: for fastavro. Raises Malformed if it is invalid, contains itself, or has arrays whose elements take no
    bytes (nulls): a few bytes could claim any number of values.
    """

    def __init__(self, text: str, references: Mapping[str, str]):
        try:
            self.parsed = load_schema("", repo=_Texts({**references, "": text}))
            self._named = {schema["name"]: schema for schema in _definitions(self.parsed)}
            for part in _parts(self.parsed):
                _check_part(part)
            self._check(self.parsed, ())
            _read_whole_decimals(self.parsed)
        except Malformed:
            raise
        except Exception as error:  # fastavro raises any exception if a schema is invalid
            raise Malformed(f"the schema cannot be read: {type(error).__name__}: {error}") from None

    def type(self) -> pa.DataType:
        """The type of a column for its values. Raises Malformed if no type fits."""
        return self._type(self.parsed, "")

    def types_of(self, names: Collection[str]) -> dict[str, pa.DataType]:
        """The column types of those fields of a record whose values could be of several: nested ones and unions. Raises
        Malformed if no type fits."""
        found = {}
        record: Any = self.parsed
        for name, schema in ((each["name"], self._resolved(each["type"])) for each in record["fields"]):
            branches = [self._resolved(each) for each in (schema if isinstance(schema, list) else [schema])]
            kinds = [_kind(each) for each in branches if _kind(each) != "null"]
            if name in names and (len(kinds) > 1 or set(kinds) & {"record", "array", "map"}):
                found[name] = self._type(schema, name)
        return found

    def check_fits(self, wanted: pa.DataType) -> None:
        """Raises Malformed, naming the field, unless all values of the schema fit into a column of this type."""
        self._fit(self.parsed, wanted, True, "")

    def _resolved(self, schema: Any) -> Any:
        return self._named.get(schema, schema) if isinstance(schema, str) else schema

    def _check(self, schema: Any, outer: tuple[str, ...]) -> None:
        schema = self._resolved(schema)
        if isinstance(schema, list):
            for branch in schema:
                self._check(branch, outer)
        elif isinstance(schema, dict):
            kind = schema["type"]
            if kind == "record":
                if schema["name"] in outer:
                    raise Malformed(f"the schema's {schema['name']!r} contains itself, for which there is no column")
                for field in schema["fields"]:
                    self._check(field["type"], (*outer, schema["name"]))
            elif kind == "array" and self._weightless(schema["items"]):
                raise Malformed("the schema has an array whose elements take no bytes")
            elif kind in ("array", "map"):
                self._check(schema["items" if kind == "array" else "values"], outer)

    def _weightless(self, schema: Any, outer: tuple[str, ...] = ()) -> bool:
        """Whether its values take no bytes."""
        schema = self._resolved(schema)
        if _kind(schema) == "record" and schema["name"] not in outer:
            return all(self._weightless(field["type"], (*outer, schema["name"])) for field in schema["fields"])
        return _kind(schema) == "null" or (_kind(schema) == "fixed" and schema["size"] == 0)

    def _type(self, schema: Any, path: str) -> pa.DataType:
        schema = self._resolved(schema)
        if isinstance(schema, list):
            branches = [branch for branch in schema if _kind(branch) != "null"]
            if not branches:
                return pa.null()
            found = [self._type(branch, path) for branch in branches]
            for each in found:
                if all(other == each or (other, each) in WIDENED for other in found):
                    return each
            raise Malformed(f"{named(path)} is a union of {', '.join(map(ddl_of, found))}, for which there is no type")
        kind = _kind(schema)
        if kind == "record":
            fields = schema["fields"]
            inner = [(each["name"], self._type(each["type"], below(path, each["name"]))) for each in fields]
            return pa.struct([pa.field(name, each) for name, each in inner])
        if kind == "array":
            return pa.list_(self._type(schema["items"], path + "[]"))
        if kind == "map":
            return pa.map_(pa.string(), self._type(schema["values"], path + "{}"))
        return _scalar(schema, path)

    def _fit(self, schema: Any, wanted: pa.DataType, nullable: bool, path: str) -> None:
        schema = self._resolved(schema)
        for branch in schema if isinstance(schema, list) else [schema]:
            branch = self._resolved(branch)
            kind = _kind(branch)
            if kind == "null" and nullable:
                continue
            if kind == "record" and types.is_struct(wanted):
                self._fit_record(branch, wanted, path)
            elif kind == "array" and types.is_list(wanted):
                self._fit(branch["items"], wanted.value_type, True, path + "[]")
            elif kind == "map" and types.is_map(wanted) and wanted.key_type == pa.string():
                self._fit(branch["values"], wanted.item_type, True, path + "{}")
            elif kind in ("record", "array", "map") or not holds(wanted, _scalar(branch, path)):
                raise misfit(path, self._shown(branch, path), wanted, nullable)

    def _fit_record(self, record: Any, wanted: pa.StructType, path: str) -> None:
        fields = {field["name"]: field["type"] for field in record["fields"]}
        check_names(path, fields, wanted)
        for field in wanted:
            if field.name in fields:
                self._fit(fields[field.name], field.type, field.nullable, below(path, field.name))

    def _shown(self, schema: Any, path: str) -> str:
        if _kind(schema) in ("null", "record", "array", "map"):
            return str(_kind(schema))
        return ddl_of(_scalar(schema, path))


def _kind(schema: Any) -> Any:
    return schema["type"] if isinstance(schema, dict) else schema


def _scalar(schema: Any, path: str) -> pa.DataType:
    kind, logical = _kind(schema), schema.get("logicalType") if isinstance(schema, dict) else None
    if logical == "decimal" and kind in ("bytes", "fixed"):
        precision, scale = schema.get("declared", schema["precision"]), schema.get("scale", 0)
        if precision > 38:
            raise Malformed(f"{named(path)} is a decimal of {precision} digits, of which Spark has 38")
        return pa.decimal128(precision, scale)
    return _LOGICAL.get((kind, logical)) or _PLAIN[kind]


def _parts(schema: Any) -> Iterator[Any]:
    """The schema and all its parts, each at its definition."""
    yield schema
    if isinstance(schema, list):
        for branch in schema:
            yield from _parts(branch)
    elif isinstance(schema, dict):
        for field in schema.get("fields", ()):
            yield from _parts(field["type"])
        for part in ("items", "values"):
            if part in schema:
                yield from _parts(schema[part])


def _definitions(schema: Any) -> Iterator[dict[str, Any]]:
    return (part for part in _parts(schema) if isinstance(part, dict) and "name" in part)


def _check_part(part: Any) -> None:
    """Raises Malformed for schemas that fastavro accepts although Avro forbids them."""
    if isinstance(part, list) and any(isinstance(branch, list) for branch in part):
        raise Malformed("the schema has a union within a union")
    if not isinstance(part, dict):
        return
    for field in part.get("fields", ()):
        if not isinstance(field["name"], str):
            raise Malformed(f"the schema has a field called {field['name']!r}")
    if not isinstance(part.get("logicalType", ""), str):
        raise Malformed(f"the schema has a logicalType {part['logicalType']!r}")
    if part.get("logicalType") == "decimal" and part["type"] in ("bytes", "fixed"):
        precision, scale = part.get("precision"), part.get("scale", 0)
        if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision or precision < 1:
            raise Malformed(f"the schema has a decimal of precision {precision!r} and scale {scale!r}")


def _read_whole_decimals(schema: Any) -> None:
    """Workaround (fastavro 1.13): a number of more digits than declared would be read rounded."""
    tops = schema if isinstance(schema, list) else [schema]
    named = [each for top in tops if isinstance(top, dict) for each in top.get("__named_schemas", {}).values()]
    for part in (part for each in (*tops, *named) for part in _parts(each)):
        if isinstance(part, dict) and part.get("logicalType") == "decimal" and "precision" in part:
            part.setdefault("declared", part["precision"])
            part["precision"] = _MOST_DIGITS
