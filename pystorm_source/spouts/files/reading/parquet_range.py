"""Reads the row groups of a byte range of one Parquet file in a task: in batches, only the declared columns.

find the file ─► is it the one that was planned? ─► read a batch ─► is it still? ─► its rows are emitted
"""

from collections.abc import Callable, Iterator

import pyarrow as pa

from pystorm_source.errors import WorldError
from pystorm_source.spouts.blocks.parquet_rows import MisfitRow, ParquetRows, instants_of
from pystorm_source.spouts.blocks.row_groups import is_damage, row_group_blocks
from pystorm_source.spouts.files.identity.catalog import FileCatalog
from pystorm_source.spouts.files.identity.identity import FileIdentity
from pystorm_source.spouts.files.identity.parquet_file import ParquetFile
from pystorm_source.spouts.files.reading.range import ATTEMPTS, lost_file


class ParquetRange:
    """``ParquetRange(catalog, partition, start, end, rows)``: the row groups that begin in [start, end).

    ``path``: where the file was found. ``fixed``: all rows of a block have its offset. Raises DataLossError if the file
    is gone or was rewritten, WorldError if it cannot be read, SchemaError if it does not have the fields.
    """

    fixed = True

    def __init__(self, catalog: FileCatalog, partition: str, start: int, end: int, rows: ParquetRows):
        self._catalog = catalog
        self._identity = FileIdentity.parse(partition)
        self._start = start
        self._end = end
        self._rows = rows
        self._file = self._opened()
        self.path = self._file.path
        try:
            self._columns = rows.begin(
                self.path, self._file.reader.schema_arrow, instants_of(self._file.reader), self._identity.hint
            )
        except BaseException:
            self.close()
            raise

    def blocks(self, pass_over: Callable[[WorldError], None]) -> Iterator[tuple[pa.RecordBatch | MisfitRow, int]]:
        """Yields (rows, offset of their row group) in order. Calls ``pass_over`` for a row group that cannot be read,
        which raises if that is an error; otherwise the rest of the group is skipped.
        """
        for offset, number in self._file.row_groups():
            if self._start <= offset < self._end:
                try:
                    yield from ((block, offset) for block in self._blocks_of(number))
                except Exception as error:
                    if not is_damage(error):
                        raise
                    self._check()
                    pass_over(self._unreadable(error))

    def close(self) -> None:
        self._file.close()

    def _blocks_of(self, number: int) -> Iterator[pa.RecordBatch | MisfitRow]:
        return row_group_blocks(self._file.reader, number, self._columns, self._rows, self._check)

    def _check(self) -> None:
        """Raises DataLossError if what was read is not the content that was planned."""
        if not self._file.is_same():
            raise self._lost(self.path)

    def _opened(self) -> ParquetFile:
        changed = ""
        for _ in range(ATTEMPTS):
            file = self._catalog.find(self._identity.inode, self._identity.hint)
            if file is None:
                break
            try:
                return ParquetFile(file.path, self._identity.inode, self._identity.crc)
            except FileNotFoundError:
                changed = file.path  # or renamed since it was listed
            except Exception as error:
                if not is_damage(error):
                    raise
                self.path = file.path
                raise self._unreadable(error) from error
        raise self._lost(changed)

    def _unreadable(self, error: BaseException) -> WorldError:
        return WorldError(
            f"{self.path!r} is no whole Parquet file, or is damaged ({error}): repair or remove it; "
            f"files.malformed=skip takes what can be read. Given: [{self._start}, {self._end})",
            code="PYSTORM_FILE_UNREADABLE",
        )

    def _lost(self, changed: str) -> WorldError:
        anew = (
            f"{changed!r} was overwritten before it was read: write new files under new names, or set "
            "failOnDataLoss=false"
        )
        return lost_file(self._catalog, self._identity, anew if changed else "", "files")
