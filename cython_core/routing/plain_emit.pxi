"""Plain emits: positional, on the default stream, without options, by the component that the scheduler has called.

Invariant: plain emit ≡ general emit. A plain emit is taken by ``try_spout_emit`` or ``try_bolt_emit``; all others by
the ``emit`` of spout_base.pxi and bolt_base.pxi. The former is only sooner: the same rows, anchors, order, counters and
errors. tests/core/routing/test_plain_emit.py runs both on drawn emits.

Order: what runs per emit is compiled into this module, as inline functions of the ``.pxd`` files; a method called
across modules costs twice as much.

Threading law: as OutputCollector.
"""

from cpython.object cimport PyObject

from cython_core.acking.acker cimport anchor_t, no_anchor
from cython_core.routing.stream_router cimport StreamRouter, send_straight
from cython_core.tuples.tuple cimport OPEN, Tuple, named_values


cdef inline int send_plain(PyObject *collector, PyObject *values, const anchor_t *anchor) except -1:
    # As `send` does what has no stream and no task ids. Borrowed pointers: the caller keeps all of them alive.
    cdef PyObject *router = <PyObject *>(<OutputCollector>collector).default_router
    cdef Py_ssize_t arity
    if router is not <PyObject *>None and (<StreamRouter>router).straight:  # hot
        arity = (<StreamRouter>router).arity  # hot
        if ps_is_tuple(values) and ps_size(values) == arity:
            send_straight(<StreamRouter>router, <object>values, anchor)
            (<OutputCollector>collector).emits += 1
            return 1
        if ps_is_list(values) and ps_size(values) == arity:
            send_straight(
                <StreamRouter>router, named_values(<object>values, (<StreamRouter>router).source.values_class), anchor
            )
            (<OutputCollector>collector).emits += 1
            return 1
    (<OutputCollector>collector).send(<object>values, None, anchor, None)
    return 1


# `emit(values)` and a partitioned spout's `emit(values, offset)`, from inside the scheduler's call.
cdef int try_spout_emit(PyObject *component, PyObject *values, PyObject *tup_id) except -1:
    cdef PyObject *collector = <PyObject *>running
    cdef anchor_t anchor
    cdef bint acked = 0
    if collector is <PyObject *>None or <PyObject *>(<OutputCollector>collector).instance is not component:  # hot
        return 0
    if (<OutputCollector>collector).thread != ps_this_thread():  # hot
        return 0
    if tup_id is NULL:
        if (<SpoutOutputCollector>collector).bounded:  # hot
            return 0
    elif tup_id is not <PyObject *>None or (<SpoutOutputCollector>collector).bounded:  # hot
        if (<SpoutOutputCollector>collector).bounded:
            check_range(<SpoutOutputCollector>collector, <object>tup_id)
        if (<SpoutOutputCollector>collector).tracks:
            return send_rooted(collector, values, tup_id)
        if not (<SpoutOutputCollector>collector).bounded:
            if (<SpoutOutputCollector>collector).roots.notifies_acks:
                return 0
            acked = 1  # as no acker runs
    anchor = no_anchor((<SpoutOutputCollector>collector).last_offset)
    send_plain(collector, values, &anchor)
    (<SpoutOutputCollector>collector).untracked += acked
    return 1


cdef int try_bolt_emit(PyObject *component, PyObject *values, PyObject *none) except -1:
    cdef PyObject *collector = <PyObject *>running
    cdef PyObject *current
    cdef anchor_t anchor
    if collector is <PyObject *>None or <PyObject *>(<OutputCollector>collector).instance is not component:  # hot
        return 0
    if (<OutputCollector>collector).thread != ps_this_thread():  # hot
        return 0
    current = <PyObject *>(<BoltOutputCollector>collector).current
    if current is <PyObject *>None:  # hot
        return try_batch_emit(collector, values)
    if (<Tuple>current).verdict != OPEN:  # hot
        return 0
    if not (<BoltOutputCollector>collector).auto_anchor or (<BoltOutputCollector>collector).batching:  # hot
        return 0
    anchor_to_tuple(&anchor, <Tuple>current)
    return send_plain(collector, values, &anchor)


cdef int try_batch_emit(PyObject *collector, PyObject *values) except -1:
    # In `process_many`, once it is known what all of its tuples are anchored to.
    cdef anchor_t anchor
    if (<BoltOutputCollector>collector).batch is None or not (<BoltOutputCollector>collector).batch_anchored:
        return 0
    if not (<BoltOutputCollector>collector).auto_anchor or (<BoltOutputCollector>collector).batching:
        return 0
    if (<BoltOutputCollector>collector).batch_verdicts != (
        (<BoltOutputCollector>collector).acks + (<BoltOutputCollector>collector).fails
    ):
        return 0
    anchor = (<BoltOutputCollector>collector).batch_anchor
    return send_plain(collector, values, &anchor)
