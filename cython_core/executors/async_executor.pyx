"""The executor of an async bolt: its turn starts requests, turns the event loop, and settles what has ended.

    receive queue ─► start_request ─► the loop's tasks ─► finished ─► ack, or fail        ─► a place is free
                     while fewer than                 ─► expired  ─► fail, cancel the task
                     max_pending are under way      ─► lost     ─► cancel the task: its tree has failed meanwhile
                                                    ─► goes on a second after it was cancelled: abandoned, a warning

No place free: no tuple is taken, the receive queue fills, and producers wait as they do for any bolt. Requests go on
while what they emitted waits for room downstream; so that waits in memory for at most ``max_pending`` of them.

A turn runs the loop's callbacks that are ready and does not block. If no executor has anything to do, the scheduler
lets the thread sleep in the loop (``EventLoop.wait``). The sleep ends when a request ends or emits.

Threading law: as every executor; the loop is turned by the same thread.
"""

import asyncio
from collections import deque

cimport cython
from cpython.object cimport PyObject
from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport uint64_t

from cython_core.executors.bolt_executor cimport BoltExecutor, WaitingExecutor, timer_is_due
from cython_core.executors.executor cimport past_deadline, ps_decref
from cython_core.queues.queues cimport PendingEmits, ReceiveQueue
from cython_core.routing.output_collector cimport set_current_collector
from cython_core.timing.timers cimport CANCELLED, COMPLETED, PENDING, Purgatory, TimerService, new_timer
from cython_core.timing.turn_times cimport ASYNC_MAX_PENDING, NOT_STALLED, StallReason
from cython_core.tuples.tuple cimport OPEN, Tuple, is_lost, name_values, take

from cython_core.executors.executor import ComponentFailed, logger

include "adaptive_limit.pxi"
include "async_request.pxi"
include "request_grace.pxi"

cdef double NEVER = float("inf")
cdef double LOOK_SECONDS = 1.0      # between two looks at all requests, at least


