"""The threads scheduler: one thread per executor, as in Storm 2 (STORM-2306 §3.2), for components that release the
interpreter's lock: I/O, numpy, Arrow, compiled code.

It has the face of the inline scheduler and gives the same rows. Every method of a component is called by the thread of
its executor, from ``initialize`` to ``cleanup``, so what belongs to one thread (an SQLite connection, an event loop)
may be kept in a component. Threads go on while the driver hands finished batches over, and sleep between two runs.

Threading law: one thread drives.
"""

import logging
import os
import sys
import time

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t

from cython_core.acking.acker cimport Acker, ps_acker_keeps_time
from cython_core.arrow.row_batch cimport RowBatchBuilder
from cython_core.executors.bolt_executor cimport BoltExecutor
from cython_core.executors.executor cimport Executor
from cython_core.executors.spout_executor cimport SpoutExecutor
from cython_core.primitives.parker cimport Parker, ps_parker_unpark, ps_parker_cancel, ps_parker_park, ps_parker_prepare
from cython_core.queues.queues cimport FlushTimer
from cython_core.routing.output_collector cimport set_current_collector

from cython_core.routing.own_thread import begin_run


logger = logging.getLogger("pystorm.worker")

cdef double LOOK_SECONDS = 0.02   # the driver looks at signals at least this often
cdef double MANUAL_LOOK_SECONDS = 0.001  # at a deadline by a clock that any thread may move
cdef double HALT_SECONDS = 0.1    # that a call of a component may go on when all stops


