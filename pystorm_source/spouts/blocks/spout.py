"""Spouts whose ranges are blocks that a format turns into tuples, or into columns."""

import logging
import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.spec_config import spec_config
from pystorm_source.api.stream import Stream
from pystorm_source.errors import DataLossError, SchemaError, WorldError
from pystorm_source.formats.lines import Faults, Pairs, Unreadable
from pystorm_source.formats.rescued import fields_with
from pystorm_source.spouts.either_way import EitherWaySpout

# Malformed lines of a block after which a batch ends, so that readers of their dead letters get a turn. Too small: tiny
# batches. Too large: dead letters wait in memory until their readers have room.
_MOST_UNREAD = 100


class BlocksSpout(EitherWaySpout):
    """What spouts of files and objects share. ``initialize`` sets ``_options``, ``_log``, ``_faults`` and ``_format``
    (a ``LineFormat``, or one of its shape), ``open`` sets ``_blocks``."""

    _options: Any
    _log: logging.Logger
    _faults: Faults
    _format: Any

    _pairs: Pairs = iter(())
    _blocks: Iterator[tuple[Any, int]] = iter(())

    @classmethod
    def _spec_of(
        cls,
        name: str | None,
        par: int | dict[str, int] | None,
        config: dict[str, Any] | None,
        path: str | os.PathLike[str] | None,
        format: str | None,
        fields: list[str] | None,
        rescued: str | None,
        lines: Any,
    ) -> ComponentSpec:
        """What ``spec`` returns. ``lines``: ``outputs`` of a class that declares none, for lines."""
        if rescued and (fields is not None or cls.outputs is not lines):
            fields = fields_with(rescued, cls.outputs if fields is None else fields, cls.__name__)
        given = {
            "path": None if path is None else os.fspath(path),
            "format": format,
            "files.fields": None if fields is None else list(fields),
            "rescuedDataColumn": rescued,
        }
        spec = super().spec(name=name, par=par, config=spec_config(cls.config, config, given))
        if fields is not None:
            spec.streams = Stream.all_of(fields, given_by=cls.__name__)
        return spec

    def _stream_of(self, outputs: Any) -> Stream:
        """Returns the default stream of these outputs, which rows leave by, or a stream without fields."""
        streams = Stream.all_of(outputs, given_by=type(self).__name__)
        return next((each for each in streams if each.name == "default"), Stream())

    def next_tuple(self) -> Any:
        for pair in self._pairs:
            if pair is not None:
                values, offset = pair
                self.emit(values, offset)
            return None
        return self._next_block()

    def next_batch(self) -> pa.RecordBatch | None:
        """The rows of ``next_tuple``, a block of lines at a time. The engine calls it instead, if it may.

        Returns:
            pyarrow.RecordBatch | None: the next rows of the range; None at its end.
        """
        batch = self._gathered()
        try:
            while batch is None:
                block = next(self._blocks, None)
                if block is None:
                    return None
                data, offset = block
                batch = self._format.batch(data, offset, self._is_fixed())
                if batch is None:
                    self._pairs = self._format.pairs(data, offset, self._is_fixed())
                    batch = self._gathered()
        except WorldError as error:
            self._pass_over(error)
        return batch

    def _is_fixed(self) -> bool:
        """Whether all lines of the last block have its offset."""
        raise NotImplementedError

    def _gathered(self) -> pa.RecordBatch | None:
        """What is left of a block that is read line by line; without a row, it has given dead letters."""
        rows: list[tuple[Any, ...]] = []
        unread = 0
        for pair in self._pairs:
            if pair is not None:
                rows.append(pair[0])
            else:
                unread += 1
                if unread == _MOST_UNREAD:
                    break
        if not rows and not unread:
            return None
        schema: pa.Schema = self._format.schema
        columns = zip(*rows, strict=True) if rows else [()] * len(schema)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _has_columns(self) -> bool:
        return self._format.schema is not None

    def _next_block(self) -> Any:
        """Emits the first tuple of the next block that has one; False at the end of the range."""
        try:
            for data, offset in self._blocks:
                self._pairs = self._format.pairs(data, offset, self._is_fixed())
                for pair in self._pairs:
                    if pair is not None:
                        values, at = pair
                        self.emit(values, at)
                    return None
        except WorldError as error:
            self._pass_over(error)
        return False

    def _pass_over(self, error: WorldError | SchemaError) -> None:
        """Logs the error that is being handled, or raises it where options do not allow to go on."""
        if self._options.fail_on_data_loss if isinstance(error, DataLossError) else self._options.malformed != "skip":
            raise error
        self._log.warning("%s", error)

    def _bury(self, lost: Unreadable) -> bool:
        """Makes a dead letter of a malformed line; whether it is a row. Raises SchemaError where it fails the task."""
        if self._pystorm_retries is None:
            raise lost.error()
        encoding = self._options.encoding if self._options.format in ("lines", "csv") else "utf-8"
        values = (_text_of(lost.line, encoding),)
        return self._pystorm_retries.give_up_unread(values, self._position(lost.offset), lost.message, lost.error)

    def _position(self, offset: int) -> int:
        """The offset of the partition at this byte of the file that is read."""
        return offset


def _text_of(line: bytes, encoding: str) -> str | bytes:
    """The line as text; as it is if that would change it."""
    try:
        return line.decode(encoding)
    except UnicodeDecodeError:
        return line
