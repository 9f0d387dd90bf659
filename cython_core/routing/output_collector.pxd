cimport cython
from cpython.object cimport PyObject

from libc.stdint cimport uint32_t, uint64_t

from cython_core.acking.acker cimport Acker, anchor_t, Roots, ps_root, ps_spout_roots
from cython_core.primitives.latency_histogram cimport ps_histogram
from cython_core.routing.batch_slice cimport BatchSlice
from cython_core.routing.stream_router cimport StreamRouter
from cython_core.tuples.tuple cimport Tuple


cdef class OutputCollector:
    cdef readonly object instance   # the user's spout or bolt
    cdef readonly dict routers      # stream name → StreamRouter
    cdef StreamRouter default_router
    cdef object given_class         # the instance's class, as long as it has an emit of its own for this; else None
    cdef readonly unsigned long long emits   # emits that succeeded
    cdef Acker acker                # of the worker, or None
    cdef bint emits_itself          # its `emit` is the engine's: rows in columns need not go through it
    cdef bint refuses_returns       # rows that a call returns are an exception, not advice
    cdef str returned               # the first ones that were not refused, in words; None: there were none
    cdef StreamRouter router_of(self, object stream)
    cdef object lost_by(self, str method, object answer)
    cdef int note_emit(self) except -1
    cdef int send(self, object values, object stream, const anchor_t *anchor, list task_ids) except -1
    cdef object send_with(self, object values, object stream, const anchor_t *anchor, object direct_task,
                          bint need_task_ids)


@cython.final
cdef class SpoutOutputCollector(OutputCollector):
    # The range of a partitioned spout; spouts without offsets have bounded = 0.
    cdef bint bounded
    cdef long long start
    cdef long long end
    cdef long long last_offset
    cdef long long highest_offset   # of the range so far
    cdef bint tracks                # emits with an id have a root
    cdef ps_spout_roots roots
    cdef ps_histogram complete      # of these roots: from emit to ack
    cdef ps_spout_roots deferred    # settled roots that wait for the next slice
    cdef int generation             # of the roots that are opened now: how many verdicts after the slice's end ago
    cdef readonly unsigned long long rooted      # emits that opened a root
    cdef readonly unsigned long long untracked   # acked in the emit itself: nothing is tracked
    cdef object emit(self, object values, object tup_id, object stream, object direct_task, bint need_task_ids)
    cdef int emit_rows(self, BatchSlice rows, object tup_id, object where, uint32_t emits) except -1
    cdef int emit_columns(self, tuple columns, tuple ids, object stream) except -1
    cdef object emit_rooted(self, object values, object tup_id, object where, uint32_t emits, bint need_task_ids)
    cdef ps_root *open_root(self, PyObject *values, PyObject *tup_id, PyObject *where, uint64_t edge,
                            uint32_t emits) except NULL
    cdef int check_range(self, object tup_id) except -1


@cython.final
cdef class BoltOutputCollector(OutputCollector):
    cdef Tuple current              # the tuple in `process`, None outside
    cdef list batch                 # the tuples in `process_batch` or `process_many`, None outside
    cdef bint batch_anchored        # an emit has asked what they are edges of:
    cdef anchor_t batch_anchor
    cdef Roots batch_roots          # that it leads to, or None
    cdef unsigned long long batch_verdicts
    cdef object broken              # (exception, tuples, key) of the batch that has raised last
    cdef bint batching              # the instance is a BatchingBase
    cdef bint gathers               # and the engine processes what it gathers: its tuples wait as if queued
    cdef public bint auto_anchor
    cdef readonly object failed     # a failed tuple that no spout can replay, waiting for the executor; None without
    cdef readonly unsigned long long acks
    cdef readonly unsigned long long fails
    cdef readonly unsigned long long duplicate_verdicts  # acks and fails of what had a verdict: without effect
    cdef readonly unsigned long long untracked_fails     # of tuples without a message id: no spout can replay them
    cdef dict batches               # id of a batch that the bolt works on → (batch, its tuples); or None
    cdef str component
    cdef int task
    cdef bint between_runs          # no micro-batch is under way
    cdef readonly list late_emits   # errors of emits that came between two of them, waiting for the executor; or None
    cdef int settle_batch(self, list tups, list failed, str method=*, object cause=*) except -1
    cdef object anchor_to_current(self, anchor_t *anchor)
    cdef object anchor_to_batch(self, anchor_t *anchor)
    cdef object anchor_to(self, object anchors, anchor_t *anchor, bint must_be_open=*)
    cdef object anchor_to_one(self, Tuple tup, anchor_t *anchor, bint must_be_open)
    cdef int begin_batch(self, list batch, bint tracked, long long offset) except -1
    cdef int end_batch(self) except -1
    cdef int ack(self, Tuple tup) except -1
    cdef int fail(self, Tuple tup, str method=*, object cause=*) except -1
    cdef int reset_timeout(self, Tuple tup) except -1
    cdef int refuse_late(self, object values) except -1


cdef int check_columns(StreamRouter router, BatchSlice rows) except -1
cdef int anchor_to_tuple(anchor_t *anchor, Tuple tup) noexcept
cdef int refuse_rows(OutputCollector collector, str method, object answer) except -1


cdef class SpoutBase:
    pass


cdef class BoltBase:
    pass


cdef class ArrowBase(BoltBase):
    pass


# Plain emits of a component: 1 where that is what it was, 0 where its general `emit` has to look.
cdef int try_spout_emit(PyObject *component, PyObject *values, PyObject *tup_id) except -1
cdef int try_bolt_emit(PyObject *component, PyObject *values, PyObject *none) except -1


cdef object running_instance()
cdef str name_of(object component)
cdef OutputCollector collector_or_none(object component)
cdef OutputCollector collector_of(object component, object given=*)


# The collector whose component runs now. The component's methods compare `running.instance` with themselves, so a stale
# or foreign value costs a look-up and never sends anything astray.
cdef OutputCollector running
cdef int set_current_collector(OutputCollector collector) except -1
cdef OutputCollector running_for(object component)
