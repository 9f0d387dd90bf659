"""Expressions of pyarrow over the rows of a batch."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero

from pystorm_source.errors import SchemaError, given, said


def filtered(table: pa.Table, condition: pc.Expression) -> pa.Table:
    """The rows for which the condition is true: not those for which it is null."""
    return _run(table, acero.Declaration("filter", acero.FilterNodeOptions(condition)))


def projected(table: pa.Table, columns: Mapping[str, pc.Expression]) -> pa.Table:
    """A column for each expression."""
    return _run(table, acero.Declaration("project", acero.ProjectNodeOptions(list(columns.values()), list(columns))))


def _run(table: pa.Table, step: acero.Declaration) -> pa.Table:
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(table))
    # Order: one thread keeps the order of the rows. The task has one core; the others belong to other tasks.
    return acero.Declaration.from_sequence([source, step]).to_table(use_threads=False)


def refused(error: Exception, what: str, expression: object, schema: pa.Schema) -> SchemaError:
    """The error of pyarrow for an expression that does not fit these columns."""
    columns = ", ".join(f"{field.name} {field.type}" for field in schema)
    first = said(error, 300).partition("\n")[0]  # the columns follow, one a line
    return SchemaError(
        f"{what} cannot be computed of the columns {columns} ({first}): change it, or cast its columns. "
        f"Given: {given(expression)}",
        code="PYSTORM_SCHEMA_MISMATCH",
    )
