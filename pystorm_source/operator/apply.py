"""The driver's side of an operator: plan, columns and schema, then Spark's ``mapInArrow``."""

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pystorm_source.api.topology import Topology
from pystorm_source.errors import ArgumentTypeError, OptionError, SchemaError, TopologyError, given
from pystorm_source.journal.options import JournalOptions
from pystorm_source.operator.task import OperatorPlan, task_function
from pystorm_source.options import SourceOptions, fields_of, parse
from pystorm_source.options.table import shown
from pystorm_source.plan import ComponentPlan, Plan, compile_plan, load_topology
from pystorm_source.plan.inputs import input_of
from pystorm_source.plan.unpicklable import check_picklable
from pystorm_source.source.ddl import parse_type
from pystorm_source.source.interned import pickled
from pystorm_source.source.register import option_texts, refuse_tables_of_main, use_this_python
from pystorm_source.source.request import config_of, in_its_environment, with_options
from pystorm_source.source.rows import Rows
from pystorm_source.source.spark_versions import map_in_arrow
from pystorm_source.types.arrow import field_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField, StructType

OF_OPERATORS = ("config", "stream", "streams", "output.batch.rows")
"""The keys of ``SourceOptions`` that mean something without offsets and admission."""


def apply(
    df: "DataFrame",
    topology: type[Topology] | str,
    *,
    options: Mapping[str, Any] | None = None,
    **keywords: Any,
) -> "DataFrame":
    """The rows that a topology makes of a DataFrame, streaming or batch, also inside of ``foreachBatch``.

    The topology begins with an ``Input``, whose columns are taken from ``df`` by name. It runs in each task over the
    rows of that partition, with trees, retries and dead letters as in a source. Rows leave while others are read.

    Trap: what a topology does to the outside world, it does again in each action and each ``writeStream`` on the
    result, and in a task that Spark tries again. ``persist()`` the result inside of ``foreachBatch`` to use it twice.

    Args:
        df (DataFrame): the rows.
        topology (type[Topology] | str): the class, or "package.module:Class".
        options (Mapping[str, Any]): options of the engine and of components (docs/OPTIONS.md), and of the source's
            ``config``, ``stream``, ``streams`` and ``output.batch.rows``. Defaults to none.
        **keywords (Any): more options, such as ``stream="geocode.found"``.

    Returns:
        DataFrame: the rows of the open stream; a streaming DataFrame if ``df`` is one.

    Raises:
        ArgumentTypeError: ``df`` is no DataFrame, or one of Spark Connect.
        TopologyError: the topology cannot run as it is declared, or does not begin with one ``Input``.
        OptionError: an unknown option, one of sources alone, or a wrong value.
        SchemaError: ``df`` lacks a column or has it in another type, or the open stream declares no types.

    Example:
        >>> from pystorm_source import Bolt, Input, Topology, apply
        >>> class Double(Bolt):
        ...     outputs = ["n long", "twice long"]
        ...     def process(self, tup):
        ...         self.emit([tup.values.n, 2 * tup.values.n])
        >>> class Doubles(Topology):
        ...     rows = Input.spec(["n long"])
        ...     double = Double.spec(inputs=[rows])
        >>> numbers = spark.range(3).withColumnRenamed("id", "n")
        >>> sorted(row.twice for row in apply(numbers, Doubles).collect())
        [0, 2, 4]
    """
    if not hasattr(df, "schema") or not hasattr(df, "mapInArrow"):
        raise ArgumentTypeError(
            f"the DataFrame comes first: apply(df, Words). Given: apply({given(df)}, {given(topology)})",
            code="PYSTORM_WRONG_TYPE",
        )
    if not hasattr(df, "_jdf"):
        raise ArgumentTypeError(
            "apply() takes DataFrames of a classic session, and this one is of Spark Connect: call it in a job of "
            "spark-submit, or read the rows by a source (pystorm_source.read_stream), which runs with Connect. "
            f"Given: apply({given(df)}, {given(topology)})",
            code="PYSTORM_WRONG_TYPE",
        )
    asked = option_texts(keywords, options or {})
    _refuse_sources_own(asked)
    found = parse(SourceOptions, asked)
    plan, rows_of = _planned(topology, asked, found)
    rows = Rows(plan, found)
    schema = rows.schema()
    columns = _columns(df.schema, rows_of)
    operator = OperatorPlan(plan, rows.output(schema), rows_of.name, _types(rows_of), uuid.uuid4().hex)
    try:
        function = task_function(operator)
    except Exception:
        check_picklable(plan, pickled)
        raise
    use_this_python(df.sparkSession)
    return map_in_arrow(df.select(*columns), function, schema)


