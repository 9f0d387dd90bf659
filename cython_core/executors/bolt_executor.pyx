"""A bolt's turn: the timers that went off (ticks, batches by time), then the tuples of its receive queue.

Threading law: as every executor.
"""

from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_CheckExact
from libc.stdint cimport uint64_t

from cython_core.acking.acker cimport Acker, Roots, ack_edge, ps_acker_take_late
from cython_core.compiled.bolt cimport CompiledBolt, call_process
from cython_core.executors.executor cimport (
    Executor, past_deadline, ps_call_compiled, ps_call_one, ps_call_resolve, ps_coarse_nanos, ps_decref, reraise,
)
from cython_core.executors.joining cimport JoinBase, Joins, call_join
from cython_core.executors.spout_executor cimport spouts_at_most
from cython_core.queues.batch_inserter cimport BatchInserter, PendingEmits, ps_incref
from cython_core.queues.broadcast_ring cimport BroadcastReader, reader_poll, reader_size
from cython_core.queues.receive_queue cimport ReceiveQueue, queue_poll, queue_size, release_rows
from cython_core.routing.batch_slice cimport BatchSlice, offset_of_place
from cython_core.routing.bolt_output_collector cimport BoltOutputCollector, anchor_to_tuple
from cython_core.routing.output_collector cimport refuse_rows, set_current_collector
from cython_core.routing.tuple_list cimport TupleList, list_of
from cython_core.timing.timer_service cimport TimerService, new_timer
from cython_core.timing.timing_wheel cimport to_seconds
from cython_core.timing.turn_times cimport TurnTimes, end_call
from cython_core.tuples.column_slice cimport ColumnSlice
from cython_core.tuples.tuple cimport (
    ACKED, OPEN, Tuple, TupleBatch, TupleSource, gather, name_values, new_edge, new_tuple, ps_refcount, recycle,
    ring_edge, take, take_gathered,
)

from cython_core.executors.batching import BatchingBase
from cython_core.executors.executor import ComponentFailed
from cython_core.routing.bolt_base import BoltBase
from cython_core.routing.failure_kinds import FailureKind
from cython_core.routing.spout_base import SpoutBase


# Of the time-out: 1/64. Larger: trees may fail by so much too early. Smaller: turns that are not long look at all open
# trees, too.
cdef int LONG_TURN_SHIFT = 6
# Rows of a batch that are made Python values at a time. More: memory for rows that wait for room. Fewer: the fixed cost
# of a reading shows.
cdef Py_ssize_t MOST_READ = 256
# Tuples in the first call of process_many. More: slow bolts begin with a call that is too long, and trees time out in
# it. Fewer: fast ones need more calls until they get what is there.
cdef long FIRST_MANY = 32
# The next call gets 1/8 more if there was time and room. Larger: it oversteps the room by more, and what waits there
# leaves the processor's cache and wakes Python's garbage collector. Smaller: more calls until it gets what is there.
cdef int MORE_SHIFT = 3


cdef enum:
    BY_TABLE = 1
    BY_BOLT = 2


