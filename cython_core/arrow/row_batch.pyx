"""Non-blocking; one thread at a time (the GIL is enough). Rows of one output become Arrow record batches.

A ``RowBatchBuilder`` belongs to an output, a ``RowSink`` to one producer task's stream as that output sees it: which
value goes to which column, and what fills the others. Two tasks of a ``count`` bolt that emit ``(word, n)`` into an
output of the columns ``word, n, _task, _offset``:

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
from cpython.datetime cimport import_datetime
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_RawFree, PyMem_RawMalloc
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t

from cython_core.acking.acker cimport LOST, NO_ATTEMPT, Acker, ps_acker_forget
from cython_core.arrow.column_memory cimport ColumnMemory, kind_and_width, ps_column

import pyarrow as pa

from cython_core.arrow.lossless_cast import conform_array
from cython_core.arrow.row_error import RowError, coded, row_error, shown  # no-cython-lint: callers import RowError from here
from cython_core.arrow.scalar_converter import Misfit
from cython_core.arrow.value_converter import converter

import_datetime()

cdef extern from "cython_core/arrow/columns.h" nogil:
    enum:
        PS_COLUMN_INT64, PS_COLUMN_OBJECT
        PS_ROW_PUT, PS_ROW_PUT_LAST, PS_ROW_ODD, PS_ROW_FULL, PS_ROW_NO_MEMORY
        PS_SLOT_CONSTANT, PS_SLOT_OFFSET
    int ps_batch_put(ps_batch *batch, const ps_row_slot *slots, PyObject *values, int arity, int64_t offset,
                     uint64_t attempt) noexcept
    int ps_column_is_heaped(const ps_column *column) noexcept
    void ps_column_free(ps_column *column) noexcept

cdef enum:
    OFFSETS_END = 0x7FFFFFFF  # Arrow's string and list offsets are int32


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
        return _record_batch(arrays, self.schema, cut.rows)

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

    cpdef int add_batch(self, RowSink sink, object record_batch, uint64_t attempt=NO_ATTEMPT,
                        long long offset=-1) except -1:
        """Seals, then adds a ready ``RecordBatch``, whose column i is value i of ``sink``, conformed to ``schema``.

        Columns of the right type are taken without a copy, others cast if that loses nothing; the rest is filled as for
        rows. ``attempt``: that its rows belong to; ``offset``: of all of them, below 0 for null. Raises ``RowError``
        naming the field, ``ValueError`` for the wrong number of columns.
        """
        if sink.builder is not self:
            raise ValueError(f"the sink {sink.label} belongs to another builder. Given: {sink!r}")
        if record_batch.num_columns != sink.arity:
            raise coded(
                ValueError,
                "PYSTORM_WRONG_NUMBER_OF_FIELDS",
                f"a batch of {sink.label} has {sink.arity} columns, one for each declared field. "
                f"Given: {record_batch.schema.names!r}"
            )
        # Order: as of ``append_odd``: casts let others in.
        self.converting += 1
        try:
            self.add_conformed(sink, record_batch, attempt, offset)
        finally:
            self.converting -= 1
        return self.finish()

    cdef int add_conformed(self, RowSink sink, object record_batch, uint64_t attempt, long long offset) except -1:
        cdef int i, source
        cdef int64_t rows = record_batch.num_rows
        cdef list arrays = []
        cdef bint same = record_batch.num_columns == self.batch.width
        for i in range(self.batch.width):
            source = sink.slots[i].source
            same = same and source == i
            field = self.fields[i]
            if source >= 0:
                try:
                    arrays.append(conform_array(record_batch.column(source), field.type, field.nullable))
                except Misfit as misfit:
                    raise self.misfit(i, misfit.value, sink.label, misfit.reason) from misfit
                continue
            constant = sink.constants[i] if source == PS_SLOT_CONSTANT else None
            if source == PS_SLOT_OFFSET and offset >= 0:
                constant = offset
            if constant is None and not field.nullable:
                raise self.misfit(i, None, sink.label, "it may not be null and a batch brings nothing for it")
            if constant is None:
                arrays.append(pa.nulls(rows, field.type))
            else:
                arrays.append(pa.repeat(pa.array([constant], type=field.type)[0], rows))
        same = same and record_batch.schema.equals(self.schema, check_metadata=True)
        ready = record_batch if same else _record_batch(arrays, self.schema, rows)
        self.cut()
        cdef CutRows cut = CutRows.__new__(CutRows)
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


@cython.no_gc_clear
cdef class RowSink:
    """One producer task's stream, seen from an output. Value i goes to column ``columns[i]``, or nowhere if that is -1.

    ``constants`` maps output columns to values of this task. ``offset_column`` (int64) takes a row's offset, null where
    it is negative, and with ``of_one_tree`` where the row belongs to several trees, while else it is that of the first;
    ``partition_column`` what ``set_partition`` said last. All other columns are null. ``label`` names
    the stream in errors, such as ``count.default``. Raises ``ValueError`` where these do not fit, ``RowError`` if
    a constant does not fit its column or a column that may not be null gets nothing.
    """

    def __cinit__(self, RowBatchBuilder builder not None, columns, constants=None, int offset_column=-1,
                  int partition_column=-1, str label="", bint of_one_tree=False):
        cdef int width = builder.batch.width
        cdef int i
        self.builder = builder
        self.columns = list(columns)
        self.label = label
        self.arity = len(self.columns)
        self.partition_column = partition_column
        self.of_one_tree = of_one_tree
        self.constants = [None] * width
        self.slots = <ps_row_slot *>PyMem_Calloc(width + 1, sizeof(ps_row_slot))
        if self.slots is NULL:
            raise MemoryError()
        filled = [column for column in self.columns if column != -1] + list(constants or ())
        filled += [column for column in (offset_column, partition_column) if column != -1]
        if len(set(filled)) != len(filled) or not all([0 <= column < width for column in filled]):
            raise ValueError(
                f"each value, constant, offset and partition of {label} fills an output column of its own from 0 to "
                f"{width - 1}. Given: {(self.columns, constants, offset_column, partition_column)!r}"
            )
        if offset_column >= 0 and builder.batch.columns[offset_column].kind != PS_COLUMN_INT64:
            raise ValueError(f"offsets need an int64 column. Given: {builder.fields[offset_column]!r}")
        for i in range(width):
            self.slots[i].source = PS_SLOT_CONSTANT
            self.set_constant(i, None)
        for i, column in enumerate(self.columns):
            if column != -1:
                self.slots[<int>column].source = i
                self.has_objects |= builder.objects[column] is not None
        if offset_column >= 0:
            self.slots[offset_column].source = PS_SLOT_OFFSET
        for column, value in (constants or {}).items():
            self.set_constant(column, builder.convert(column, value, label))
        for i, field in enumerate(builder.fields):
            if not field.nullable and i not in filled:
                raise builder.misfit(i, None, label, "it may not be null and the stream brings nothing for it")

    def __dealloc__(self):
        PyMem_Free(self.slots)

    def __repr__(self):
        return f"<RowSink of {self.label}: {self.columns}>"

    cdef set_constant(self, int column, object plain):
        self.slots[column].constant = <PyObject *>plain
        self.constants[column] = plain

    cdef int append(self, object values, long long offset, uint64_t attempt) except -1:
        """Appends a row: a tuple or list of as many values as the sink has columns (the caller has looked). May seal.

        Raises ``RowError`` naming row, field and value; then nothing was appended.
        """
        cdef int status = PS_ROW_ODD
        if not self.has_objects:  # hot
            status = ps_batch_put(  # hot
                &self.builder.batch, self.slots, <PyObject *>values, self.arity, offset, attempt
            )
            if status == PS_ROW_PUT:  # hot
                return 0  # hot
        if status == PS_ROW_PUT_LAST:
            return self.builder.seal()
        return self.append_odd(values, offset, attempt)

    cdef int append_odd(self, object values, long long offset, uint64_t attempt) except -1:
        """A row with values to convert first, a null where none may be, or one that does not fit the batch any more."""
        # Order: converting lets others in. Where its attempt fails meanwhile, that is not forgotten before it is a row.
        self.builder.converting += 1
        try:
            return self.convert_and_append(values, offset, attempt)
        finally:
            self.builder.converting -= 1

    cdef int convert_and_append(self, object values, long long offset, uint64_t attempt) except -1:
        cdef RowBatchBuilder builder = self.builder
        cdef list plain = list(values)
        cdef set converted = set()
        cdef int64_t weight = 0
        cdef int i, status, source
        if self.has_objects:
            for i in range(builder.batch.width):
                source = self.slots[i].source
                if source >= 0 and builder.objects[i] is not None:
                    plain[source] = builder.convert(i, plain[source], self.label, values, offset)
                    weight += _weigh(plain[source])
            if builder.batch.rows and builder.batch.bytes + weight > OFFSETS_END:
                builder.seal()
        while True:
            status = ps_batch_put(&builder.batch, self.slots, <PyObject *>plain, self.arity, offset, attempt)
            if status == PS_ROW_PUT or status == PS_ROW_PUT_LAST:
                builder.batch.bytes += weight
                if status == PS_ROW_PUT_LAST or builder.batch.bytes >= builder.batch.max_bytes:
                    builder.seal()
                return 0
            if status == PS_ROW_NO_MEMORY:
                raise MemoryError(f"no memory for another row of {self.label} after {builder.batch.rows} in this batch")
            i = builder.batch.odd
            source = self.slots[i].source
            if status == PS_ROW_FULL:
                if builder.batch.rows == 0:
                    value = plain[source] if source >= 0 else self.constants[i]
                    reason = "a column of a batch holds less than 2 GiB"
                    raise builder.misfit(i, value, self.label, reason, values, offset)
                builder.seal()
            elif source == PS_SLOT_OFFSET:
                raise builder.misfit(i, None, self.label, "it may not be null and the row has no offset", values)
            elif source == PS_SLOT_CONSTANT:
                reason = "it may not be null and no value was set for it"
                raise builder.misfit(i, self.constants[i], self.label, reason, values, offset)
            elif i in converted:
                raise builder.misfit(i, plain[source], self.label, "it does not fit", values, offset)
            else:
                plain[source] = builder.convert(i, plain[source], self.label, values, offset)
                converted.add(i)

    def append_row(self, values, long long offset=-1):
        """``append`` for Python: checks ``values`` (``TypeError`` if not a tuple or list, ``ValueError`` by length)."""
        if not isinstance(values, (tuple, list)):
            raise coded(
                TypeError,
                "PYSTORM_EMIT_NOT_A_LIST",
                f"a row of {self.label} is a tuple or a list. Given: {shown(values)}",
            )
        if len(values) != self.arity:
            raise coded(
                ValueError,
                "PYSTORM_WRONG_NUMBER_OF_FIELDS",
                f"a row of {self.label} has {self.arity} values, got {len(values)}. Given: {shown(values)}"
            )
        self.append(values, offset, NO_ATTEMPT)

    def repeat_row(self, values, Py_ssize_t times, long long offset=-1):
        """Appends the same row ``times`` times: what the benchmarks measure, free of the interpreter's share."""
        if times > 0:
            self.append_row(values, offset)
        for _ in range(times - 1):
            self.append(values, offset, NO_ATTEMPT)

    cpdef int set_partition(self, str partition) except -1:
        """Rows from here on carry ``partition`` (None: null) in the partition column; without one nothing happens."""
        if self.partition_column >= 0:
            column = self.partition_column
            plain = None if partition is None else self.builder.convert(column, partition, self.label)
            self.set_constant(column, plain)
        return 0


cdef int64_t _weigh(object value) except -1:
    """About the bytes that a converted value takes in Arrow."""
    cdef int64_t size = 4
    if isinstance(value, (str, bytes)):
        return size + len(value)
    if isinstance(value, (tuple, list)):
        for item in value:
            size += _weigh(item)
        return size
    return 16


cdef uint64_t *attempts_of(int64_t rows, uint64_t attempt) except NULL:
    """One for each row."""
    cdef uint64_t *attempts = <uint64_t *>PyMem_RawMalloc(rows * sizeof(uint64_t))
    cdef int64_t i
    if attempts is NULL:
        raise MemoryError(f"no memory for the attempts of {rows} rows")
    for i in range(rows):
        attempts[i] = attempt
    return attempts


cdef object _record_batch(list arrays, object schema, int64_t rows):
    if arrays:
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    # from_arrays would forget the number of rows.
    struct = pa.StructArray.from_buffers(pa.struct([]), rows, [None])
    return pa.RecordBatch.from_struct_array(struct).replace_schema_metadata(schema.metadata)
