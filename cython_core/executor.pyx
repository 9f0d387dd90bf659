"""One turn of a spout or a bolt.

A turn first drains the pending emits; while any are left the component is not called (STORM-2306 §3.6), so a slow
bolt holds its producers, and they theirs, up to the spout. Then it makes at most ``quota`` calls and publishes what it
batched. Looping and waiting are the scheduler's business.

A spout's turn begins with the verdicts of its trees, a bolt's with the timers that went off (ticks, batches by time).
An exception of a component fails the run, unless its ``exit_on_exception`` is false: then it is reported, the tuple is
failed (``auto_fail``) and the turn goes on.

Threading law: one thread at a time.
"""

cimport cython
from cpython.object cimport PyObject

from cython_core.batch_inserter cimport BatchInserter, PendingEmits
from cython_core.output_collector cimport BoltOutputCollector, OutputCollector, SpoutOutputCollector, enter
from cython_core.receive_queue cimport ReceiveQueue, ps_ring_poll, ps_ring_size
from cython_core.stream_router cimport Route, StreamRouter
from cython_core.tuple cimport ACKED, OPEN, Tuple, TupleSource, give_up, new_tuple
from cython_core.tuple_tree cimport TupleTree

import logging
from collections import deque

import pyarrow as pa

from cython_core.batching import BatchingBase
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


logger = logging.getLogger("pystorm.worker")

cdef object NEVER = float("inf")
cdef int MOST_REPORTED = 100
cdef int MOST_RAISES = 100    # in a row, of a spout that goes on, before it counts as having nothing
cdef int MOST_REPLAYS = 8
cdef long long SOMEWHERE = -2  # the offset of a tuple of a range whose place in it nobody knows


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
        self.exits = True
        self.reported = deque(maxlen=MOST_REPORTED)

    cdef long turn(self, long quota) except -1:
        raise NotImplementedError

    cdef bint late(self, uint64_t until, long calls) noexcept:
        """Whether a turn must end early: asked after each call, looks at the clock after every fourth one."""
        if until == 0 or (not self.slow and (calls & 3) != 0):
            return 0
        self.slow = ps_coarse_nanos() >= until
        return self.slow

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
        """Called before the turns of a run: what ``initialize`` has put in the place of a method or flag counts."""
        self.exits = bool(getattr(self.instance, "exit_on_exception", True))

    def last_report(self):
        """The newest entry of ``reported``, or None."""
        for entry in reversed(self.reported):
            return entry
        return None

    cdef object survive(self, str method, Tuple tup, long long offset, object error):
        """Reports an exception that lets the run go on."""
        failure = ComponentFailed(self.component, self.task, method, tup, offset)
        failure.__cause__ = error
        report = getattr(self.instance, "raise_exception", None)
        if report is not None:
            last = self.last_report()
            try:
                report(error, tup)
            except Exception:
                logger.exception("raise_exception() of component %r, task %d raised", self.component, self.task)
            if self.last_report() is not last:
                self.reported.pop()  # the component's own entry says less
        self.errors += 1
        self.reported.append(failure)
        return failure

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
        cdef long calls = 0
        cdef long told = 0
        cdef unsigned long long before
        cdef PyObject *answer
        cdef uint64_t until = ps_coarse_nanos() + self.patience if self.patience > 0 else 0
        if self.pending.count > 0 and not self.pending.drain():
            self.stalls += 1
            return 0
        if len(self.collector.settlements) > 0:
            before = self.collector.emits
            told = self.tell()
            self.charge(self.collector.emits - before)
            if self.pending.count > 0:
                self.flush()
                return told
        if self.exhausted:
            if told > 0:
                self.flush()
            return told
        enter(self.collector)
        if self.batched:
            return told + self.turn_batch()
        while calls < quota:
            before = self.collector.emits
            answer = ps_call_none(&self.entry)
            calls += 1
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
                if self.collector.bounded and self.collector.highest_offset == self.collector.end - 1:
                    self.exhausted = True
                break
            self.charge(self.collector.emits - before)
            if self.exhausted:
                break
            if self.pending.count > 0 or self.late(until, calls):
                break
        self.executed += calls
        self.flush()
        return told + calls

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
        cdef list settled = self.collector.settlements[:]
        cdef TupleTree tree
        cdef long told = 0
        cdef long at = 0
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
            if router.view is not None and router.tapped is None:
                router.view.builder.add_batch(router.view, batch)
                router.emitted += batch.num_rows
            else:
                for values in zip(*[column.to_pylist() for column in batch.columns]):
                    self.collector.send(values, None, SOMEWHERE, None, None)
        except Exception as error:
            raise ComponentFailed(self.component, self.task, "next_batch", None, -1) from error
        self.executed += 1
        self.flush()
        return 1

    cdef bint idle(self) noexcept:
        return self.pending.count == 0 and len(self.collector.settlements) == 0


