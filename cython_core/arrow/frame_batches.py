"""Record batches of data frames: of anything with Arrow's C interface, such as Polars, pandas and DuckDB.

    RecordBatch ──────────────────────────────────────────────────────────────► itself
    __arrow_c_array__, __arrow_c_stream__ ──► a table ──► one chunk a column, without views ──► its batch

Types other than the declared ones (``large_string``, a dictionary) are cast later, where the rows are taken, if that
loses nothing: see lossless_cast.py. Views are made plain at once: no reader here knows them.

Threading law: with the interpreter's lock held.
"""

from typing import Any

import pyarrow as pa

WAYS = ("__arrow_c_array__", "__arrow_c_stream__")

# Types that pyarrow 15 does not have yet.
PLAIN = {
    getattr(pa, view)(): plain
    for view, plain in (("string_view", pa.string()), ("binary_view", pa.binary()))
    if hasattr(pa, view)
}


def is_frame(value: Any) -> bool:
    """Whether it has Arrow's C interface."""
    return any(hasattr(value, way) for way in WAYS)


def batches_of(frame: Any) -> list[pa.RecordBatch]:
    """The rows of a frame in as few batches as possible, at least one; more than one only if a column of text exceeds 2
    GiB. Leaves out the index of a pandas DataFrame.

    Raises TypeError if it does not have columns, and what its library raises.
    """
    if isinstance(frame, pa.RecordBatch):
        return [frame]
    if not is_frame(frame):
        raise TypeError("it has neither __arrow_c_array__ nor __arrow_c_stream__")
    try:
        if hasattr(frame, WAYS[0]):
            table = pa.Table.from_batches([pa.record_batch(frame)])
        else:
            table = pa.table(frame)
    except pa.ArrowInvalid as error:
        raise TypeError(str(error)) from error
    if not type(frame).__module__.startswith("pyarrow."):
        table = without_index(table)
    table = with_plain_text(table.combine_chunks())
    return table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]


def without_index(table: pa.Table) -> pa.Table:
    """pandas passes an index as additional columns, whose names it tells."""
    metadata = table.schema.pandas_metadata
    if not metadata:
        return table
    index = [name for name in metadata.get("index_columns", ()) if isinstance(name, str)]
    return table.drop_columns(index) if index else table


def with_plain_text(table: pa.Table) -> pa.Table:
    for i, field in enumerate(table.schema):
        plain = PLAIN.get(field.type)
        if plain is not None:
            table = table.set_column(i, field.name, table.column(i).cast(plain))
    return table