# Order: never cleared as a part of garbage, as its end ends the threads.
@cython.final
@cython.no_gc_clear
cdef class ThreadsScheduler:
    """``ThreadsScheduler(executors, waits, output, monotonic, sleep, quota, idle_sleep, manual, ...)``.

    As InlineScheduler; the executors' queues are made for as many threads as offer. ``waits``: for each executor, how
    it waits when it has nothing to do, and when a destination is full. ``manual``: time passes only by
    ``sleep``, which is called when all threads rest, for ``idle_sleep`` seconds or until something is due; no thread
    waits by a strategy then.
    ``flush_nanos``: after how long what is batched is published in the middle of a turn, too; 0: never.
    """

    cdef readonly tuple executors
    cdef readonly RowBatchBuilder output
    cdef readonly Acker acker
    cdef readonly ThreadsRun shared
    cdef readonly tuple threads
    cdef object monotonic
    cdef object sleep
    cdef readonly double idle_sleep
    cdef readonly unsigned long long idle_passes
    cdef FlushTimer timer      # or None
    cdef int64_t flush_nanos
    cdef SpoutStall stall
    cdef unsigned long long progress_at_look
    cdef object __weakref__
    cdef int process    # that has started the threads; 0: they are not

    def __init__(
        self,
        tuple executors not None,
        waits,
        RowBatchBuilder output=None,
        monotonic=time.monotonic,
        sleep=time.sleep,
        long quota=256,
        double idle_sleep=0.001,
        bint manual=False,
        double turn_time_limit=0.0,
        int64_t flush_nanos=0,
        Acker acker=None,
    ):
        if quota < 1:
            raise ValueError(f"a turn makes at least one call; Given: {quota!r}")
        if not all([isinstance(executor, Executor) for executor in executors]):
            raise TypeError(f"a scheduler turns Executors; Given: {executors!r}")
        self.executors = executors
        self.output = output
        self.acker = acker
        self.monotonic = monotonic
        self.sleep = sleep
        self.idle_sleep = idle_sleep
        self.stall = SpoutStall()
        self.shared = ThreadsRun(output, monotonic, manual, quota)
        self.threads = tuple([
            ExecutorThread(executor, self.shared, f"pystorm-{executor.component}-{executor.task}", *strategies)
            for executor, strategies in zip(executors, waits, strict=True)
        ])
        for executor in executors:
            executor.turn_time_limit = <unsigned long long>(turn_time_limit * 1e9)
            if acker is not None and isinstance(executor, BoltExecutor):
                executor.share_acker(acker)
        self.flush_nanos = flush_nanos if any([executor.inserters for executor in executors]) else 0
        if self.flush_nanos > 0:
            self.timer = FlushTimer()
            for executor in executors:
                executor.flush_by(self.timer.register(getattr(executor, "queue", None)))

    def __dealloc__(self):
        if self.shared is not None and self.threads is not None:
            self.shared.running = False
            self.end_threads()
            if self.timer is not None:
                self.timer.stop()

    cdef int end_threads(self) except -1:
        self.shared.ended = True
        return self.wake_all()

    @property
    def deadlocks_broken(self):
        """Cycles of full queues that were resolved."""
        return self.shared.deadlocks_broken

    @property
    def next_due(self):
        """As the inline scheduler's."""
        cdef double due = NEVER
        for thread in self.threads:
            due = min(due, (<ExecutorThread>thread).next_due())
        return due if self.acker is None else min(due, self.acker.next_expiry)

    def call(self, executor, function, *args):
        """Blocking: has the executor's own thread make a call, between two runs. Raises what the call raises."""
        return self._call(executor, function, args, NEVER)

    def call_if_free(self, executor, function, *args):
        """As ``call``, but does not wait for a thread whose component is still in another call after 0.1 s: it says so
        in the log, and the thread makes the call when it can."""
        return self._call(executor, function, args, HALT_SECONDS)

    def _call(self, executor, function, args, double timeout):
        cdef ExecutorThread thread = <ExecutorThread>self.threads[self.executors.index(executor)]
        if sys.is_finalizing():  # whose threads run no more
            if timeout < NEVER:
                return None
            raise RuntimeError(f"a component is called while the interpreter ends; Given: {executor.component!r}")
        self.start_where_needed()
        call = Call(function, args)
        thread.hand(call)
        waited = time.monotonic()
        while not call.done:
            if not call.begun and time.monotonic() - waited > timeout:
                logger.warning(
                    "component %r, task %d is in a call that does not return; the engine waits for it no longer",
                    executor.component, executor.task,
                )
                return None
            self.look(call, min(timeout, LOOK_SECONDS))
        if call.error is not None:
            raise call.error
        return call.result

    cdef int look(self, object call, double seconds) except -1:
        """Sleeps until a thread says that something has changed, for ``seconds`` at most."""
        cdef Parker driver = self.shared.driver
        cdef int64_t nanos = <int64_t>(seconds * 1e9)
        ps_parker_prepare(&driver.place)
        # Order: prepared, then looked once more.
        if (call is not None and call.done) or self.something_happened(call is None):
            ps_parker_cancel(&driver.place)
        else:
            with nogil:
                ps_parker_park(&driver.place, nanos)
                ps_parker_cancel(&driver.place)
        PyErr_CheckSignals()
        return 0

    cdef bint something_happened(self, bint running) except -1:
        if not running:
            return False
        if self.shared.failure is not None or (self.output is not None and len(self.output.done) > 0):
            return True
        return self.quiescent() or (self.shared.manual and self.shared.all_parked())

    cdef int start_where_needed(self) except -1:
        if self.process == 0:
            self.process = os.getpid()
            for thread in self.threads:
                thread.start()
        elif self.process != os.getpid():
            raise RuntimeError(
                "a worker with threads was taken into a forked process, where they are not: build it there; "
                f"Given: process {os.getpid()}, started in {self.process}"
            )
        return 0

    def begin_run(self):
        """As the inline scheduler's."""
        self.shared.number = begin_run(self.executors, False)

    def begin(self):
        """All spouts are open: timers start, final ticks are due again."""
        now = self.monotonic()
        for executor in self.executors:
            if isinstance(executor, BoltExecutor):
                executor.begin(now)

    def final_tick(self):
        """As the inline scheduler's. Between two runs."""
        emits = emits_of_spouts(self.executors)
        for executor in reversed(self.executors):
            if isinstance(executor, BoltExecutor) and executor.wants_final_tick(emits):
                self.call(executor, executor.final_tick, emits)
                return True
        return False

    def run(self, deadline=None):
        """Blocking. As the inline scheduler's; where it answers True, the threads go on. Raises what a thread raised,
        after all have stopped."""
        cdef double end = NEVER if deadline is None else deadline
        cdef double now
        if self.acker is not None:
            self.acker.resume()
        self.resume()
        while True:
            if self.shared.failure is not None:
                self.halt()
                failure, self.shared.failure = self.shared.failure, None
                raise failure
            if self.shared.ended:
                raise RuntimeError("the threads of a worker were ended while it ran")
            now = self.monotonic()
            if now >= end:
                self.exhaust()
                end = NEVER
            if self.acker is not None and ps_acker_keeps_time(&self.acker.acker) and self.acker.expire() > 0:
                self.wake_those_with_work()  # order: a spout is notified before a clock of the test's goes on
            if self.output is not None and self.output.release() == 0 and self.hands_over():
                return True
            if self.quiescent():
                self.halt()
                return self.hands_over()
            # Order: looked at before. A bolt that is called may have brought all that follows to its end meanwhile.
            all_sleep = self.shared.manual and self.shared.all_parked()
            if not self.process_held() and all_sleep:
                self.idle_passes += 1
                self.sleep(self.seconds_to_skip(end))
                self.wake_all()
            self.look(None, MANUAL_LOOK_SECONDS if self.shared.manual else min(LOOK_SECONDS, max(end - now, 0.0)))
            # If all sleep until the clock is moved, a thread that waits for room would only sleep again.
            if not (self.shared.manual and self.shared.all_parked()):
                self.wake_those_with_work()

    cdef double seconds_to_skip(self, double end) except? -1:
        """How far a clock is moved while all threads sleep: to what is due next, if no spout is to be asked before."""
        cdef ExecutorThread thread
        cdef double due
        for thread in self.shared.spouts:
            if not (thread.spout.exhausted or thread.spout.at_most() or thread.executor.pending.count > 0):
                return self.idle_sleep
        due = min(end, <double>self.next_due)
        return self.idle_sleep if due == NEVER else max(self.idle_sleep, due - <double>self.monotonic())

    cdef bint hands_over(self) except -1:
        """Whether finished batches wait to be taken; until that is done, the trees' time stands."""
        cdef bint full = self.output is not None and len(self.output.done) > 0
        if full and self.acker is not None:
            self.acker.pause()
        return full

    def await_trees(self):
        """As the inline scheduler's."""
        if not trees_to_await(self.acker, self.executors):
            return False
        self.acker.none_waits()
        if self.acker.expire() == 0:
            # Order: not beyond a tick, which may bring the verdict that is waited for.
            # A microsecond more: what is due at a time is over only behind it, and a clock that stands would never
            # get there.
            due = max(0.0, self.next_due - self.monotonic()) + 1e-6
            self.sleep(min(self.acker.seconds_to_wait(), due))
            self.acker.expire()
        return True

    cdef bint process_held(self) except -1:
        """As the inline scheduler's, by the thread of the bolt. Whether there was one to call."""
        cdef ExecutorThread thread
        cdef BoltExecutor holder
        if self.shared.progress != self.progress_at_look:
            self.progress_at_look = self.shared.progress
            self.stall.end()
        for thread in self.threads:
            if not thread.rests() or not thread.clean():
                return False
        emits = emits_of_spouts(self.executors)
        holder = holder_of_what_spouts_await(self.executors, emits)
        if holder is not None:
            self.call(holder, holder.process_held, emits)
            return True
        self.stall.look(self.executors, self.monotonic)
        return False

    cdef int resume(self) except -1:
        self.start_where_needed()
        # Order: a thread that has failed while the driver was elsewhere stays failed.
        if not self.shared.running and self.shared.failure is None:
            for executor in self.executors:
                executor.ready()
            for thread in self.shared.spouts:
                (<ExecutorThread>thread).asked = False
            if self.timer is not None:
                self.timer.start(self.flush_nanos)
            self.shared.running = True
        self.wake_all()
        return 0

    cdef int wake_those_with_work(self) except -1:
        """Wakes them as what a component does in a thread of its own (acks, emits) wakes no executor."""
        cdef ExecutorThread thread
        for thread in self.threads:
            if not thread.busy and not thread.executor.waits() and not (thread.rests() and thread.clean()):
                ps_parker_unpark(&thread.parker.place)
        return 0

    cdef int wake_all(self) except -1:
        cdef ExecutorThread thread
        for thread in self.threads:
            ps_parker_unpark(&thread.parker.place)
        return 0

    cdef bint quiescent(self) except -1:
        """Whether nothing is under way and no spout has more. It stays so as long as the interpreter's lock is held."""
        cdef ExecutorThread thread
        cdef unsigned long long progress = self.shared.progress
        for thread in self.shared.spouts:
            if not thread.over():
                return False
        # Order: no Python code from here on, and none of the threads has gone on while the spouts were looked at.
        for thread in self.threads:
            if not thread.rests() or not thread.clean():
                return False
        return progress == self.shared.progress

    def exhaust(self):
        """Closes every spout that reads no range; a range is read to its end. The turns that follow drain."""
        cdef SpoutExecutor spout
        for thread in self.shared.spouts:
            spout = (<ExecutorThread>thread).spout
            if not spout.collector.bounded:
                spout.close()
        self.wake_all()

    def halt(self):
        """Blocking: no component is called after it, those excepted whose call lasts 0.1 s and longer."""
        self.shared.running = False
        self.wake_all()
        waited = time.monotonic()
        while any([thread.busy for thread in self.threads]) and time.monotonic() - waited < HALT_SECONDS:
            if sys.is_finalizing():
                break
            self.look_at_threads()
        for thread in self.threads:
            if not thread.busy:
                (<ExecutorThread>thread).executor.stall_end()
        if self.timer is not None:
            self.timer.pause()
        set_current_collector(None)

    cdef int look_at_threads(self) except -1:
        cdef Parker driver = self.shared.driver
        ps_parker_prepare(&driver.place)
        if any([thread.busy for thread in self.threads]):
            with nogil:
                ps_parker_park(&driver.place, 2000000)
                ps_parker_cancel(&driver.place)
        else:
            ps_parker_cancel(&driver.place)
        PyErr_CheckSignals()
        return 0

    def busy(self):
        """Executors that are in a call of their component now, and their threads."""
        return [(thread.executor, thread.thread) for thread in self.threads if thread.busy]

    def calls(self):
        """As the inline scheduler's, with the turn of the thread in the place of the pass."""
        cdef ExecutorThread thread
        found = []
        for thread in self.threads:
            if thread.busy or thread.in_loop:
                found.append(((thread.executor,), thread.thread.ident, thread.turns, not thread.busy))
        return found

    def stop(self):
        """Ends the threads. One that is in a call of its component ends when that returns."""
        self.halt()
        self.end_threads()
        if self.timer is not None:
            self.timer.stop()
        if self.process == os.getpid():
            waited = time.monotonic()
            for thread in self.threads:
                thread.thread.join(max(0.0, HALT_SECONDS - (time.monotonic() - waited)))
