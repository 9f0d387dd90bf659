"""Non-blocking; one thread at a time (the GIL is enough). Rows of one output become Arrow record batches.

A ``RowBatchBuilder`` belongs to an output, a ``RowSink`` (``row_sink.pxi``) to one producer task's stream as that
output sees it: which value goes to which column, and what fills the others. Two tasks of a ``count`` bolt
that emit ``(word, n)`` into an output of the columns ``word, n, _task, _offset``:

    builder = RowBatchBuilder(schema)
    first = RowSink(builder, [0, 1], {2: 4}, offset_column=3, label="count.default")
    other = RowSink(builder, [0, 1], {2: 5}, offset_column=3, label="count.default")
    first.append_row(("storm", 1), 70)        # storm, 1, 4, 70
    other.append_row(("spark", 1))            # spark, 1, 5, null
    builder.seal()                            # builder.done: [RecordBatch of 2 rows]

Native types (bool, ints, floats, string, binary, date, timestamps, duration, time) are written into Arrow buffers as
the row arrives (``columns.h``) and handed over without a copy. Values of the other types are converted at the
append (``value_converter.pyx``, which also says what each type takes) and turned into Arrow once per batch.

A row is one step: a value that does not fit raises ``RowError`` and leaves no half row. User code that a conversion
calls runs before the row is written, so it may append to the same builder or let another thread do so.
"""

cimport cython
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_RawFree, PyMem_RawMalloc
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t

from cython_core.acking.acker cimport LOST, NO_ATTEMPT, Acker, ps_acker_forget

import pyarrow as pa

from cython_core.arrow.row_error import RowError, row_error  # no-cython-lint: callers import RowError from here
from cython_core.arrow.value_converter import Misfit, converter

include "column_memory.pxi"
include "row_sink.pxi"
include "byte_column.pxi"

cdef extern from "cython_core/arrow/columns.h" nogil:
    int ps_column_is_heaped(const ps_column *column) noexcept
    void ps_column_free(ps_column *column) noexcept


@cython.final
cdef class CutRows:
    def __dealloc__(self):
        PyMem_RawFree(self.attempts)


