"""A spout's turn: the verdicts of its trees first, then calls of ``next_tuple`` or ``next_batch``.

Threading law: as every executor.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from cython_core.batch_inserter cimport PendingEmits
from cython_core.executor cimport Executor, late, ps_call_none, ps_call_resolve, ps_coarse_nanos, ps_decref, reraise
from cython_core.output_collector cimport SpoutOutputCollector, enter
from cython_core.stream_router cimport StreamRouter
from cython_core.tuple_tree cimport TupleTree
from cython_core.turn_times cimport NOTHING_TO_EMIT, TurnTimes, end_call

import pyarrow as pa

from cython_core.executor import ComponentFailed
from cython_core.output_collector import BoltBase, SpoutBase


cdef extern from "Python.h":
    PyObject *ps_false "Py_False"


cdef int MOST_RAISES = 100    # in a row, of a spout that goes on, before it counts as having nothing
cdef int MOST_REPLAYS = 8
cdef long long SOMEWHERE = -2  # the offset of a tuple of a range whose place in it nobody knows


@cython.final
cdef class SpoutExecutor(Executor):
    """Asks a spout for tuples, and tells it what became of them."""

    def __init__(
        self, str component not None, int task, instance, PendingEmits pending not None, dict routers not None
    ):
        if not isinstance(instance, SpoutBase) or isinstance(instance, BoltBase):
            raise TypeError(f"component {component!r} is run as a spout and must be one; Given: {type(instance)!r}")
        super().__init__(component, task, instance, pending, routers)
        self.collector = SpoutOutputCollector(instance, routers)
        self.collector.last_offset = -1
        self.exhausted = True

    def open_range(self, long long start, long long end, bint batched):
        """The next turns read offsets [start, end); next_tuple's tuple ids are checked against them."""
        self.collector.bounded = 1
        self.collector.start = start
        self.collector.end = end
        self.collector.last_offset = -1
        self.collector.highest_offset = -1
        self.until_idle = False
        self._begin(batched)
        self.exhausted = start >= end

    def open_slice(self, unsigned long long permits, bint until_idle=False):
        """The next turns make at most ``permits`` emits of a spout without offsets.

        ``until_idle``: the scheduler's run ends where all queues are empty and the spout has nothing.
        """
        self.permits = permits
        self.until_idle = until_idle
        self.raises = 0
        self.cut = False
        self.collector.settlements[:0] = self.collector.deferred
        self.collector.deferred.clear()
        self._begin(False)

    def _begin(self, bint batched):
        self.batched = batched
        self.call = self.instance.next_batch if batched else self.instance.next_tuple
        ps_call_resolve(&self.entry, <PyObject *>self.call)
        self.exhausted = False

    def close(self):
        """No further turn asks the spout, and no offset is in range, until the next open."""
        self.exhausted = self.cut = True
        self.collector.end = self.collector.start

    @property
    def emits(self):
        """Emits that succeeded."""
        return self.collector.emits

    @property
    def rooted(self):
        """Tuples that were emitted with a message id: trees."""
        return self.collector.rooted

    @property
    def unsettled(self):
        """Trees without a verdict yet."""
        told = self.acks + self.fails
        return self.collector.rooted - told - len(self.collector.settlements) - len(self.collector.deferred)

    cdef long turn(self, long quota) except -1:
        cdef unsigned long long before = self.executed
        if self.held_back() or (self.exhausted and len(self.collector.settlements) == 0):
            return 0
        self.times.begin_turn()
        try:
            return self.work(quota)
        finally:
            self.end_turn(self.executed - before)

    cdef long work(self, long quota) except -1:
        cdef long told = 0
        cdef long asked
        cdef unsigned long long before
        cdef uint64_t until = ps_coarse_nanos() + self.patience if self.patience > 0 else 0
        self.skipped += 1
        if len(self.collector.settlements) > 0 and (self.skipped > self.skips or self.exhausted):
            self.skipped = 0
            before = self.collector.emits
            told = self.tell()
            self.charge(self.collector.emits - before)
            self.times.end_prelude()
        if self.pending.count == 0 and not self.exhausted:
            enter(self.collector)
            asked = self.ask_batch() if self.batched else self.ask(quota, until)
            if asked == 0:
                self.skipped = self.skips  # it has time to listen
            told += asked
        self.flush()
        return told

    cdef long ask(self, long quota, uint64_t until) except -1:
        """At most ``quota`` calls of next_tuple, stopping at the first that leaves an emit pending or emits nothing."""
        cdef long calls = 0
        cdef unsigned long long before
        cdef PyObject *answer
        cdef TurnTimes times = self.times
        while calls < quota:
            before = self.collector.emits
            answer = ps_call_none(&self.entry)
            calls += 1
            self.executed += 1  # hot
            if answer is NULL:
                self.caught("next_tuple")
                self.raises += 1
                if self.raises <= MOST_RAISES:
                    break  # it is asked again: a spout that has raised may have more
            else:
                self.raises = 0
                ps_decref(answer)
                if answer is ps_false:
                    self.exhausted = True
                    break
            if self.collector.emits == before:
                calls -= 1
                self.executed -= 1
                if self.collector.bounded and self.collector.highest_offset == self.collector.end - 1:
                    self.exhausted = True
                elif calls == 0:
                    times.stall(NOTHING_TO_EMIT)
                break
            if times.singly:  # hot
                end_call(times)  # hot
            self.charge(self.collector.emits - before)
            if self.exhausted:
                break
            if self.pending.count > 0 or late(self, until, calls):
                break
        return calls

    cdef int charge(self, unsigned long long emits) noexcept:
        """A slice pays for its emits, and ends where it cannot."""
        if not self.collector.bounded and not self.exhausted:
            if self.permits <= emits:
                self.exhausted = self.cut = True
            else:
                self.permits -= emits
        return 0

    cdef long tell(self) except -1:
        """Tells the spout the verdicts of its trees, oldest first, until one of its answers finds no room.

        Once its slice was cut off by deadline or permits, what it emits in answer is new: its acks wait for the next
        slice, and so do its fails from the ``MOST_REPLAYS``th replay on, or a spout that always answers would never let
        the slice end.
        """
        cdef list settled = []
        cdef TupleTree tree
        cdef long told = 0
        cdef long at = 0
        # Order: taken over without an allocation that could run the collector, and so let a bolt's thread add to them.
        settled.extend(self.collector.settlements)
        self.collector.settlements.clear()
        enter(self.collector)
        try:
            for tree in settled:
                at += 1
                if self.cut and tree.generation > (MOST_REPLAYS if tree.failed else 0):
                    self.collector.deferred.append(tree)
                    continue
                told += 1
                self.collector.generation = tree.generation + 1 if self.cut else 0
                if tree.failed:
                    method = "fail"
                    self.fails += 1
                else:
                    method = "ack"
                    self.acks += 1
                try:
                    getattr(self.instance, method)(tree.key)
                except Exception as error:
                    if self.exits:
                        raise ComponentFailed(self.component, self.task, method, None, -1) from error
                    self.survive(method, None, -1, error)
                if self.pending.count > 0:
                    break
        finally:
            self.collector.generation = 0
            # What the spout was not told yet goes first again.
            self.collector.settlements[:0] = settled[at:]
        return told

    cdef int caught(self, str method) except -1:
        """With an exception of the spout's set. A range that cannot be read wholly always fails the run."""
        try:
            reraise()
        except Exception as error:
            if self.exits or self.collector.bounded:
                raise ComponentFailed(self.component, self.task, method, None, self.collector.last_offset) from error
            self.survive(method, None, -1, error)
        return 0

    cdef long ask_batch(self) except -1:
        cdef StreamRouter router
        try:
            router = self.collector.router_of("default")
            batch = self.call()
            if batch is None:
                self.exhausted = True
                return 0
            if not isinstance(batch, pa.RecordBatch):
                raise TypeError(f"next_batch() returns a pyarrow.RecordBatch, None at the end; Given: {batch!r:.200}")
            if router.view is not None and router.tapped is None:
                router.view.builder.add_batch(router.view, batch)
                router.emitted += batch.num_rows
            else:
                for values in zip(*[column.to_pylist() for column in batch.columns]):
                    self.collector.send(values, None, SOMEWHERE, None, None)
        except Exception as error:
            raise ComponentFailed(self.component, self.task, "next_batch", None, -1) from error
        self.executed += 1
        return 1

    cdef bint over(self) except -1:
        """Whether the run need not wait for this spout, which has just had nothing to emit."""
        if self.exhausted:
            return True
        # A spout of the test kit may be in a pause and say so.
        return self.until_idle and not getattr(self.instance, "_pystorm_waits", False)

    cdef bint idle(self) noexcept:
        return self.pending.count == 0 and len(self.collector.settlements) == 0
