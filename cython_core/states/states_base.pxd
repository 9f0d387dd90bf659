"""Declares what states_base.pyx defines."""

cimport cython

from cython_core.tuples.tuple cimport TupleSource


cpdef object part_of_key(object value)


@cython.final
cdef class StateFields:
    cdef readonly tuple names
    cdef readonly object shape
    cdef dict places            # name → where its value is
    cdef dict readable          # without the names that a state has otherwise
    cdef list kinds             # of each field which values are taken as they are; None: any
    cdef bint takes(self, Py_ssize_t place, object value) except -1


cdef class StateBase:
    cdef StateFields fields
    cdef readonly tuple _key
    cdef readonly list _values  # of the fields, in their order
    cdef tuple stored           # as the store has them; None: it has none
    cdef int begin(self, StateFields fields, tuple key, list values) except -1


cdef class StatesBase:
    cdef readonly object _shape
    cdef readonly object _store
    cdef readonly object _now
    cdef readonly dict _read    # key → its state
    cdef readonly object _tup   # that is processed; None: none
    cdef type made
    cdef StateFields fields
    cdef dict positions
    cdef bint is_plain
    cdef bint has_doubles
    cdef bint has_timers
    cdef StateBase touched      # by this tuple
    cdef object before          # its values before
    cdef bint has_failed
    # The last tuple's source, whether its tuples are timers, and where the key is in their values; None: nowhere.
    cdef TupleSource source
    cdef bint of_timers
    cdef tuple places
    cdef StateBase state_of(self, tuple key)
    cdef tuple key(self)
    cdef int look_at(self, object tup) except -1
    cdef int roll_back(self) except -1
