"""Which open streams become rows, and how: columns, their types, and which value fills which.

Columns are the fields of the open stream that ``stream`` picks (``__dead_letter`` by its full name only), or the union
over all open streams with ``streams=all`` (a field that a stream does not have is null in its rows). Behind them
``streams=all`` adds ``_component`` and ``_stream``, ``includeMetadata`` adds ``_task``, ``_partition`` and ``_offset``
as well.

A schema of the user's (``.schema(...)``) names columns: any order, any part of them, other types that can hold the
values. It gives types to streams that declare none. A name that the streams do not have is refused.
"""

from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.types import DataType, IntegerType, LongType, StringType, StructField, StructType

from pystorm_source.api.stream import DEAD_LETTER, Stream
from pystorm_source.errors import OptionError, SchemaError
from pystorm_source.options import SourceOptions
from pystorm_source.plan import ComponentPlan, Plan
from pystorm_source.spark.column_names import ColumnNames
from pystorm_source.spark.ddl import fits, parse_type
from pystorm_source.spark.versions import arrow_schema
from pystorm_source.types.grammar import schema_text
from pystorm_source.worker.output import OutputPlan, ViewPlan

METADATA: dict[str, DataType] = {
    "_component": StringType(),
    "_stream": StringType(),
    "_task": IntegerType(),
    "_partition": StringType(),
    "_offset": LongType(),
}


class Open(NamedTuple):
    """An open stream: a component declares it, and no bolt subscribes to it."""

    component: ComponentPlan
    stream: Stream

    def __str__(self) -> str:
        return f"{self.component.name}.{self.stream.name}"


class Rows:
    """The rows that a plan gives under these options.

    Raises OptionError if the options pick no stream, or are ambiguous, SchemaError if a declared type is unknown, or
    fields of one name have two types.
    """

    def __init__(self, plan: Plan, options: SourceOptions):
        self.streams = _picked(plan, options)
        self._batch_rows = options.output_batch_rows
        self._metadata = _metadata_of(options)
        self._columns = _union(self.streams)
        self._names = ColumnNames([*self._columns, *self._metadata])
        self._fields = [(each, frozenset(each.stream.fields)) for each in self.streams]
        taken = sorted(self._columns.keys() & set(self._metadata))
        if taken:
            raise SchemaError(
                f"{taken[0]!r} is a column of includeMetadata and streams=all: rename the field, or do without. "
                f"Given: {taken!r}",
                code="PYSTORM_SCHEMA_MISMATCH",
            )

    def schema(self) -> StructType:
        """The schema if the user gives none. Raises SchemaError if a field has no type."""
        for each in self.streams:
            bare = [name for name, ddl in zip(each.stream.fields, each.stream.types, strict=True) if ddl is None]
            if bare:
                raise SchemaError(
                    f"stream {each} declares fields without a type: declare one, such as '{bare[0]} string' in "
                    f"`outputs`, or call .schema('{self._completed()}') on the reader, with the types that fit. "
                    f"Given: {bare!r}",
                    code="PYSTORM_INVALID_TYPE",
                )
        fields = [field for field in self._columns.values() if field is not None]
        return StructType([*fields, *(StructField(name, METADATA[name]) for name in self._metadata)])

    def _completed(self) -> str:
        """All columns as a DDL string: types as declared, ``string`` for a missing one."""
        types = {name: None if field is None else _ddl(field) for name, field in self._columns.items()}
        return schema_text([*types.items(), *((name, METADATA[name].simpleString()) for name in self._metadata)])

    def output(self, schema: StructType) -> OutputPlan:
        """How the streams fill ``schema``, the user's or our own.

        Raises SchemaError for a column that no stream has, a type that cannot hold the declared one, a column that may
        not be null and that some stream does not have.
        """
        self._check_names(schema)
        for column in schema:
            self._check_type(column)
        views = tuple(self._view(each, schema) for each in self.streams)
        return OutputPlan(schema=_arrow(schema), views=views, batch_rows=self._batch_rows)

    def _check_names(self, schema: StructType) -> None:
        have = [*self._columns, *self._metadata]
        names = [name.lower() for name in schema.names]
        known = {name.lower() for name in have}
        strange = [name for name in schema.names if name.lower() not in known]
        if strange and set(strange) <= set(METADATA):
            raise SchemaError(
                f"the schema names {strange!r}: set includeMetadata=true to have them. "
                f"Given: {schema.simpleString()!r}",
                code="PYSTORM_SCHEMA_MISMATCH",
            )
        if strange or not names or len(set(names)) != len(names):
            streams = ", ".join(map(str, self.streams))
            raise SchemaError(
                f"a schema for {streams} names each column once, out of {have!r} (any part of them, in any order; "
                "rename with "
                f".toDF). Given: {schema.names!r}",
                code="PYSTORM_SCHEMA_MISMATCH",
            )

    def _check_type(self, column: StructField) -> None:
        name = self._names.match(column.name)
        if name in self._metadata:
            if column.dataType != METADATA[name]:
                raise SchemaError(
                    f"column {name!r} is of type {METADATA[name].simpleString()}. Given: "
                    f"{column.dataType.simpleString()!r}",
                    code="PYSTORM_SCHEMA_MISMATCH",
                )
            return
        declared = self._columns[name]
        if declared is not None and not fits(declared.dataType, column.dataType):
            raise SchemaError(
                f"column {column.name!r} is declared {declared.dataType.simpleString()} by the topology, which the "
                "schema's type "
                f"cannot hold: read it as declared and cast it in Spark. Given: {column.dataType.simpleString()!r}",
                code="PYSTORM_SCHEMA_MISMATCH",
            )
        lacking = [str(each) for each, fields in self._fields if name not in fields]
        if lacking and not column.nullable:
            raise SchemaError(
                f"column {column.name!r} may not be null, but {', '.join(lacking)} has no such field: make it "
                "nullable. "
                f"Given: {column.simpleString()!r} not null",
                code="PYSTORM_SCHEMA_MISMATCH",
            )

    def _view(self, each: Open, schema: StructType) -> ViewPlan:
        places = {self._names.match(column.name): place for place, column in enumerate(schema)}
        metadata: dict[str, Any] = {f"{name[1:]}_column": places.get(name, -1) for name in self._metadata}
        return ViewPlan(
            component=each.component.name,
            stream=each.stream.name,
            columns=tuple(places.get(field, -1) for field in each.stream.fields),
            **metadata,
        )


