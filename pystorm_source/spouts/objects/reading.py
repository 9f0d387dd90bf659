"""The blocks of parts of objects, one after the other: lines, row groups of Parquet, records of Avro.

All that is asked of the store is asked between two blocks, in ``__next__``: so a busy store may be asked again. Only a
part of a large Parquet object asks while it is read.
"""

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from pystorm_source.errors import PystormError, SchemaError, WorldError
from pystorm_source.errors.packages import package
from pystorm_source.spouts.blocks.line_blocks import BLOCK, plain_blocks
from pystorm_source.spouts.blocks.parquet_rows import ParquetRows, instants_of
from pystorm_source.spouts.blocks.row_groups import is_damage, row_group_blocks, row_groups_of
from pystorm_source.spouts.objects.avro_columns import AvroColumns, written_types
from pystorm_source.spouts.objects.fetching import Fetcher, ObjectBytes
from pystorm_source.spouts.objects.object_file import TAIL, ObjectFile
from pystorm_source.spouts.objects.options import ObjectsOptions
from pystorm_source.spouts.objects.rows import ObjectRows
from pystorm_source.spouts.objects.segment import Part

_MARGIN = 1 << 14
"""Bytes behind a part that are fetched with it, for its last line. Too few: another request. Too many: wasted."""
_RECORDS = 4096
Block = tuple[Any, int]


def is_divisible(path: str, options: ObjectsOptions) -> bool:
    """Whether parts of the object can be read by themselves."""
    return options.format != "avro" and not (path.endswith(".gz") and options.format != "parquet")


