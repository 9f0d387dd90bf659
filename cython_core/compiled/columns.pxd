"""Columns of a batch as C reads them, for compiled bolts of batches: what a user's Cython module cimports beside
``ArrowBase``. docs/COMPILED_BOLTS.md."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from cython_core.routing.component_base cimport ArrowBase


cdef extern from "cython_core/compiled/abi.h":
    pass


# The pointers are valid for as long as the batch is referred to.
ctypedef struct long_column:
    Py_ssize_t rows
    const int64_t *values
    const uint8_t *validity     # a bit a row, from `offset` on; NULL: no row is null
    Py_ssize_t offset


ctypedef struct double_column:
    Py_ssize_t rows
    const double *values
    const uint8_t *validity
    Py_ssize_t offset


ctypedef struct text_column:
    # Row i is bytes[ends[i] : ends[i + 1]], UTF-8 of a string.
    Py_ssize_t rows
    const int32_t *ends
    const char *bytes
    const uint8_t *validity
    Py_ssize_t offset


ctypedef fused any_column:
    long_column
    double_column
    text_column


cdef inline bint is_null(const any_column *column, Py_ssize_t row) noexcept nogil:
    if column.validity is NULL:
        return False
    return not column.validity[(column.offset + row) >> 3] >> ((column.offset + row) & 7) & 1


cdef inline long_column longs(object batch, Py_ssize_t place) except *:
    """A column of the type ``long`` of a ``pyarrow.RecordBatch``. Raises TypeError for other types, IndexError."""
    cdef long_column found
    array, buffers = checked(batch, place, ("int64",))
    found.rows, found.offset = len(array), array.offset
    found.values = <const int64_t *>address(buffers[1]) + found.offset
    found.validity = <const uint8_t *>address(buffers[0])
    return found


cdef inline double_column doubles(object batch, Py_ssize_t place) except *:
    """A column of the type ``double``. Raises as ``longs``."""
    cdef double_column found
    array, buffers = checked(batch, place, ("double",))
    found.rows, found.offset = len(array), array.offset
    found.values = <const double *>address(buffers[1]) + found.offset
    found.validity = <const uint8_t *>address(buffers[0])
    return found


cdef inline text_column texts(object batch, Py_ssize_t place) except *:
    """A column of the type ``string`` or ``binary``. Raises as ``longs``."""
    cdef text_column found
    array, buffers = checked(batch, place, ("string", "binary"))
    found.rows, found.offset = len(array), array.offset
    found.ends = <const int32_t *>address(buffers[1]) + found.offset
    found.bytes = <const char *>address(buffers[2])
    found.validity = <const uint8_t *>address(buffers[0])
    return found


cdef inline tuple checked(object batch, Py_ssize_t place, tuple types):
    # (Array, its buffers). By the type's name: a wrong one would be read as another.
    if not 0 <= place < batch.num_columns:
        raise IndexError(f"the batch has {batch.num_columns} columns. Given: {place}")
    array = batch.column(place)
    if str(array.type) not in types:
        raise TypeError(
            f"column {batch.schema.names[place]!r} is read as {' or '.join(types)}: declare that type in the outputs "
            f"of the component that emits it. Given: {array.type}"
        )
    return array, array.buffers()


cdef inline size_t address(object buffer):
    return 0 if buffer is None else buffer.address