@cython.no_gc_clear  # guarantee: a finalizer that runs in a cycle collection may still append
cdef class RowBatchBuilder:
    """Collects rows of ``schema`` and makes ``pyarrow.RecordBatch`` of them, in order, in ``done``.

    A batch is sealed by itself once it has ``max_rows`` rows or ``max_bytes`` bytes (below 2 GiB, for int32 offsets).
    With an ``acker``, rows wait until the attempts that they belong to are decided, and those of failed attempts are
    left out: a mask over the finished batch (exactly once inside a micro-batch). The owner empties ``done`` as it
    likes. The batches have exactly ``schema``, nullability and metadata included.
    Raises ``TypeError`` or ``ValueError`` for arguments that make no sense.
    """

    def __cinit__(
        self, object schema not None, Py_ssize_t max_rows=10_000, Py_ssize_t max_bytes=64 << 20, Acker acker=None
    ):
        if not isinstance(schema, pa.Schema):
            raise TypeError(f"schema is a pyarrow.Schema. Given: {schema!r}")
        if not 1 <= max_rows < OFFSETS_END:
            raise ValueError(f"max_rows is a number of rows from 1 to {OFFSETS_END - 1}. Given: {max_rows!r}")
        if not 1 <= max_bytes <= OFFSETS_END:
            raise ValueError(f"max_bytes is a number of bytes from 1 to {OFFSETS_END}. Given: {max_bytes!r}")
        self.schema = schema
        self.fields = list(schema)
        self.done = []
        self.pending = []
        self.converters = [converter(field.type, field.nullable) for field in self.fields]
        self.objects = []
        cdef int width = len(self.fields)
        self.batch.columns = <ps_column *>PyMem_Calloc(width + 1, sizeof(ps_column))
        if self.batch.columns is NULL:
            raise MemoryError()
        self.batch.width = width
        self.batch.max_rows = max_rows
        self.batch.max_bytes = max_bytes
        self.acker = acker
        self.batch.tracks = acker is not None
        cdef ps_column *column
        for i, field in enumerate(self.fields):
            column = &self.batch.columns[i]
            column.kind, column.width = kind_and_width(field.type)
            column.nullable = field.nullable
            self.batch.row_bytes += 4 if ps_column_is_heaped(column) else column.width
            objects = [] if column.kind == PS_COLUMN_OBJECT else None
            self.objects.append(objects)
            column.objects = NULL if objects is None else <PyObject *>objects

    def __dealloc__(self):
        cdef int i
        if self.batch.columns is not NULL:
            for i in range(self.batch.width):
                ps_column_free(&self.batch.columns[i])
            PyMem_Free(self.batch.columns)
        PyMem_RawFree(self.batch.attempts)

    @property
    def max_rows(self):
        """Rows that seal a batch."""
        return self.batch.max_rows

    @property
    def max_bytes(self):
        """Bytes that seal a batch."""
        return self.batch.max_bytes

    @property
    def rows(self):
        """Rows collected since the last seal."""
        return self.batch.rows

    @property
    def rows_put(self):
        """Rows that were ever put, those of failed attempts included."""
        return self.rows_cut + self.batch.rows

    @property
    def bytes(self):
        """Bytes collected since the last seal, estimated for nested and decimal columns."""
        return self.batch.bytes

    cpdef int seal(self) except -1:
        """The rows collected so far become one ``RecordBatch`` at the end of ``done``; without rows nothing happens."""
        self.cut()
        return self.finish()

    cdef int cut(self) except -1:
        """Moves the rows collected so far, if any, to the end of ``pending``."""
        if self.batch.rows == 0:
            return 0
        cdef int i, width = self.batch.width
        cdef list memories = [ColumnMemory() for _ in range(width)]
        cdef list fresh = [None if objects is None else [] for objects in self.objects]
        cdef CutRows cut = CutRows.__new__(CutRows)
        cdef ColumnMemory memory
        # Order: from here to the end no Python code runs, so the cut lies between two whole rows.
        cut.rows = self.batch.rows
        if cut.rows == 0:  # another thread has cut them while this was being prepared
            return 0
        for i in range(width):
            memory = <ColumnMemory>memories[i]
            memory.column = self.batch.columns[i]
            self.batch.columns[i].values = NULL
            self.batch.columns[i].heap = NULL
            self.batch.columns[i].validity = NULL
            self.batch.columns[i].heap_capacity = 0
            if self.batch.columns[i].objects is not NULL:
                self.batch.columns[i].objects = <PyObject *>fresh[i]
        self.rows_cut += cut.rows
        cut.attempts = self.batch.attempts
        self.batch.attempts = NULL
        self.batch.rows = self.batch.capacity = self.batch.bytes = 0
        cut.objects = self.objects
        cut.memories = memories
        self.objects = fresh
        self.pending.append(cut)
        return 0

    cpdef int release(self, bint undecided=False) except -1:
        """Makes batches of the rows whose attempts are decided by now, oldest first.

        ``undecided``: of all that were sealed, those of failed attempts excepted.
        """
        if self.pending and (undecided or self.decided(<CutRows>self.pending[0])):
            self.forced = undecided
            try:
                return self.finish()
            finally:
                self.forced = False
        if not self.pending and not self.finishing and self.batch.rows == 0:
            self.forget_failed()
        return 0

    cdef int finish(self) except -1:
        """Turns what is pending and decided into batches. Arrow lets other threads in: the first one finishes for all,
        in order."""
        cdef CutRows cut
        if self.finishing:
            return 0
        self.finishing = True
        try:
            while self.pending:
                cut = <CutRows>self.pending[0]
                if not self.decided(cut) and not self.forced:
                    break
                self.pending.pop(0)
                ready = self.built(cut) if cut.ready is None else cut.ready
                if cut.newest > 0 and self.acker.acker.failed_count > 0:
                    ready = self.survivors(cut, ready)
                if ready.num_rows > 0:
                    self.done.append(ready)
        finally:
            self.finishing = False
        self.forget_failed()
        return 0

    cdef bint decided(self, CutRows cut) except -1:
        """Whether every attempt that has a row in it was acked or has failed."""
        cdef int64_t i
        cdef uint64_t attempt
        if cut.attempts is NULL:
            return True
        if cut.newest == 0:
            cut.oldest = LOST
            for i in range(cut.rows):
                attempt = cut.attempts[i]
                cut.newest = max(cut.newest, attempt)
                cut.oldest = min(cut.oldest, attempt - 1)  # NO_ATTEMPT is the largest of all then
            cut.oldest += 1
        return cut.newest < self.acker.acker.oldest

    cdef object survivors(self, CutRows cut, object batch):
        """The batch without the rows of failed attempts."""
        cdef list failed = [
            self.acker.acker.failed[i]
            for i in range(self.acker.acker.failed_count)
            if cut.oldest <= self.acker.acker.failed[i] <= cut.newest
        ]
        if not failed:
            return batch
        from pyarrow import compute as pc  # not above: its import takes 50 ms of each Python process of Spark's

        memory = pa.foreign_buffer(<size_t>cut.attempts, cut.rows * sizeof(uint64_t), cut)
        attempts = pa.UInt64Array.from_buffers(pa.uint64(), cut.rows, [None, memory])
        kept = batch.filter(pc.invert(pc.is_in(attempts, pa.array(failed, pa.uint64()))))
        self.masked += batch.num_rows - kept.num_rows
        return kept

    cdef int forget_failed(self) except -1:
        """Of the failed attempts only those are remembered that may have rows here."""
        cdef uint64_t before
        cdef int64_t i
        if self.acker is None or self.acker.acker.failed_count == 0 or self.converting > 0:
            return 0
        before = self.acker.acker.next
        for cut in self.pending:
            before = min(before, (<CutRows>cut).oldest if (<CutRows>cut).newest > 0 else 1)
        for i in range(self.batch.rows):
            if self.batch.attempts[i] != NO_ATTEMPT and self.batch.attempts[i] < before:
                before = self.batch.attempts[i]
        ps_acker_forget(&self.acker.acker, before)
        return 0

    cdef object built(self, CutRows cut):
        cdef list arrays = []
        cdef ColumnMemory memory
        for i, field in enumerate(self.fields):
            memory = <ColumnMemory>cut.memories[i]
            if memory.column.kind == PS_COLUMN_OBJECT:
                arrays.append(self._array_of_objects(i, cut.objects[i]))
            else:
                arrays.append(memory.array(field.type, cut.rows))
        return record_batch_of(arrays, self.schema, cut.rows)

    def _array_of_objects(self, int column, list values):
        type = self.fields[column].type
        try:
            return pa.array(values, type=type)
        except Exception:
            # The converters let pass what Arrow refuses: a fault of ours, but the user still wants to know which value.
            for value in values:
                try:
                    pa.array([value], type=type)
                except Exception as error:
                    raise self.misfit(column, value, "", f"Arrow refuses it: {error}") from error
            raise

    cdef int add_ready(self, object ready, uint64_t attempt) except -1:
        """A batch of the schema, behind the rows collected so far."""
        cdef CutRows cut = CutRows.__new__(CutRows)
        cdef int64_t rows = ready.num_rows
        self.cut()
        if rows:
            cut.rows = rows
            cut.ready = ready
            if self.batch.tracks and attempt != NO_ATTEMPT:
                cut.attempts = attempts_of(rows, attempt)
            self.rows_cut += rows
            self.pending.append(cut)
        return 0

    cdef object convert(self, int column, object value, str label, object row=None, long long offset=-1):
        try:
            return self.converters[column](value)
        except Misfit as misfit:
            raise row_error(
                self.fields[column], misfit.path, misfit.type, misfit.value, label, misfit.reason, row, offset
            ) from misfit.__cause__

    cdef object misfit(
        self, int column, object value, str label, str reason, object row=None, long long offset=-1
    ):
        field = self.fields[column]
        return row_error(field, "", field.type, value, label, reason, row, offset)


cdef uint64_t *attempts_of(int64_t rows, uint64_t attempt) except NULL:
    """One for each row."""
    cdef uint64_t *attempts = <uint64_t *>PyMem_RawMalloc(rows * sizeof(uint64_t))
    cdef int64_t i
    if attempts is NULL:
        raise MemoryError(f"no memory for the attempts of {rows} rows")
    for i in range(rows):
        attempts[i] = attempt
    return attempts


cdef object record_batch_of(list arrays, object schema, int64_t rows):
    if arrays:
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    # from_arrays would forget the number of rows.
    struct = pa.StructArray.from_buffers(pa.struct([]), rows, [None])
    return pa.RecordBatch.from_struct_array(struct).replace_schema_metadata(schema.metadata)
