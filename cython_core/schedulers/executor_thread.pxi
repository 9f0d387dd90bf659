"""One thread per executor (STORM-2306 §3.2): it takes turns while there is work, and sleeps while there is none.

    driver:  call(executor, f) ──► handed ──► f()            every method of a component is called by its own thread
             run() ──► running ──► turn, turn, turn ...      until all rests, a batch is finished or a component raises

    thread:  a turn with calls       ──► wakes: producers that wait for room, spouts with verdicts, the driver
             pending emits left      ──► sleeps until their destination has room
             spout with nothing      ──► sleeps by its wait strategy, then asks again
             bolt with nothing       ──► sleeps until a tuple arrives or a timer goes off

A turn holds the interpreter's lock unless the component releases it. So the thread that holds it sees every executor
between two calls, or in a call (``busy``), and what the driver concludes from that stays true while it holds the lock.

A cycle whose bolts all wait for room in each other's queue would wait for ever: the thread that closes such a cycle
feeds its bolt one tuple beyond the pending emits, which lets the cycle turn on.

Threading law: as said; the methods that the driver calls are the driver's.
"""

cimport cython
from libc.stdint cimport int64_t

from cython_core.arrow.row_batch cimport RowBatchBuilder
from cython_core.executors.bolt_executor cimport BoltExecutor, WaitingExecutor
from cython_core.executors.executor cimport Executor
from cython_core.executors.spout_executor cimport SpoutExecutor
from cython_core.primitives.parker cimport (
    Parker, ps_parker, ps_parker_cancel, ps_parker_is_parked, ps_parker_park, ps_parker_prepare, ps_parker_unpark,
    ps_parker_write_to,
)
from cython_core.queues.queues cimport BatchInserter, BroadcastReader, has_room, queue_has_room, ring_room
from cython_core.routing.own_thread cimport add_engine_thread, forget_engine_thread, say_run
from cython_core.timing.turn_times cimport (
    DOWNSTREAM_FULL, INPUT_EMPTY, MAX_SPOUT_PENDING, NOT_STALLED, NOTHING_TO_EMIT, OUTPUT_FULL, SOURCE_UNAVAILABLE,
    StallReason,
)

import threading
from collections import deque

cdef extern from "cython_core/primitives/wait.h" nogil:
    void ps_sleep_nanos(int64_t nanos)

cdef int64_t FOREVER = -1
# Order: called between two turns. CPython hands the interpreter's lock to a waiting thread when a Python function
# begins, and a compiled component calls none.
cdef object let_others_in = eval("lambda: None")
cdef int MOST_FINISHED = 4    # batches that wait for the driver, before those that write rows wait, too


class Call:
    """A call that the driver hands over: ``begun``, then ``done``, with ``result`` or ``error``."""

    def __init__(self, function, args):
        self.function = function
        self.args = args
        self.begun = False
        self.done = False
        self.result = None
        self.error = None

    def answer(self):
        """Blocking: makes the call."""
        self.begun = True
        try:
            self.result = self.function(*self.args)
        except BaseException as error:
            self.error = error
        self.done = True


@cython.final
cdef class ThreadsRun:
    """What threads and driver share. ``manual``: no sleep ends by time, the driver moves the clock and wakes all."""

    def __init__(self, RowBatchBuilder output, object monotonic, bint manual, long quota):
        self.driver = Parker()
        self.output = output
        self.monotonic = monotonic
        self.manual = manual
        self.quota = quota
        self.threads = []
        self.spouts = []
        self.consumers = {}

    cdef bint all_parked(self) noexcept:
        """Whether every thread sleeps and none has been woken."""
        cdef ExecutorThread thread
        for thread in self.threads:
            if not ps_parker_is_parked(&thread.parker.place):
                return False
            # Its callbacks run in the loop's sleep. Time that passes meanwhile would end what they are about to answer.
            if thread.timed_loop is not None and not thread.timed_loop.rests:
                return False
        return True

    cdef int fail(self, object error) except -1:
        """The first exception stops all turns; what others raise while they stop says nothing new."""
        if self.failure is None:
            self.failure = error
        self.running = False
        ps_parker_unpark(&self.driver.place)
        return 0


