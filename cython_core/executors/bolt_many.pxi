"""Many tuples in one call: ``process_many``.

A call gets what has come, at most ``most`` tuples. That number grows while there is more, and shrinks where a call took
longer than a turn may or emitted more than there was room for.

Threading law: as every executor.
"""

from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from cython_core.acking.acker cimport Roots, ack_edge
from cython_core.executors.executor cimport ps_call_one, ps_coarse_nanos, ps_decref, reraise
from cython_core.queues.queues cimport ps_incref, queue_poll
from cython_core.routing.output_collector cimport BoltOutputCollector, set_current_collector
from cython_core.routing.tuple_list cimport TupleList, list_of
from cython_core.tuples.tuple cimport (
    ACKED, OPEN, ColumnSlice, Tuple, TupleBatch, name_values, ps_refcount, recycle, take,
)

from cython_core.executors.executor import ComponentFailed


# Tuples in the first call of process_many. More: slow bolts begin with a call that is too long, and trees time out in
# it. Fewer: fast ones need more calls until they get what is there.
cdef long FIRST_MANY = 32
# The next call gets 1/8 more if there was time and room. Larger: it oversteps the room by more, and what waits there
# leaves the processor's cache and wakes Python's garbage collector. Smaller: more calls until it gets what is there.
cdef int MORE_SHIFT = 3