cdef class BoltExecutor(Executor):
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
        self.tick_source = TupleSource("__system", "__tick", -1, ("rate_secs",))
        self.batching = None
        self.most = FIRST_MANY
        self.executed_at_kept_batches = <unsigned long long>-1
        if isinstance(instance, BatchingBase):
            self.batching = instance
            self.collector.batching = True
            instance._reset_batches()
        self.share_timers(TimerService())
        self.ready()

    def ready(self):
        Executor.ready(self)
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

    def share_timers(self, TimerService timers not None):
        """Takes the timers of a thread that takes the turns of other executors, too."""
        self.timers = timers
        self.tick_timer = new_timer(timers)
        self.fire_timer = new_timer(timers)

    def share_acker(self, Acker acker not None):
        """Takes the acker of the worker: a bolt without streams has none from its routers, and takes tuples of trees
        all the same."""
        self.collector.acker = acker
        self.by_test_clock = acker.monotonic is not None

    def begin(self, double now):
        """A micro-batch begins at this reading of the scheduler's clock: timers start, the final tick is due again."""
        self.final_ticked = False
        self.ready()
        self.timers.pass_time(now)
        self.tick_timer.stop()
        if self.tick_frequency is not None and (self.has_tick or self.batching is not None):
            self.tick_timer.start(self.tick_frequency)
        self.fire_timer.stop()
        seconds = getattr(self.instance, "secs_between_batches", None) if self.batching is not None else None
        if seconds is not None:
            self.fire_timer.start(seconds)

    def discard(self):
        self.opened = self.opened_rows = None
        if isinstance(self.instance, JoinBase):
            (<Joins?>self.instance._batches).forget()
        Executor.discard(self)

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

    cdef uint64_t begin_taking(self) except? 0:
        """Before tuples leave the queue: reads the clock, for the acker too. When the turn is to end; 0: any time."""
        cdef Acker acker = self.collector.acker
        if acker is not None and acker.acker.timeout > 0:
            acker.read_clock_now()
        return ps_coarse_nanos() + self.turn_time_limit if self.turn_time_limit > 0 else 0

    cdef int end_taking(self, uint64_t began) except -1:
        """After several calls, while the acker's clock may have stood since ``began``. Order: before trees expire."""
        cdef Acker acker = self.collector.acker
        if acker is None or acker.acker.timeout == 0 or self.by_test_clock:
            return 0
        acker.read_clock_now()
        if acker.acker.now - began >= acker.acker.timeout >> LONG_TURN_SHIFT:
            ps_acker_take_late(&acker.acker, began, acker.acker.now)
        return 0

    cdef int skip(self, PyObject *item, bint held=True) except -1:
        """A tuple whose trees have all failed while it waited: nothing that the bolt made of it would count. ``held``:
        whether the rows that it carries, if it does, are held in a queue or ring."""
        cdef TupleBatch rows
        self.skipped += 1
        if isinstance((<Tuple>item).payload, TupleBatch):
            rows = <TupleBatch>(<Tuple>item).payload
            self.skipped += rows.count - 1
            if held:
                self.release_at(self.place, rows)
        ps_decref(item)
        return 0

    cdef int release_at(self, Py_ssize_t place, TupleBatch rows) noexcept:
        """It is done with a batch that came by the queue (0) or a reader."""
        cdef BroadcastReader reader
        if place == 0:
            return release_rows(self.queue, rows.count, rows.weight)
        reader = <BroadcastReader>self.readers[place - 1]
        reader.owner.release_rows(reader.place, rows.count, rows.weight)
        return 0

    cdef int open_rows(self, PyObject *item) except -1:
        """The next tuples are the rows of this batch. Takes over the reference."""
        self.opened = <Tuple>item
        ps_decref(item)
        self.opened_place = self.place
        anchor_to_tuple(&self.opened_anchor, self.opened)
        payload = self.opened.payload
        self.opened_by_spout = isinstance(payload, BatchSlice) and (<BatchSlice>payload).of_spout
        gather(self.opened)  # while its rows are read, it waits as if queued
        self.opened_at = self.opened_next = 0
        self.opened_rows = None
        self.opened_by_row = False
        return 0

    cdef int close_rows(self) except -1:
        """All rows of the batch are tuples by now: it is no edge of its trees any more, which theirs are."""
        cdef Tuple tup = self.opened
        cdef TupleBatch rows = <TupleBatch>tup.payload
        self.opened = self.opened_rows = None
        self.release_at(self.opened_place, rows)
        take_gathered(tup)
        if tup.root is not NULL:
            ack_edge(&tup.source.acker.acker, tup.root, tup.attempt, tup.edge)
        elif tup.roots is not None:
            tup.roots.ack_edge(tup.edge)
        return 0

    cdef void *poll_row(self) except? NULL:
        """The next row of the batch that is open, as a tuple of its own; the caller takes over the reference. Behind
        the last one the batch is closed. NULL if it is, as its last rows could not be read."""
        cdef TupleBatch rows = <TupleBatch>self.opened.payload
        cdef Py_ssize_t at
        cdef Tuple tup
        while self.opened is not None:
            if self.opened_rows is None or self.opened_next == len(self.opened_rows):
                self.read_rows(rows)
            values = self.opened_rows[self.opened_next]
            self.opened_rows[self.opened_next] = None  # so that its values can be named in place
            self.opened_next += 1
            if self.opened_by_spout:
                at = self.opened_at - len(self.opened_rows) + self.opened_next - 1
                self.opened_anchor.offset = offset_of_place((<BatchSlice>rows).place(at))
            error = None if PyTuple_CheckExact(values) else values
            tup = new_edge(self.opened.source, values if error is None else error.row, &self.opened_anchor)
            if self.opened_at == rows.count and self.opened_next == len(self.opened_rows):
                self.close_rows()
            if error is None:
                ps_incref(<PyObject *>tup)
                return <void *>tup
            self.fail_unread(tup, error)
        return NULL

    cdef int read_rows(self, TupleBatch rows) except -1:
        """Some more of them; one that cannot be read is its error."""
        cdef Py_ssize_t end = min(rows.count, self.opened_at + MOST_READ)
        cdef BatchSlice batch
        cdef Py_ssize_t i
        try:
            self.opened_rows = rows.between(self.opened_at, end)
        except Exception:
            batch = <BatchSlice?>rows  # values of Python can be read
            self.opened_rows = [batch.row_or_error(i, repr(self.opened.source)) for i in range(self.opened_at, end)]
        self.opened_at = end
        self.opened_next = 0
        return 0

    cdef int fail_unread(self, Tuple tup, object error) except -1:
        """A row that cannot be read counts as one that the bolt has raised for: others of its batch go on."""
        self.unread += 1
        take(tup)
        self.errors += self.exits
        if self.exits:
            raise ComponentFailed(self.component, self.task, "process", tup, tup.offset) from error
        self.survive("process", tup, tup.offset, error)
        self.collector.fail(tup, "process", error)  # order: whatever auto_fail says, as the bolt does not get it
        if self.collector.failed is not None:
            self.raise_tuple_failed("process", error)
        return 0

    cdef void *poll_elsewhere(self) except? NULL:
        """The next row of the batch that is open, else what has come by the queue or the rings."""
        cdef void *item
        if self.opened is not None:
            item = self.poll_row()
            if item is not NULL:
                return item
        return self.poll_any() if self.shares_rings else queue_poll(self.queue)

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

    cdef void *take_columns(self, long most) except? NULL:
        """At most so many rows of the batch that is open, as columns in one tuple; the caller takes over the reference.
        NULL if one of them cannot be read: then its rows come one by one, so that it fails alone."""
        cdef TupleBatch rows = <TupleBatch>self.opened.payload
        cdef Py_ssize_t count = min(rows.count - self.opened_at, most)
        cdef ColumnSlice part
        cdef Tuple tup
        if isinstance(rows, ColumnSlice):
            part = (<ColumnSlice>rows).part(self.opened_at, count)
        else:
            try:
                part = (<BatchSlice>rows).columns(self.opened.source.fields, self.opened_at, count)
            except Exception:
                self.opened_by_row = True
                return NULL
        tup = new_edge(self.opened.source, part, &self.opened_anchor)
        if count == 1:  # what is made of it stems from that row
            tup.offset = part.offset_of(tup, part.start)
        self.opened_at += count
        if self.opened_at == rows.count:
            self.close_rows()
        ps_incref(<PyObject *>tup)
        return <void *>tup

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

    cdef int caught(self, str method) except -1:
        """With an exception of the bolt's set."""
        try:
            reraise()
        except Exception as error:
            self.fail_current(method, error)
        except BaseException as error:
            raise self.interrupted_in(method, error)
        return 0

    cdef bint refuses(self, PyObject *answer) except -1:
        """Whether what process has returned, without an emit, failed the tuple; then it has given the answer back."""
        error = self.collector.lost_by("process", <object>answer)
        if error is None:
            return False
        ps_decref(answer)
        self.fail_current("process", error)
        return True

    cdef object interrupted_in(self, str method, object error):
        """As ``interrupted``, by the tuple or the batch that it works on."""
        cdef Tuple tup = self.collector.current
        broken, self.collector.broken = self.collector.broken, None
        if broken is not None and broken[0] is error:
            method = broken[3]
            tup = next(iter(broken[1]), None)
        return self.interrupted(method, tup, -1 if tup is None else tup.offset, error)

    cdef int named(self, object cause) except -1:
        """What decides over an exception of the bolt: 0: ``exit_on_exception``; BY_TABLE: ``topology.retry.on``;
        BY_BOLT: the bolt itself, which has raised a FailureKind."""
        if isinstance(cause, FailureKind):
            return BY_BOLT
        verdict = None if self.rules is None else self.rules.verdict(cause)
        self.reported.retries = verdict == "retry"
        return 0 if verdict is None else BY_TABLE

    cdef int fail_current(self, str method, object cause) except -1:
        """Handles an exception of the bolt, inside its ``except``: fails the tuple or the batch that it worked on."""
        cdef BoltOutputCollector collector = self.collector
        cdef Tuple tup = collector.current
        cdef int named = 0
        cdef bint exits
        batch, broken = None, collector.broken
        collector.broken = None
        if broken is not None and broken[0] is cause:
            batch, key, method = broken[1:]
        elif self.batch_override and getattr(self.instance, "_current_tups", None):
            batch, key = self.instance._current_tups, getattr(self.instance, "_current_key", None)
            method = "process_batch"
        if batch is not None:
            tup = next(iter([each for each in batch if isinstance(each, Tuple)]), None)
        if tup is not None and tup.source.task >= 0:  # a tick cannot come again
            named = self.named(cause)
        exits = self.exits and named == 0
        self.errors += exits
        if not exits and named != BY_BOLT:
            self.survive(method, tup, -1 if tup is None else tup.offset, cause)
        if batch is not None:
            self.batching._fail_batches(exits, key, batch, cause, self.auto_fail or named == BY_BOLT)
        elif (self.auto_fail or named == BY_BOLT) and tup is not None and tup.verdict == OPEN:
            collector.fail(tup, method, cause)
        if self.batch_override:
            self.forget_tups()
        if exits:
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
        if self.tick_timer.due:
            self.tick_timer.repeat(self.tick_frequency)
            self.give_tick(False)
        if self.fire_timer.due:
            self.fire_timer.start(self.instance.secs_between_batches)
            self.fire_batches(True)
        return 0

    cdef Tuple new_tick(self, bint final):
        """Its value is the period; 0, which no period is, if the range ends or spouts wait for what the bolt holds."""
        cdef Tuple tick = new_tuple(self.tick_source, (0 if final else self.tick_frequency,), -1)
        name_values(tick)
        self.ticks += 1
        return tick

    cdef int give_tick(self, bint final) except -1:
        set_current_collector(self.collector)
        self.collector.current = self.new_tick(final)
        emits = self.collector.emits
        try:
            answer = self.instance.process_tick(self.collector.current)
            if answer is not None and self.collector.emits == emits:
                refuse_rows(self.collector, "process_tick", answer)
        except Exception as error:
            self.fail_current("process_tick", error)
        except BaseException as error:
            raise self.interrupted_in("process_tick", error)
        self.collector.current = None
        if self.batch_override:
            self.forget_tups()
        if self.collector.failed is not None:
            self.raise_tuple_failed("fail", None)
        return 0

    cdef int fire_batches(self, bint by_time=False) except -1:
        set_current_collector(self.collector)
        if not self.batching._batches:
            return 0
        try:
            if by_time:
                self.batching._time_is_over(to_seconds(self.timers.now))
            else:
                self.batching.process_batches()
                self.batching._tick_counter = 0
        except Exception as error:
            self.fail_current("process_batches", error)
        except BaseException as error:
            raise self.interrupted_in("process_batches", error)
        if self.batch_override:
            self.forget_tups()
        if self.collector.failed is not None:
            self.raise_tuple_failed("fail", None)
        return 0

    def holds_batches(self):
        """Whether it is a batching bolt and holds some."""
        return self.batching is not None and len(self.batching._batches) > 0

    cdef bint gives_batches(self) except -1:
        """Whether it holds batches and has not kept them, with nothing new since, when it was last to process them."""
        return self.holds_batches() and self.executed != self.executed_at_kept_batches

    def process_held(self, unsigned long long emits):
        """What it may hold is what a spout waits for: a batching bolt processes its batches; a bolt that holds none, or
        keeps them, gets a tick.

        ``emits``: of all spouts so far.
        """
        self.times.begin_turn()
        try:
            if self.gives_batches():
                groups = len(self.batching._batches)
                self.fire_batches()
                # An override of process_batches may keep them, or raise before it comes to them.
                if len(self.batching._batches) >= groups:
                    self.executed_at_kept_batches = self.executed
            else:
                self.emits_at_held_tick = emits
                self.give_tick(True)
            self.flush()
        finally:
            self.end_turn(0)

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
        self.times.begin_turn()
        try:
            if ticks:
                self.give_tick(True)
            # A group that fails is gone and the others stay, so a failure leaves fewer.
            groups = 0 if self.batching is None else len(self.batching._batches)
            while groups > 0:
                self.fire_batches()
                left = len(self.batching._batches)
                groups = left if left < groups else 0
            self.flush()
        finally:
            self.end_turn(0)

    cdef bint idle(self) noexcept:
        return self.pending.count == 0 and self.empty() and not self.is_late()

    cdef bint empty(self) noexcept:
        """Whether nothing has come that was not given to the bolt."""
        cdef BroadcastReader reader
        if queue_size(self.queue) > 0 or self.opened is not None:
            return 0
        if self.readers is not None:
            for reader in self.readers:
                if reader_size(reader) > 0:
                    return 0
        return 1

    cdef void *poll_any(self) noexcept:
        """The oldest tuple of the queue or of a ring, in turn, so that a full one does not keep the bolt from others.

        The caller takes over the reference; NULL where nothing is there.
        """
        cdef Py_ssize_t places = len(self.readers) + 1
        cdef void *item = NULL
        for _place in range(places):
            self.place = self.place + 1 if self.place + 1 < places else 0
            if self.place == 0:
                item = queue_poll(self.queue)
            else:
                item = self.poll_ring(<BroadcastReader>self.readers[self.place - 1])
            if item is not NULL:
                break
        return item

    cdef void *poll_ring(self, BroadcastReader reader) noexcept:
        """A tuple of this bolt's own in place of the ring's: one of the edges that were made when it was emitted."""
        cdef PyObject *shared = reader_poll(reader)
        cdef Tuple tup
        if shared is NULL:
            return NULL
        tup = new_tuple((<Tuple>shared).source, (<Tuple>shared).payload, (<Tuple>shared).offset)
        tup.root = (<Tuple>shared).root
        tup.attempt = (<Tuple>shared).attempt
        tup.roots = (<Tuple>shared).roots
        tup.edge = ring_edge((<Tuple>shared).edge, reader.place)
        ps_decref(shared)
        ps_incref(<PyObject *>tup)
        return <void *>tup


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


