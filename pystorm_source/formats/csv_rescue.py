"""CSV whose last field gets what does not fit the others: a file may have other columns than declared."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pystorm_source.formats.csv import Csv, CsvForm
from pystorm_source.formats.lines import Faults, LineFormat, Malformed, Pairs, line_offsets, one_by_one, without_newline
from pystorm_source.formats.rescued import name_by_position, names_of, rescued_text, with_rescued
from pystorm_source.types.arrow import nullable, schema_of


class CsvRescue(LineFormat):
    """``CsvRescue(fields, types, form, faults)``: as ``Csv``, but for the last field.

    It gets columns without a field, values of a wrong type and, without a header, further values, as ``_c3``. A field
    without a column is null. A value that is null is not rescued. A line with fewer values than columns, or with more
    than its header, is malformed.
    """

    def __init__(self, fields: Sequence[str], types: Sequence[str | None], form: CsvForm, faults: Faults):
        self._full = schema_of(fields, types)
        self._types = dict(zip(fields[:-1], types[:-1], strict=True))
        self._nullable = {name: ddl is None or nullable(ddl, name) for name, ddl in self._types.items()}
        self._header = form.header
        self._form = form._replace(header=False)  # of all columns of a file, by position
        self._faults = faults
        self._known: dict[tuple[str, ...], Csv] = {}
        self._take(tuple(self._types))
        self.schema = None if self._csv.schema is None else self._full

    def begin(self, path: str, first_line: bytes) -> None:
        """Raises SchemaError if the header lacks a field that may not be null."""
        self._faults.path = path
        if self._header:
            needed = [name for name, may_lack in self._nullable.items() if not may_lack]
            self._take(tuple(names_of(self._csv.header_of(path, first_line, needed), self._types)))

    def _take(self, columns: tuple[str, ...]) -> None:
        """Reads files of these columns next."""
        if columns not in self._known:
            types = tuple(self._types.get(name, "string") for name in columns)
            self._known[columns] = Csv(columns, types, self._form, self._faults)
        self._csv, self._columns = self._known[columns], columns
        self._others = [at for at, name in enumerate(columns) if name not in self._types]
        self._places = [columns.index(name) if name in columns else None for name in self._types]

    def pairs(self, data: bytes, offset: int, fixed: bool) -> Pairs:
        body = without_newline(data)
        if self._columns and (offset > 0 or fixed or not body.startswith(b"\xef\xbb\xbf")):
            columns = self._csv.columns(body)
            if columns is not None:
                count = len(columns[0])
                own: list[Sequence[Any]] = [[None] * count if at is None else columns[at] for at in self._places]
                own.append(self._texts([columns[at] for at in self._others], count))
                return zip(zip(*own, strict=True), line_offsets(body.split(b"\n"), offset, fixed), strict=False)
        return one_by_one(data, offset, fixed, self._values, self._faults)

    def batch(self, data: bytes, offset: int, fixed: bool) -> pa.RecordBatch | None:
        found = self._csv.batch(data, offset, fixed) if self._columns and self.schema is not None else None
        if found is None or self.schema is None:
            return None
        count = found.num_rows
        own = [
            pa.nulls(count, field.type) if at is None else found.column(at)
            for at, field in zip(self._places, self.schema, strict=False)
        ]
        others = [found.column(at) for at in self._others]
        texts = None
        if any(column.null_count < count for column in others):
            texts = pa.array(self._texts([column.to_pylist() for column in others], count), pa.string())
        return with_rescued(own, count, self.schema, texts)

    def _texts(self, others: list[list[Any]], count: int) -> list[str | None]:
        """The rescued column of rows whose values fit; ``others``: the columns without a field."""
        if not others:
            return [None] * count
        names, path = [self._columns[at] for at in self._others], self._faults.origin
        return [
            rescued_text({name: value for name, value in zip(names, row, strict=True) if value is not None}, path)
            for row in zip(*others, strict=True)
        ]

    def _values(self, line: bytes) -> tuple[Any, ...]:
        record = self._csv.record(line)
        width = len(self._columns)
        if len(record) < width or (self._header and len(record) > width):
            raise Malformed(f"{len(record)} values instead of {width}")
        values: dict[str, Any] = dict.fromkeys(self._types)
        rest: dict[str, Any] = {}
        for at, (name, text) in enumerate(zip(self._columns, record, strict=False)):
            try:
                value = self._csv.value(at, text)
            except Malformed:
                if not self._nullable[name]:
                    raise
                rest[name] = text
                continue
            if name in values:
                values[name] = value
            elif value is not None:
                rest[name] = value
        for at in range(width, len(record)):
            if record[at] != self._csv.null:
                rest[name_by_position(at, self._columns)] = record[at]
        return (*values.values(), rescued_text(rest, self._faults.origin))
