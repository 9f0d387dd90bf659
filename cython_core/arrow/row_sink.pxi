"""Rows of one producer's stream into an output: which value goes to which column, and what fills the others.

Threading law: as of row_batch.pyx.
"""

cimport cython
from cpython.datetime cimport import_datetime
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t

from cython_core.acking.acker cimport NO_ATTEMPT

import pyarrow as pa

from cython_core.arrow.lossless_cast import conform_array
from cython_core.arrow.row_error import coded, shown
from cython_core.arrow.value_converter import Misfit

import_datetime()  # what columns.h reads dates by, in this module


cdef extern from "cython_core/arrow/columns.h" nogil:
    enum:
        PS_ROW_PUT, PS_ROW_PUT_LAST, PS_ROW_ODD, PS_ROW_FULL, PS_ROW_NO_MEMORY
        PS_SLOT_CONSTANT, PS_SLOT_OFFSET
    int ps_batch_put(ps_batch *batch, const ps_row_slot *slots, PyObject *values, int arity, int64_t offset,
                     uint64_t attempt) noexcept


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

    cpdef int add_batch(self, object record_batch, uint64_t attempt=NO_ATTEMPT, long long offset=-1) except -1:
        """Seals, then adds a ready ``RecordBatch``, whose column i is value i, conformed to the output's schema.

        Columns of the right type are taken without a copy, others cast if that loses nothing; the rest is filled as for
        rows. ``attempt``: that its rows belong to; ``offset``: of all of them, below 0 for null. Raises ``RowError``
        naming the field, ``ValueError`` for the wrong number of columns.
        """
        cdef RowBatchBuilder builder = self.builder
        if record_batch.num_columns != self.arity:
            raise coded(
                ValueError,
                "PYSTORM_WRONG_NUMBER_OF_FIELDS",
                f"a batch of {self.label} has {self.arity} columns, one for each declared field. "
                f"Given: {record_batch.schema.names!r}"
            )
        # Order: as of ``append_odd``: casts let others in.
        builder.converting += 1
        try:
            builder.add_ready(self.conformed(record_batch, offset), attempt)
        finally:
            builder.converting -= 1
        return builder.finish()

    cdef object conformed(self, object record_batch, long long offset):
        """The batch in the output's schema."""
        cdef RowBatchBuilder builder = self.builder
        cdef int i, source
        cdef int64_t rows = record_batch.num_rows
        cdef list arrays = []
        cdef bint same = record_batch.num_columns == builder.batch.width
        for i in range(builder.batch.width):
            source = self.slots[i].source
            same = same and source == i
            field = builder.fields[i]
            if source >= 0:
                try:
                    arrays.append(conform_array(record_batch.column(source), field.type, field.nullable))
                except Misfit as misfit:
                    raise builder.misfit(i, misfit.value, self.label, misfit.reason) from misfit
                continue
            constant = self.constants[i] if source == PS_SLOT_CONSTANT else None
            if source == PS_SLOT_OFFSET and offset >= 0:
                constant = offset
            if constant is None and not field.nullable:
                raise builder.misfit(i, None, self.label, "it may not be null and a batch brings nothing for it")
            if constant is None:
                arrays.append(pa.nulls(rows, field.type))
            else:
                arrays.append(pa.repeat(pa.array([constant], type=field.type)[0], rows))
        same = same and record_batch.schema.equals(builder.schema, check_metadata=True)
        return record_batch if same else record_batch_of(arrays, builder.schema, rows)

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
