"""The inline scheduler: one thread, one executor turn at a time, most downstream first.

    pass:  bolt C ─► bolt B ─► bolt A ─► spout        each turn: at most `quota` calls, then publish

Most downstream first keeps the queues short and the tuples in cache: what a spout's turn emitted is consumed before
the spout is asked again. Python bolts share one interpreter lock, so one thread is the default.

A pass without progress means that spouts wait (then the thread sleeps), that all is drained (then the range is done),
or that every holder of pending emits waits for another, as in a cycle: then one of them is fed one tuple beyond its
pending emits, which lets the cycle turn on.
"""

import random
import time

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport int64_t

from cython_core.acking.acker cimport Acker, ps_acker_keeps_time
from cython_core.arrow.row_batch cimport RowBatchBuilder
from cython_core.executors.bolt_executor cimport BoltExecutor, WaitingExecutor
from cython_core.executors.executor cimport Executor
from cython_core.executors.spout_executor cimport SpoutExecutor
from cython_core.routing.output_collector cimport set_current_collector, running_instance
from cython_core.routing.own_thread cimport enter_run, leave_run
from cython_core.timing.timers cimport TimerService
from cython_core.timing.turn_times cimport DOWNSTREAM_FULL, OUTPUT_FULL, Stopwatch

from cython_core.routing.own_thread import begin_run