cdef class BoltMany(BoltTicks):
    """An executor that can give its component many tuples at a time."""

    def __cinit__(self, *_arguments, **_named):
        self.most = FIRST_MANY

    cdef long consume_many(self, long quota) except -1:
        """At most ``quota`` tuples to the bolt, in one call of process_many. Returns how many left the queue."""
        cdef BoltOutputCollector collector = self.collector
        cdef list tups = []
        cdef long most = min(quota, self.most)
        cdef long given = 0
        cdef bint single = True
        cdef long rows
        cdef bint is_part
        cdef bint tracked = False
        cdef long long offset = -1
        cdef long taken = 0
        cdef long again = 0
        cdef bint open_still = True
        cdef Roots roots = None
        cdef void *item
        cdef uint64_t until = self.begin_taking()
        cdef unsigned long long emits = collector.emits
        cdef bint elsewhere = self.shares_rings or self.opened is not None
        set_current_collector(collector)
        while taken < most:
            is_part = elsewhere and self.opened is not None and not self.opened_by_row
            if is_part:
                item = self.take_columns(most - taken)
                if item is NULL:
                    continue
            else:
                item = self.poll_elsewhere() if elsewhere else queue_poll(self.queue)
            if item is NULL:
                break
            rows = 1
            if (<Tuple>item).roots is not None and (<Tuple>item).roots is roots:  # hot
                again += 1  # as the one before, since no code of the user's ran between
            else:
                if again > 0:
                    roots.take_again(again)
                    again = 0
                roots = (<Tuple>item).roots
                open_still = take(<Tuple>item)  # hot
            if not open_still:  # hot
                taken += 1
                self.skip(<PyObject *>item, not is_part)
                continue
            if name_values(<Tuple>item):
                rows = (<TupleBatch>(<Tuple>item).payload).count
                if not is_part and isinstance((<Tuple>item).payload, ColumnSlice) and rows <= most - taken:
                    self.release_at(self.place, <TupleBatch>(<Tuple>item).payload)
                elif not is_part:
                    if again > 0:  # order: the batch waits in its trees again, and its rows look at them anew
                        roots.take_again(again)
                        again = 0
                    roots = None
                    self.open_rows(<PyObject *>item)
                    elsewhere = True
                    continue
                single = False
            taken += rows
            given += rows
            if (<Tuple>item).root is not NULL or roots is not None:  # hot
                tracked = True
            if offset == -1:  # hot
                offset = (<Tuple>item).offset
            tups.append(<Tuple>item)
            ps_decref(<PyObject *>item)
        if again > 0:
            roots.take_again(again)
        if tups:
            self.give_many(list_of(tups, given, single), tracked, offset)
            self.set_most(quota, taken, collector.emits - emits, until)
            if self.by_test_clock:
                collector.acker.read_clock_now()
        return taken

    cdef int set_most(self, long quota, long taken, unsigned long long emits, uint64_t until) except -1:
        """After a call with ``taken`` tuples: the next one is to take no longer than a turn, until ``until``, and to
        emit what there is room for."""
        cdef long sent = <long>emits
        cdef long waits = <long>self.pending.count
        if until != 0 and ps_coarse_nanos() >= until:
            self.most = max(1, taken >> 1)
        elif waits > 0:
            self.most = max(1, taken - taken * min(waits, sent) // max(1, sent))
        elif taken == self.most:
            self.most = min(quota, taken + max(1, taken >> MORE_SHIFT))
        return 0

    cdef int give_many(self, TupleList given, bint tracked, long long offset) except -1:
        """``tracked``, ``offset``: as of ``begin_batch``."""
        cdef BoltOutputCollector collector = self.collector
        cdef unsigned long long emits = collector.emits
        cdef list tups = given.tuples
        cdef Py_ssize_t holders = ps_refcount(<PyObject *>given) + ps_refcount(<PyObject *>tups)
        cdef PyObject *answer
        if not self.auto_ack:
            given.all()  # it may give each its verdict later
        collector.current = None
        collector.begin_batch(tups, tracked, offset)
        try:
            answer = ps_call_one(&self.entry, <PyObject *>given)
            self.executed += given.rows
            if answer is NULL:
                self.many_raised(given)
                return 0
            if answer is not <PyObject *>None and collector.emits == emits:
                error = collector.lost_by("process_many", <object>answer)
                if error is not None:
                    ps_decref(answer)
                    self.fail_many(given, error)
                    return 0
            ps_decref(answer)
            if self.auto_ack:
                collector.acks += given.rows - PyList_GET_SIZE(tups)  # of those that it has not looked at one by one
                self.ack_many(tups)
            if collector.failed is not None:
                self.raise_tuple_failed("fail", None)
        finally:
            collector.end_batch()
        if ps_refcount(<PyObject *>given) + ps_refcount(<PyObject *>tups) == holders:  # the bolt keeps none of both
            recycle_all(tups)
        return 0

    cdef int many_raised(self, TupleList given) except -1:
        """With an exception of the bolt's set."""
        cdef Tuple first
        try:
            reraise()
        except Exception as error:
            self.fail_many(given, error)
        except BaseException as error:
            first = <Tuple>given.all()[0]
            raise self.interrupted("process_many", first, first.offset, error)
        return 0

    cdef int fail_many(self, TupleList given, object cause) except -1:
        """Handles an exception of the bolt, inside its ``except``: fails all tuples that have no verdict."""
        cdef list tups = given.all()
        cdef Tuple first = <Tuple>tups[0]
        cdef Tuple tup
        cdef int named = self.named(cause)
        cdef bint exits = self.exits and named == 0
        self.errors += exits
        if not exits and named != BY_BOLT:
            self.survive("process_many", first, first.offset, cause)
        if self.auto_fail or named == BY_BOLT:
            for tup in tups:
                if tup.verdict == OPEN:
                    self.collector.fail(tup, "process_many", cause)
        if exits:
            raise ComponentFailed(self.component, self.task, "process_many", first, first.offset) from cause
        if self.collector.failed is not None:
            self.raise_tuple_failed("process_many", cause)
        return 0

    cdef int ack_many(self, list tups) except -1:
        """Acks all. Those that follow one another in the same trees are one edge of them, the sum (XOR) of theirs."""
        cdef BoltOutputCollector collector = self.collector
        cdef Tuple last = None
        cdef Tuple tup
        cdef uint64_t edges = 0
        for tup in tups:
            if tup.verdict != OPEN:  # hot
                collector.ack(tup)
                continue
            tup.verdict = ACKED  # hot
            collector.acks += 1  # hot
            if tup.root is NULL and tup.roots is None:  # hot
                continue
            if last is not None and not same_trees(last, tup):
                ack_edges(last, edges)
                edges = 0
            last = tup
            edges ^= tup.edge
        if last is not None:
            ack_edges(last, edges)
        return 0


cdef inline bint same_trees(Tuple one, Tuple other) noexcept:
    return one.root == other.root and one.attempt == other.attempt and one.roots is other.roots


cdef int ack_edges(Tuple tup, uint64_t edges) except -1:
    """Of the tuple's trees."""
    if tup.root is not NULL:
        return ack_edge(&tup.source.acker.acker, tup.root, tup.attempt, edges)
    return tup.roots.ack_edge(edges)


cdef int recycle_all(list tups) except -1:
    """Gives to the pool what only this list holds. Order: as of ``recycle``: the list holds each of them meanwhile."""
    cdef PyObject *item
    cdef Py_ssize_t i
    for i in range(PyList_GET_SIZE(tups)):
        item = PyList_GET_ITEM(tups, i)
        ps_incref(item)
        recycle(item)
    return 0
