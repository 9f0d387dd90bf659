"""What process_many is given: see tuple_list.pyx."""

cimport cython


@cython.final
cdef class TupleList:
    cdef list tuples          # as they have come: some carry many rows
    cdef Py_ssize_t rows
    cdef bint single          # each of `tuples` is one row
    cdef list all(self)


cdef TupleList list_of(list tuples, Py_ssize_t rows, bint single)
