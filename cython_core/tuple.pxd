cimport cython


@cython.final
cdef class TupleSource:
    # Where tuples come from: one per (producer task, stream), shared by all its tuples.
    cdef readonly str component
    cdef readonly str stream
    cdef readonly int task
    cdef readonly tuple fields
    # The named tuple class of `.values`, or None where the field names are no identifiers.
    cdef readonly object values_class


@cython.final
cdef class Tuple:
    cdef object payload         # the values, a tuple: as emitted, as a named tuple once they were asked for
    cdef TupleSource source
    cdef long long offset       # of the spout tuple that it stems from; -1: none
    cdef object key             # the id; None until somebody asks for it


cdef inline Tuple new_tuple(TupleSource source, object payload, long long offset):
    cdef Tuple tup = Tuple.__new__(Tuple)
    tup.source = source
    tup.payload = payload
    tup.offset = offset
    return tup
