"""One turn of a spout or a bolt.

A turn first drains the pending emits; while any are left the component is not called (STORM-2306 §3.6), so a slow
bolt holds its producers, and they theirs, up to the spout. Then it makes at most ``quota`` calls and publishes what it
batched. Looping and waiting are the scheduler's business.

Threading law: one thread at a time.
"""

cimport cython
from cpython.object cimport PyObject

from cython_core.batch_inserter cimport BatchInserter, PendingEmits
from cython_core.output_collector cimport BoltOutputCollector, OutputCollector, SpoutOutputCollector, enter
from cython_core.receive_queue cimport ReceiveQueue, ps_ring_poll, ps_ring_size
from cython_core.stream_router cimport Route, StreamRouter
from cython_core.tuple cimport Tuple, give_up

import pyarrow as pa

from cython_core.output_collector import BoltBase, SpoutBase


cdef extern from "Python.h":
    void ps_decref "Py_DECREF"(PyObject *)
    PyObject *ps_false "Py_False"


class ComponentFailed(Exception):
    """A component raised, or failed a tuple. The cause, where there is one, is the user's exception.

    Attributes: ``component`` (name), ``task`` (id), ``method``, ``tuple`` (a Tuple, or None in a spout), ``offset`` (of
    the spout tuple; -1: none).
    """

    def __init__(self, component, task, method, tup, offset):
        super().__init__(component, task, method, tup, offset)
        self.component = component
        self.task = task
        self.method = method
        self.tuple = tup
        self.offset = offset


cdef class Executor:
    """What spout and bolt executors share. ``routers``: stream name → StreamRouter of this task."""

    def __init__(
        self, str component not None, int task, instance, PendingEmits pending not None, dict routers not None
    ):
        self.component = component
        self.task = task
        self.instance = instance
        self.pending = pending
        for router in routers.values():
            if not isinstance(router, StreamRouter):
                raise TypeError(f"routers of {component!r} are StreamRouters; Given: {router!r}")
        self.routers = routers
        self.inserters = tuple(
            inserter
            for router in routers.values()
            for route in (<StreamRouter>router).routes
            for inserter in (<Route>route).inserters
        )

    cdef long turn(self, long quota) except -1:
        raise NotImplementedError

    cdef bint flush(self) noexcept:
        """Non-blocking. Publishes every batch as far as there is room; 1 where nothing is left, pending or batched."""
        cdef bint clean = self.pending.drain()
        for inserter in self.inserters:
            if (<BatchInserter>inserter).count > 0 and not (<BatchInserter>inserter).flush():
                clean = 0
        return clean

    cdef bint idle(self) noexcept:
        """1 where a turn could do nothing and nothing is held back."""
        return self.pending.count == 0

    def take_turn(self, long quota=256):
        """One turn by hand; returns how many calls it made."""
        return self.turn(quota)

    def ready(self):
        """Called before the turns of a run: what ``initialize`` has put in the place of a method counts."""

    def discard(self):
        """Drops whatever is pending, batched or queued, and takes no more; for a worker that is given up."""
        instance_collector = getattr(self.instance, "_pystorm_collector", None)
        if isinstance(instance_collector, OutputCollector):
            instance_collector.detach()
        self.pending.clear()
        for inserter in self.inserters:
            (<BatchInserter>inserter).clear()
            (<BatchInserter>inserter).queue.clear()


