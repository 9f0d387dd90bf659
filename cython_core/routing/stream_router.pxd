"""Declares what stream_router.pyx and its parts define: stream_router.pyx, column_emit.pxi."""

cimport cython

from cython_core.acking.acker cimport anchor_t
from cython_core.arrow.row_batch cimport RowSink
from cython_core.queues.queues cimport BatchInserter, PendingEmits, insert
from cython_core.routing.batch_slice cimport BatchSlice
from cython_core.routing.route cimport Route
from cython_core.tuples.tuple cimport Tuple, TupleSource, new_edge


# stream_router.pyx

@cython.final
cdef class StreamRouter:
    # One stream of one producer task: the tasks that get what is emitted on it.
    cdef readonly TupleSource source
    cdef readonly Py_ssize_t arity
    cdef readonly PendingEmits pending
    cdef readonly tuple routes
    cdef BatchInserter only            # the sole subscribing task, or None
    cdef Route chooses                 # the sole route, whose grouping chooses one of several tasks, or None
    cdef bint straight                 # there is one of both, and neither output nor capture: `send_straight` will do
    cdef readonly bint copies          # every tuple gets values of its own
    cdef readonly bint direct          # the producer names the task: route_direct and not route
    cdef readonly RowSink row_sink     # the output that takes this stream, or None; bolts may take it, too
    # Counters, read from outside.
    cdef readonly unsigned long long emitted
    cdef readonly unsigned long long transferred
    cdef list capture                  # collects every emit's values, or None
    cdef int route(self, object values, const anchor_t *anchor, list task_ids) except -1
    cdef int put_out(self, object values, const anchor_t *anchor) except -1
    cdef int route_to_all(self, object payload, const anchor_t *anchor, list task_ids) except -1
    cdef Tuple ring_tuple(self, BatchInserter inserter, object payload, const anchor_t *anchor, list task_ids)
    cdef list chosen_by(self, Route route, object payload)
    cdef Py_ssize_t most_rows(self, BatchSlice rows, Py_ssize_t quota) except -1
    cdef int route_batch(self, BatchSlice rows, const anchor_t *anchor, object task) except -1
    cdef int route_copies(self, BatchSlice rows, const anchor_t *anchor, object task) except -1
    cdef int route_parts(self, Route route, BatchSlice rows, const anchor_t *anchor, object task) except -1
    cdef dict parts_of(self, Route route, BatchSlice rows)
    cdef dict chosen_parts(self, Route route, BatchSlice rows)
    cdef int send_part(self, BatchInserter inserter, BatchSlice rows, const anchor_t *anchor) except -1
    cdef int route_custom(self, Route route, object payload, const anchor_t *anchor, list task_ids) except -1
    cdef object copied(self, object payload)
    cdef object wrong_answer(self, Route route, str wanted, object answer)
    cdef int refuse(self, str why, object given) except -1
    cdef int send_direct(self, object values, const anchor_t *anchor, object task) except -1


cdef inline long long offset_of_row(RowSink sink, const anchor_t *anchor) noexcept:
    return -1 if sink.of_one_tree and anchor.roots is not NULL else anchor.offset


cdef inline int transfer(PendingEmits pending, BatchInserter inserter, Tuple tup) except -1:
    if pending.count == 0 and insert(inserter, tup):  # hot
        return 0  # hot
    return pending.push(inserter, tup)


cdef inline int send_straight(StreamRouter router, object payload, const anchor_t *anchor) except -1:
    # An emit on a stream that is `straight`.
    cdef BatchInserter inserter
    router.emitted += 1  # hot
    if router.only is not None:  # hot
        router.transferred += 1  # hot
        return transfer(router.pending, router.only, new_edge(router.source, payload, anchor))
    inserter = router.chooses.choose(payload)
    router.transferred += 1  # hot
    return transfer(router.pending, inserter, new_edge(router.source, payload, anchor))


# column_emit.pxi

cdef tuple columns_of(tuple given)
cdef int check_fields(StreamRouter router, tuple columns) except -1
cdef Py_ssize_t length_of(tuple columns, tuple ids) except -1
cdef int emit_one_by_one(object component, tuple columns, tuple ids, dict named) except -1
cdef int refill(list row, tuple columns, Py_ssize_t number) except -1
cdef int send_columns(StreamRouter router, tuple columns, Py_ssize_t rows, const anchor_t *anchor,
                      unsigned long long *emits) except -1
