"""A bolt's turn: the timers that went off (ticks, batches by time), then the tuples of its receive queue.

    BoltExecutor ─► BoltMany ─► BoltTicks ─► BoltInput ─► BoltFailures ─► Executor

Each is built on the one to its right: a call for each tuple, a call for many, ticks and held batches, what the bolt
takes, what becomes of its exceptions.

Threading law: as every executor.
"""

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from cython_core.acking.acker cimport Acker, ack_edge
from cython_core.compiled.bolt cimport CompiledBolt, call_process
from cython_core.executors.executor cimport past_deadline, ps_call_compiled, ps_call_one, ps_call_resolve, ps_decref
from cython_core.executors.batching cimport JoinBase, Joins, call_join
from cython_core.queues.queues cimport PendingEmits, ReceiveQueue, queue_poll
from cython_core.routing.output_collector cimport BoltOutputCollector, set_current_collector
from cython_core.timing.timers cimport TimerService
from cython_core.timing.turn_times cimport NOT_STALLED, StallReason, TurnTimes, end_call
from cython_core.tuples.tuple cimport ACKED, OPEN, Tuple, name_values, recycle, take

from cython_core.executors.batching import BatchingBase
from cython_core.routing.component_base import BoltBase, SpoutBase

include "bolt_failures.pxi"
include "bolt_input.pxi"
include "bolt_ticks.pxi"
include "bolt_many.pxi"


