"""Row groups of Parquet: where each is, and its rows in batches."""

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

import pyarrow as pa

from pystorm_source.errors import PystormError
from pystorm_source.spouts.blocks.parquet_rows import MisfitRow, ParquetRows

# Rows of a batch, and bytes that the row group has for them. Too small: bolts and Spark take time for each batch. Too
# large: rows of much text fill memory.
_ROWS, _BYTES = 16_384, 16 << 20
_DAMAGE = (pa.ArrowException, OSError, ValueError)


def is_damage(error: BaseException) -> bool:
    """Whether pyarrow raises this for a file that is no Parquet, or is damaged; not for want of memory, or if the file
    system does not answer.
    """
    if isinstance(error, MemoryError) or getattr(error, "errno", None) is not None:
        return False
    return isinstance(error, _DAMAGE) and not isinstance(error, PystormError)


def row_groups_of(metadata: Any, size: int) -> list[tuple[int, int]]:
    """Returns (offset, number) of each row group. Offsets divide the file in proportion to the sizes of the groups.

    Workaround (pyarrow 26): the true positions are in the metadata of the columns, but asking a damaged footer for a
    column may kill the process.
    """
    sizes = [max(0, metadata.row_group(number).total_byte_size) for number in range(metadata.num_row_groups)]
    total = max(1, sum(sizes))
    before = accumulate(sizes[:-1], initial=0)
    # Inside the file even if the footer is wrong, so that some range contains it.
    return [(min(size * at // total, size - 1), number) for number, at in enumerate(before)][: len(sizes)]


def row_group_blocks(
    reader: Any, number: int, columns: list[str], rows: ParquetRows, check: Callable[[], None]
) -> Iterator[pa.RecordBatch | MisfitRow]:
    """Yields the blocks that ``rows`` makes of these columns of a row group. Calls ``check`` after each read."""
    group = reader.metadata.row_group(number)
    width = max(1, group.total_byte_size // max(1, group.num_rows))
    size = max(1, min(_ROWS, _BYTES // width))
    first = 0
    if not columns:  # all fields are named by directories
        for first in range(0, group.num_rows, size):
            count = min(size, group.num_rows - first)
            yield from rows.blocks(pa.RecordBatch.from_arrays([pa.nulls(count)], names=[""]), first)
        return
    for batch in reader.iter_batches(size, [number], columns, use_threads=False):
        check()
        if batch.num_rows:
            yield from rows.blocks(batch, first)
        first += batch.num_rows