# Order: never cleared as a part of garbage. The end of a scheduler in the same garbage wakes its threads, and would
# write into what lies behind None in the interpreter's memory, from CPython 3.14 on the address of class Exception.
@cython.final
@cython.no_gc_clear
cdef class ExecutorThread:
    """``ExecutorThread(executor, run, name, idle_wait, full_wait)``; ``start()`` starts the thread, a daemon, which
    ends with the run.

    ``idle_wait``: how a spout waits that has nothing, or a bolt whose queue is empty; ``full_wait``: either, where a
    destination is full (back-pressure).
    """

    def __init__(
        self,
        Executor executor not None,
        ThreadsRun run not None,
        str name not None,
        WaitStrategy idle_wait not None,
        WaitStrategy full_wait not None,
    ):
        self.idle_wait = idle_wait
        self.full_wait = full_wait
        self.executor = executor
        self.spout = executor if isinstance(executor, SpoutExecutor) else None
        self.bolt = executor if isinstance(executor, BoltExecutor) else None
        self.requests = executor if isinstance(executor, WaitingExecutor) else None
        self.run = run
        self.parker = Parker()
        self.handed = deque()
        self.thread = threading.Thread(target=self.serve, name=name, daemon=True)
        run.threads.append(self)
        if self.bolt is not None:
            self.bolt.queue.consumer = self.parker
            run.consumers[self.bolt.queue] = self
            for reader in self.bolt.readers or ():
                (<BroadcastReader>reader).owner.consumers.append(self.parker)
                run.consumers[(<BroadcastReader>reader).owner, reader.name] = self
        else:
            run.spouts.append(self)

    def start(self):
        """Starts the thread."""
        self.thread.start()

    def hand(self, call):
        """Hands a Call over; it is made between two turns, as soon as those before it are done."""
        self.handed.append(call)
        ps_parker_unpark(&self.parker.place)

    @property
    def parked(self):
        """Whether the thread sleeps and has not been woken."""
        return ps_parker_is_parked(&self.parker.place)

    def serve(self):
        """The thread."""
        add_engine_thread()
        say_run(0)
        try:
            self.serve_until_the_end()
        finally:
            forget_engine_thread()

    cdef int serve_until_the_end(self) except -1:
        while True:
            if self.run_said != self.run.number:
                self.run_said = self.run.number
                say_run(self.run_said)
            if self.handed:
                self.answer()
            elif self.run.ended:
                return 0
            elif self.run.running:
                self.take_turn()
            else:
                self.executor.stall_end()
                ps_parker_unpark(&self.run.driver.place)
                self.park(None, FOREVER, None, NOT_STALLED)

    def answer(self):
        """Makes the oldest call that was handed over."""
        self.turns += 1
        self.busy = True
        self.executor.enter_call()
        self.handed.popleft().answer()
        self.executor.leave_call()
        self.busy = False
        ps_parker_unpark(&self.run.driver.place)

    cdef int take_turn(self) except -1:
        cdef long calls = 0
        cdef unsigned long long before = self.run.progress
        self.blocked_on = None
        if self.executor.writes_output and len(self.run.output.done) >= MOST_FINISHED:
            ps_parker_unpark(&self.run.driver.place)
            try:
                return self.park(None, FOREVER, None, OUTPUT_FULL)
            except BaseException as error:  # of a request that is under way, in whose loop it sleeps
                self.run.fail(error)
                return 0
        self.turns += 1
        self.busy = True
        try:
            if self.bolt is not None and self.bolt.timers.running > 0:
                self.bolt.timers.pass_time(self.run.monotonic())
            self.executor.times.stopwatch.stop()  # others have had the interpreter's lock
            calls = self.executor.turn(self.run.quota)
            if calls == 0 and self.executor.pending.count > 0:
                # Order: said before others are looked at, so that the last one of a cycle to say so sees it closed.
                self.blocked_on = self.full_batch()
                if self.closes_a_cycle():
                    calls = self.bolt.force_feed(1)
                    self.run.deadlocks_broken += calls
            if self.run.output is not None:
                self.run.output.release()  # order: while busy, as Arrow lets others in
        except BaseException as error:
            self.run.fail(error)
            return 0
        finally:
            self.busy = False
        self.wake_others(calls)
        if calls > 0:
            self.idle = 0
            self.run.progress += 1
            let_others_in()
            return 0
        try:
            return self.wait(before)
        except BaseException as error:  # a wait strategy of the user's, or a clock that says that it is too late
            self.run.fail(error)
        return 0

    cdef int wake_others(self, long calls) except -1:
        """After a turn: wakes the threads that may go on because of it."""
        cdef ExecutorThread other
        # Not if requests keep it from taking a tuple: it and the producers that wait would wake one another for ever.
        if self.bolt is not None and (calls > 0 or self.requests is None):
            self.bolt.queue.wake_blocked()
        for other in self.run.spouts:
            # Not if it waits for room: threads that do would wake one another for ever.
            if other.executor.pending.count > 0:
                continue
            if other.spout.collector.roots.settled > 0 or (other.limited and not other.spout.at_most()):
                ps_parker_unpark(&other.parker.place)
        if self.run.output is not None and len(self.run.output.done) > 0:
            ps_parker_unpark(&self.run.driver.place)
        return 0

    cdef int wait(self, unsigned long long progress) except -1:
        """After a turn without a call, which has begun at this progress of the run."""
        cdef BatchInserter full = self.full_batch()
        cdef WaitStrategy strategy = self.full_wait if full is not None else self.idle_wait
        cdef StallReason reason = DOWNSTREAM_FULL if full is not None else INPUT_EMPTY
        cdef StallReason own
        cdef int64_t most = FOREVER
        self.limited = False
        if full is None and self.spout is not None:
            if self.spout.exhausted:
                self.executor.stall_end()
                return self.park(None, FOREVER, None, NOT_STALLED)
            self.limited = self.spout.at_most()
            reason = MAX_SPOUT_PENDING if self.limited else NOTHING_TO_EMIT
            if self.spout.is_out():
                reason = SOURCE_UNAVAILABLE
            self.asked = not self.limited
            self.asked_at = progress
        if self.bolt is not None:
            most = self.until_due()
        if full is None and self.requests is not None:
            own = self.requests.stalled_by()
            reason = own if own != NOT_STALLED else reason
        if self.run.manual:
            return self.park(None, FOREVER, full, reason)
        if strategy.idle_nanos(self.idle) >= 0:
            return self.park(strategy, most, full, reason)
        self.executor.stall_begin(reason)
        self.idle = strategy.idle(self.idle)
        return 0

    cdef double next_due(self) except? -1:
        """A time before which no timer of its bolt goes off and no request runs out of time; infinity where none
        will."""
        cdef double due = NEVER if self.bolt is None else self.bolt.timers.next_due()
        return due if self.requests is None else min(due, self.requests.requests_due())

    cdef int64_t until_due(self) except? -1:
        """Nanoseconds until that time; ``FOREVER`` where there is none."""
        cdef double due = self.next_due()
        if due == NEVER:
            return FOREVER
        return <int64_t>(max(0.0, due - <double>self.run.monotonic()) * 1e9)

    cdef int park(self, WaitStrategy strategy, int64_t most, BatchInserter full, StallReason reason) except -1:
        """Sleeps, unless there is something to do, for ``most`` nanoseconds, or until it is woken.

        ``full``: the batch whose destination has no room, or None. By a ``strategy`` a spout sleeps once, as the world
        does not wake it, and the others as often as it takes.
        """
        cdef bint in_loop = self.requests is not None and self.requests.listens() and self.run.running
        if full is not None:
            full.blocked().append(self.parker)
        if in_loop:
            if self.run.manual and self.requests.loop.has_callbacks:
                self.timed_loop = self.requests.loop
                self.timed_loop.when_it_rests(self.wake_driver_if_last)
            ps_parker_write_to(&self.parker.place, self.requests.loop.wake_fd)
        ps_parker_prepare(&self.parker.place)
        # Order: prepared, then looked once more.
        try:
            if not self.has_work(full):
                self.wake_driver_if_last()
                if reason != NOT_STALLED and self.run.running:
                    self.executor.stall_begin(reason)
                if in_loop:
                    self.sleep_in_loop(most)
                elif strategy is None:
                    with nogil:
                        ps_parker_park(&self.parker.place, most)
                else:
                    self.sleep_by(strategy, most, full)
        finally:  # also if a request exits: the loop's file may be another one's when the thread is woken next
            ps_parker_cancel(&self.parker.place)
            self.timed_loop = None
            if in_loop:
                ps_parker_write_to(&self.parker.place, -1)
            if full is not None and self.parker in full.blocked():
                full.blocked().remove(self.parker)
        return 0

    cpdef int wake_driver_if_last(self) except -1:
        """Non-blocking, by a thread that is about to sleep: the driver has something to conclude if all do."""
        if self.may_be_the_last() and self.run.all_parked():
            ps_parker_unpark(&self.run.driver.place)
        return 0

    cdef int sleep_in_loop(self, int64_t most) except -1:
        """Where requests are under way, they or a wake end the sleep."""
        if self.run.manual and self.requests.loop.waits_for_world:
            ps_parker_cancel(&self.parker.place)  # or the driver would let time pass
        self.in_loop = self.requests.loop.has_callbacks
        try:
            self.requests.loop.wait(None if most == FOREVER else most / 1e9)
        finally:
            self.in_loop = False
        return 0

    cdef int sleep_by(self, WaitStrategy strategy, int64_t most, BatchInserter full) except -1:
        cdef int64_t nanos, slept = 0
        cdef int64_t idle = self.idle
        cdef ps_parker *place = &self.parker.place
        cdef bint once = self.spout is not None and full is None
        with nogil:
            while True:
                nanos = strategy.idle_nanos(idle)
                idle += 1
                if most != FOREVER and nanos > most - slept:
                    nanos = most - slept
                slept += nanos
                if nanos == 0:
                    ps_sleep_nanos(0)
                if ps_parker_park(place, nanos) or once or slept == most:
                    break
                if full is not None and queue_has_room(full):
                    break
        self.idle = idle
        return 0

    cdef bint has_work(self, BatchInserter full):
        """Whether it has work for which no other thread will wake it."""
        if self.handed or self.run.ended:
            return True
        if not self.run.running or (self.executor.writes_output and len(self.run.output.done) >= MOST_FINISHED):
            return False
        if full is not None and has_room(full):
            return True
        if self.limited and not self.spout.at_most():
            return True
        return self.executor.pending.count == 0 and not self.rests() and not self.executor.waits()

    cdef bint may_be_the_last(self) noexcept:
        """Whether the driver could conclude something once this thread sleeps, too."""
        return self.spout is None or self.spout.exhausted or self.spout.until_idle or self.run.manual

    cdef BatchInserter full_batch(self):
        """The batch whose destination has no room, for which this executor waits; or None."""
        cdef BatchInserter inserter
        if self.executor.pending.count > 0:
            return <BatchInserter>self.executor.pending.entries[2 * self.executor.pending.first]
        if not self.executor.flush():
            for inserter in self.executor.inserters:
                if inserter.count > 0:
                    return inserter
        return None

    cdef bint closes_a_cycle(self):
        """Whether the pending emits wait for an executor that waits for another one, and so on, back to this one.

        Each waits for one destination at a time, that of its oldest pending emit, and for the slowest of those that
        read it, so there is one way to follow.
        """
        cdef ExecutorThread at = self
        cdef BatchInserter full = self.blocked_on
        cdef Py_ssize_t _step
        if self.bolt is None:
            return False
        for _step in range(len(self.run.consumers)):
            at = self.slowest_consumer(full)
            if at is self:
                return True
            full = at.blocked_on
            if full is None:
                return False
        return False

    cdef ExecutorThread slowest_consumer(self, BatchInserter full):
        """The thread that must go on before there is room."""
        cdef Py_ssize_t reader = -1
        if full.queue is not None:
            return <ExecutorThread>self.run.consumers[full.queue]
        if ring_room(full.ring) > 0 and full.awaited_rows > 0:
            # Order: not the slowest then. A reader is done with a batch later than it has read it.
            reader = full.ring.fullest_reader(full.awaited_rows, full.awaited_weight)
        if reader < 0:
            reader = full.ring.slowest_reader()
        return <ExecutorThread>self.run.consumers[full.ring, full.ring.names[reader]]

    cdef bint rests(self) noexcept:
        """No call under way, nothing in the queue, no verdict to pass on, nothing pending."""
        return not self.busy and len(self.handed) == 0 and self.executor.idle()

    cdef bint clean(self) noexcept:
        """No batch that is not published."""
        cdef BatchInserter inserter
        for inserter in self.executor.inserters:
            if inserter.count > 0:
                return False
        return True

    cdef bint over(self) except -1:
        """Whether the run need not wait for this spout."""
        if not self.spout.exhausted and not (self.asked and self.asked_at == self.run.progress):
            return False
        return self.spout.over()
