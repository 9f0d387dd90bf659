"""A bolt task's way out: what an emit is anchored to, and the verdicts of what it has taken.

    emit(values)                 the tuple in ``process``, all of ``process_batch``     ──► anchor_t: their trees
    emit(values, anchors=[...])  these                                                  ──► anchor_t: their trees
    ack(tup), fail(tup)          the first verdict counts                               ──► the acker

Threading law: as OutputCollector.
"""

import weakref
from functools import partial

cimport cython
from cpython.list cimport PyList_CheckExact, PyList_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from cython_core.acking.acker cimport (
    Roots, ack_edge, anchor_t, fail_root, no_anchor, ps_acker_reset, ps_root, roots_for, roots_of,
    time_out_root,
)
from cython_core.routing.batch_slice cimport FIRST_PLACE, SOMEWHERE, BatchSlice
from cython_core.tuples.tuple cimport ACKED, FAILED, OPEN, Tuple, TupleBatch, tuple_named

import pyarrow as pa

from cython_core.arrow.row_error import coded, shown


@cython.final
cdef class BoltOutputCollector(OutputCollector):
    """A bolt task's way out, the tuple or batch that it is working on, and the verdicts that it gave."""

    def __cinit__(self):
        self.is_bolt = True
        self.auto_anchor = True

    cdef object anchor_to_current(self, anchor_t *anchor):
        """What an emit without ``anchors`` belongs to; its offset: that of its first anchor that has one. Returns what
        keeps it alive."""
        cdef object roots = None
        if self.batch is not None:
            roots = self.anchor_to_batch(anchor)
        elif self.current is not None and not (self.batching and self.current.source.task < 0):
            if self.auto_anchor and (self.batches is None or self.current.verdict == ACKED):
                check_open(self, self.current)
            anchor_to_tuple(anchor, self.current)
            roots = self.current.roots
        elif self.batching:
            # An override of process_batches says here what it works on, as pystorm's own does.
            roots = self.anchor_to(getattr(self.instance, "_current_tups", None) or (), anchor)
        if not self.auto_anchor:
            anchor.root, anchor.roots = NULL, NULL
        return roots

    cdef object anchor_to_batch(self, anchor_t *anchor):
        """Once per batch: only a verdict can change what an emit may be anchored to."""
        cdef unsigned long long verdicts = self.acks + self.fails
        if not self.batch_anchored or (self.auto_anchor and self.batch_verdicts != verdicts):
            self.batch_anchor = no_anchor(-1)
            if self.auto_anchor and self.batches is not None:
                # What is emitted after a fail is taken back, with what was before it. After an ack it would be lost.
                for tup in self.batch:
                    if (<Tuple>tup).verdict == ACKED:
                        check_open(self, <Tuple>tup)
            self.batch_roots = self.anchor_to(
                self.batch, &self.batch_anchor, self.auto_anchor and self.batches is None
            )
            if self.batches is not None and self.batch_anchor.offset >= 0:
                # Of rows that happened to be gathered it would be that of another one.
                self.batch_anchor.offset = SOMEWHERE
            self.batch_verdicts = verdicts
            self.batch_anchored = True
        anchor[0] = self.batch_anchor
        return self.batch_roots

    cdef object anchor_to(self, object anchors, anchor_t *anchor, bint must_be_open=True):
        cdef Tuple tup
        cdef dict found = {}
        cdef object roots = None
        if PyList_CheckExact(anchors) and PyList_GET_SIZE(anchors) == 1 and isinstance(anchors[0], Tuple):
            return self.anchor_to_one(<Tuple>anchors[0], anchor, must_be_open)
        if self.batches is None and PyList_CheckExact(anchors) and self.are_distinct(<list>anchors):
            return self.anchor_to_each(<list>anchors, anchor, must_be_open)
        if isinstance(anchors, (Tuple, str, bytes)) or not hasattr(anchors, "__iter__"):
            raise coded(
                TypeError,
                "PYSTORM_INVALID_ANCHOR",
                f"{type(self.instance).__name__}.emit: anchors is a list of Tuples or of ids; Given: {shown(anchors)}"
            )
        for given in anchors if self.batches is None else self.tuples_behind(anchors):
            tup = <Tuple>given if isinstance(given, Tuple) else tuple_named(given)
            if tup is None:
                raise coded(
                    ValueError,
                    "PYSTORM_INVALID_ANCHOR",
                    f"{type(self.instance).__name__}.emit: an anchor is a Tuple that the bolt still holds, or its id; "
                    f"Given: {shown(given)}"
                )
            if must_be_open:
                check_open(self, tup)
            if tup.source.acker is self.acker:
                add_roots(found, tup)
            add_offset(anchor, tup)
        if len(found) == 1:
            (anchor.attempt, root), = found.items()
            anchor.root = <ps_root *><size_t>root
        elif found:
            roots = roots_of(self.acker, list(found.values()), list(found))
            anchor.roots = <PyObject *>roots
        return roots

    cdef bint are_distinct(self, list anchors) except -1:
        """Whether these are several tuples of one tree each, no two of the same: what a join emits, and the rows of a
        spout in ``process_many``. Of more than two it is seen by their order alone."""
        cdef Py_ssize_t count = PyList_GET_SIZE(anchors)
        cdef Tuple tup
        cdef uint64_t before = 0
        if count < 2:
            return False
        for given in anchors:
            if not isinstance(given, Tuple):
                return False
            tup = <Tuple>given
            if tup.root is NULL or tup.source.acker is not self.acker or tup.attempt == before:
                return False
            if count > 2 and tup.attempt < before:
                return False
            before = tup.attempt
        return True

    cdef object anchor_to_each(self, list anchors, anchor_t *anchor, bint must_be_open):
        """As ``anchor_to`` does, with a fifth of the instructions."""
        cdef Roots roots = roots_for(self.acker, PyList_GET_SIZE(anchors))
        cdef Tuple tup
        cdef Py_ssize_t i = 0
        for given in anchors:
            tup = <Tuple>given
            if must_be_open:
                check_open(self, tup)
            roots.roots[i], roots.attempts[i] = tup.root, tup.attempt
            add_offset(anchor, tup)
            i += 1
        anchor.roots = <PyObject *>roots
        return roots

    cdef list tuples_behind(self, object anchors):
        """Of a bolt of batches: the anchors, each batch among them as the tuples that have brought its rows."""
        cdef list found = []
        for given in anchors:
            if isinstance(given, pa.RecordBatch):
                found += self.tuples_of("emit", given)
            else:
                found.append(given)
        return found

    cdef list tuples_of(self, str method, object batch):
        """What has brought the rows of a batch that ``process_batch`` was given. Raises ValueError for another one."""
        known = None if self.batches is None else self.batches.get(id(batch))
        if known is None or (known[0] if isinstance(known[0], pa.RecordBatch) else known[0]()) is not batch:
            raise coded(
                ValueError,
                "PYSTORM_INVALID_ANCHOR",
                f"{name_of(self.instance)}.{method} takes the batch that process_batch was given, itself, and until "
                f"that has returned if it acks or fails the rows; Given: {shown(batch)}",
            )
        return known[1]

    cdef int hold_batch(self, object batch, list tups) except -1:
        """The bolt works on a batch, which these tuples have brought."""
        self.batches[id(batch)] = (batch, tups)
        return 0

    cdef int leave_batch(self, object batch, bint settled) except -1:
        """``process_batch`` is over. ``settled``: all rows have their verdict, and get no other one.

        Order: else the batch is known for as long as the bolt keeps it. One that it has thrown away times out, as a
        tuple does, and must not stay here.
        """
        cdef dict batches = self.batches
        cdef object key = id(batch)
        known = batches.pop(key, None)
        if known is not None and not settled:
            batches[key] = weakref.ref(batch, partial(batches.pop, key)), known[1]
        return 0

    cdef object anchor_to_one(self, Tuple tup, anchor_t *anchor, bint must_be_open):
        if must_be_open:
            check_open(self, tup)
        if tup.source.acker is not self.acker:
            anchor.offset = tup.offset
            return None
        anchor_to_tuple(anchor, tup)
        return tup.roots

    cdef int begin_batch(self, list batch, bint tracked, long long offset) except -1:
        """The bolt works on all of these. ``tracked``: some are in trees; ``offset``: the first that one has, or -1."""
        self.batch = batch
        self.batch_anchored = not tracked
        if not tracked:
            self.batch_anchor = no_anchor(offset)
            self.batch_verdicts = self.acks + self.fails
        return 0

    cdef int end_batch(self) except -1:
        self.batch = None
        self.batch_roots = None
        self.batch_anchored = False
        return 0

    cdef int ack(self, Tuple tup) except -1:
        if tup.verdict != OPEN:
            self.duplicate_verdicts += 1
            return 0
        tup.verdict = ACKED
        self.acks += tup.source.task >= 0  # ticks do not count
        if tup.root is not NULL:
            ack_edge(&tup.source.acker.acker, tup.root, tup.attempt, tup.edge)
        elif tup.roots is not None:
            tup.roots.ack_edge(tup.edge)
        return 0

    cdef int fail(self, Tuple tup, str method="fail", object cause=None) except -1:
        if tup.verdict != OPEN:
            self.duplicate_verdicts += 1
            return 0
        cdef Py_ssize_t rows = (<TupleBatch>tup.payload).count if isinstance(tup.payload, TupleBatch) else 1
        tup.verdict = FAILED
        self.fails += rows if tup.source.task >= 0 else 0
        if tup.root is not NULL or tup.roots is not None:
            reason = (self.component, self.task, method, tup, cause)
            if tup.root is not NULL:
                fail_root(tup.source.acker, tup.root, tup.attempt, reason)
            else:
                tup.roots.fail(reason)
        elif tup.offset != -1 and tup.source.stream != "__dead_letter":  # which has an offset and no tree
            if self.failed is None:
                self.failed = tup
        elif tup.source.task >= 0:
            self.untracked_fails += rows
        return 0

    cdef int time_out(self, Tuple tup) except -1:
        """Its time is over where it is worked on, in another process: its trees time out."""
        if tup.verdict != OPEN:
            return 0
        tup.verdict = FAILED
        if tup.root is not NULL:
            time_out_root(tup.source.acker, tup.root, tup.attempt)
        elif tup.roots is not None:
            tup.roots.time_out()
        return 0

    cdef int settle_batch(self, list tups, list failed, str method="fail", object cause=None) except -1:
        """The verdict of a batch: of the one tuple that carried it, or of those that its rows were. ``failed``: for
        each row, whether it has failed; None: none has."""
        cdef Tuple tup
        cdef Py_ssize_t i, lost
        cdef BatchSlice rows
        if len(tups) == 1 and isinstance((<Tuple>tups[0]).payload, BatchSlice):
            tup = <Tuple>tups[0]
            rows = <BatchSlice>tup.payload
            if failed is None:
                if tup.verdict == OPEN:
                    self.acks += rows.count - 1
                    self.ack(tup)
                elif tup.verdict == FAILED and rows.lost is not None and not rows.acked:
                    rows.acked = True
                    self.acks += rows.count - len(rows.lost)
                return 0
            if tup.verdict == FAILED and rows.lost is not None:  # some of its rows have failed: these, too
                if rows.acked:  # as the ack of a row that was a tuple
                    self.duplicate_verdicts += sum(failed)
                    return 0
                lost = len(rows.lost)
                rows = rows.losing(failed, cause)
                tup.payload = rows
                self.fails += len(rows.lost) - lost
                return 0
            lost = sum(failed)
            if tup.verdict == OPEN and lost > 0:
                tup.payload = rows.losing(failed, cause)
                self.fails -= <unsigned long long>(rows.count - lost)  # that `fail` counts
            return self.fail(tup, method, cause) if lost > 0 else 0
        for i in range(len(tups)):
            tup = <Tuple>tups[i]
            if failed is not None and failed[i]:
                self.fail(tup, method, cause)
            elif failed is None and tup.verdict == OPEN:
                self.ack(tup)
        return 0

    cdef int reset_timeout(self, Tuple tup) except -1:
        if tup.root is not NULL:
            tup.source.acker.read_clock_now()
            if ps_acker_reset(&tup.source.acker.acker, tup.root, tup.attempt) < 0:
                raise MemoryError("no memory for a timer")
        elif tup.roots is not None:
            tup.source.acker.read_clock_now()
            tup.roots.reset_timeout()
        return 0