@cython.final
cdef class AsyncExecutor(WaitingExecutor):
    """As BoltExecutor. ``loop``: an EventLoop. ``monotonic``: the clock that requests run out of time by.
    ``max_pending``: requests under way at a time, None: found by their answers; ``request_timeout``: seconds, None for
    any time; ``ordered``: what requests emit leaves in the order of their tuples."""

    def __init__(self, str component not None, int task, instance, PendingEmits pending not None, dict routers not None,
                 ReceiveQueue queue not None, tick_frequency=None, tuple readers=(), *, loop, monotonic,
                 max_pending=1000, request_timeout=None, bint ordered=False):
        if not isinstance(instance, AsyncBase):
            raise TypeError(
                f"component {component!r} is run as an async bolt and must be one; Given: {type(instance)!r}"
            )
        if max_pending is not None and max_pending < 1:
            raise ValueError(f"at least one request must be allowed under way; Given: {max_pending!r}")
        self.grace = RequestGrace(component, task)  # order: before timers are shared
        super().__init__(component, task, instance, pending, routers, queue, tick_frequency, readers)
        self.collector.has_tasks = True
        self.loop = loop
        self.monotonic = monotonic
        self.adaptive = AdaptiveLimit() if max_pending is None else None
        self.max_pending = self.adaptive.limit if max_pending is None else max_pending
        self.request_timeout = request_timeout
        self.purgatory = Purgatory(monotonic())
        self.line = RequestLine(self.collector, loop, ordered)
        self.requests = set()
        self.in_order = deque() if ordered else None

    def start(self, dict conf, dict context):
        """Initializes the bolt; where that is a coroutine, until it has ended."""
        self.line.thread = PyThread_get_thread_ident()
        self.loop.hold(self)
        answer = self.instance._start(conf, context)
        if asyncio.iscoroutine(answer):
            self.loop.run(answer)

    def clean_up(self):
        """Cancels what is under way and waits for its end, a second at most; then the bolt's ``cleanup``."""
        cdef AsyncRequest request
        tasks = []
        for request in self.requests:
            request.settle(CANCELLED)
            request.task.cancel()
            tasks.append(request.task)
        self.line.thread = PyThread_get_thread_ident()
        try:
            if tasks:
                left = self.loop.finish(tasks, GRACE_SECONDS)
                self.grace.unlogged += left
            self.grace.warn()
            answer = self.instance.cleanup()
            if asyncio.iscoroutine(answer):
                self.loop.run(answer)
        finally:
            self.requests.clear()
            self.grace.forget()
            self.loop.release(self)

    def share_timers(self, TimerService timers not None):
        BoltExecutor.share_timers(self, timers)
        self.look_timer = new_timer(timers)
        self.grace.share_timers(timers)

    def begin(self, double now):
        BoltExecutor.begin(self, now)
        self.look_timer.stop()
        self.grace.forget()
        self.fresh = True

    def whose(self, error):
        """Of sys.exit or an interrupt that came out of the loop: what to raise, None if no request has raised it."""
        cdef AsyncRequest request
        for request in self.requests:
            task = request.task
            if task is not None and task.done() and not task.cancelled() and task.exception() is error:
                return self.interrupted(request.method, request.tup, request.tup.offset, error)
        return None

    cdef int rest(self, double seconds) except -1:
        """The worker, and the loop with it, has waited for so long for its rows to be taken. That time counts neither
        towards the time-out of a request nor towards the grace of a cancelled one."""
        self.rested += seconds
        self.grace.put_off(seconds)
        return 0

    cdef double requests_due(self) except? -1:
        """A time before which no request runs out of time; infinity where none will."""
        cdef double due = self.purgatory.next_due + self.rested
        return min(due, <double>self.loop.next_timer) if self.in_flight > 0 else due

    cdef bint idle(self) noexcept:
        return self.in_flight == 0 and BoltExecutor.idle(self)

    cdef bint is_late(self) noexcept:
        return len(self.line.strays) > 0 or BoltExecutor.is_late(self)

    cdef bint waits(self) noexcept:
        """1 where requests are under way, and nothing but their end gives it anything to do."""
        return (
            self.in_flight > 0
            and self.pending.count == 0
            and len(self.line.finished) == 0
            and (self.in_flight >= self.max_pending or self.empty())
        )

    cdef StallReason stalled_by(self) noexcept:
        """Tuples wait in its queue because too many requests are under way."""
        if self.in_flight >= self.max_pending and self.pending.count == 0 and not self.empty():
            return ASYNC_MAX_PENDING
        return NOT_STALLED

    cdef long turn(self, long quota) except -1:
        cdef unsigned long long before = self.executed
        cdef StallReason reason
        cdef bint held_back = self.held_back()
        cdef long calls = 0
        if self.collector.failed is not None:
            self.raise_tuple_failed("fail", None)
        if self.line.strays:
            self.fail_strays()
        if self.out.late_emits:
            self.fail_late_emits()
        if held_back and self.in_flight == 0:
            return 0
        if not timer_is_due(self) and self.idle():
            self.flush()
            return 0
        self.times.begin_turn()
        try:
            if self.fresh:
                self.fresh = False
                self.loop.turn()
            if not held_back:
                calls = self.work(quota)
            if self.in_flight > 0:
                calls += self.serve()
                self.flush()
            return calls
        finally:
            self.end_turn(self.executed - before)
            reason = self.stalled_by()
            if reason != NOT_STALLED:
                self.times.stall(reason)

    cdef long consume(self, long quota) except -1:
        """Starts at most ``quota`` requests, as many as there are places for."""
        cdef long calls = 0
        cdef void *item
        cdef Tuple tup
        cdef double now
        cdef uint64_t until
        quota = min(quota, self.max_pending - self.in_flight)
        if quota <= 0 or self.empty():
            return 0
        until = self.begin_taking()
        now = self.monotonic()
        set_current_collector(self.collector)
        while calls < quota:
            item = self.poll_elsewhere()
            if item is NULL:
                break
            if not take(<Tuple>item):
                calls += 1
                self.skip(<PyObject *>item)
                continue
            if name_values(<Tuple>item):
                self.open_rows(<PyObject *>item)
                continue
            tup = <Tuple>item
            ps_decref(<PyObject *>item)
            self.collector.current = tup
            calls += 1
            self.executed += 1
            try:
                self.start_request(tup, self.call(tup), "process", now)
            except Exception as error:
                self.fail_current("process", error)
            except BaseException as error:
                raise self.interrupted_in("process", error)
            if self.pending.count > 0 or past_deadline(self, until, calls):
                break
        self.collector.current = None
        return calls

    cdef int start_request(self, Tuple tup, object coroutine, str method, double now) except -1:
        cdef AsyncRequest request = AsyncRequest.__new__(AsyncRequest)
        request.tup = tup
        request.line = self.line
        request.method = method
        request.leads = self.in_order is None
        if self.request_timeout is not None:
            request.timeout = self.request_timeout
        begin(request, self.loop.create_task, coroutine)
        self.requests.add(request)
        self.in_flight += 1
        request.begun = now - self.rested
        if self.adaptive is not None:
            self.adaptive.began(self.in_flight)
        self.pending_high_mark = max(self.pending_high_mark, self.in_flight)
        if not self.look_timer.running:
            self.timers.pass_time(now)
            self.look_seconds = LOOK_SECONDS
            self.look_timer.start(LOOK_SECONDS)
        if self.in_order is not None:
            self.in_order.append(request)
            request.leads = len(self.in_order) == 1
        # Not watched by a key, as no key completes it: a list would keep requests that have ended, as many as are under
        # way, with their tuples.
        self.purgatory.put(request, now - self.rested)
        return 0

    cdef long serve(self) except -1:
        """Turns the loop once; how many requests have ended."""
        cdef long ended
        self.line.thread = PyThread_get_thread_ident()
        set_current_collector(self.collector)
        self.loop.turn()
        self.settling_at = self.monotonic() - self.rested
        ended = self.settle_finished()
        # Order: behind what has come meanwhile, so that none fails for the time that the thread was busy elsewhere.
        if self.in_flight > 0:
            self.purgatory.advance(self.settling_at)
            self.fail_expired()
        if self.line.resumed:
            self.restart_resumed()
        if self.look_timer.due:
            self.cancel_lost()
        if self.grace.timer.due:
            self.abandon_overdue()
        if self.collector.failed is not None:
            self.raise_tuple_failed("fail", None)
        return ended

    cdef int restart_resumed(self) except -1:
        """Requests have waited for the engine: they begin here."""
        cdef AsyncRequest request
        cdef double now = self.monotonic() - self.rested
        while self.line.resumed:
            request = <AsyncRequest>self.line.resumed.pop()
            if request.outcome == PENDING and not request.paused:
                request.begun = now
                self.purgatory.restart(request, now)
        return 0

    cdef long settle_finished(self) except -1:
        cdef AsyncRequest request
        cdef long ended = 0
        while self.line.finished:
            ended += 1
            request = <AsyncRequest>self.line.finished.popleft()
            self.ended_requests += 1
            self.request_seconds += self.settling_at - request.begun
            self.end_request(request)
        return ended

    cdef int end_request(self, AsyncRequest request) except -1:
        task, request.task = request.task, None
        error = cancellation_of(task) if task.cancelled() else task.exception()
        self.requests.discard(request)
        request.done = True
        if request.outcome == PENDING:
            request.settle(COMPLETED)
        if request.outcome != COMPLETED:  # its tuple was failed when it was given up
            error = None
        elif error is None:
            error = request.unawaited
            if error is None and not request.has_emitted and task.result() is not None:
                error = self.collector.lost_by(request.method, task.result())
        if self.adaptive is not None and (error is not None or request.outcome == COMPLETED):
            try:
                self.adapt(request, error is not None and bool(self.instance.is_overload(error)))
            except BaseException as own:
                error = own
        if error is not None:
            request.outcome = CANCELLED
        if request.outcome != COMPLETED:
            request.held = None
        if self.in_order is None:
            self.in_flight -= 1
            if error is None:
                self.acknowledge(request)
        if error is not None:
            self.request_failed(request, error)
        if self.in_order is not None:
            self.release_ordered()
        return 0

    cdef int adapt(self, AsyncRequest request, bint refused) except -1:
        """The limit, by what has become of a call of ``process``."""
        if request.method == "process":
            self.adaptive.ended(request.begun, self.settling_at, refused)
            self.max_pending = self.adaptive.limit
        return 0

    cdef int acknowledge(self, AsyncRequest request) except -1:
        """Of a request that has come to its end: its tuple is acked (``auto_ack``)."""
        if self.auto_ack and request.outcome == COMPLETED and request.method == "process":
            self.collector.ack(request.tup)
        return 0

    cdef int release_ordered(self) except -1:
        """Ordered: the oldest requests leave, as far as they have ended; the one behind them leads."""
        cdef AsyncRequest request
        while self.in_order:
            request = <AsyncRequest>self.in_order[0]
            if not request.leads:
                self.lead(request)
            if not request.done:
                return 0
            self.in_order.popleft()
            self.in_flight -= 1
            self.acknowledge(request)
        return 0

    cdef int lead(self, AsyncRequest request) except -1:
        try:
            request.lead()
        except Exception as error:
            # One of the emits that were held is refused: as if it had raised in the coroutine.
            if request.task is not None:
                self.cancel(request)
            request.outcome = CANCELLED
            self.request_failed(request, error)
        return 0

    cdef int request_failed(self, AsyncRequest request, object error) except -1:
        """As an exception of ``process``."""
        if not isinstance(error, (Exception, asyncio.CancelledError)):
            raise self.interrupted(request.method, request.tup, request.tup.offset, error)
        self.collector.current = request.tup
        try:
            self.fail_current(request.method, error)
        finally:
            self.collector.current = None
        return 0

    cdef int cancel(self, AsyncRequest request) except -1:
        """Its coroutine is to end; what it held back is dropped."""
        request.task.cancel()
        request.held = None
        return self.grace.add(request, self.monotonic())

    cdef int abandon_overdue(self) except -1:
        """What was cancelled and has not ended in its grace swallows its cancellation: its place is free."""
        cdef AsyncRequest request
        cdef list overdue = self.grace.overdue(self.monotonic())
        for request in overdue:
            self.abandon(request)
        return self.grace.abandoned(len(overdue))

    cdef int abandon(self, AsyncRequest request) except -1:
        task, request.task = request.task, None
        request.abandoned = request.done = True
        self.loop.forget(task)
        self.requests.discard(request)
        if self.in_order is None:
            self.in_flight -= 1
        else:
            self.release_ordered()
        return 0

    cdef int cancel_lost(self) except -1:
        """Nothing that a request does counts any more once a tree of its tuple has failed: the coroutine is cancelled
        and leaves its place when it has ended, or its grace is over. While none begins, each look is twice as far away
        as the last one."""
        cdef AsyncRequest request
        self.look_timer.stop()
        self.look_seconds = 2 * self.look_seconds if self.executed == self.executed_at_look else LOOK_SECONDS
        self.executed_at_look = self.executed
        if self.in_flight > 0:
            self.look_timer.start(self.look_seconds)
        for request in self.requests:
            if is_lost(request.tup) and not request.task.done() and request.settle(CANCELLED):
                self.cancel(request)
                self.cancelled += 1
        return 0

    cdef int fail_strays(self) except -1:
        """What a request emits behind its end is lost, so it is an exception of the component."""
        cdef AsyncRequest request
        while self.line.strays:
            request, method, error = self.line.strays.pop(0)
            if self.exits:
                raise ComponentFailed(self.component, self.task, method, request.tup, request.tup.offset) from error
            self.survive(method, request.tup, request.tup.offset, error)
        return 0

    cdef int fail_expired(self) except -1:
        cdef list expired = self.line.expired
        while expired:
            self.fail_late(<AsyncRequest>expired.pop())
        return 0

    cdef int fail_late(self, AsyncRequest request) except -1:
        """Its time is over: the tuple fails, the coroutine is cancelled and leaves its place when it has ended, or its
        grace is over."""
        if request.task is None or request.task.done():
            request.outcome = COMPLETED  # just in time: it has ended, and its callback waits for the loop
            return 0
        self.cancel(request)
        if self.adaptive is not None:
            self.settling_at = self.monotonic() - self.rested
            self.adapt(request, True)
        self.timed_out += 1
        self.errors += 1
        error = TimeoutError(
            f"the request took longer than topology.async.request.timeout.secs={self.request_timeout:g}"
        )
        failure = ComponentFailed(self.component, self.task, request.method, request.tup, request.tup.offset)
        failure.__cause__ = error
        self.reported.append(failure)
        if self.timed_out == 1:
            logger.warning(
                "component %r, task %d: %s; its tuple is failed, further ones are counted",
                self.component, self.task, error,
            )
        if request.tup.verdict == OPEN:
            self.collector.fail(request.tup, request.method, error)
        if self.collector.failed is not None:
            self.raise_tuple_failed(request.method, error)
        return 0

    cdef int give_tick(self, bint final) except -1:
        """As of any bolt; if ``process_tick`` is async, a request."""
        set_current_collector(self.collector)
        tup = self.collector.current = self.new_tick(final)
        try:
            answer = self.instance.process_tick(tup)
            if asyncio.iscoroutine(answer):
                self.start_request(tup, answer, "process_tick", self.monotonic())
        except Exception as error:
            self.fail_current("process_tick", error)
        except BaseException as error:
            raise self.interrupted_in("process_tick", error)
        self.collector.current = None
        if self.collector.failed is not None:
            self.raise_tuple_failed("fail", None)
        return 0


cdef object cancellation_of(object task):
    """The CancelledError that has ended it, with the frames of its coroutine."""
    try:
        task.result()
    except asyncio.CancelledError as error:
        return error if error.args else asyncio.CancelledError("process() was cancelled").with_traceback(
            error.__traceback__
        )
