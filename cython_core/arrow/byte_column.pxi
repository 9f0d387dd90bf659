"""Non-blocking; one thread at a time (the GIL is enough). What a method gives for each of many objects, as one column.

    column = ByteColumn()
    column.extend(messages, Message.value)      # bytes or None each
    column.extend(more, Message.value)
    column.take()                               # a BinaryArray; the column is empty again

The bytes are copied once, to where Arrow reads them: no list holds them between, and batches need not be put together.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport INT32_MAX, int64_t


import pyarrow as pa

from cython_core.arrow.row_error import shown

cdef extern from "Python.h":
    object PyObject_CallOneArg(object method, object argument)

cdef extern from "cython_core/arrow/columns.h" nogil:
    int ps_batch_grow(ps_batch *batch) noexcept
    int ps_column_put_bytes(ps_column *column, int64_t row, const void *start, int64_t length, int64_t *grown) noexcept
    int ps_column_put_null(ps_batch *batch, ps_column *column, int64_t row) noexcept


@cython.final
cdef class ByteColumn:
    """Bytes and nulls, appended."""

    def __cinit__(self):
        self.column.kind = PS_COLUMN_BINARY
        self.column.nullable = True
        self.batch.columns = &self.column
        self.batch.width = 1
        self.batch.max_rows = INT32_MAX

    def __dealloc__(self):
        ps_column_free(&self.column)

    def __len__(self):
        return self.batch.rows

    @property
    def size(self):
        """Bytes of all values."""
        return self.batch.bytes

    def extend(self, objects not None, method not None):
        """Appends ``method(each)`` of each, bytes or None.

        Raises TypeError if it is neither, OverflowError at 2 GiB; what came before is appended then.
        """
        for each in objects:
            self.append(PyObject_CallOneArg(method, each))

    cdef int append(self, object value) except -1:
        cdef int status
        cdef int64_t row = self.batch.rows
        if row == self.batch.capacity and ps_batch_grow(&self.batch) < 0:
            raise MemoryError("no memory for a column")
        if value is None:
            status = ps_column_put_null(&self.batch, &self.column, row)
        elif isinstance(value, bytes):
            status = ps_column_put_bytes(
                &self.column, row, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value), &self.batch.bytes
            )
        else:
            raise TypeError(f"a column of bytes takes bytes and None. Given: {shown(value)}")
        if status == PS_ROW_FULL:
            raise OverflowError(f"a column of Arrow holds 2 GiB of bytes. Given: {self.batch.bytes} and one more value")
        if status != PS_ROW_PUT:
            raise MemoryError("no memory for a column")
        self.batch.rows = row + 1
        return 0

    def take(self):
        """The values as a ``pyarrow.BinaryArray``; none are left here."""
        cdef ColumnMemory memory = ColumnMemory()
        cdef int64_t rows = self.batch.rows
        if rows == 0:
            return pa.array([], pa.binary())
        memory.column = self.column
        self.column.values = self.column.heap = self.column.validity = NULL
        self.column.heap_capacity = 0
        self.batch.rows = self.batch.capacity = self.batch.bytes = 0
        return memory.array(pa.binary(), rows)


def all_none(objects not None, method not None):
    """Whether ``method(each)`` is None for all of them."""
    for each in objects:
        if PyObject_CallOneArg(method, each) is not None:
            return False
    return True