def end_run(list executors not None):
    """The micro-batch is over, unless something is under way still (False): what components emit until the next one
    begins belongs to none.

    Order: no Python code, so that what a thread of a component's emits comes before it all, or is refused.
    """
    cdef Executor executor
    cdef BatchInserter inserter
    for executor in executors:
        if not executor.idle():
            return False
        for inserter in executor.inserters:
            if inserter.count > 0:
                return False
    for executor in executors:
        executor.out.between_runs = True
    return True


cdef BoltExecutor holder_of_what_spouts_await(tuple executors, unsigned long long emits):
    """The bolt that is to process what it holds, as spouts wait for verdicts and all else is processed; or None.

    ``executors``: most downstream first. A batching bolt that holds batches; if there is none, the most upstream bolt
    that has had no tick of this kind since a spout has emitted. What it emits is processed before the next one is asked
    for. Order: by the spouts' emits, as a tick may send round in a cycle what comes back to its bolt.
    """
    cdef BoltExecutor bolt
    if not spouts_at_most(executors):
        return None
    bolts = [executor for executor in reversed(executors) if isinstance(executor, BoltExecutor)]
    for bolt in bolts:
        if bolt.pending.count == 0 and bolt.gives_batches():
            return bolt
    for bolt in bolts:
        if bolt.pending.count == 0 and bolt.has_tick and bolt.emits_at_held_tick != emits:
            return bolt
    return None
