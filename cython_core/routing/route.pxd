"""Declares what route.pyx and its parts define: stable_hash.pxi, java_hash.pxi, route.pyx."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint64_t

from cython_core.queues.queues cimport BatchInserter


# stable_hash.pxi

cdef uint64_t stable_hash(object value) except? 0


# java_hash.pxi

cdef int32_t java_hash_of_all(object payload, const Py_ssize_t *positions, Py_ssize_t selected) except? -1


# route.pyx

cdef enum GroupingKind:
    GROUPING_SHUFFLE
    GROUPING_FIELDS
    GROUPING_ALL
    GROUPING_GLOBAL
    GROUPING_NONE
    GROUPING_DIRECT
    GROUPING_PARTIAL_KEY
    GROUPING_CUSTOM


@cython.final
cdef class Route:
    # One subscription: a grouping and the tasks it distributes among.
    cdef GroupingKind kind
    cdef readonly tuple inserters      # keeps `targets` alive, in task order
    cdef PyObject **targets            # BatchInserter, borrowed from `inserters`
    cdef Py_ssize_t fan                # how many
    cdef Py_ssize_t *positions         # fields and partial key: indices of the selected values
    cdef Py_ssize_t selected
    cdef Py_ssize_t widest             # values that an emit must have at least
    cdef Py_ssize_t turn               # shuffle: next target
    cdef bint java                     # fields: hash as Storm does
    cdef uint64_t state                # none: xorshift state
    cdef uint64_t *chosen              # partial key: how often each target was chosen
    cdef readonly object custom        # custom: the object that chooses, else None
    cdef dict by_task                  # direct, custom: task id → BatchInserter
    cdef BatchInserter choose(self, object payload)
    cdef Py_ssize_t place(self, object payload) except -1
    cdef Py_ssize_t place_of_key(self, tuple columns, Py_ssize_t row) except -1
    cdef Py_ssize_t less_chosen(self, uint64_t key) noexcept
