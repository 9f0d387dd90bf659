"""New objects under a prefix of S3, GCS, ADLS or a local folder."""

import logging
import os
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.partitioned_spout import Snapshot
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import OptionError, SchemaError, WorldError
from pystorm_source.formats.lines import Faults
from pystorm_source.options import parse
from pystorm_source.spouts.blocks.spout import BlocksSpout
from pystorm_source.spouts.objects.discovery import Discovery
from pystorm_source.spouts.objects.fetching import ObjectBytes
from pystorm_source.spouts.objects.options import ObjectsOptions
from pystorm_source.spouts.objects.reading import PartBlocks
from pystorm_source.spouts.objects.rows import ObjectRows
from pystorm_source.spouts.objects.store import opened
from pystorm_source.types.arrow import concatenated

_ROWS, _BYTES = 16_384, 16 << 20
"""Rows and bytes of small objects in one batch. Too few: Spark takes time for each batch. Too many: memory."""


class ObjectsSpout(BlocksSpout):
    """New objects under a prefix, each read once and whole. Needs obstore on the driver and every executor.

    The driver lists the prefix and appends what is new to a list below ``journal.path``: objects, or parts of large
    ones, in 16 lanes. A partition is a lane, an offset a position in it, in bytes. So a Spark offset has the name of
    the list and 16 numbers, however many objects are known.

    It is exact:

    - *Kills of the driver.* A segment of the list is written once, in one piece, and never changes: an offset always
      means the same bytes of the same objects. The next run reads what was appended after the last offset.
    - *Kills of a task.* It reads its range of the list again. Each request names the etag that was listed, so other
      content is never taken for what was planned.
    - *Overwritten.* Before it was read: data loss, as if it were gone. After it was planned: ignored, or a new object
      with ``objects.overwritten=read``.
    - *Late, with a smaller name.* Listing continues after the greatest name; sweeps compare all names with the list.
      The list is the set of known objects, so nothing is read twice.

    Without ``journal.path`` the offset holds the names: enough for batch reads, tests, and a few hundred objects.

    Raises:
        OptionError: wrong options, or obstore is not installed.
        CheckpointError: the list below ``journal.path`` is gone or incomplete, or the option was changed.
        DataLossError: an object is gone, or was overwritten before it was read, and ``failOnDataLoss`` is true.
        SchemaError: a malformed line or row, unless ``files.malformed`` says otherwise.
        WorldError: the store refuses access, or an object is damaged.

    Example:
        >>> from pathlib import Path
        >>> from pystorm_source.spouts import ObjectsSpout
        >>> from pystorm_source.testing import run_topology
        >>> Path("lake/day=2026-01-01").mkdir(parents=True)
        >>> _ = Path("lake/day=2026-01-01/1.json").write_text('{"id": 1}' + chr(10))
        >>> class Orders(Topology):
        ...     orders = ObjectsSpout.spec(
        ...         path=Path("lake").absolute(), format="ndjson", fields=["id long", "day date"]
        ...     )
        >>> run_topology(Orders).rows("orders")
        [(1, datetime.date(2026, 1, 1))]
    """

    Options = ObjectsOptions
    outputs = ["line string"]
    clock: Clock = SystemClock()
    initial_rate = 8 << 20
    bounded = False

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
            config (dict): as in ``Spout.spec``; further options such as ``{"objects.config.region": "eu-central-1"}``.
            path (str | os.PathLike): URL of the prefix, or absolute path. Defaults to the reader's: ``.load("s3://…")``.
            format (str): lines, ndjson, csv, parquet or avro. Defaults to lines.
            fields (list[str]): names and types, as in ``outputs``. Defaults to ``["line string"]``, for lines.
            rescued (str): adds a string field of this name, such as ``"_rescued_data"``, for undeclared columns and
                values of a wrong type, as JSON. Defaults to no such field.

        Returns:
            ComponentSpec: what an attribute of the Topology is set to.
        """
        return cls._spec_of(name, par, config, path, format, fields, rescued, ObjectsSpout.outputs)

    @classmethod
    def _pystorm_check_here(cls, conf: dict[str, Any]) -> None:
        """Called on the driver when a query is loaded. Raises OptionError if there is nothing that can be read."""
        if conf.get("path"):
            options = parse(ObjectsOptions, conf)
            opened(options.path, options)

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Reads the options.

        Raises:
            OptionError: no ``path``, fields that do not fit the format, or obstore is not installed.
        """
        if not conf.get("path"):
            raise OptionError(
                "ObjectsSpout needs the option 'path', a prefix: .load('s3://bucket/prefix'), or "
                f"ObjectsSpout.spec(path='s3://bucket/prefix'). Given: {conf.get('path')!r}",
                code="PYSTORM_MISSING_OPTION",
            )
        options = self._options = parse(ObjectsOptions, conf)
        outputs: Any = conf.get("files.fields", self.outputs)
        if outputs is ObjectsSpout.outputs and options.format != "lines":
            raise OptionError(
                f"format {options.format!r} needs the fields to read: ObjectsSpout.spec(fields=['id long', "
                f"'item string'], ...), or `outputs` of a subclass. Given: {outputs!r}",
                code="PYSTORM_SCHEMA_MISMATCH",
            )
        stream = self._stream_of(outputs)
        self._log = self.logger or logging.getLogger(f"pystorm.component.{type(self).__name__}")
        has_rows = options.format in ("parquet", "avro")
        self._faults = Faults(options.malformed, self._log, self._bury, "row" if has_rows else "line")
        self._format: ObjectRows = ObjectRows(stream.fields, stream.types, options, self._faults)
        self._discovery = Discovery(options, str(conf.get("journal.path") or ""), self.clock, self._log)
        self._objects: ObjectBytes | None = None
        self._parts: PartBlocks | None = None
        self._small: list[pa.RecordBatch] = []
        self._held = self._bytes = 0

    def snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str]) -> Snapshot:
        return self._discovery.snapshot(known, state, self._pystorm_is_frozen)

    def align(self, partition: str, start: int, end: int) -> int:
        """Returns where a part begins near ``end``: objects are cut only between their parts."""
        return self._discovery.align(partition, start, end)

    def split(self, partition: str, start: int, end: int, parts: int) -> list[int]:
        """Cuts where parts of objects begin."""
        return self._discovery.split(partition, start, end, parts)

    def open(self, partition: str, start: int, end: int) -> None:
        self.close()
        self._pairs, self._small, self._held, self._bytes = iter(()), [], 0, 0
        found = self._discovery.parts(partition, start, end)
        if self._objects is None:
            self._objects = ObjectBytes(self._options.path, self._options)
        self._blocks = self._parts = PartBlocks(self._objects, found, self._format, self._options, end, self._pass_over)

    def next_batch(self) -> pa.RecordBatch | None:
        """As ``next_tuple``, by column; rows of small objects leave together.

        Returns:
            pyarrow.RecordBatch | None: the next rows of the range; None at its end.
        """
        while self._held < _ROWS and self._bytes < _BYTES:
            batch = super().next_batch()
            if batch is None:
                break
            self._small.append(batch)
            self._held += batch.num_rows
            self._bytes += batch.nbytes
            if not batch.num_rows:  # readers of dead letters get a turn
                break
        if not self._small:
            return None
        batches, self._small, self._held, self._bytes = self._small, [], 0, 0
        return concatenated(batches)

    def _is_fixed(self) -> bool:
        return self._parts is not None and self._parts.fixed

    def _pass_over(self, error: WorldError | SchemaError) -> None:
        if error.code == "PYSTORM_EXTERNAL_FAILURE":  # of the store, not of what an object holds
            raise error
        super()._pass_over(error)

    def _position(self, offset: int) -> int:
        return self._format.position(offset)

    def close(self) -> None:
        if self._parts is not None:
            self._faults.sum_up()
            self._parts.close()
            self._parts = None
            self._blocks = iter(())
