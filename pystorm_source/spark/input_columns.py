"""The columns that an Input takes from a DataFrame, and the options of topologies that begin with one.

Operators (``apply``) and sinks (``writeStream.format("pystorm")``) share it, so that they refuse alike.
"""

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from pystorm_source.errors import OptionError, SchemaError
from pystorm_source.journal.options import JournalOptions
from pystorm_source.options import SourceOptions, fields_of
from pystorm_source.options.table import shown
from pystorm_source.plan import ComponentPlan
from pystorm_source.spark.column_names import ColumnNames
from pystorm_source.spark.ddl import parse_type
from pystorm_source.types.arrow import field_type


def columns_of(schema: StructType, rows_of: ComponentPlan, door: str = "apply()") -> list[str]:
    """The DataFrame's columns for the fields of the Input ``rows_of``, in its order.

    ``door``: what the user called, for messages. Raises SchemaError.
    """
    stream = rows_of.stream("default")
    names = ColumnNames(schema.names)
    return [
        _column(schema, names, rows_of.name, name, ddl, door).name
        for name, ddl in zip(stream.fields, stream.types, strict=True)
    ]


def declared_schema(
    rows_of: ComponentPlan, why: str = "in a query function of a pipeline Spark tells no columns"
) -> StructType:
    """The Input's columns as it declares them. Raises SchemaError, with ``why``, if it leaves a type open."""
    stream = rows_of.stream("default")
    fields = []
    for name, ddl in zip(stream.fields, stream.types, strict=True):
        if ddl is None:
            raise SchemaError(
                f"{why}: declare the type of field {name!r} of input {rows_of.name!r}, such as {name + ' string'!r}. "
                f"Given: {name!r}",
                code="PYSTORM_INVALID_TYPE",
            )
        fields.append(StructField(name, *parse_type(ddl, f"field {name!r} of {rows_of.name}")))
    return StructType(fields)


def _column(
    schema: StructType, names: ColumnNames, component: str, name: str, ddl: str | None, door: str
) -> StructField:
    same = [schema[place] for place in names.places_of(name)]
    if len(same) != 1:
        what = "has no such column" if not same else "has it more than once"
        raise SchemaError(
            f"input {component!r} takes column {name!r}, and the DataFrame {what}: select it before {door}, or "
            f"rename the field. Given: {schema.names!r}",
            code="PYSTORM_SCHEMA_MISMATCH",
        )
    if ddl is not None:
        declared_type, _ = parse_type(ddl, f"field {name!r} of {component}")
        if declared_type.simpleString() != same[0].dataType.simpleString():
            raise SchemaError(
                f"input {component!r} declares column {name!r} as {declared_type.simpleString()}: declare it as the "
                f"DataFrame has it, or cast it before {door}: df.withColumn({name!r}, df[{name!r}]"
                f".cast({declared_type.simpleString()!r})). Given: {same[0].dataType.simpleString()!r}",
                code="PYSTORM_SCHEMA_MISMATCH",
            )
    return same[0]


def places_of(name: str, names: Sequence[str]) -> list[int]:
    """The places of that name among the columns: spelled exactly, otherwise in any case, like Spark."""
    return ColumnNames(names).places_of(name)


def types_of(rows_of: ComponentPlan) -> tuple[tuple[str, pa.DataType | None], ...]:
    """Names and Arrow types of the Input's fields, None for any."""
    stream = rows_of.stream("default")
    return tuple(
        (name, None if ddl is None else field_type(ddl, f"field {name!r} of {rows_of.name}"))
        for name, ddl in zip(stream.fields, stream.types, strict=True)
    )


def refuse_sources_own(asked: Mapping[str, str], taken: Collection[str], taker: str) -> None:
    """Raises OptionError for an option that only sources take. ``taken``: sources' keys that ``taker`` takes, too."""
    kept = {key.lower() for key in taken}
    others = {key.lower() for table in (SourceOptions, JournalOptions) for key in fields_of(table)} - kept
    for key, value in asked.items():
        if key.lower() in others:
            raise OptionError(
                f"option {key!r} is for sources, which have offsets: leave it out; {taker} takes options of the "
                f"engine and of components, and {', '.join(taken)}. Given: {shown(key, value)}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
