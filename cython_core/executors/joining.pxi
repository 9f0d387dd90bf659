"""Bolts that join: tuples of several streams wait until those that belong together are there, or their time is over.

    orders   (order 7, payment 3) ─► waits for payments by 3 and for shipments by 7
    payments (payment 3)          ─► found by 3: waits for shipments by 7 alone
    shipments (order 7)           ─► found by 7: all are there     ──► process_join
                                     else: its time is over        ──► process_expired

What waits is an operation in a purgatory, watched by what it waits for: a value of a key of an input. A tuple takes the
oldest operation that waits for it, one for each of its keys; of several it makes one. So each tuple is in one join, and
a key that a hundred thousand tuples have costs what any other costs.

The executor takes such a bolt for one that gathers tuples: what waits is its batches, the end of a micro-batch, or a
spout that waits for them, ends their time.

Threading law: as the executor.
"""

from collections import deque

cimport cython
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.object cimport PyObject

from cython_core.executors.executor cimport ps_decref
from cython_core.queues.queues cimport ps_incref
from cython_core.routing.output_collector cimport BoltOutputCollector, collector_of, collector_or_none, refuse_rows
from cython_core.timing.timers cimport (
    CANCELLED, COMPLETED, DelayedOperation, Outcome, Purgatory, TimerService, to_seconds,
)
from cython_core.tuples.tuple cimport OPEN, Tuple, gather, is_lost, take_gathered

from cython_core.arrow.row_error import coded, shown

cdef extern from "Python.h":
    bint PyObject_GC_IsTracked(object)
    void PyObject_GC_Track(void *)
    void PyObject_GC_UnTrack(void *)


cdef double NEVER = float("inf")
cdef object NAN = float("nan")  # one object, which is equal to itself as a key
# Joins that have left, in the order of all, before they are taken out of it. More: memory. Fewer: short ones are
# written anew at every second join.
cdef Py_ssize_t MOST_GONE = 64


@cython.final
@cython.no_gc
cdef class WaitingJoin(DelayedOperation):
    """Tuples that belong together, as far as they have come."""

    def __dealloc__(self):
        if self.tups is not NULL:
            self.taken_out()

    cpdef object on_expiration(self):
        (<Joins>self.joins).expired.append(self.taken_out())

    cdef int put_in(self, Py_ssize_t place, Tuple tup) except -1:
        ps_incref(<PyObject *>tup)
        PyObject_GC_UnTrack(<PyObject *>tup)
        self.tups[place] = <PyObject *>tup
        self.missing -= 1
        return 0

    cdef list taken_out(self):
        """Its tuples, one place for each input; None: has not come. It has none any more."""
        cdef list found = [None] * self.count
        cdef Py_ssize_t place
        for place in range(self.count):
            if self.tups[place] is not NULL:
                found[place] = <object>self.tups[place]
                if not PyObject_GC_IsTracked(found[place]):
                    PyObject_GC_Track(self.tups[place])
                ps_decref(self.tups[place])
        PyMem_Free(self.tups)
        self.tups = NULL
        return found


@cython.final
cdef class InputKey:
    """A key of an input."""

    cdef object value_in(self, Tuple tup):
        """Its value, as a dict finds it again; None, which matches nothing, if a field of it is None."""
        cdef tuple values = <tuple>tup.payload
        if self.count == 1:
            return matched(values[self.first])
        found = tuple([matched(values[position]) for position in self.positions])
        return None if None in found else found


cdef object matched(object value):
    return NAN if type(value) is float and value != value else value


