"""Tuples of a range that have failed come again: at once, later, row by row, or not at all.

    a tuple has failed ──► retries: again? ─┬─► emit_again, with its next attempt
                                            ├─► rest: the same, when its delay is over
                                            └─► given up: a dead letter, or the run fails
    a batch has failed ──► replay_rows: the rows that failed by themselves, and the others as they were

Threading law: as every executor.
"""

from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t

from cython_core.acking.acker cimport (
    PS_ROOT_FAILED, PS_ROOT_FAILED_WITH_GROUP, PS_ROOT_RETRY_DUE, PS_ROOT_TIMED_OUT, Acker, anchor_t, no_anchor,
    ps_acker_edge, ps_acker_rest, ps_root, ps_verdict,
)
from cython_core.executors.executor cimport Executor
from cython_core.routing.batch_slice cimport BatchSlice, place_of_offset
from cython_core.routing.output_collector cimport open_root
from cython_core.routing.stream_router cimport StreamRouter
from cython_core.tuples.tuple cimport Tuple

from cython_core.executors.executor import ComponentFailed

cdef long MOST_TREE_ROWS = 1 << 16  # above the quota of a turn, which bounds a tree as well


cdef class SpoutReplay(Executor):
    """An executor whose component's tuples may come again."""

    def __cinit__(self, *_arguments, **_named):
        self.replayed = -1
        self.most_tree_rows = self.tree_rows = MOST_TREE_ROWS

    cdef object blame_of(self, const ps_root *root):
        """The cause of its failure: component, task, method, tuple, exception; None: it timed out."""
        if root.verdict == PS_ROOT_TIMED_OUT:
            return None
        return (self.component, self.task, "fail", None, None) if root.reason is NULL else <object>root.reason

    cdef int replay(self, ps_root *root) except -1:
        """Emits a failed tuple of a range again, at once or later, or gives it up. A tree that fails only because a
        linked tree failed is retried without using up an attempt."""
        cdef object values = <object>root.values
        cdef object tup_id = <object>root.id
        cdef object where = None if root.where is NULL else <object>root.where
        cdef object blame = self.blame_of(root)
        cdef long long offset = root.offset
        cdef uint32_t emits = root.emits
        cdef ps_verdict verdict = root.verdict
        # Order: before the release, or another thread may see neither attempt.
        self.replayed = offset
        try:
            release_tree(self.collector, root)
            if isinstance(values, BatchSlice) and verdict in (PS_ROOT_FAILED, PS_ROOT_TIMED_OUT):
                return self.replay_rows(<BatchSlice>values, tup_id, where, offset, emits, blame, verdict)
            return self.replay_values(values, tup_id, where, offset, emits, blame, verdict)
        finally:
            self.replayed = -1

    cdef int replay_rows(self, BatchSlice values, object tup_id, object where, long long offset, uint32_t emits,
                         object blame, ps_verdict verdict) except -1:
        """Of a batch that a bolt of batches has failed: each row that did by itself, the others as they were. As long
        as it is not known which rows these are, all together; instead of giving all up, each by itself, which is no
        attempt of it."""
        cdef BatchSlice each = None
        cdef Py_ssize_t i
        hopeless = self.retries is not None and self.retries.hopeless(blame)
        failed = None if blame is None else <Tuple>blame[3]
        payload = None if failed is None else (<Tuple>failed).payload
        if values.count > 1 and self.retries is not None and failed is not None and not isinstance(payload, BatchSlice):
            return self.replay_singly(values, <Tuple>failed, tup_id, where, offset, emits, blame, verdict)
        ours, others = values.split(payload, hopeless)
        if values.count == 1 or self.retries is None or (
            ours is None and others is None and not self.retries.gives_up(emits, blame)
        ):
            if isinstance(payload, BatchSlice) and (<BatchSlice>payload).lost is not None:
                blame = of_row(blame, (<BatchSlice>payload).lost, values.place(0))
            return self.replay_values(values, tup_id, where, offset, emits, blame, verdict)
        if others is not None:
            self.replay_values(others, tup_id, where, offset, emits, blame, PS_ROOT_FAILED_WITH_GROUP)
        elif ours is None:
            ours, verdict = values, PS_ROOT_FAILED_WITH_GROUP
        each = ours
        for i in range(0 if each is None else each.count):
            whose = blame
            if isinstance(payload, BatchSlice) and (<BatchSlice>payload).lost is not None:
                whose = of_row(blame, (<BatchSlice>payload).lost, each.place(i))
            self.replay_values(each.row(i), tup_id, where, offset, emits, whose, verdict)
        return 0

    cdef int replay_singly(self, BatchSlice values, Tuple failed, object tup_id, object where, long long offset,
                           uint32_t emits, object blame, ps_verdict verdict) except -1:
        """Of a batch of which a bolt of rows has failed a tuple: each row by itself. It is an attempt of the row that
        the tuple stems from alone: else rows that fail one after the other would use up each other's attempts."""
        cdef Py_ssize_t i, whose = -1 if failed.roots is not None else values.find(place_of_offset(failed.offset))
        self.tree_rows, self.unfailed = 1, 0
        for i in range(values.count):
            self.replay_values(
                values.row(i), tup_id, where, offset, emits, blame, verdict if i == whose else PS_ROOT_FAILED_WITH_GROUP
            )
        return 0

    cdef int replay_values(self, object values, object tup_id, object where, long long offset, uint32_t emits,
                           object blame, ps_verdict verdict) except -1:
        cdef double seconds = 0
        if verdict == PS_ROOT_FAILED_WITH_GROUP:
            if self.retries is not None:
                self.retries.retries += 1
        elif verdict != PS_ROOT_RETRY_DUE:
            seconds = self.delay_of(values, where, offset, emits, blame)
            if seconds < 0:
                return 0
            emits += 1
        self.collector.last_offset = offset
        if seconds > 0:
            return self.rest(values, tup_id, where, emits, seconds)
        return self.emit_again(values, tup_id, where, emits)

    cdef double delay_of(self, object values, object where, long long offset, uint32_t emits, object blame) except? -2:
        """Seconds before a tuple that has failed is emitted again; below 0: never."""
        if isinstance(values, BatchSlice):
            values = (<BatchSlice>values).shown(0)  # of more than one none is given up
        if self.retries is not None:
            return self.retries.again(values, None if where is None else where[0], offset, emits, blame)
        if blame is None:
            raise ComponentFailed(self.component, self.task, "timeout", None, offset)
        component, task, method, tup, cause = blame
        raise ComponentFailed(component, task, method, tup, offset) from cause

    cdef int rest(self, object values, object tup_id, object where, uint32_t emits, double seconds) except -1:
        """Its next attempt begins now and has no tuples yet."""
        cdef Acker acker = self.collector.acker
        cdef uint64_t edge = ps_acker_edge(&acker.acker)
        cdef ps_root *root
        acker.read_clock_now()
        root = open_root(self.collector, <PyObject *>values, <PyObject *>tup_id, <PyObject *>where, edge, emits)
        if ps_acker_rest(&acker.acker, root, acker.acker.now + <uint64_t>(seconds * 1e9)) < 0:
            raise MemoryError("no memory for a timer")
        return 0

    cdef int emit_again(self, object values, object tup_id, object where, uint32_t emits) except -1:
        if isinstance(values, BatchSlice):
            self.collector.emit_rows(values, tup_id, where, emits)
        else:
            self.collector.emit_rooted(values, tup_id, where, emits, False)
        return 0

    def emit_dead_letter(self, tuple row not None):
        """A row of the stream ``__dead_letter``, in no tree, in a turn of the spout; whether anything takes it."""
        cdef StreamRouter router = self.routers["__dead_letter"]
        cdef anchor_t anchor = no_anchor(self.replayed)
        router.route(row, &anchor, None)
        return len(router.routes) > 0 or router.row_sink is not None or router.capture is not None


cdef object of_row(object blame, dict causes, object place):
    """The blame of a row of a batch, of which each may have failed for a cause of its own."""
    return (*blame[:4], causes.get(place, blame[4]))
