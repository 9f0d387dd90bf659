cimport cython
from cpython.object cimport PyObject

from cython_core.acking.acker cimport Roots, anchor_t
from cython_core.routing.output_collector cimport OutputCollector
from cython_core.tuples.tuple cimport Tuple


@cython.final
cdef class BoltOutputCollector(OutputCollector):
    cdef Tuple current              # the tuple in `process`, None outside
    cdef list batch                 # the tuples in `process_batch` or `process_many`, None outside
    cdef bint batch_anchored        # an emit has asked what they are edges of:
    cdef anchor_t batch_anchor
    cdef Roots batch_roots          # that it leads to, or None
    cdef unsigned long long batch_verdicts
    cdef object broken              # (exception, tuples, key, method) of the batch that has raised last
    cdef bint batching              # the instance is a BatchingBase
    cdef bint gathers               # and the engine processes what it gathers: its tuples wait as if queued
    cdef public bint auto_anchor
    cdef readonly object failed     # a failed tuple that no spout can replay, waiting for the executor; None without
    cdef readonly unsigned long long acks
    cdef readonly unsigned long long fails
    cdef readonly unsigned long long duplicate_verdicts  # acks and fails of what had a verdict: without effect
    cdef readonly unsigned long long untracked_fails     # of tuples without a message id: no spout can replay them
    cdef dict batches               # id of a batch that the bolt works on or holds → (it, its tuples); or None
    cdef str component
    cdef int task
    cdef public bint has_tasks      # its thread turns a loop, too: an emit may come from a task of an earlier run
    cdef int settle_batch(self, list tups, list failed, str method=*, object cause=*) except -1
    cdef object anchor_to_current(self, anchor_t *anchor)
    cdef object anchor_to_batch(self, anchor_t *anchor)
    cdef object anchor_to(self, object anchors, anchor_t *anchor, bint must_be_open=*)
    cdef bint are_distinct(self, list anchors) except -1
    cdef object anchor_to_each(self, list anchors, anchor_t *anchor, bint must_be_open)
    cdef list tuples_behind(self, object anchors)
    cdef list tuples_of(self, str method, object batch)
    cdef int hold_batch(self, object batch, list tups) except -1
    cdef int leave_batch(self, object batch, bint settled) except -1
    cdef object anchor_to_one(self, Tuple tup, anchor_t *anchor, bint must_be_open)
    cdef int begin_batch(self, list batch, bint tracked, long long offset) except -1
    cdef int end_batch(self) except -1
    cdef int ack(self, Tuple tup) except -1
    cdef int fail(self, Tuple tup, str method=*, object cause=*) except -1
    cdef int reset_timeout(self, Tuple tup) except -1


cdef inline int anchor_to_tuple(anchor_t *anchor, Tuple tup) noexcept:
    # What an emit for this tuple alone is an edge of.
    anchor.root = tup.root  # hot
    anchor.attempt = tup.attempt  # hot
    anchor.roots = NULL if tup.roots is None else <PyObject *>tup.roots
    anchor.offset = tup.offset  # hot
    return 0
