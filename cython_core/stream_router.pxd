cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from cython_core.batch_inserter cimport BatchInserter, PendingEmits
from cython_core.row_batch cimport RowView
from cython_core.tuple cimport TupleSource


cdef enum GroupingKind:
    GROUPING_SHUFFLE
    GROUPING_FIELDS
    GROUPING_ALL
    GROUPING_GLOBAL
    GROUPING_NONE


@cython.final
cdef class Route:
    # One subscription: a grouping and the tasks it distributes among.
    cdef GroupingKind kind
    cdef readonly tuple inserters      # keeps `targets` alive, in task order
    cdef PyObject **targets            # BatchInserter, borrowed from `inserters`
    cdef Py_ssize_t fan                # how many
    cdef Py_ssize_t *positions         # fields grouping: indices of the selected values
    cdef Py_ssize_t selected
    cdef Py_ssize_t widest             # values that an emit must have at least
    cdef Py_ssize_t turn               # shuffle: next target
    cdef uint64_t state                # none: xorshift state
    cdef BatchInserter choose(self, object payload)


@cython.final
cdef class StreamRouter:
    # One stream of one producer task: who gets what is emitted on it.
    cdef readonly TupleSource source
    cdef readonly Py_ssize_t arity
    cdef readonly PendingEmits pending
    cdef readonly tuple routes
    cdef BatchInserter only            # the sole subscribing task, or None
    cdef readonly RowView view         # the output that takes this open stream, or None
    # Counters, read from outside.
    cdef readonly unsigned long long emitted
    cdef readonly unsigned long long transferred
    cdef int route(self, object values, long long offset, list task_ids) except -1
    cdef int route_to_all(self, object payload, long long offset, list task_ids) except -1
