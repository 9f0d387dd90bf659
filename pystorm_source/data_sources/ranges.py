"""Ranges of a streaming reader's offsets, read partition by partition."""

import inspect
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import Row as NamedRow
from pyspark.sql.datasource import DataSourceStreamReader, SimpleDataSourceStreamReader

from pystorm_source.errors import TopologyError, given

Row = tuple[Any, ...]


class Ranges:
    """Where a reader is: it plans one range of its offsets at a time, and reads the partitions in their order.

    A cursor has ``offset``, the end of the last range; within a range also ``end``, the partition's number ``at`` and
    its next ``row``. A new process plans the same partitions again, which Spark relies on, too, and skips the rows
    before that one.

    ``columns``: of the source's schema. As in Spark, values of a ``Row`` with names, and of a batch, belong to the
    columns of these names, in any order.
    """

    def __init__(self, reader: DataSourceStreamReader | SimpleDataSourceStreamReader, columns: Sequence[str]):
        self._reader = reader
        self._columns = list(columns)
        self._open: tuple[Any, Iterator[Row]] | None = None  # cursor, and the rows of its partition after it
        self._parts: tuple[Any, Any, list[Any]] | None = None  # of a range, from offset to end
        self._committed: Any = None

    def read(self, cursor: Any, limit: int) -> tuple[list[Row], Any, bool]:
        """Rows after a cursor, the cursor after them, and whether there may be more now."""
        rows: list[Row]
        if cursor is None:
            cursor = {"offset": self._reader.initialOffset()}
        if isinstance(self._reader, SimpleDataSourceStreamReader):
            all_there, end = self._reader.read(cursor["offset"])
            rows = list(self._each(all_there))
            if rows and end == cursor["offset"]:
                raise TopologyError(
                    f"{type(self._reader).__name__}.read has returned {len(rows)} rows, and the offset from which it "
                    f"read them as the end: the next call would return them again. Given: {given(end)}",
                    code="PYSTORM_INVALID_COMPONENT",
                )
            return rows, {"offset": end}, False
        rows = []
        while len(rows) < limit:
            if "end" not in cursor:
                if rows:  # a source that always has more is asked with the next call
                    break
                end = self._latest(cursor["offset"])
                if end == cursor["offset"]:
                    return rows, cursor, False
                cursor = {**cursor, "end": end, "at": 0, "row": 0}
            parts = self._partitions(cursor["offset"], cursor["end"])
            if cursor["at"] >= len(parts):
                cursor = {"offset": cursor["end"]}
                continue
            wanted = limit - len(rows)
            left = self._rows(cursor, parts)
            found = list(islice(left, wanted))
            rows += found
            if len(found) < wanted:
                cursor = {**cursor, "at": cursor["at"] + 1, "row": 0}
            else:
                cursor = {**cursor, "row": cursor["row"] + len(found)}
                self._open = cursor, left
        return rows, cursor, True

    def commit(self, cursor: Any) -> None:
        """All rows before this cursor are safe."""
        if cursor["offset"] != self._committed:
            self._reader.commit(cursor["offset"])
            self._committed = cursor["offset"]

    def stop(self) -> None:
        """Nothing is read any more."""
        self._open = None
        if isinstance(self._reader, DataSourceStreamReader):
            self._reader.stop()

    def _latest(self, start: Any) -> Any:
        reader: Any = self._reader
        if not inspect.signature(reader.latestOffset).parameters:  # as Spark 4.0 and 4.1 call it
            return reader.latestOffset()
        if not hasattr(reader, "getDefaultReadLimit"):
            raise TopologyError(
                f"{type(reader).__name__}.latestOffset takes a start and a limit, which Spark gives from 4.2 on; "
                f"pyspark here is {pyspark.__version__}. Define `latestOffset(self)`, or install pyspark>=4.2",
                code="PYSTORM_INVALID_COMPONENT",
            )
        return reader.latestOffset(start, reader.getDefaultReadLimit())

    def _partitions(self, start: Any, end: Any) -> list[Any]:
        if self._parts is None or self._parts[:2] != (start, end):
            reader: Any = self._reader
            self._parts = start, end, list(reader.partitions(start, end))
        return self._parts[2]

    def _rows(self, cursor: Any, parts: list[Any]) -> Iterator[Row]:
        # Taken: one that raises has ended, or lacks the rows that were read before it raised.
        opened, self._open = self._open, None
        if opened is not None and opened[0] == cursor:
            return opened[1]
        reader: Any = self._reader
        return islice(self._each(reader.read(parts[cursor["at"]])), cursor["row"], None)

    def _each(self, found: Iterable[Any]) -> Iterator[Row]:
        for each in found:
            if isinstance(each, pa.RecordBatch):
                batch = each if each.schema.names == self._columns else each.select(self._same(each.schema.names))
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
            elif isinstance(each, NamedRow) and hasattr(each, "__fields__") and each.__fields__ != self._columns:
                yield tuple(each[name] for name in self._same(each.__fields__))
            else:
                yield each

    def _same(self, names: list[str]) -> list[str]:
        """The columns, if these are their names in another order. Raises TopologyError."""
        if sorted(names) != sorted(self._columns):
            raise TopologyError(
                f"{type(self._reader).__name__} gives rows with other columns than the schema of its source, which has "
                f"{self._columns!r}. Given: {list(names)!r}",
                code="PYSTORM_SCHEMA_MISMATCH",
            )
        return self._columns