@cython.final
cdef class BoltExecutor(Executor):
    """Feeds a bolt from its receive queue.

    ``tick_frequency``: seconds between tick tuples, None for none but the final one of a micro-batch.
    """

    def __init__(self, str component not None, int task, instance, PendingEmits pending not None, dict routers not None,
                 ReceiveQueue queue not None, tick_frequency=None):
        if not isinstance(instance, BoltBase) or isinstance(instance, SpoutBase):
            raise TypeError(f"component {component!r} is run as a bolt and must be one; Given: {type(instance)!r}")
        super().__init__(component, task, instance, pending, routers)
        self.queue = queue
        self.collector = BoltOutputCollector(instance, routers)
        self.tick_frequency = tick_frequency
        self.tick_source = TupleSource("__system", "__tick", -1, ("rate_secs",))
        self.batching = None
        if isinstance(instance, BatchingBase):
            self.batching = instance
            self.collector.batching = True
            instance._reset_batches()
        self.tick_due = self.fire_due = NEVER
        self.ready()

    def ready(self):
        Executor.ready(self)
        instance = self.instance
        self.call = instance.process
        ps_call_resolve(&self.entry, <PyObject *>self.call)
        self.auto_ack = self.batching is None and bool(getattr(instance, "auto_ack", True))
        self.auto_fail = bool(getattr(instance, "auto_fail", True))
        self.collector.auto_anchor = bool(getattr(instance, "auto_anchor", True))
        self.batch_override = (
            self.batching is not None and type(instance).process_batches is not BatchingBase.process_batches
        )
        base = BoltBase if self.batching is None else BatchingBase
        tick = getattr(instance.process_tick, "__func__", None)
        self.has_tick = (
            tick is not None or type(instance).process_tick is not base.process_tick
            or "process_tick" in getattr(instance, "__dict__", ())
        )

    @property
    def acks(self):
        """Tuples that were acked."""
        return self.collector.acks

    @property
    def fails(self):
        """Tuples that were failed."""
        return self.collector.fails

    @property
    def second_verdicts(self):
        """Acks and fails of tuples that had their verdict: without effect."""
        return self.collector.second_verdicts

    @property
    def unheard_fails(self):
        """Of the failed tuples, those that no spout can replay: they were emitted without a message id."""
        return self.collector.unheard_fails

    def begin(self, double now):
        """A micro-batch begins at this reading of the scheduler's clock: timers start, the final tick is due again."""
        self.final_ticked = False
        self.due = False
        self.ready()
        ticks = self.tick_frequency is not None and (self.has_tick or self.batching is not None)
        self.tick_due = now + self.tick_frequency if ticks else NEVER
        seconds = getattr(self.instance, "secs_between_batches", None) if self.batching is not None else None
        self.fire_due = now + seconds if seconds is not None else NEVER

    @property
    def next_due(self):
        """When the next timer goes off; infinity where none runs."""
        return min(self.tick_due, self.fire_due)

    def pass_time(self, double now):
        """The scheduler's clock as it reads before a turn."""
        if now >= self.tick_due or now >= self.fire_due:
            self.due = True
            self.now = now

    cdef long turn(self, long quota) except -1:
        cdef long calls = 0
        if self.pending.count > 0 and not self.pending.drain():
            self.stalls += 1
            return 0
        if self.collector.failed is not None:  # by a thread, or in initialize
            self.raise_tuple_failed("fail", None)
        if self.due:
            self.due = False
            self.fire_timers()
            if self.pending.count > 0:
                self.flush()
                return 0
        # A timer is no progress: what it emitted is in the queues, and timers alone must not keep a run going.
        calls = self.feed(quota)
        self.flush()
        return calls

    cdef long feed(self, long quota) except -1:
        """At most ``quota`` tuples to the bolt, stopping at the first that leaves an emit pending."""
        cdef long calls = 0
        cdef void *item
        cdef PyObject *answer
        cdef BoltOutputCollector collector = self.collector
        cdef uint64_t until = 0
        if ps_ring_size(&self.queue.ring) == 0:
            return 0
        if self.patience > 0:
            until = ps_coarse_nanos() + self.patience
        enter(collector)
        while calls < quota:
            item = ps_ring_poll(&self.queue.ring)
            if item is NULL:
                break
            # `current` takes its own reference; the queue's is given up, or kept by the pool, after the call.
            collector.current = <Tuple>item
            answer = ps_call_one(&self.entry, <PyObject *>item)
            calls += 1
            if answer is NULL:
                ps_decref(<PyObject *>item)
                self.caught("process")
            else:
                ps_decref(answer)
                if self.auto_ack:
                    if (<Tuple>item).verdict == OPEN and (<Tuple>item).trees is None:
                        (<Tuple>item).verdict = ACKED  # hot
                        collector.acks += 1  # hot
                    else:
                        collector.ack(collector.current)
                if collector.failed is not None:
                    ps_decref(<PyObject *>item)
                    self.raise_tuple_failed("fail", None)
                # Not where a call of process_batches from elsewhere has put another tuple in its place.
                if <PyObject *>collector.current is <PyObject *>item:
                    give_up(<PyObject *>item)
                else:
                    ps_decref(<PyObject *>item)
            if self.batch_override:
                self.forget_tups()
            if self.pending.count > 0 or self.late(until, calls):
                break
        collector.current = None
        self.executed += calls
        return calls

    cdef int caught(self, str method) except -1:
        """With an exception of the bolt's set; what is no Exception (KeyboardInterrupt) goes through."""
        try:
            reraise()
        except Exception as error:
            self.fail_current(method, error)
        return 0

    cdef int fail_current(self, str method, object cause) except -1:
        """Handles an exception of the bolt, inside its ``except``: fails the tuple or the batch that it worked on."""
        cdef BoltOutputCollector collector = self.collector
        cdef Tuple tup = collector.current
        batch, broken = None, collector.broken
        collector.broken = None
        if broken is not None and broken[0] is cause:
            batch, key = broken[1:]
        elif self.batch_override and getattr(self.instance, "_current_tups", None):
            batch, key = self.instance._current_tups, getattr(self.instance, "_current_key", None)
        if batch is not None:
            method = "process_batch"
            tup = next((each for each in batch if isinstance(each, Tuple)), None)
        self.errors += self.exits
        if not self.exits:
            self.survive(method, tup, -1 if tup is None else tup.offset, cause)
        if batch is not None:
            self.batching._fail_batches(self.exits, key, batch)
        elif self.auto_fail and tup is not None and tup.verdict == OPEN:
            collector.fail(tup)
        if self.batch_override:
            self.forget_tups()
        if self.exits:
            raise ComponentFailed(
                self.component, self.task, method, tup, -1 if tup is None else tup.offset
            ) from cause
        if collector.failed is not None:
            self.raise_tuple_failed(method, cause)
        collector.current = None
        return 0

    cdef int forget_tups(self) except -1:
        """What an override of process_batches said that it works on, it does no more."""
        if getattr(self.instance, "_current_tups", None):
            self.instance._current_tups = []
        return 0

    cdef int raise_tuple_failed(self, str method, object cause) except -1:
        cdef Tuple failed = <Tuple>self.collector.failed
        raise ComponentFailed(self.component, self.task, method, failed, failed.offset) from cause

    cdef int fire_timers(self) except -1:
        if self.now >= self.tick_due:
            # Ticks that were missed are not made up for.
            while self.tick_due <= self.now:
                self.tick_due += self.tick_frequency
            self.give_tick()
        if self.now >= self.fire_due:
            self.fire_due = self.now + self.instance.secs_between_batches
            self.fire_batches()
        return 0

    cdef int give_tick(self) except -1:
        enter(self.collector)
        frequency = 0 if self.tick_frequency is None else self.tick_frequency
        self.collector.current = new_tuple(self.tick_source, (frequency,), -1, None)
        self.ticks += 1
        try:
            self.instance.process_tick(self.collector.current)
        except Exception as error:
            self.fail_current("process_tick", error)
        self.collector.current = None
        if self.batch_override:
            self.forget_tups()
        if self.collector.failed is not None:
            self.raise_tuple_failed("fail", None)
        return 0

    cdef int fire_batches(self) except -1:
        enter(self.collector)
        if not self.batching._batches:
            return 0
        try:
            self.batching.process_batches()
            self.batching._tick_counter = 0
        except Exception as error:
            self.fail_current("process_batches", error)
        if self.batch_override:
            self.forget_tups()
        if self.collector.failed is not None:
            self.raise_tuple_failed("fail", None)
        return 0

    def wants_final_tick(self, unsigned long long emits):
        """Whether the micro-batch's end still owes the bolt something: its tick, or the batches that it holds.

        ``emits``: of all spouts so far. Where one has emitted since the bolt's tick, as in answer to a fail, the
        bolt gets another. What only goes round in a cycle gives none: each tick could send it round once more.
        """
        if self.batching is not None and self.batching._batches:
            return not self.final_ticked or self.executed != self.executed_at_final_tick
        return self.has_tick and (not self.final_ticked or self.emits_at_final_tick != emits)

    def final_tick(self, unsigned long long emits):
        """The tick of the micro-batch's end. A batching bolt processes what it holds, whatever its tick counter says.

        Order: only where the pending emits are drained, as any call of a component.
        """
        cdef bint ticks = self.has_tick and (not self.final_ticked or self.emits_at_final_tick != emits)
        self.emits_at_final_tick = emits
        self.final_ticked = True
        self.executed_at_final_tick = self.executed
        if ticks:
            self.give_tick()
        # A group that fails is gone and the others stay, so a failure leaves fewer.
        groups = 0 if self.batching is None else len(self.batching._batches)
        while groups > 0:
            self.fire_batches()
            left = len(self.batching._batches)
            groups = left if left < groups else 0
        self.flush()

    cdef bint idle(self) noexcept:
        return self.pending.count == 0 and ps_ring_size(&self.queue.ring) == 0


cdef extern from *:
    """
    static int ps_reraise(void) { return -1; }
    """
    int reraise "ps_reraise"() except -1
