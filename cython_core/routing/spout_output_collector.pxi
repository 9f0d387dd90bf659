"""A spout task's way out: emits that open a tuple tree, and the offsets of a partitioned spout.

    emit(values, tup_id) ──► root of a tree ──► each tuple an edge ──► the emit's own edge is acked
    emit(values)         ──► tuples of no tree

Threading law: as OutputCollector.
"""

cimport cython
from cpython.list cimport PyList_CheckExact
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t

from cython_core.acking.acker cimport (
    anchor_t, PS_ROOT_EMIT_RAISED, ack_edge, no_anchor, ps_acker_edge, ps_acker_fail, ps_root,
)
from cython_core.routing.batch_slice cimport BatchSlice
from cython_core.routing.stream_router cimport StreamRouter
from cython_core.tuples.tuple cimport named_values

from cython_core.arrow.row_error import coded, shown


@cython.final
cdef class SpoutOutputCollector(OutputCollector):
    """A spout task's way out, the offset range that its tuple ids are checked against, and the roots of its trees."""

    cdef object emit(self, object values, object tup_id, object stream, object direct_task, bint need_task_ids):
        cdef anchor_t anchor = no_anchor(self.last_offset)
        cdef StreamRouter router
        if tup_id is None:
            return self.send_with(values, stream, &anchor, direct_task, need_task_ids)
        if not self.tracks:
            answer = self.send_with(values, stream, &anchor, direct_task, need_task_ids)
            if not self.bounded:
                if self.roots.notifies_acks:
                    self.instance.ack(tup_id)  # as in Storm, where no acker runs
                self.untracked += 1
            return answer
        router = self.router_of(stream)
        if self.bounded and not router.routes:
            return self.send_with(values, stream, &anchor, direct_task, need_task_ids)  # it cannot fail
        values = fitting(router, values)
        if router.routes and PyList_CheckExact(values):
            values = named_values(values, router.source.values_class)
        where = None if stream is None and direct_task is None else (stream, direct_task)
        return self.emit_rooted(values, tup_id, where, 1, need_task_ids)

    cdef object emit_rooted(self, object values, object tup_id, object where, uint32_t emits, bint need_task_ids):
        """The emit number ``emits`` of a tuple; ``where``: (stream, direct task), None for the default stream."""
        cdef anchor_t anchor
        # Order: the emit itself is an edge, until all others are there.
        cdef uint64_t edge = ps_acker_edge(&self.acker.acker)
        cdef ps_root *root = open_root(self, <PyObject *>values, <PyObject *>tup_id, <PyObject *>where, edge, emits)
        anchor.root, anchor.roots, anchor.attempt, anchor.offset = root, NULL, root.attempt, self.last_offset
        stream, direct_task = (None, None) if where is None else where
        try:
            answer = self.send_with(values, stream, &anchor, direct_task, need_task_ids)
        except BaseException:
            # The spout is not notified, though some of the tuples may be on their way.
            ps_acker_fail(&self.acker.acker, root, anchor.attempt, PS_ROOT_EMIT_RAISED)
            raise
        self.rooted += 1
        ack_edge(&self.acker.acker, root, anchor.attempt, edge)
        return answer

    cdef int emit_rows(self, BatchSlice rows, object tup_id, object where, uint32_t emits) except -1:
        """The emit number ``emits`` of a batch, which is one tree; ``where``: as of ``emit_rooted``. Without an id, and
        without a range, it is none."""
        cdef anchor_t anchor = no_anchor(self.last_offset)
        cdef ps_root *root = NULL
        cdef uint64_t edge = 0
        stream, direct_task = (None, None) if where is None else where
        cdef StreamRouter router = self.router_of(stream)
        check_columns(router, rows)
        if self.tracks and (len(router.routes) > 0 if self.bounded else tup_id is not None):
            # Order: the emit itself is an edge, until all others are there.
            edge = ps_acker_edge(&self.acker.acker)
            root = open_root(self, <PyObject *>rows, <PyObject *>tup_id, <PyObject *>where, edge, emits)
            anchor.root, anchor.attempt = root, root.attempt
            self.rooted += 1
        try:
            router.route_batch(rows, &anchor, direct_task)
        except BaseException:
            if root is not NULL:
                ps_acker_fail(&self.acker.acker, root, anchor.attempt, PS_ROOT_EMIT_RAISED)
            raise
        self.emits += rows.count
        if root is not NULL:
            ack_edge(&self.acker.acker, root, anchor.attempt, edge)
        elif tup_id is not None and not self.bounded:
            if self.roots.notifies_acks:
                self.instance.ack(tup_id)  # as in Storm, where no acker runs
            self.untracked += 1
        return 0


cdef BatchInserter target_of_root(SpoutOutputCollector collector, StreamRouter router, object payload, ps_root *root):
    """The task that the grouping chooses. If it raises, the tree ends as that of any emit that raises."""
    try:
        return router.chooses.choose(payload)
    except BaseException:
        router.emitted += 1
        ps_acker_fail(&collector.acker.acker, root, root.attempt, PS_ROOT_EMIT_RAISED)
        raise


cdef int refuse_offset(SpoutOutputCollector collector, object tup_id) except -1:
    """Raises ValueError: no offset, or one outside of the range."""
    name = type(collector.instance).__name__
    if type(tup_id) is not int:
        raise coded(
            ValueError,
            "PYSTORM_OFFSET_MISSING",
            f"{name} is a PartitionedSpout: emit(values, tup_id=offset) needs the tuple's offset, an int in "
            f"[{collector.start}, {collector.end}); Given: {shown(tup_id)}"
        )
    raise coded(
        ValueError,
        "PYSTORM_OFFSET_OUT_OF_RANGE",
        f"{name} emitted an offset outside of its range [{collector.start}, {collector.end}): "
        f"next_tuple() returns False once the range is exhausted; Given: {shown(tup_id)}"
    )
