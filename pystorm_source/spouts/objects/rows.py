"""The rows of an object: fields of its content, of its path (``day=2024-02-29/``), and about itself (``_metadata``)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from cython_core.arrow.batch_rows import BatchRows
from pystorm_source.errors import OptionError, SchemaError
from pystorm_source.formats.lines import Faults, LineFormat, Lines, Pairs, TextDecoder, one_by_one
from pystorm_source.formats.text_formats import text_format
from pystorm_source.spouts.blocks.parquet_rows import Field, ParquetRows, path_value
from pystorm_source.spouts.objects.options import ObjectsOptions
from pystorm_source.spouts.objects.segment import Part
from pystorm_source.types.arrow import field_type, nullable, schema_of

METADATA = "_metadata"
"""Field of what is known of the object: a struct of some of ``ABOUT``, by the names of Spark's hidden column."""
ABOUT = {
    "file_path": pa.string(),
    "file_name": pa.string(),
    "file_size": pa.int64(),
    "file_modification_time": pa.timestamp("us", "UTC"),
    "etag": pa.string(),
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _NoFields(LineFormat):
    """``_NoFields(faults, blank)``: for lines whose content is no field. ``blank``: whether empty lines are rows."""

    schema = None

    def __init__(self, faults: Faults, blank: bool):
        self._faults = faults
        self._blank = blank

    def begin(self, path: str, first_line: bytes) -> None:
        self._faults.path = path

    def pairs(self, data: bytes, offset: int, fixed: bool) -> Pairs:
        return one_by_one(data, offset, fixed, lambda line: (), self._faults, self._blank)

    def batch(self, data: bytes, offset: int, fixed: bool) -> pa.RecordBatch | None:
        return None


class ObjectRows:
    """``ObjectRows(fields, ddls, options, faults)``: a format that adds fields of path and metadata to the fields of
    the content. Raises OptionError if the fields do not fit the format.

    ``inner``: the format of the content of the object that was begun.
    """

    def __init__(self, fields: Sequence[str], ddls: Sequence[str | None], options: ObjectsOptions, faults: Faults):
        self._fields = [
            Field(name, None, True)
            if ddl is None
            else Field(name, field_type(ddl, f"field {name!r}"), nullable(ddl, name))
            for name, ddl in zip(fields, ddls, strict=True)
        ]
        self._ddls = dict(zip(fields, ddls, strict=True))
        self._options = options
        self._rescues = options.rescues(options.format, fields, ddls)
        self._nameable = set(fields[:-1] if self._rescues else fields)
        self._faults = faults
        self._inners: dict[frozenset[str], LineFormat | ParquetRows] = {}
        self._check_metadata()
        content = [each for each in self._fields if each.name != METADATA]
        full = self.schema = schema_of(fields, ddls)
        if content and options.format != "lines":  # of lines, the path of an object tells which field is the line
            self.inner = self._inner_for(frozenset())
            self.schema = full if self.inner.schema is not None else None
        self._constants: dict[str, pa.Scalar] = {}
        self._values: tuple[Any, ...] = ()
        self._shift, self._last = 0, 0

    def begin(self, part: Part, path: str, last: int) -> None:
        """Begins this part; ``last``: the greatest offset that its rows may have. Raises SchemaError if the path lacks
        what the fields need.
        """
        self._faults.path = self._faults.origin = path
        hint = part.object.path
        folders = {unquote(each.split("=", 1)[0]) for each in hint.split("/")[:-1] if "=" in each}
        of_path = frozenset(folders & self._nameable)
        self.inner = self._inner_for(of_path)
        self._shift, self._last = part.at - part.begin, last
        self._constants = {
            each.name: self._about(part, path, each) if each.name == METADATA else path_value(each, path, hint, [])
            for each in self._fields
            if each.name == METADATA or each.name in of_path
        }
        if self._constants:
            one = pa.RecordBatch.from_arrays(
                [pa.array([each.as_py()], each.type) for each in self._constants.values()], names=list(self._constants)
            )
            (self._values,) = BatchRows(one).rows(0, 1)

    def begin_text(self, path: str, first_line: bytes) -> None:
        """Begins a text, as in ``LineFormat.begin``."""
        assert not isinstance(self.inner, ParquetRows)
        self.inner.begin(path, first_line)

    def position(self, offset: int) -> int:
        """The offset of the partition at this byte of the object."""
        return min(offset + self._shift, self._last)

    def batch(self, data: Any, offset: int, fixed: bool) -> pa.RecordBatch | None:
        batch = self.inner.batch(data, offset, fixed)
        if batch is None or not self._constants:
            return batch
        content = iter(batch.columns)
        count = batch.num_rows
        columns = [
            pa.repeat(self._constants[each.name], count) if each.name in self._constants else next(content)
            for each in self._fields
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def pairs(self, data: Any, offset: int, fixed: bool) -> Pairs:
        positions = self.position
        if not self._constants:
            for pair in self.inner.pairs(data, offset, fixed):
                yield pair if pair is None else (pair[0], positions(pair[1]))
            return
        known = dict(zip(self._constants, self._values, strict=True))
        for pair in self.inner.pairs(data, offset, fixed):
            if pair is None:
                yield None
                continue
            content = iter(pair[0])
            values = tuple(known[each.name] if each.name in known else next(content) for each in self._fields)
            yield values, positions(pair[1])

    def _inner_for(self, of_path: frozenset[str]) -> LineFormat | ParquetRows:
        """The format of the fields that are in the content."""
        if of_path not in self._inners:
            names = tuple(each.name for each in self._fields if each.name != METADATA and each.name not in of_path)
            self._inners[of_path] = self._made(names, tuple(self._ddls[name] for name in names))
        return self._inners[of_path]

    def _made(self, names: tuple[str, ...], ddls: tuple[str | None, ...]) -> LineFormat | ParquetRows:
        options, faults = self._options, self._faults
        if not names and options.format in ("lines", "csv"):
            return _NoFields(faults, options.format == "lines")
        if options.format == "lines":
            columns = schema_of(names, ddls)
            if len(names) > 1 or (self.schema is not None and columns is not None and columns.types != [pa.string()]):
                raise SchemaError(
                    f"format 'lines' gives one string, the line; the folders of {faults.path!r} must name the other "
                    f"fields: correct the fields, or let files.malformed=skip leave such objects out. Given: {names!r}",
                    code="PYSTORM_SCHEMA_MISMATCH",
                )
            decoder = TextDecoder(options.encoding, options.encoding_errors)
            return Lines(decoder, faults, None if columns is None else columns.field(0))
        if options.format in ("ndjson", "csv"):
            return text_format(names, ddls, options.csv_form(options.format), faults, self._rescues)
        return ParquetRows(names, ddls, faults, self._rescues)

    def _check_metadata(self) -> None:
        for each in self._fields:
            if each.name == METADATA:
                inside = (
                    {}
                    if each.type is None or not pa.types.is_struct(each.type)
                    else {f.name: f.type for f in each.type}
                )
                if not inside or any(ABOUT.get(name) != type for name, type in inside.items()):
                    raise OptionError(
                        "field '_metadata' is a struct of some of file_path string, file_name string, file_size long, "
                        f"file_modification_time timestamp, etag string. Given: {self._ddls[METADATA]!r}",
                        code="PYSTORM_SCHEMA_MISMATCH",
                    )

    def _about(self, part: Part, path: str, field: Field) -> pa.Scalar:
        found = part.object
        about = {
            "file_path": path,
            "file_name": found.path.rpartition("/")[2],
            "file_size": found.size,
            "file_modification_time": _EPOCH + timedelta(microseconds=found.modified),
            "etag": found.etag,
        }
        return pa.scalar({each.name: about[each.name] for each in field.type or ()}, field.type)