class PartBlocks(Iterator[Block]):
    """``PartBlocks(objects, parts, rows, options, end, pass_over)``: (block, byte of the object where it begins).

    ``end``: of the range. ``pass_over`` is told of what cannot be read, and raises if that is an error. ``fixed``: all
    rows of the last block have its offset.
    """

    def __init__(
        self,
        objects: ObjectBytes,
        parts: list[Part],
        rows: ObjectRows,
        options: ObjectsOptions,
        end: int,
        pass_over: Callable[[WorldError | SchemaError], None],
    ):
        self.fixed = False
        self._objects = objects
        self._rows = rows
        self._options = options
        self._end = end
        self._pass_over = pass_over
        self._fetcher = Fetcher(objects, parts, self._span)
        self._got: tuple[Part, Any] | None = None
        self._current: Iterator[Block] | None = None

    def __next__(self) -> Block:
        while True:
            try:
                if self._current is not None:
                    block = next(self._current, None)
                    if block is not None:
                        return block
                    self._current = None
                self._got = self._got or self._fetcher.next()
                if self._got is None:
                    raise StopIteration
                part, data = self._got
                self._current = self._begun(part, data)
                self._got = None
            except (WorldError, SchemaError) as error:
                self._got = self._current = None
                self._pass_over(error)

    def close(self) -> None:
        self._fetcher.close()

    def _span(self, part: Part) -> tuple[int, int] | None:
        """What to fetch ahead."""
        if self._options.format == "parquet":
            return (0, part.end) if part.is_whole else None
        return max(0, part.begin - 1), min(part.object.size, part.end if part.is_whole else part.end + _MARGIN)

    def _begun(self, part: Part, data: Any) -> Iterator[Block]:
        """Its blocks. May ask the store."""
        options, path = self._options, f"{self._objects.url}/{part.object.path}"
        self._rows.begin(part, path, min(part.at + max(1, part.end - part.begin), self._end) - 1)
        if options.format == "parquet":
            self.fixed = True
            source = (
                pa.BufferReader(pa.py_buffer(data)) if data is not None else ObjectFile(self._objects.patient(), part)
            )
            return self._row_groups(part, path, source)
        if options.format == "avro":
            self.fixed = True
            return self._records(part, path, data)
        if not is_divisible(part.object.path, options):
            self.fixed = True
            return self._unpacked(part, path, data)
        self.fixed = False
        return self._lines(part, path, data)

    def _lines(self, part: Part, path: str, data: Any) -> Iterator[Block]:
        has_header = self._options.format == "csv" and self._options.header
        base = max(0, part.begin - 1)
        text = bytes(data)
        while base + len(text) < part.object.size and text.find(b"\n", part.end - 1 - base) < 0:
            at = base + len(text)
            text += bytes(self._objects.get(part.object, at, at + max(TAIL, len(text))))
        first = b""
        if has_header:
            head = text if part.begin == 0 else bytes(self._objects.get(part.object, 0, TAIL))
            first = head[: head.find(b"\n") + 1 or len(head)]
        self._rows.begin_text(path, first)
        start = max(part.begin, len(first))
        if part.is_whole and len(text) <= BLOCK:
            return iter([(text[start:], start)] if start < part.end else [])
        return plain_blocks(lambda count, at: text[at - base : at - base + count], start, part.end, path)

    def _unpacked(self, part: Part, path: str, data: Any) -> Iterator[Block]:
        """Lines of a gzip object."""
        begun = not (self._options.format == "csv" and self._options.header)
        if begun:
            self._rows.begin_text(path, b"")
        rest = b""
        source = gzip.GzipFile(fileobj=io.BytesIO(data))
        damage = None
        while damage is None:
            block, damage = _inflated(source)
            is_end = not block and damage is None
            text = rest + block
            cut = len(text) if is_end else text.rfind(b"\n") + 1
            lines, rest = text[:cut], text[cut:]
            if lines and not begun:
                first = lines[: lines.find(b"\n") + 1 or len(lines)]
                self._rows.begin_text(path, first)
                lines, begun = lines[len(first) :], True
            if lines:
                yield lines, part.begin
            if is_end:
                return
        raise _broken(path, "gzip object", damage, part) from damage

    def _row_groups(self, part: Part, path: str, source: Any) -> Iterator[Block]:
        import pyarrow.parquet as pq

        rows = self._rows.inner
        assert isinstance(rows, ParquetRows)
        try:
            reader = pq.ParquetFile(source, pre_buffer=not part.is_whole, coerce_int96_timestamp_unit="us")
            columns = rows.begin(path, reader.schema_arrow, instants_of(reader), part.object.path)
            groups = row_groups_of(reader.metadata, part.object.size)
        except Exception as error:
            if not is_damage(error):
                raise
            raise _broken(path, "Parquet object", error, part) from error
        for offset, number in groups:
            if part.begin <= offset < part.end:
                try:
                    for block in row_group_blocks(reader, number, columns, rows, _no_check):
                        yield block, offset
                except Exception as error:
                    if not is_damage(error):
                        raise
                    self._pass_over(_broken(path, "Parquet object", error, part))

    def _records(self, part: Part, path: str, data: Any) -> Iterator[Block]:
        rows = self._rows.inner
        assert isinstance(rows, ParquetRows)
        fastavro = package("fastavro", "ObjectsSpout", "avro")
        first = 0
        try:
            reader = fastavro.reader(io.BytesIO(data))
            names = [field["name"] for field in reader.writer_schema["fields"]]
            written = written_types(reader.metadata["avro.schema"], path, rows)
            damage = None
            while damage is None:
                records, damage = _decoded(reader)
                if not records:
                    break
                columns = AvroColumns.of(records, names, rows, written)
                wanted = rows.begin(path, columns.batch.schema, {}, part.object.path)
                for block in columns.blocks(records, first, wanted, rows):
                    yield block, part.begin
                first += len(records)
            if damage is not None:
                raise damage
        except (PystormError, MemoryError):
            raise
        except Exception as error:  # what fastavro says to damaged bytes is anything
            raise _broken(path, "Avro object", error, part) from error


def _inflated(source: gzip.GzipFile) -> tuple[bytes, Exception | None]:
    """At most some ``BLOCK`` bytes, and the error behind them."""
    pieces: list[bytes] = []
    try:
        while sum(map(len, pieces)) < BLOCK and (piece := source.read1(BLOCK)):
            pieces.append(piece)
    except (EOFError, zlib.error, OSError) as error:
        return b"".join(pieces), error
    return b"".join(pieces), None


def _decoded(reader: Iterator[dict[str, Any]]) -> tuple[list[dict[str, Any]], Exception | None]:
    """At most ``_RECORDS`` records, and the error behind them."""
    records: list[dict[str, Any]] = []
    try:
        records.extend(islice(reader, _RECORDS))
    except Exception as error:
        return records, error
    return records, None


def _no_check() -> None:
    """What is read is what was planned: the store has compared the etag."""


def _broken(path: str, what: str, error: BaseException, part: Part) -> WorldError:
    return WorldError(
        f"{path!r} is no whole {what}, or is damaged ({error}): repair or remove it; files.malformed=skip takes what "
        f"can be read. Given: [{part.begin}, {part.end})",
        code="PYSTORM_FILE_UNREADABLE",
    )
