"""The writers that Spark asks a sink for: of record batches from Spark 4.1 on, of rows before.

Spark makes a writer for each micro-batch in a process that plans, sends it to the tasks, and makes another one, in
another process, for the commit: what they have to share is in the commit messages.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pystorm_source.errors import OptionError
from pystorm_source.plan.lint import may_ask_for_keys
from pystorm_source.records.record import PystormProgress
from pystorm_source.records.record_folder import folder_above
from pystorm_source.sink.request import SinkRequest
from pystorm_source.sink.row_batches import row_batches
from pystorm_source.sink.same_use import refuse_same_use
from pystorm_source.sink.sink_records import record_of, write_record
from pystorm_source.sink.write_rows import Written, write_rows
from pystorm_source.spark.border import spark_border
from pystorm_source.spark.dead_letter_file import move_all, remove_all
from pystorm_source.spark.versions import DataSourceArrowWriter, DataSourceStreamArrowWriter

logger = logging.getLogger("pystorm.source")


class _Sink:
    """One write of rows of that schema. ``overwrite``: Spark's, for other modes than append.

    Raises OptionError for these, SchemaError if the Input's columns are not there.
    """

    def __init__(self, request: SinkRequest, schema: StructType, overwrite: bool):
        if overwrite:
            raise OptionError(
                "a sink adds effects and cannot take earlier ones back: say .mode('append') of df.write, "
                ".outputMode('append') of df.writeStream. Given: overwrite, or outputMode complete",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
        self.request = request
        self.columns = request.columns(schema)

    def committed(self, messages: Iterable[WriterCommitMessage | None], batch: int | None) -> None:
        """Driver. All tasks have ended. ``batch``: a stream's, whose commit may come again for the same micro-batch;
        None for a batch write."""
        written = _written(messages)
        record = record_of(self.request, written, batch)
        if self.request.letters:
            names = [message.letters for message in written if message.letters]
            for stem in {message.stem for message in written}:
                move_all(self.request.letters.path, stem, names)
        write_record(self.request, record, is_stream=batch is not None)
        if batch is None and record.run_id and written:
            self._refuse_same_use(record, written[0].stem)

    def _refuse_same_use(self, record: PystormProgress, write: str) -> None:
        """For a write inside ``foreachBatch``. Order: last, because its effects are done and dead letters must stay."""
        plan = self.request.plan
        folder = None if self.columns.has_key or not may_ask_for_keys(plan) else folder_above()
        if folder is None:
            return
        try:
            refuse_same_use(folder, record.run_id, record.batch_id, plan.name, self.request.use, write)
        except OSError as error:
            logger.debug("whether another write had the name %r is not known: %s", self.request.use, error)

    def aborted(self, messages: Iterable[WriterCommitMessage | None]) -> None:
        """Driver. A task has failed for good: nothing of this micro-batch counts."""
        if self.request.letters:
            remove_all(self.request.letters.path, [each.letters for each in _written(messages) if each.letters])


def _written(messages: Iterable[WriterCommitMessage | None]) -> Sequence[Written]:
    return [message for message in messages if isinstance(message, Written)]


class _OfBatches:
    sink: _Sink
    is_stream: ClassVar[bool]

    @spark_border()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Task."""
        places = list(self.sink.columns.places)
        batches = (batch.select(places) for batch in iterator)
        return write_rows(self.sink.request, self.sink.columns, batches, self.is_stream)


class _OfRows:
    sink: _Sink
    is_stream: ClassVar[bool]

    @spark_border()
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Task."""
        columns = self.sink.columns
        return write_rows(self.sink.request, columns, row_batches(iterator, columns), self.is_stream)


class _OfStream:
    is_stream = True

    def __init__(self, sink: _Sink):
        self.sink = sink

    @spark_border()
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Driver. Idempotent by ``batchId``."""
        self.sink.committed(messages, batchId)

    @spark_border()
    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Driver."""
        self.sink.aborted(messages)


class _OfBatchQuery:
    is_stream = False

    def __init__(self, sink: _Sink):
        self.sink = sink

    @spark_border()
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Driver."""
        self.sink.committed(messages, None)

    @spark_border()
    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Driver."""
        self.sink.aborted(messages)


class RowStreamWriter(_OfStream, _OfRows, DataSourceStreamWriter):
    """Writes a micro-batch, by rows."""


class RowWriter(_OfBatchQuery, _OfRows, DataSourceWriter):
    """Writes a batch DataFrame, by rows."""


if DataSourceStreamArrowWriter is not None:

    class ArrowStreamWriter(_OfStream, _OfBatches, DataSourceStreamArrowWriter):
        """Writes a micro-batch, by record batches."""


if DataSourceArrowWriter is not None:

    class ArrowWriter(_OfBatchQuery, _OfBatches, DataSourceArrowWriter):
        """Writes a batch DataFrame, by record batches."""


def stream_writer(request: SinkRequest, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
    """The writer of a micro-batch that this Spark takes. Raises OptionError or SchemaError."""
    sink = _Sink(request, schema, overwrite)
    return RowStreamWriter(sink) if DataSourceStreamArrowWriter is None else ArrowStreamWriter(sink)


def batch_writer(request: SinkRequest, schema: StructType, overwrite: bool) -> DataSourceWriter:
    """The writer of a batch write that this Spark takes. Raises OptionError or SchemaError."""
    sink = _Sink(request, schema, overwrite)
    return RowWriter(sink) if DataSourceArrowWriter is None else ArrowWriter(sink)