def _planned(topology: type[Topology] | str, asked: Mapping[str, str], found: SourceOptions) -> tuple[Plan, Any]:
    """The plan under these options, and its Input."""
    cls = load_topology(topology) if isinstance(topology, str) else topology
    plan = compile_plan(cls, any_environment=True)
    rows_of = input_of(plan)
    if rows_of is None:
        raise TopologyError(
            "apply() gives a topology the rows of a DataFrame: begin it with rows = Input.spec(['id long', ...]) "
            "in place of its spouts, or read it by pystorm_source.read_stream(spark, Topology). "
            f"Given: {plan.name!r} with the spouts {[spout.name for spout in plan.spouts]!r}",
            code="PYSTORM_INVALID_TOPOLOGY",
        )
    refuse_tables_of_main(plan)
    plan, _ = in_its_environment(with_options(plan, config_of(found.config), asked, found))
    return plan, rows_of


def _refuse_sources_own(asked: Mapping[str, str]) -> None:
    kept = {key.lower() for key in OF_OPERATORS}
    others = {key.lower() for table in (SourceOptions, JournalOptions) for key in fields_of(table)} - kept
    for key, value in asked.items():
        if key.lower() in others:
            raise OptionError(
                f"option {key!r} is for sources, which have offsets: leave it out; an operator takes options of the "
                f"engine and of components, and {', '.join(OF_OPERATORS)}. Given: {shown(key, value)}",
                code="PYSTORM_OPTION_NOT_FOR_THIS_READ",
            )


def _columns(schema: "StructType", rows_of: ComponentPlan) -> list[str]:
    """The DataFrame's columns for the Input's fields, quoted. Raises SchemaError."""
    stream = rows_of.stream("default")
    return [
        f"`{_column(schema, rows_of.name, name, ddl).name.replace('`', '``')}`"
        for name, ddl in zip(stream.fields, stream.types, strict=True)
    ]


def _column(schema: "StructType", component: str, name: str, ddl: str | None) -> "StructField":
    same = [field for field in schema if field.name == name]
    same = same or [field for field in schema if field.name.lower() == name.lower()]
    if len(same) != 1:
        what = "has no such column" if not same else "has it more than once"
        raise SchemaError(
            f"input {component!r} takes column {name!r}, and the DataFrame {what}: select it before apply(), or "
            f"rename the field. Given: {schema.names!r}",
            code="PYSTORM_SCHEMA_MISMATCH",
        )
    if ddl is not None:
        declared_type, _ = parse_type(ddl, f"field {name!r} of {component}")
        if declared_type.simpleString() != same[0].dataType.simpleString():
            raise SchemaError(
                f"input {component!r} declares column {name!r} as {declared_type.simpleString()}: declare it as the "
                f"DataFrame has it, or cast it before apply(): df.withColumn({name!r}, df[{name!r}]"
                f".cast({declared_type.simpleString()!r})). Given: {same[0].dataType.simpleString()!r}",
                code="PYSTORM_SCHEMA_MISMATCH",
            )
    return same[0]


def _types(rows_of: ComponentPlan) -> tuple[tuple[str, pa.DataType | None], ...]:
    stream = rows_of.stream("default")
    return tuple(
        (name, None if ddl is None else field_type(ddl, f"field {name!r} of {rows_of.name}"))
        for name, ddl in zip(stream.fields, stream.types, strict=True)
    )
