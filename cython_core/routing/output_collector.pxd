"""Declares what output_collector.pyx and the parts that it includes define."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t, uintptr_t

from cython_core.acking.acker cimport Acker, Roots, anchor_t, ps_acker_edge, ps_acker_open, ps_root, ps_spout_roots
from cython_core.primitives.latency_histogram cimport ps_histogram
from cython_core.queues.queues cimport BatchInserter, PendingEmits
from cython_core.routing.batch_slice cimport BatchSlice
from cython_core.routing.stream_router cimport StreamRouter, transfer
from cython_core.tuples.tuple cimport Tuple, named_values, new_tuple


# own_emit.pxi

# Takes a plain emit: 1 where that is what it was, 0 where the general `emit` has to look.
ctypedef int (*plain_emit_t)(PyObject *component, PyObject *values, PyObject *tup_id) except -1


cdef int register_base(object base, bint is_bolt, plain_emit_t plain) except -1
cdef bint is_own_emit(object bound, bint is_bolt)
cdef object give_own_emit(object cls, bint is_bolt)
cdef int take_own_emit(object cls, bint is_bolt) except -1


# output_collector.pyx

cdef extern from "cython_core/primitives/this_thread.h" nogil:
    uintptr_t ps_this_thread()


cdef class OutputCollector:
    cdef readonly object instance   # the user's spout or bolt
    cdef readonly dict routers      # stream name → StreamRouter
    cdef StreamRouter default_router
    cdef object given_class         # the instance's class, as long as it has an emit of its own for this; else None
    cdef readonly unsigned long long emits   # emits that succeeded
    cdef Acker acker                # of the worker, or None
    cdef bint emits_itself          # its `emit` is the engine's: rows in columns need not go through it
    cdef bint is_bolt               # a BoltOutputCollector
    cdef public bint sends_away     # of a child process: where its tuples go is chosen elsewhere
    cdef bint refuses_returns       # rows that a call returns are an exception, not advice
    # See own_thread.pyx.
    cdef uintptr_t thread           # that takes the turns of its executor
    cdef bint in_call               # the component may be in a call of the engine
    cdef unsigned long long calls   # turns, and calls between them, so far
    cdef bint between_runs          # no micro-batch is under way
    cdef bint detached              # the worker was given up
    cdef unsigned long long run     # the number of the run that goes on; 0: there was none
    cdef unsigned long long runs    # of this worker, so far
    cdef uint64_t newest_thread     # threads of a higher id were started in this run
    cdef PendingEmits pending       # of the executor, or None
    cdef public object new_strategy  # makes the WaitStrategy of a thread of the component's own; None: in no worker
    cdef object strategies          # of these threads, or None
    cdef unsigned long long let_call           # the call whose threads may emit so many more than there is room for
    cdef uint64_t let_in
    cdef readonly unsigned long long thread_waits   # emits of such threads that had to wait
    cdef bint late_counts           # a metric was left out, and the log has said so
    cdef readonly list late_emits   # errors of emits that were refused, waiting for the executor; or None
    cdef str returned               # the first ones that were not refused, in words; None: there were none
    cdef bint is_own(self) noexcept
    cdef StreamRouter router_of(self, object stream)
    cdef object lost_by(self, str method, object answer)
    cdef int note_emit(self) except -1
    cdef int send(self, object values, object stream, const anchor_t *anchor, list task_ids) except -1
    cdef object send_with(self, object values, object stream, const anchor_t *anchor, object direct_task,
                          bint need_task_ids)


cdef object fitting(StreamRouter router, object values)
cdef int check_columns(StreamRouter router, BatchSlice rows) except -1
cdef list slices_given(object component, object batch)
cdef int refuse_rows(OutputCollector collector, str method, object answer) except -1


cdef object running_instance()
cdef str name_of(object component)
cdef OutputCollector collector_or_none(object component)
cdef OutputCollector collector_of(object component, object given=*)
cdef bint send_by_protocol(object component, dict message) except -1
cdef object emit_by_protocol(object component, object values, dict more, object stream, object direct_task,
                             bint need_task_ids)


# The collector whose component runs now. The component's methods compare `running.instance` with themselves, so a stale
# or foreign value costs a look-up and never sends anything astray.
cdef OutputCollector running
cdef int set_current_collector(OutputCollector collector) except -1
cdef OutputCollector running_for(object component)


# bolt_output_collector.pxi

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
    cdef int time_out(self, Tuple tup) except -1
    cdef int reset_timeout(self, Tuple tup) except -1


cdef inline int anchor_to_tuple(anchor_t *anchor, Tuple tup) noexcept:
    # What an emit for this tuple alone is an edge of.
    anchor.root = tup.root  # hot
    anchor.attempt = tup.attempt  # hot
    anchor.roots = NULL if tup.roots is None else <PyObject *>tup.roots
    anchor.offset = tup.offset  # hot
    return 0


# spout_output_collector.pxi

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


# plain_emit.pxi

cdef extern from "Python.h":
    bint ps_is_tuple "PyTuple_Check"(PyObject *)
    bint ps_is_list "PyList_CheckExact"(PyObject *)
    Py_ssize_t ps_size "Py_SIZE"(PyObject *)


# Plain emits of a component: 1 where that is what it was, 0 where its general `emit` has to look.
cdef int try_spout_emit(PyObject *component, PyObject *values, PyObject *tup_id) except -1
cdef int try_bolt_emit(PyObject *component, PyObject *values, PyObject *none) except -1


cdef inline int send_rooted(PyObject *collector, PyObject *values, PyObject *tup_id) except -1:
    # A spout's plain emit with an id, if its stream goes straight to one task at a time: 0 if it does not. Its one
    # tuple is the root's first edge. As `send_plain`, borrowed pointers.
    cdef PyObject *router = <PyObject *>(<OutputCollector>collector).default_router
    cdef object payload
    if router is <PyObject *>None or not (<StreamRouter>router).straight:  # hot
        return 0
    if ps_size(values) != (<StreamRouter>router).arity:  # hot
        return 0
    if ps_is_tuple(values):
        payload = <object>values
    elif ps_is_list(values):
        payload = named_values(<object>values, (<StreamRouter>router).source.values_class)
    else:
        return 0
    root_straight(<SpoutOutputCollector>collector, <StreamRouter>router, payload, tup_id)
    return 1


cdef BatchInserter target_of_root(SpoutOutputCollector collector, StreamRouter router, object payload, ps_root *root)


cdef inline int root_straight(SpoutOutputCollector collector, StreamRouter router, object payload,
                              PyObject *tup_id) except -1:
    cdef uint64_t edge = ps_acker_edge(&collector.acker.acker)
    cdef ps_root *root = open_root(collector, <PyObject *>payload, tup_id, <PyObject *>None, edge, 1)
    cdef BatchInserter inserter = router.only
    cdef Tuple tup
    if inserter is None:
        inserter = target_of_root(collector, router, payload, root)
    tup = new_tuple(router.source, payload, collector.last_offset)
    tup.root = root
    tup.attempt = root.attempt
    tup.edge = edge
    root.waiting = 1
    router.emitted += 1
    router.transferred += 1
    collector.emits += 1
    collector.rooted += 1
    return transfer(router.pending, inserter, tup)
