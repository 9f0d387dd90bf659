"""The hidden column that an operator's tasks report in: they have no runner of this package to report to.

::

    task: rows ──► each with an empty last column; behind them a row that has only the task's report in it
                                                      │
    Spark: observe(name, collect_list) ◄──────────────┘──► filter: that row goes away, and the column
              │
    driver: observedMetrics of the micro-batch ──► counts_of ──► counts of each component

An attempt that fails gives no report: Spark observes only attempts that succeed.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REPORT = "_pystorm_report"
"""The hidden column."""
REPORTS = "reports"
"""What is observed: a list of them."""
OPERATOR = "operator"
"""The name of the only micro-batch that a task's report knows of."""
MOST_REPORT = 16_384
"""Bytes of a report. More: the progress of a query with thousands of tasks fills the driver's memory. Fewer: a topology
of dozens of components leaves out its latencies."""


def with_column(schema: StructType) -> StructType:
    """What tasks give: the rows' columns, and the hidden one."""
    return StructType([*schema.fields, StructField(REPORT, StringType())])


def with_report(
    rows: Iterator[pa.RecordBatch], report: Callable[[], bytes], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yields the rows, followed by the report. ``schema``: the rows', used if there are no rows: Spark takes only
    batches of one schema."""
    for batch in rows:
        schema = batch.schema
        yield _wide(batch, pa.nulls(batch.num_rows, pa.string()))
    nothing = pa.RecordBatch.from_arrays([pa.nulls(1, field.type) for field in schema], names=schema.names)
    yield _wide(nothing, pa.array([report().decode()]))


def _wide(batch: pa.RecordBatch, column: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*batch.columns, column], names=[*batch.schema.names, REPORT])


def observed(df: "DataFrame", name: Any) -> "DataFrame":
    """The rows without the hidden ones, whose reports Spark observes under that name."""
    from pyspark.sql import functions

    seen = df.observe(name, functions.collect_list(REPORT).alias(REPORTS))
    return seen.where(functions.col(REPORT).isNull()).drop(REPORT)