@cython.final
cdef class SpoutExecutor(Executor):
    """Asks a spout for tuples."""

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
        self._begin(batched)
        self.exhausted = start >= end

    def open_slice(self, unsigned long long permits):
        """The next turns make at most ``permits`` emits of a spout without offsets."""
        self.permits = permits
        self._begin(False)

    def _begin(self, bint batched):
        self.batched = batched
        self.call = self.instance.next_batch if batched else self.instance.next_tuple
        ps_call_resolve(&self.entry, <PyObject *>self.call)
        self.exhausted = False

    def close(self):
        """No further turn asks the spout, and no offset is in range, until the next open."""
        self.exhausted = True
        self.collector.end = self.collector.start

    cdef long turn(self, long quota) except -1:
        cdef long calls = 0
        cdef unsigned long long before
        cdef PyObject *answer
        if self.pending.count > 0 and not self.pending.drain():
            self.stalls += 1
            return 0
        if self.exhausted:
            return 0
        enter(self.collector)
        if self.batched:
            return self.turn_batch()
        while calls < quota:
            before = self.collector.emits
            answer = ps_call_none(&self.entry)
            if answer is NULL:
                raise_failed(self, "next_tuple", None, self.collector.last_offset)
            ps_decref(answer)
            calls += 1
            if answer is ps_false:
                self.exhausted = True
                break
            if self.collector.emits == before:
                calls -= 1
                if self.collector.bounded and self.collector.last_offset == self.collector.end - 1:
                    self.exhausted = True
                break
            if not self.collector.bounded:
                if self.permits <= self.collector.emits - before:
                    self.exhausted = True
                    break
                self.permits -= self.collector.emits - before
            if self.pending.count > 0:
                break
        self.executed += calls
        self.flush()
        return calls

    cdef long turn_batch(self) except -1:
        cdef StreamRouter router
        try:
            router = self.collector.router_of("default")
            batch = self.call()
            if batch is None:
                self.exhausted = True
                return 0
            if not isinstance(batch, pa.RecordBatch):
                raise TypeError(f"next_batch() returns a pyarrow.RecordBatch, None at the end; Given: {batch!r:.200}")
            if router.view is not None:
                router.view.builder.add_batch(router.view, batch)
                router.emitted += batch.num_rows
            else:
                for values in zip(*[column.to_pylist() for column in batch.columns]):
                    self.collector.send(values, None, -1, None)
        except Exception as error:
            raise ComponentFailed(self.component, self.task, "next_batch", None, -1) from error
        self.executed += 1
        self.flush()
        return 1


@cython.final
cdef class BoltExecutor(Executor):
    """Feeds a bolt from its receive queue."""

    def __init__(self, str component not None, int task, instance, PendingEmits pending not None, dict routers not None,
                 ReceiveQueue queue not None):
        if not isinstance(instance, BoltBase) or isinstance(instance, SpoutBase):
            raise TypeError(f"component {component!r} is run as a bolt and must be one; Given: {type(instance)!r}")
        super().__init__(component, task, instance, pending, routers)
        self.queue = queue
        self.collector = BoltOutputCollector(instance, routers)
        self.ready()

    def ready(self):
        self.call = self.instance.process
        ps_call_resolve(&self.entry, <PyObject *>self.call)

    cdef long turn(self, long quota) except -1:
        cdef long calls
        if self.pending.count > 0 and not self.pending.drain():
            self.stalls += 1
            return 0
        if self.collector.failed is not None:  # by a thread, or in initialize
            self.raise_tuple_failed()
        calls = self.feed(quota)
        self.flush()
        return calls

    cdef long feed(self, long quota) except -1:
        """At most ``quota`` tuples to the bolt, stopping at the first that leaves an emit pending."""
        cdef long calls = 0
        cdef void *item
        cdef PyObject *answer
        cdef BoltOutputCollector collector = self.collector
        enter(collector)
        while calls < quota:
            item = ps_ring_poll(&self.queue.ring)
            if item is NULL:
                break
            # `current` takes its own reference; the queue's is given up, or kept by the pool, after the call.
            collector.current = <Tuple>item
            answer = ps_call_one(&self.entry, <PyObject *>item)
            if answer is NULL:
                ps_decref(<PyObject *>item)
                raise_failed(self, "process", collector.current, collector.current.offset)
            ps_decref(answer)
            calls += 1
            if collector.failed is not None:
                ps_decref(<PyObject *>item)
                self.raise_tuple_failed()
            give_up(<PyObject *>item)
            if self.pending.count > 0:
                break
        collector.current = None
        self.executed += calls
        return calls

    cdef int raise_tuple_failed(self) except -1:
        """The tuple that was failed where it was given, else the one in ``process``."""
        cdef Tuple failed = self.collector.current
        if isinstance(self.collector.failed, Tuple):
            failed = <Tuple>self.collector.failed
        raise ComponentFailed(self.component, self.task, "fail", failed, -1 if failed is None else failed.offset)

    cdef bint idle(self) noexcept:
        return self.pending.count == 0 and ps_ring_size(&self.queue.ring) == 0


cdef int raise_failed(Executor executor, str method, object tup, long long offset) except -1:
    """Turns the exception that is set into ComponentFailed; what is no Exception (KeyboardInterrupt) goes through."""
    try:
        reraise()
    except Exception as error:
        raise ComponentFailed(executor.component, executor.task, method, tup, offset) from error


cdef extern from *:
    """
    static int ps_reraise(void) { return -1; }
    """
    int reraise "ps_reraise"() except -1