cdef inline void add_offset(anchor_t *anchor, Tuple tup) noexcept:
    if anchor.offset == -1:
        anchor.offset = tup.offset
    elif anchor.offset <= FIRST_PLACE and tup.offset != anchor.offset:
        anchor.offset = SOMEWHERE  # what fails behind it is not a row of the first anchor's alone


cdef int add_roots(dict found, Tuple tup) except -1:
    """Adds the roots of an anchor, as attempt → address, each once, in order.

    Of one slot there may be two attempts: one that has failed, and the one that came after it and must fail as well if
    their row is none.
    """
    cdef Py_ssize_t i
    if tup.root is not NULL:
        found[tup.attempt] = <size_t>tup.root
    elif tup.roots is not None:
        for i in range(tup.roots.count):
            found[tup.roots.attempts[i]] = <size_t>tup.roots.roots[i]
    return 0


cdef int check_open(BoltOutputCollector collector, Tuple anchor) except -1:
    if anchor.verdict != OPEN:
        raise coded(
            ValueError,
            "PYSTORM_ANCHOR_CLOSED",
            f"{name_of(collector.instance)}.emit: Anchored onto {anchor.id} after ack/fail: emit first, then "
            f"{'ack' if anchor.verdict == ACKED else 'fail'}, or emit with anchors=[]; Given: {shown(anchor)}"
        )
    return 0