cdef class BoltExecutor(BoltMany):
    """Feeds a bolt from its receive queue.

    ``tick_frequency``: seconds between tick tuples, None for none but the final one of a micro-batch. ``readers``: of
    the rings that it shares with the other tasks of its component (``all`` grouping between threads).
    """

    def __init__(self, str component not None, int task, instance, PendingEmits pending not None, dict routers not None,
                 ReceiveQueue queue not None, tick_frequency=None, tuple readers=()):
        if not isinstance(instance, BoltBase) or isinstance(instance, SpoutBase):
            raise TypeError(f"component {component!r} is run as a bolt and must be one; Given: {type(instance)!r}")
        super().__init__(component, task, instance, pending, routers)
        self.queue = queue
        self.readers = readers or None
        self.shares_rings = self.readers is not None
        self.out = self.collector = BoltOutputCollector(instance, routers)
        self.collector.component = component
        self.collector.task = task
        self.by_test_clock = self.collector.acker is not None and self.collector.acker.monotonic is not None
        self.tick_frequency = tick_frequency
        if isinstance(instance, BatchingBase):
            self.batching = instance
            self.collector.batching = True
            instance._reset_batches()
        self.share_timers(TimerService())
        self.ready()

    def ready(self):
        BoltMany.ready(self)
        instance = self.instance
        self.takes_many = self.batching is None and instance.process_many != BoltBase.process_many.__get__(instance)
        self.queue.takes_columns = self.takes_many
        self.call = instance.process_many if self.takes_many else instance.process
        ps_call_resolve(&self.entry, <PyObject *>self.call)
        if isinstance(instance, CompiledBolt) and self.call == CompiledBolt.process.__get__(instance):
            ps_call_compiled(&self.entry, call_process, <PyObject *>instance)
        self.auto_ack = self.batching is None and bool(getattr(instance, "auto_ack", True))
        self.auto_fail = bool(getattr(instance, "auto_fail", True))
        self.collector.auto_anchor = bool(getattr(instance, "auto_anchor", True))
        base = BoltBase if self.batching is None else BatchingBase
        if isinstance(instance, JoinBase):
            base = JoinBase
            (<Joins?>instance._batches).serve(instance, self.collector, self.timers)
            if self.call == JoinBase.process.__get__(instance):
                ps_call_compiled(&self.entry, call_join, <PyObject *>instance._batches)
        self.batch_override = self.batching is not None and type(instance).process_batches is not base.process_batches
        self.collector.gathers = self.batching is not None and not self.batch_override
        # Order: never instance.__dict__, which once asked for keeps CPython from finding the attributes in their slots.
        self.has_tick = instance.process_tick != base.process_tick.__get__(instance)

    @property
    def is_batching(self):
        """Whether its bolt is a BatchingBolt."""
        return self.batching is not None

    @property
    def acks(self):
        """Tuples that were acked."""
        return self.collector.acks

    @property
    def fails(self):
        """Tuples that were failed."""
        return self.collector.fails

    @property
    def duplicate_verdicts(self):
        """Acks and fails of tuples that had their verdict: without effect."""
        return self.collector.duplicate_verdicts

    @property
    def untracked_fails(self):
        """Of the failed tuples, those that no spout can replay: they were emitted without a message id."""
        return self.collector.untracked_fails

    @property
    def at_work(self):
        """(Tuple, offset) that it works on, of a batch the first one; (None, -1) between two calls. Any thread may
        ask."""
        cdef Tuple tup = <Tuple>self.collector.batch[0] if self.collector.batch else self.collector.current
        return (None, -1) if tup is None else (tup, tup.offset)

    def share_acker(self, Acker acker not None):
        """Takes the acker of the worker: a bolt without streams has none from its routers, and takes tuples of trees
        all the same."""
        self.collector.acker = acker
        self.by_test_clock = acker.monotonic is not None

    def discard(self):
        if isinstance(self.instance, JoinBase):
            (<Joins?>self.instance._batches).forget()
        BoltMany.discard(self)

    cdef long turn(self, long quota) except -1:
        cdef unsigned long long before = self.executed
        if self.held_back():
            return 0
        if self.out.late_emits:
            self.fail_late_emits()
        if self.collector.failed is not None:  # by a thread, or in initialize
            self.raise_tuple_failed("fail", None)
        if not timer_is_due(self) and self.idle():
            self.flush()
            return 0
        self.times.begin_turn()
        try:
            return self.work(quota)
        finally:
            self.end_turn(self.executed - before)

    cdef long work(self, long quota) except -1:
        cdef long calls
        cdef unsigned long long unread
        if timer_is_due(self):
            self.fire_timers()
            self.times.end_prelude()
            if self.pending.count > 0:
                self.flush()
                return 0
        # A timer is no progress: what it emitted is in the queues, and timers alone must not keep a run going.
        # A row that could not be read is progress: threads that wait for its room, or its verdict, are to be woken.
        unread = self.unread
        calls = self.consume(quota)
        self.flush()
        return calls + <long>(self.unread - unread)

    cdef long force_feed(self, long quota) except -1:
        """A turn that feeds the bolt although emits may be pending: it breaks a cycle of full queues."""
        cdef unsigned long long before = self.executed
        self.times.begin_turn()
        try:
            return self.consume(quota)
        finally:
            self.end_turn(self.executed - before)

    cdef long consume(self, long quota) except -1:
        """At most ``quota`` tuples to the bolt, stopping at the first that leaves an emit pending."""
        cdef long calls = 0
        cdef void *item
        cdef PyObject *answer
        cdef BoltOutputCollector collector = self.collector
        cdef ReceiveQueue queue = self.queue
        cdef TurnTimes times = self.times
        cdef bint elsewhere = self.shares_rings or self.opened is not None
        cdef bint by_test_clock = self.by_test_clock
        cdef bint looks_back = by_test_clock or times.singly or self.batch_override  # after each call
        cdef uint64_t until, began
        cdef unsigned long long emits
        if self.empty():
            return 0
        if self.takes_many:
            return self.consume_many(quota)
        until = self.begin_taking()
        began = 0 if collector.acker is None else collector.acker.acker.now
        quota = min(quota, self.most_calls)
        set_current_collector(collector)
        while calls < quota:
            if elsewhere:  # hot
                item = self.poll_elsewhere()
            else:
                item = queue_poll(queue)  # hot
            if item is NULL:
                break
            if not take(<Tuple>item):  # hot
                calls += 1  # room was made: that is progress
                self.skip(<PyObject *>item)
                continue
            if name_values(<Tuple>item):
                self.open_rows(<PyObject *>item)
                elsewhere = True
                continue
            # `current` takes its own reference; the queue's is given up, or kept by the pool, after the call.
            collector.current = <Tuple>item
            emits = collector.emits  # hot
            answer = ps_call_one(&self.entry, <PyObject *>item)
            calls += 1
            self.executed += 1  # hot
            if answer is NULL:
                ps_decref(<PyObject *>item)
                self.caught("process")
            elif answer is not <PyObject *>None and collector.emits == emits and self.refuses(answer):
                ps_decref(<PyObject *>item)
            else:
                ps_decref(answer)
                if self.auto_ack:
                    if (<Tuple>item).verdict == OPEN and (<Tuple>item).roots is None:
                        (<Tuple>item).verdict = ACKED  # hot
                        collector.acks += 1  # hot
                        if (<Tuple>item).root is not NULL:  # hot
                            ack_edge(
                                &(<Tuple>item).source.acker.acker, (<Tuple>item).root, (<Tuple>item).attempt,
                                (<Tuple>item).edge,
                            )
                    else:
                        collector.ack(collector.current)
                if collector.failed is not None:
                    ps_decref(<PyObject *>item)
                    self.raise_tuple_failed("fail", None)
                # Not where a call of process_batches from elsewhere has put another tuple in its place.
                if <PyObject *>collector.current is <PyObject *>item:
                    recycle(<PyObject *>item)
                else:
                    ps_decref(<PyObject *>item)
            if looks_back:
                if self.batch_override:
                    self.forget_tups()
                if times.singly:  # hot
                    end_call(times)  # hot
                if by_test_clock:
                    collector.acker.read_clock_now()
            if self.pending.count > 0 or past_deadline(self, until, calls):
                break
        collector.current = None
        if calls > 1:
            self.end_taking(began)
        return calls

    cdef bint idle(self) noexcept:
        return self.pending.count == 0 and self.empty() and not self.is_late()


include "waiting_executor.pxi"