@cython.final
cdef class Joins:
    """What waits in one task of a bolt. ``inputs``: (component, stream) → the name that the bolt knows it by.
    ``keys``: for each of these, key → positions of its fields. ``timeout``: seconds; None: none.

    Inputs and keys are a tree: two inputs have at most one key in common, and all are connected. So what a tuple finds
    by two of its keys has no input twice.
    """

    def __init__(self, dict inputs not None, list keys not None, timeout=None):
        cdef InputKey key, other
        self.names = tuple(inputs.values())
        self.inputs = {source: place for place, source in enumerate(inputs)}
        self.timeout = NEVER if timeout is None else timeout
        self.places = {}
        self.keys = []
        for place, own in enumerate(keys):
            found = []
            for name, positions in own.items():
                key = InputKey.__new__(InputKey)
                key.name, key.place, key.waiting = name, place, {}
                key.positions = tuple(positions)
                key.first, key.count = positions[0], len(positions)
                found.append(key)
            self.keys.append(found)
        every = [key for own in self.keys for key in own]
        for key in every:
            key.others = [other for other in every if other.name == key.name and other is not key]
        self.order = []
        self.complete, self.expired = [], deque()

    def __len__(self):
        """Those that wait, and those that the bolt has not got, as it has raised for one before them."""
        cdef Py_ssize_t pending = 0 if self.purgatory is None else self.purgatory.ward.pending
        return pending + len(self.complete) + len(self.expired)

    cdef int serve(self, object bolt, BoltOutputCollector collector, TimerService timers) except -1:
        """For a bolt, whose methods and attributes are asked for once."""
        self.collector, self.timers = collector, timers
        self.process_join, self.process_expired = bolt.process_join, bolt.process_expired
        self.auto_ack = bool(bolt.auto_ack)
        return 0

    cdef int take_in(self, Tuple tup) except -1:
        """A tuple has come."""
        found = self.places.get(tup.source)
        if found is None:
            found = self.places[tup.source] = self.inputs[tup.source.component, tup.source.stream]
        gather(tup)  # while it waits, it waits as if queued
        self.add(found, tup)
        while self.complete:
            give(self, self.complete.pop(), True)
        return 0

    cdef int add(self, Py_ssize_t place, Tuple tup) except -1:
        """It waits, or completes a join."""
        cdef WaitingJoin join = None
        cdef WaitingJoin found
        cdef InputKey key
        cdef list new = None  # keys by which it has found nothing, with their values
        if self.purgatory is None:
            self.purgatory = Purgatory(to_seconds(self.timers.now))
            for own in self.keys:
                self.purgatory.every += [(<InputKey>each).waiting for each in <list>own]
        for key in <list>self.keys[place]:
            value = key.value_in(tup)
            if value is None:
                continue
            found = self.found(key, value)
            if found is not None:
                join = found if join is None else self.merged(join, found)
            elif new is None:
                new = [key, value]
            else:
                new += [key, value]
        if join is None:
            join = self.new_join()
        join.put_in(place, tup)
        if join.missing == 0:
            self.complete.append(self.leave(join, COMPLETED))
        elif new is not None:
            for place in range(0, len(new), 2):
                self.watch_rest(join, <InputKey>new[place], new[place + 1])
        return 0

    cdef WaitingJoin new_join(self):
        cdef WaitingJoin join = WaitingJoin.__new__(WaitingJoin)
        join.joins = <PyObject *>self
        join.timeout = self.timeout
        join.count = join.missing = len(self.names)
        join.tups = <PyObject **>PyMem_Calloc(join.count, sizeof(PyObject *))
        if join.tups is NULL:
            raise MemoryError("no memory for what waits")
        join.since = self.timers.now
        self.purgatory.put(join, None if join.since <= self.purgatory.now else to_seconds(join.since))
        self.order.append(join)
        if len(self.order) > 2 * self.purgatory.ward.pending + MOST_GONE:
            self.order = [each for each in self.order[self.oldest_at:] if (<WaitingJoin>each).tups is not NULL]
            self.oldest_at = 0
        return join

    cdef WaitingJoin found(self, InputKey key, object value):
        """The oldest one that waits for a tuple of this input by this key; None if none does."""
        cdef WaitingJoin join
        while True:
            join = <WaitingJoin>self.purgatory.take(key.waiting, value)
            if join is None or (join.tups[key.place] is NULL and not self.forget_lost(join)):
                return join

    cdef WaitingJoin merged(self, WaitingJoin one, WaitingJoin other):
        """Both as one, in the place of the older one."""
        cdef WaitingJoin into = one if one.since <= other.since else other
        cdef list tups = self.leave(other if into is one else one, CANCELLED)
        cdef Py_ssize_t place
        cdef InputKey key
        for place in range(len(tups)):
            if tups[place] is not None:
                into.put_in(place, <Tuple>tups[place])
        for place in range(len(tups)):
            if tups[place] is not None:
                for key in <list>self.keys[place]:
                    self.watch_rest(into, key, key.value_in(<Tuple>tups[place]))
        return into

    cdef bint forget_lost(self, WaitingJoin join) except -1:
        """Whether a tree of one of its tuples has failed meanwhile: that one comes again. The others wait anew."""
        cdef Py_ssize_t place
        for place in range(join.count):
            if join.tups[place] is not NULL and is_lost(<Tuple>join.tups[place]):
                self.add_others(self.leave(join, CANCELLED))
                return True
        return False

    cdef int add_others(self, list tups) except -1:
        """Those of them that are not lost wait anew."""
        cdef Py_ssize_t place
        for place in range(len(tups)):
            tup = tups[place]
            if tup is not None and not is_lost(<Tuple>tup):
                self.add(place, <Tuple>tup)
        return 0

    cdef int watch_rest(self, WaitingJoin join, InputKey key, object value) except -1:
        """It waits for the inputs that have this key and of which nothing has come."""
        cdef InputKey other
        if value is None:
            return 0
        for other in key.others:
            if join.tups[other.place] is NULL:
                self.purgatory.watch(other.waiting, join, value)
        return 0

    cdef int forget(self) except -1:
        """Nothing waits any more, and nothing becomes of it: the micro-batch has failed.

        Order: before the bolt is garbage, as the collector does not see what waits, which refers to the worker.
        """
        self.all_of_it()
        return 0

    cdef list all_of_it(self):
        """The tuples of all joins, none of which waits or is to be given any more."""
        cdef list found = self.complete + list(self.expired)
        self.complete, self.expired = [], deque()
        cdef list tups = self.oldest()
        while tups is not None:
            found.append(tups)
            tups = self.oldest()
        return found

    cdef list leave(self, WaitingJoin join, Outcome outcome):
        """It waits no more. Its tuples."""
        cdef list tups = join.taken_out()  # order: now, as lists may hold it for long
        join.settle(outcome)
        self.purgatory.purge_where_due()
        return tups

    cdef list oldest(self):
        """The tuples of the one that waits longest, which waits no more; None if none waits."""
        cdef WaitingJoin join
        while self.oldest_at < len(self.order):
            join = <WaitingJoin>self.order[self.oldest_at]
            self.order[self.oldest_at] = None
            self.oldest_at += 1
            if join.tups is not NULL:
                return self.leave(join, CANCELLED)
        self.order, self.oldest_at = [], 0
        return None


