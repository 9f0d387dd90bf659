"""What the fields of a stream need of Kafka's messages, which themselves are not kept."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from cython_core.arrow.row_batch import ByteColumn

SIDES = ("key", "value")


class TakenRecords:
    """``TakenRecords(names, columns)``: records of one partition, appended by chunks.

    ``names``: fields that differ from record to record: a list each in ``lists``. The list ``timestamp`` has
    milliseconds. ``columns``: key and value become Arrow columns at once, and have no lists.

    Messages that were kept would be looked at by Python's garbage collector again and again; bytes and numbers are not.
    """

    def __init__(self, names: Iterable[str], columns: bool):
        self.lists: dict[str, list[Any]] = {name: [] for name in names if not (columns and name in SIDES)}
        self.offsets: Sequence[int] = ()
        self._columns = {name: ByteColumn() for name in names if columns and name in SIDES}
        self._times = [name for name in ("timestampType", "timestamp") if name in self.lists]
        self._weighed = self._bytes = 0

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, offsets: Sequence[int], messages: Sequence[Any]) -> None:
        """Takes a chunk of at least one record."""
        kind: Any = type(messages[0])
        for name, column in self._columns.items():
            column.extend(messages, getattr(kind, name))
        for name, found in self.lists.items():
            if name in SIDES:
                found += map(getattr(kind, name), messages)
            elif name == "headers":
                found += map(_headers, messages)
        if self._times:
            flat = list(chain.from_iterable(map(kind.timestamp, messages)))  # type, milliseconds, type, ...
            for name in self._times:
                self.lists[name] += flat[name == "timestamp" :: 2]
        self.offsets = _joined(self.offsets, offsets) if self.offsets else offsets

    def weigh(self) -> int:
        """Bytes of the columns, or of the listed values."""
        values = self.lists.get("value", [])
        self._bytes += sum(map(len, filter(None, values[self._weighed :])))
        self._weighed = len(values)
        return self._bytes + sum(column.size for column in self._columns.values())

    def arrays(self) -> dict[str, pa.Array]:
        """Key and value as columns, once."""
        return {name: column.take() for name, column in self._columns.items()}


def _joined(offsets: Sequence[int], more: Sequence[int]) -> Sequence[int]:
    if isinstance(offsets, range) and isinstance(more, range) and offsets.stop == more.start:
        return range(offsets.start, more.stop)
    return [*offsets, *more]


def _headers(message: Any) -> list[dict[str, Any]] | None:
    """Returns the headers; None for a message without headers, as in Spark."""
    return [{"key": key, "value": value} for key, value in message.headers() or ()] or None