@cython.final
cdef class InlineScheduler:
    """``InlineScheduler(executors, output, monotonic, sleep, quota, idle_sleep, seed, turn_time_limit, spout_wait)``.

    ``executors``: most downstream first. ``output``: the RowBatchBuilder whose finished batches end a ``run``, or None.
    ``monotonic``: a clock in seconds, read once per pass where a run has a deadline or a bolt a timer; ``sleep`` waits
    by it. ``quota``: calls per turn; a turn that takes longer than ``turn_time_limit`` seconds (0: any time) ends
    early, with the next call, so that slow components do not delay deadlines and timers. ``spout_wait``: how it
    waits when the spouts have nothing, None: it sleeps for ``idle_sleep`` seconds. ``seed``: an int makes order and
    length of the turns random, the same for the same seed: other interleavings for tests. ``acker``: of the worker; it
    gets the time once per pass.
    """

    cdef readonly tuple executors
    cdef readonly RowBatchBuilder output
    cdef readonly Acker acker
    cdef object monotonic
    cdef object sleep
    cdef object random
    cdef Stopwatch stopwatch
    cdef TimerService timers                       # of all bolts
    cdef tuple asyncs                              # bolts whose requests may be under way; they share one loop
    cdef SpoutStall stall
    cdef readonly long quota
    cdef readonly double idle_sleep
    cdef WaitStrategy spout_wait
    cdef int64_t idle_waits                        # in a row
    cdef readonly unsigned long long passes
    cdef readonly unsigned long long idle_passes   # of these, slept because the spouts had nothing
    cdef readonly unsigned long long deadlocks_broken        # of these, resolved a cycle of full queues
    # What a watchdog reads, by a thread of its own.
    cdef unsigned long thread                      # that drives
    cdef bint in_turns                             # components are called: not where it sleeps, nor between two runs
    cdef bint in_loop                              # it sleeps in the event loop, whose callbacks are the components'
    cdef Executor calling                          # whose component is called between two turns, or None
    cdef unsigned long long run_number             # of the run that goes on, 0: there was none
    cdef double left_at                            # when async bolts began to rest, by `monotonic`; NEVER: they do not

    def __init__(
        self,
        tuple executors not None,
        RowBatchBuilder output=None,
        monotonic=time.monotonic,
        sleep=time.sleep,
        long quota=256,
        double idle_sleep=0.001,
        seed=None,
        double turn_time_limit=0.0,
        WaitStrategy spout_wait=None,
        Acker acker=None,
    ):
        if quota < 1:
            raise ValueError(f"a turn makes at least one call; Given: {quota!r}")
        if not all([isinstance(executor, Executor) for executor in executors]):
            raise TypeError(f"a scheduler turns Executors; Given: {executors!r}")
        self.executors = executors
        self.stopwatch = Stopwatch()
        self.stall = SpoutStall()
        self.timers = TimerService()
        for executor in executors:
            executor.turn_time_limit = <unsigned long long>(turn_time_limit * 1e9)
            executor.times.share(self.stopwatch)
            if isinstance(executor, BoltExecutor):
                executor.share_timers(self.timers)
                if acker is not None:
                    executor.share_acker(acker)
        self.output = output
        self.acker = acker
        self.monotonic = monotonic
        self.sleep = sleep
        self.random = None if seed is None else random.Random(seed)
        self.asyncs = tuple([executor for executor in executors if isinstance(executor, WaitingExecutor)])
        self.quota = quota
        self.idle_sleep = idle_sleep
        self.spout_wait = spout_wait
        self.left_at = NEVER

    def call(self, executor, function, *args):
        """Calls a component's function, here."""
        self.thread = PyThread_get_thread_ident()
        self.calling = executor
        (<Executor>executor).enter_call()
        token = enter_run(self.run_number)
        try:
            return function(*args)
        finally:
            leave_run(token)
            (<Executor>executor).leave_call()
            self.calling = None

    def call_if_free(self, executor, function, *args):
        """As ``call``: the one thread is here."""
        return self.call(executor, function, *args)

    def calls(self):
        """(Executors, thread's identity, pass, whether it sleeps in the event loop) of a call of a component that is
        under way: as a list, empty for none. The component is that of one of the executors. Any thread may ask."""
        cdef object instance
        if self.calling is not None:
            return [((self.calling,), self.thread, self.passes, False)]
        if self.in_loop:
            return [(self.asyncs, self.thread, self.passes, True)]
        if not self.in_turns:
            return []
        instance = running_instance()
        called = tuple([executor for executor in self.executors if executor.instance is instance])
        return [(called, self.thread, self.passes, False)] if called else []

    def halt(self):
        """Nothing runs between two calls of ``run``."""

    def busy(self):
        """The executors in a call of their component: none, as the caller can only ask between two calls."""
        return []

    def stop(self):
        """There is no thread to stop."""

    def begin_run(self):
        """A micro-batch begins: what its components do from now on belongs to it."""
        self.run_number = begin_run(self.executors, True)

    def begin(self):
        """All spouts are open: timers start, final ticks are due again."""
        now = self.monotonic()
        for executor in self.executors:
            if isinstance(executor, BoltExecutor):
                executor.begin(now)

    @property
    def next_due(self):
        """A time before which no timer goes off and no request or tree runs out of time, by ``monotonic``; infinity
        where none will."""
        cdef double due = self.timers.next_due()
        for executor in self.asyncs:
            due = min(due, (<WaitingExecutor>executor).requests_due())
        return due if self.acker is None else min(due, self.acker.next_expiry)

    def final_tick(self):
        """Gives the most upstream bolt that waits for it the tick of the micro-batch's end; whether there was one.

        Order: after a ``run`` that answered False, and again after the next one, until it answers False: what a bolt
        emits at its tick is processed before the bolts below get theirs.
        """
        emits = emits_of_spouts(self.executors)
        for executor in reversed(self.executors):
            if isinstance(executor, BoltExecutor) and executor.wants_final_tick(emits):
                token = enter_run(self.run_number)
                self.enter_turns()
                try:
                    executor.final_tick(emits)
                finally:
                    self.in_turns = False
                    set_current_collector(None)
                    leave_run(token)
                return True
        return False

    def run(self, deadline=None):
        """Blocking. Turns until finished batches wait in the output (True) or all is exhausted and drained (False).

        From ``deadline`` (a reading of ``monotonic``) on the spouts without a range count as exhausted. Raises
        ComponentFailed where a component does.
        """
        if self.acker is not None:
            self.acker.resume()
        self.end_rest()
        for executor in self.executors:
            executor.ready()
            (<Executor>executor).stall_end()
            if (<Executor>executor).pending.count > 0:
                (<Executor>executor).stall_begin(DOWNSTREAM_FULL)
        token = enter_run(self.run_number)
        self.enter_turns()
        try:
            return self._run(deadline)
        finally:
            self.in_turns = False
            set_current_collector(None)
            leave_run(token)
            self.leave()

    cdef int enter_turns(self) except -1:
        self.thread = PyThread_get_thread_ident()
        self.in_turns = True
        return 0

    cdef int leave(self) except -1:
        """Until the next run, executors that write rows wait for them to be taken; the others' time is not counted."""
        cdef bint full = self.output is not None and len(self.output.done) > 0
        cdef Executor executor
        for executor in self.executors:
            executor.stall_end()
        for executor in self.executors:
            if full and executor.writes_output:
                executor.stall_begin(OUTPUT_FULL)
        if full and self.acker is not None:
            self.acker.pause()
        if full and self.asyncs:
            self.left_at = self.monotonic()
        return 0

    cdef int end_rest(self) except -1:
        """Between two runs the loop stood, too, until the rows were taken: no time-out of its requests passes in it."""
        cdef double seconds
        if self.left_at == NEVER:
            return 0
        seconds = self.monotonic() - self.left_at
        self.left_at = NEVER
        for executor in self.asyncs:
            (<WaitingExecutor>executor).rest(seconds)
        return 0

    cdef bint _run(self, object deadline) except -1:
        while True:
            if deadline is not None and self.monotonic() >= deadline:
                self.exhaust()
            if self.one_pass() > 0:
                self.idle_waits = 0
                self.stall.end()
            elif self.settle(deadline):
                return self.output is not None and len(self.output.done) > 0
            PyErr_CheckSignals()
            if self.output is not None and len(self.output.done) > 0:
                return True

    def one_pass(self):
        """A turn of every executor; returns how many calls of components they made."""
        cdef long calls = 0
        cdef tuple order = self.executors
        self.stopwatch.stop()
        if self.acker is not None and ps_acker_keeps_time(&self.acker.acker):
            self.acker.expire()
        if self.timers.running > 0:
            self.timers.pass_time(self.monotonic())
        if self.random is None:
            for executor in order:
                calls += (<Executor>executor).turn(self.quota)
        else:
            for executor in self.random.sample(order, len(order)):
                calls += (<Executor>executor).turn(self.random_quota())
        self.passes += 1
        if self.output is not None:
            self.output.release()
        return calls

    cdef long random_quota(self) except -1:
        """Log-uniform: a few calls are as likely as many. Were all lengths, short turns would be rare, and most runs of
        a small test one and the same order."""
        return <long>(self.quota ** (<double>self.random.random()))

    def await_trees(self):
        """Blocking: where trees of a range have no verdict, sleeps until one may have (True); False: all have theirs.

        Order: after the last final tick. Then only what acks by itself, later, or the time-out can give a verdict.
        """
        if not trees_to_await(self.acker, self.executors):
            return False
        self.acker.none_waits()
        if self.acker.expire() > 0:
            return True
        token = enter_run(self.run_number)
        self.enter_turns()
        try:
            calls = self.one_pass()
        finally:
            self.in_turns = False
            leave_run(token)
        if calls == 0:
            # A microsecond more: what is due at a time is over only behind it, and a clock that stands would never
            # get there.
            ticks = max(0.0, self.timers.next_due() - self.monotonic()) + 1e-6
            self.sleep_for(min(self.acker.seconds_to_wait(), ticks))
        return True

    cdef bint settle(self, object deadline) except -1:
        """After a pass without a call: 1 where all is drained; else sleeps or deadlocks_broken and answers 0."""
        cdef bint clean = 1
        cdef bint exhausted = 1
        for executor in self.executors:
            if not (<Executor>executor).flush():
                clean = 0
            if isinstance(executor, SpoutExecutor):
                exhausted = exhausted and (<SpoutExecutor>executor).over()
        for executor in self.executors:
            if not (<Executor>executor).idle() and not (<Executor>executor).waits():
                # A flush made room, or the queues wait for each other, or for requests that are under way.
                if self.one_pass() > 0:
                    return 0
                if self.under_way():
                    break
                if not clean:
                    self.break_deadlock()
                return 0
        if self.under_way():
            self.wait(deadline)
            return 0
        if exhausted:
            return clean
        if self.process_held():
            return 0
        self.stall.look(self.executors, self.monotonic)
        self.idle_passes += 1
        self.wait(deadline)
        return 0

    cdef bint process_held(self) except -1:
        """Has a bolt process what it holds, as spouts wait for that and nothing else moves; whether there was one."""
        emits = emits_of_spouts(self.executors)
        cdef BoltExecutor holder = holder_of_what_spouts_await(self.executors, emits)
        if holder is None:
            return 0
        try:
            holder.process_held(emits)
        finally:
            set_current_collector(None)
        return 1

    cdef bint under_way(self) noexcept:
        """Whether the loop may bring something: the requests of an async bolt."""
        cdef WaitingExecutor executor
        for executor in self.asyncs:
            if executor.in_flight > 0:
                return 1
        return 0

    cdef bint listens(self) noexcept:
        """Whether the thread is to sleep in the loop."""
        cdef WaitingExecutor executor
        for executor in self.asyncs:
            if executor.listens():
                return 1
        return 0

    cdef int sleep_for(self, double seconds) except -1:
        """In the loop, where that may bring something."""
        if self.listens():
            (<WaitingExecutor>self.asyncs[0]).loop.wait(seconds)
        else:
            self.sleep(seconds)
        return 0

    cdef int wait(self, object deadline) except -1:
        """Waits as no executor has anything to do. Not beyond the deadline, nor beyond the next timer."""
        cdef int64_t nanos
        cdef double seconds = self.idle_sleep
        cdef bint under_way = self.under_way()
        if under_way and not self.any_spout_to_ask():
            seconds = NEVER
        elif self.spout_wait is not None:
            nanos = self.spout_wait.idle_nanos(self.idle_waits)
            if nanos < 0:
                self.idle_waits = self.spout_wait.idle(self.idle_waits)
                return 0
            self.idle_waits += 1
            seconds = nanos / 1e9
        if self.spout_wait is not None or under_way:
            end = self.next_due if deadline is None else min(self.next_due, deadline)
            if end != NEVER:
                seconds = min(seconds, max(0.0, end - self.monotonic()))
        self.in_turns = False
        self.in_loop = under_way and (<WaitingExecutor>self.asyncs[0]).loop.has_callbacks
        try:
            self.sleep_for(seconds)
        finally:
            self.in_turns, self.in_loop = True, False
        return 0

    cdef bint any_spout_to_ask(self) except -1:
        for executor in self.executors:
            if isinstance(executor, SpoutExecutor) and not (<SpoutExecutor>executor).over():
                if (<Executor>executor).pending.count == 0 and not (<SpoutExecutor>executor).at_most():
                    return 1
        return 0

    cdef int break_deadlock(self) except -1:
        for executor in self.executors:
            if isinstance(executor, BoltExecutor) and (<BoltExecutor>executor).force_feed(1) > 0:
                self.deadlocks_broken += 1
                return 0
        return 0

    def exhaust(self):
        """Closes every spout that reads no range; a range is read to its end. The turns that follow drain."""
        for executor in self.executors:
            if isinstance(executor, SpoutExecutor) and not (<SpoutExecutor>executor).collector.bounded:
                (<SpoutExecutor>executor).close()