cdef PyObject *call_join(PyObject *callable, PyObject **arguments, size_t count, PyObject *names) except NULL:
    """As ``process`` of a bolt that is called with its Joins instead."""
    (<Joins>callable).take_in(<Tuple>arguments[1])
    ps_incref(<PyObject *>None)
    return <PyObject *>None


@cython.auto_pickle(True)
cdef class JoinBase(BatchingBase):
    """What bolts inherit that join; the attributes stand in the instance: ``_batches``, a Joins."""

    def _reset_batches(self):
        """Nothing waits. Called before the first tuple, behind the worker, which says what is joined by what."""
        self._batches = Joins(*self._pystorm_joined)
        self._tick_counter = 0

    def process(self, tup):
        """Has the tuple join those that wait for it, or wait. Override ``process_join``, not this.

        Args:
            tup (Tuple): the tuple.

        Raises:
            RuntimeError: the bolt is in no topology that runs.
        """
        if collector_or_none(self) is None:
            raise coded(
                RuntimeError,
                "PYSTORM_EMIT_OUTSIDE_OF_RUN",
                f"{type(self).__name__} joins the streams of a topology that runs: test it by run_topology(); Given: "
                f"{shown(tup)}"
            )
        (<Joins?>self._batches).take_in(<Tuple?>tup)

    def process_tick(self, tup):
        """Does nothing: time is a timer's.

        Args:
            tup (Tuple): the tick.
        """

    def process_batches(self):
        """Gives one that it has not got, else the one that waits longest, whose time is over."""
        cdef Joins joins = <Joins?>self._batches
        cdef list tups
        if joins.complete:
            give(joins, joins.complete.pop(), True)
            return
        tups = joins.expired.popleft() if joins.expired else joins.oldest()
        if tups is not None:
            give(joins, tups, False)

    def _time_is_over(self, double now):
        cdef Joins joins = <Joins?>self._batches
        if joins.purgatory is not None:
            joins.purgatory.advance(now)
        while joins.expired:
            give(joins, joins.expired.popleft(), False)

    def _fail_batches(self, everything, key, tups, cause, fails):
        """After an exception in ``process_join`` or ``process_expired``: fails (``fails``) what it was given, or all
        that waits, too."""
        cdef BoltOutputCollector collector = <BoltOutputCollector?>collector_of(self)
        groups = [list(tups)]
        if everything:
            groups += (<Joins?>self._batches).all_of_it()
        for group in groups:
            for tup in group:
                if fails and tup is not None and (<Tuple>tup).verdict == OPEN:
                    collector.fail(<Tuple>tup, "process_join", cause)


cdef int give(Joins joins, list tups, bint complete) except -1:
    """Calls ``process_join`` or ``process_expired``, and acks the tuples (``auto_ack``)."""
    cdef BoltOutputCollector collector = joins.collector
    cdef Tuple outer = collector.current
    cdef list given = []
    cdef dict named = {}
    cdef Py_ssize_t place
    # Order: the time of what waited begins anew, not at the last look at the clock.
    if collector.acker is not None and collector.acker.acker.timeout > 0:
        collector.acker.read_clock_now()
    for place in range(len(tups)):
        tup = tups[place]
        if tup is not None and not is_lost(<Tuple>tup):
            given.append(tup)
            named[joins.names[place]] = tup
    if complete and len(given) < len(tups):  # the join before it has failed a tree that they share
        return joins.add_others(tups)
    if not given:
        return 0
    for tup in given:
        take_gathered(<Tuple>tup)
    collector.current = None
    collector.batch = given
    collector.batch_anchored = False
    emits = collector.emits
    try:
        try:
            answer = joins.process_join(named) if complete else joins.process_expired(named)
            if answer is not None and collector.emits == emits:
                refuse_rows(collector, "process_join" if complete else "process_expired", answer)
        except BaseException as error:
            collector.broken = (error, given, None, "process_join" if complete else "process_expired")
            raise
        if joins.auto_ack:
            for tup in given:
                collector.ack(<Tuple>tup)
    finally:
        collector.batch = None
        collector.batch_roots = None
        collector.batch_anchored = False
        collector.current = outer
    return 0
