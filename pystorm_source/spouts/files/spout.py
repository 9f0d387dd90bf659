"""Growing text files, and whole Parquet files, followed."""

import logging
import os
from collections.abc import Mapping
from typing import Any

from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.partitioned_spout import Snapshot
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import OptionError, SchemaError, WorldError
from pystorm_source.formats.lines import Faults, LineFormat, Lines, TextDecoder
from pystorm_source.formats.text_formats import text_format
from pystorm_source.spouts.blocks.parquet_rows import ParquetRows
from pystorm_source.spouts.blocks.spout import BlocksSpout
from pystorm_source.spouts.files.identity.catalog import FileCatalog
from pystorm_source.spouts.files.identity.identity import FileIdentity
from pystorm_source.spouts.files.listing.follower import FileFollower
from pystorm_source.spouts.files.options import FilesOptions
from pystorm_source.spouts.files.reading.parquet_range import ParquetRange
from pystorm_source.spouts.files.reading.range import FileRange
from pystorm_source.types.arrow import schema_of


class FilesSpout(BlocksSpout):
    """Follows growing text files and folders of Parquet files. Survives rotation, renaming and compression.

    A partition is a file; an offset is the position of a line's first byte. A line is read once its newline is written.
    Files that end in ``.gz`` are read once they are complete, each in one piece; their offsets are positions in the
    compressed file. Names that begin with ``.`` or ``_`` are skipped, as in Spark's file source. Parquet files are read
    once they are complete, and only their declared fields; a row has the offset of its row group. docs/FILES.md has the
    rules.

    If only the output and batch bolts consume its rows, blocks of lines become Arrow columns, without a Python object
    per value: the same rows, faster. A subclass that defines ``next_tuple``, ``emit``, ``ack`` or ``fail`` is read row
    by row.

    Raises:
        OptionError: wrong options, when the query is loaded.
        DataLossError: unread bytes are gone, and ``failOnDataLoss`` is true.
        SchemaError: a malformed line, unless ``files.malformed`` says otherwise.
        WorldError: a file cannot be read.

    Example:
        >>> from pathlib import Path
        >>> from pystorm_source.spouts import FilesSpout
        >>> from pystorm_source.testing import run_topology
        >>> _ = Path("orders.json").write_text('{"id": 1, "item": "hat"}' + chr(10))
        >>> class Orders(Topology):
        ...     orders = FilesSpout.spec(path="orders.json", format="ndjson", fields=["id long", "item string"])
        >>> run_topology(Orders).rows("orders")
        [(1, 'hat')]
    """

    Options = FilesOptions
    outputs = ["line string"]
    clock: Clock = SystemClock()
    initial_rate = 20_000
    bounded = False
    poll_seconds = 0.0  # a listing of a local folder, as Spark's file source makes one with each trigger

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        par: int | dict[str, int] | None = None,
        config: dict[str, Any] | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        format: str | None = None,
        fields: list[str] | None = None,
        rescued: str | None = None,
    ) -> ComponentSpec:
        """This spout for a Topology; arguments win over the reader's options.

        Args:
            name (str): as in ``Spout.spec``.
            par (int | dict[str, int]): as in ``Spout.spec``.
            config (dict): as in ``Spout.spec``; further options such as ``{"files.header": True}``.
            path (str | os.PathLike): directory, file or glob. Defaults to the reader's: ``.load("/var/log/app")``.
            format (str): lines, ndjson, csv or parquet. Defaults to lines.
            fields (list[str]): names and types, as in ``outputs``. Defaults to ``["line string"]``, for lines.
            rescued (str): adds a string field of this name, such as ``"_rescued_data"``, for undeclared columns and
                values of a wrong type, as JSON. Defaults to no such field.

        Returns:
            ComponentSpec: what an attribute of the Topology is set to.
        """
        return cls._spec_of(name, par, config, path, format, fields, rescued, FilesSpout.outputs)

    @classmethod
    def _pystorm_check_here(cls, conf: dict[str, Any]) -> None:
        """Called on the driver when a query is loaded. Raises OptionError if there is nothing that can be followed."""
        if cls.made_catalog is FilesSpout.made_catalog and conf.get("path"):
            options = FilesOptions.of(conf)
            FileCatalog(options.path, by_path=options.identity == "path").check_exists(())

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Reads the options.

        Raises:
            OptionError: no ``path``, or fields that do not fit the format.
        """
        if not conf.get("path"):
            raise OptionError(
                "FilesSpout needs the option 'path', a directory, file or glob: .load('/var/log/app'), or "
                f"FilesSpout.spec(path='/var/log/app'). Given: {conf.get('path')!r}",
                code="PYSTORM_MISSING_OPTION",
            )
        options = self._options = FilesOptions.of(conf)
        self._catalog = self.made_catalog(options)
        self._log = self.logger or logging.getLogger(f"pystorm.component.{type(self).__name__}")
        self._faults = Faults(options.malformed, self._log, self._bury, "row" if options.whole else "line")
        self._format = self._made_format(conf.get("files.fields", self.outputs))
        self._header = options.header and options.format == "csv"
        self._range: FileRange | ParquetRange | None = None
        self._follower = FileFollower(options, self._catalog, self.clock, self._log)

    def made_catalog(self, options: FilesOptions) -> FileCatalog:
        """What lists the files; a subclass may list others.

        Args:
            options (FilesOptions): the spout's.

        Returns:
            FileCatalog: a new one.
        """
        gzip = options.gzip == "read" and not options.whole
        return FileCatalog(options.path, options.recursive, gzip, options.identity == "path")

    def _made_format(self, outputs: Any) -> LineFormat | ParquetRows:
        options = self._options
        if outputs is FilesSpout.outputs and options.format != "lines":
            raise OptionError(
                f"format {options.format!r} needs the fields to read: FilesSpout.spec(fields=['id long', "
                f"'item string'], ...), or `outputs` of a subclass. Given: {outputs!r}",
                code="PYSTORM_SCHEMA_MISMATCH",
            )
        stream = self._stream_of(outputs)
        rescues = options.rescues(options.format, stream.fields, stream.types)
        if options.format == "lines":
            if len(stream.fields) != 1:
                raise OptionError(
                    f"format 'lines' gives one field, the line: declare one, or choose format ndjson or csv. "
                    f"Given: {list(stream.fields)!r}",
                    code="PYSTORM_SCHEMA_MISMATCH",
                )
            columns = schema_of(stream.fields, stream.types)
            decoder = TextDecoder(options.encoding, options.encoding_errors)
            return Lines(decoder, self._faults, None if columns is None else columns.field(0))
        if options.whole:
            return ParquetRows(stream.fields, stream.types, self._faults, rescues)
        return text_format(stream.fields, stream.types, options.csv_form(options.format), self._faults, rescues)

    def partitions(self) -> list[str]:
        return list(self.snapshot({}, {}).heads)

    def latest(self, partition: str) -> int:
        return self.snapshot({}, {}).heads[partition][1]

    def snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str]) -> Snapshot:
        return self._follower.snapshot(known, state)

    def align(self, partition: str, start: int, end: int) -> int:
        return self._follower.align(partition, start, end)

    def split(self, partition: str, start: int, end: int, parts: int) -> list[int]:
        """Driver. Even cuts; none in a gzip file, which is unpacked from its begin."""
        if FileIdentity.parse(partition).gzipped:
            return []
        return super().split(partition, start, end, parts)

    def open(self, partition: str, start: int, end: int) -> None:
        self.close()
        self._pairs = iter(())
        self._blocks = iter(())
        # Not where it is found: a replay must give the same rows after a rename.
        self._faults.origin = self._catalog.path_of(FileIdentity.parse(partition).hint)
        try:
            if isinstance(self._format, ParquetRows):
                whole = self._range = ParquetRange(self._catalog, partition, start, end, self._format)
                self._blocks = whole.blocks(self._pass_over)
                return
            lines = self._range = FileRange(self._catalog, partition, start, end, self._header)
        except (WorldError, SchemaError) as error:
            self._pass_over(error)
            return
        self._blocks = lines.blocks()
        self._format.begin(lines.path, lines.first_line)

    def _is_fixed(self) -> bool:
        return self._range.fixed  # type: ignore[union-attr]

    def close(self) -> None:
        if self._range is not None:
            self._faults.sum_up()
            self._range.close()
            self._range = None
