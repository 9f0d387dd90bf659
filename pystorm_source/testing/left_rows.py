"""Which of the rows that a stream emitted have left the topology."""

from collections import Counter
from typing import Any

import pyarrow as pa

Row = tuple[Any, ...]


def of_left(emitted: list[Row], left: list[Row], types: list[pa.DataType], is_whole: bool) -> list[Row]:
    """The rows as they were emitted, in that order, without those that are not among the rows that left.

    ``left``: as they come back out of Arrow. Which of equal rows is meant makes no difference. ``is_whole``: whether
    the run came to its end; else rows of the micro-batch that broke off have left, and ``emitted`` is without them.
    """
    if is_whole and len(emitted) == len(left):
        return list(emitted)
    try:
        columns = map(_as_arrow, zip(*emitted, strict=True), types)
        keys = list(map(repr, zip(*columns, strict=True)))
    except (pa.ArrowException, TypeError, ValueError):  # the core converts what pyarrow alone does not
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