def _ddl(field: StructField) -> str:
    return f"{field.dataType.simpleString()}{'' if field.nullable else ' not null'}"


def _arrow(schema: StructType) -> pa.Schema:
    for column in schema:
        try:
            arrow_schema(StructType([column]))
        except Exception as error:
            raise SchemaError(
                f"column {column.name!r} has a type that Arrow does not carry ({error}): take another. "
                f"Given: {column.dataType.simpleString()!r}",
                code="PYSTORM_INVALID_TYPE",
            ) from None
    return arrow_schema(schema)


def _picked(plan: Plan, options: SourceOptions) -> tuple[Open, ...]:
    streams = tuple(Open(*each) for each in plan.open_streams)
    if options.dead_letter_path:  # they leave by another way
        _check_no_bolt_takes_letters(plan, options.dead_letter_path)
        streams = tuple(each for each in streams if each.stream != DEAD_LETTER)
    if not streams:
        raise OptionError(
            "no stream leaves this topology, so it has no rows: give its last bolt `outputs`, such as outputs = "
            "['written long'], and let it emit its results, or nothing at all: a stream that emits nothing gives no "
            f"rows. Given: topology {plan.name!r}",
            code="PYSTORM_INVALID_TOPOLOGY",
        )
    names = ", ".join(map(str, streams))
    if options.streams == "all":
        if options.stream:
            raise OptionError(
                f"options 'stream' and 'streams=all' exclude each other: give one. Given: {options.stream!r}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
        return streams
    ordinary = tuple(each for each in streams if each.stream != DEAD_LETTER)
    if not options.stream:
        _check_dead_letters_read(streams, ordinary)
        if len(ordinary or streams) > 1:
            raise OptionError(
                f"several streams leave topology {plan.name!r}: pick one with option 'stream', or all with "
                f"streams=all. Given: {names}",
                code="PYSTORM_MISSING_OPTION",
            )
        return ordinary or streams
    fits_name = [each for each in streams if str(each) == options.stream]
    fits_name = fits_name or [each for each in ordinary if each.component.name == options.stream]
    if len(fits_name) != 1:
        raise OptionError(
            f"option 'stream' is component or component.stream of one open stream (one without subscribers): {names}. "
            f"Given: {options.stream!r}",
            code="PYSTORM_INVALID_OPTION",
        )
    return tuple(fits_name)


def _check_no_bolt_takes_letters(plan: Plan, folder: str) -> None:
    for edge in plan.edges:
        if edge.stream == DEAD_LETTER.name:
            raise OptionError(
                f"bolt {edge.consumer!r} takes the dead letters of {edge.producer!r}: leave topology.dead.letter.path "
                f"out, or that input of the bolt. Given: {folder!r}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )


def _check_dead_letters_read(streams: tuple[Open, ...], ordinary: tuple[Open, ...]) -> None:
    """Raises OptionError if dead letters would get lost: without an option, they do not count as an open stream."""
    if ordinary and len(ordinary) < len(streams):
        unread = next(each for each in streams if each not in ordinary)
        raise OptionError(
            f"the dead letters {unread} would have no reader: let a bolt subscribe to them, such as "
            f"inputs=[{unread.component.name}[{DEAD_LETTER.name!r}]], read all with streams=all, or say with option "
            f"'stream' which stream is meant (stream={ordinary[0]} here, stream={unread} in a query of their own). "
            "Given: topology.dead.letter='stream'",
            code="PYSTORM_OPTIONS_CONFLICT",
        )


def _metadata_of(options: SourceOptions) -> tuple[str, ...]:
    if options.include_metadata:
        return tuple(METADATA)
    return ("_component", "_stream") if options.streams == "all" else ()


def _union(streams: tuple[Open, ...]) -> dict[str, StructField | None]:
    """Name → column, None if a stream declares no type, in the order of first appearance."""
    columns: dict[str, StructField | None] = {}
    owners: dict[str, Open] = {}
    for each in streams:
        for name, ddl in zip(each.stream.fields, each.stream.types, strict=True):
            column = None
            if ddl is not None:
                column = StructField(name, *parse_type(ddl, f"field {name!r} of {each}"))
            before = columns.get(name)
            if before is not None and column is not None and before.dataType != column.dataType:
                raise SchemaError(
                    f"{owners[name]} and {each} declare field {name!r} with different types: give both the same, "
                    "rename one, or read "
                    f"the streams one by one. Given: {before.dataType.simpleString()!r} and "
                    f"{column.dataType.simpleString()!r}",
                    code="PYSTORM_SCHEMA_MISMATCH",
                )
            if column is not None:
                owners.setdefault(name, each)
            columns[name] = before if before is not None else column
    known = [frozenset(each.stream.fields) for each in streams]
    for name, column in columns.items():
        if column is not None and any(name not in fields for fields in known):
            columns[name] = StructField(name, column.dataType, True)
    return columns
