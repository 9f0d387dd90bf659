"""Differences between Spark 4.0 and 4.3, found by testing for features, never by version: vendors port features
back."""

import inspect
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import GroupedData, datasource
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pystorm_source.errors import ArgumentError, given
from pystorm_source.options.source import UNBOUNDED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame
    from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter
    from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
else:
    # 4.1 and later; before, writers take rows.
    DataSourceArrowWriter = getattr(datasource, "DataSourceArrowWriter", None)
    DataSourceStreamArrowWriter = getattr(datasource, "DataSourceStreamArrowWriter", None)
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
    except ImportError:  # before 4.2

        class SupportsTriggerAvailableNow:
            """Stands in for Spark's mixin if Spark lacks it."""


__all__ = [
    "DataSourceArrowWriter",
    "DataSourceStreamArrowWriter",
    "SupportsTriggerAvailableNow",
    "arrow_schema",
    "check_source_name",
    "default_read_limit",
    "is_shuffled",
    "map_in_arrow",
    "named_reader",
    "quoted",
    "schema_of",
    "states_take_rows",
    "transform_with_state",
    "with_schema",
]


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema that Spark wants of record batches, timestamps in UTC. Raises pyspark's errors."""
    # 4.2 asks for the time zone by name; before, UTC was the default.
    arguments: dict[str, Any] = (
        {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    )
    return to_arrow_schema(schema, **arguments)


def check_source_name(name: Any) -> None:
    """Raises ArgumentError for what Spark would refuse as the name of a source."""
    if name is not None and (not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_]+", name)):
        raise ArgumentError(
            f"the name of a source is letters, digits and underscores. Given: name={given(name)}",
            code="PYSTORM_INVALID_ARGUMENT",
        )


def named_reader(reader: Any, name: str | None) -> Any:
    """Returns the stream reader with that name of its source. Raises ArgumentError if this Spark has no such names."""
    if name is None:
        return reader
    if not hasattr(reader, "name"):
        raise ArgumentError(
            "this Spark has no names of sources, DataStreamReader.name: leave name out, and keep the order of the "
            f"query's sources, or use Spark 4.2 or later. Given: name={given(name)}",
            code="PYSTORM_INVALID_ARGUMENT",
        )
    return reader.name(name)


def default_read_limit(
    most: int | None, least: int | None, per_partition: int | None, controlled: bool = False
) -> "ReadLimit":
    """Returns the one ReadLimit that stands for up to three of our limits (4.2 and later; Spark takes no more than
    one), and for a controller's budget (``controlled``).

    Not ReadAllAvailable if there is a limit: Spark uses that for a trigger that lifts all limits.
    """
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

    if most is not None:
        return ReadMaxRows(most)
    if least is not None:
        return ReadMinRows(least)
    return ReadMaxRows(UNBOUNDED) if controlled or per_partition is not None else ReadAllAvailable()


_SHUFFLING = re.compile(
    r"^[\s:|+-]*(Aggregate|Join|Sort|Window|Distinct|Deduplicate\w*|Repartition\w*|RebalancePartitions)\b",
    re.MULTILINE,
)


def is_shuffled(df: "DataFrame") -> bool:
    """Whether Spark may shuffle the rows of a DataFrame; False if its plan is not known, as over Connect."""
    try:
        plan = df._jdf.queryExecution().analyzed().toString()
    except Exception:
        return False
    return _SHUFFLING.search(plan) is not None


def schema_of(df: "DataFrame") -> StructType | None:
    """The columns of a DataFrame; None in a query function of a declarative pipeline, where Spark does not tell them.
    Raises what Spark raises for a wrong DataFrame."""
    try:
        return df.schema
    except Exception as error:
        if _tells_nothing(error):
            return None
        raise


def may_stream(df: "DataFrame") -> bool:
    """Whether it is a stream, or Spark does not tell: in a query function of a declarative pipeline. Raises what Spark
    raises for a wrong DataFrame."""
    try:
        return bool(df.isStreaming)
    except Exception as error:
        if _tells_nothing(error):
            return True
        raise


def _tells_nothing(error: Exception) -> bool:
    return "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION" in str(error)


def with_schema(df: "DataFrame", schema: StructType) -> "DataFrame":
    """The DataFrame, which no longer asks Spark for its columns: a query function of a pipeline must not.

    Workaround: 4.1 to 4.3 ask for them in ``mapInArrow``, which does not need them: Spark checks them later.
    """
    df._cached_schema = schema  # type: ignore[attr-defined]
    return df


def map_in_arrow(
    df: "DataFrame",
    function: "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]",
    schema: StructType | str,
) -> "DataFrame":
    """``df.mapInArrow(function, schema)`` that needs no pandas in a classic session.

    Workaround: PySpark (4.0 to 4.3) makes its function with ``pandas_udf``, which requires pandas on the driver and
    does not use it.
    """
    if not hasattr(df, "_jdf"):  # Spark Connect, whose client has pandas
        return df.mapInArrow(function, schema)
    from pyspark.sql import DataFrame
    from pyspark.util import PythonEvalType

    column = _of_all_columns(df, function, schema, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    return DataFrame(df._jdf.mapInArrow(column._jc, False, None), df.sparkSession)


def _of_all_columns(df: "DataFrame", function: Any, schema: StructType | str, kind: int) -> Any:
    """The column that a Python function makes from all columns, built without ``pandas_udf``. ``kind``: PySpark's
    evaluation type."""
    from pyspark.sql.udf import UserDefinedFunction

    return UserDefinedFunction(function, returnType=schema, evalType=kind)(*(df[quoted(name)] for name in df.columns))


def quoted(name: str) -> str:
    """The name of a column, for Spark to take it as it is."""
    return f"`{name.replace('`', '``')}`"


def states_take_rows() -> bool:
    """Whether ``transformWithState`` takes rows: 4.1 and later; before, it takes only pandas' frames."""
    return hasattr(GroupedData, "transformWithState")


def transform_with_state(df: "DataFrame", key: str, processor: Any, schema: StructType, time_mode: str) -> "DataFrame":
    """``df.groupBy(key).transformWithState(processor, schema, "Append", time_mode)`` that needs no pandas in a classic
    session. Before 4.1 the processor gets and gives pandas' frames.

    Workaround: as ``map_in_arrow``.
    """
    grouped: Any = df.groupBy(key)
    if not states_take_rows():
        return grouped.transformWithStateInPandas(processor, schema, "Append", time_mode)
    if not hasattr(df, "_jdf"):
        return grouped.transformWithState(processor, schema, "Append", time_mode)
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.stateful_processor_util import TransformWithStateInPandasUdfUtils
    from pyspark.util import PythonEvalType

    function = TransformWithStateInPandasUdfUtils(processor, time_mode).transformWithStateUDF
    column = _of_all_columns(df, function, schema, PythonEvalType.SQL_TRANSFORM_WITH_STATE_PYTHON_ROW_UDF)
    session: Any = df.sparkSession
    java_schema = session._jsparkSession.parseDataType(schema.json())
    return DataFrame(
        grouped._jgd.transformWithStateInPySpark(column._jc, java_schema, "Append", time_mode, None, ""), session
    )
