cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t

from cython_core.acking.acker cimport ps_acker_open, ps_root, ps_spout_roots
from cython_core.primitives.latency_histogram cimport ps_histogram
from cython_core.routing.batch_slice cimport BatchSlice
from cython_core.routing.output_collector cimport OutputCollector


cdef extern from "Python.h":
    void ps_incref "Py_INCREF"(PyObject *)
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1


@cython.final
cdef class SpoutOutputCollector(OutputCollector):
    # The range of a partitioned spout; spouts without offsets have bounded = 0.
    cdef bint bounded
    cdef long long start
    cdef long long end
    cdef long long last_offset
    cdef long long highest_offset   # of the range so far
    cdef bint tracks                # emits with an id have a root
    cdef bint closed                # its slice or range is over
    cdef unsigned long long slice_end       # emits after which the slice of a spout without offsets is over
    cdef unsigned long long max_pending     # open trees beyond which it is not asked; 0: any number
    cdef ps_spout_roots roots
    cdef ps_histogram complete      # of these roots: from emit to ack
    cdef ps_spout_roots deferred    # settled roots that wait for the next slice
    cdef int generation             # of the roots that are opened now: how many verdicts after the slice's end ago
    cdef readonly unsigned long long rooted      # emits that opened a root
    cdef readonly unsigned long long untracked   # acked in the emit itself: nothing is tracked
    cdef object emit(self, object values, object tup_id, object stream, object direct_task, bint need_task_ids)
    cdef int emit_rows(self, BatchSlice rows, object tup_id, object where, uint32_t emits) except -1
    cdef object emit_rooted(self, object values, object tup_id, object where, uint32_t emits, bint need_task_ids)


cdef inline bint spout_is_spent(SpoutOutputCollector collector) noexcept:
    # Whether the slice of a spout without offsets has made all its emits.
    return collector.emits >= collector.slice_end


cdef inline bint spout_is_at_most(SpoutOutputCollector collector) noexcept:
    # Whether as many trees are open as may be (topology.max.spout.pending).
    if collector.max_pending > 0 and collector.roots.open + collector.roots.settled >= collector.max_pending:
        return True
    return collector.tracks and collector.acker.acker.next - collector.acker.acker.oldest >= collector.acker.span


cdef int refuse_offset(SpoutOutputCollector collector, object tup_id) except -1


cdef inline ps_root *open_root(SpoutOutputCollector collector, PyObject *values, PyObject *tup_id, PyObject *where,
                               uint64_t edge, uint32_t emits) except NULL:
    # A tree whose first edge is `edge`.
    cdef ps_root *root = ps_acker_open(&collector.acker.acker, &collector.roots, edge)
    if root is NULL:
        raise MemoryError("no memory for another tuple tree")
    ps_incref(values)
    root.values = values
    ps_incref(tup_id)
    root.id = tup_id
    if where is not <PyObject *>None:  # hot
        ps_incref(where)
        root.where = where
    root.offset = collector.last_offset
    root.emits = emits
    root.generation = collector.generation
    return root


cdef inline int check_range(SpoutOutputCollector collector, object tup_id) except -1:
    # Of a partitioned spout's emit. Raises ValueError: no offset, or one outside of the range.
    cdef long long offset
    cdef int beyond = 0
    if type(tup_id) is not int:
        return refuse_offset(collector, tup_id)
    offset = PyLong_AsLongLongAndOverflow(tup_id, &beyond)
    if beyond != 0 or not collector.start <= offset < collector.end:
        return refuse_offset(collector, tup_id)
    collector.last_offset = offset
    if offset > collector.highest_offset:
        collector.highest_offset = offset
    return 0
