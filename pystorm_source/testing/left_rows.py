"""Which of the rows that a stream emitted have left the topology."""

from collections import Counter
from typing import Any

import pyarrow as pa

Row = tuple[Any, ...]


def of_left(emitted: list[Row], left: list[Row], types: list[pa.DataType], is_whole: bool) -> list[Row]:
    """Returns the emitted rows, in order, that are among the rows that left.

    ``left``: as read back from Arrow. It does not matter which of several equal rows left. ``is_whole``: whether the
    run came to its end; if not, rows of the interrupted micro-batch may have left that ``emitted`` does not have.
    """
    if is_whole and len(emitted) == len(left):
        return list(emitted)
    try:
        columns = map(_as_arrow, zip(*emitted, strict=True), types)
        keys = list(map(repr, zip(*columns, strict=True)))
    except (pa.ArrowException, TypeError, ValueError):  # the core converts some values that pyarrow does not
        return list(left if is_whole else emitted)
    waiting = Counter(map(repr, left))
    kept = []
    for row, key in zip(emitted, keys, strict=True):
        if waiting[key] > 0:
            waiting[key] -= 1
            kept.append(row)
    return kept if len(kept) == len(left) or not is_whole else list(left)


def _as_arrow(column: tuple[Any, ...], kind: pa.DataType) -> list[Any]:
    values: list[Any] = pa.array(column, kind).to_pylist()
    return values
