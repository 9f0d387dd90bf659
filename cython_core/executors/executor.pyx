"""What executors of spouts and bolts share: pending emits, batches, and exceptions that let the run go on.

A turn first drains the pending emits; while any are left the component is not called (STORM-2306 §3.6), so a slow
bolt holds its producers, and they theirs, up to the spout. Then it makes at most ``quota`` calls and publishes what it
batched. Looping and waiting are the scheduler's business.

One emit becomes a tuple for each subscriber. A turn makes no more tuples than the pool holds, as far as each call emits
once: others are allocated anew, wake Python's garbage collector, and leave the processor's cache before they are read.

An exception of a component fails the run, unless its ``exit_on_exception`` is false: then it is reported, the tuple is
failed (``auto_fail``) and the turn goes on. ``sys.exit`` in a component always fails the run, as do GeneratorExit and
CancelledError: the process is not the component's to end. What interrupts from outside (KeyboardInterrupt) goes
through, with a note that names the component.

Threading law: an executor's turns are taken by one thread at a time.
"""

from cython_core.queues.queues cimport BatchInserter, FlushFlag, PendingEmits
from cython_core.routing.output_collector cimport OutputCollector, ps_this_thread
from cython_core.routing.route cimport GROUPING_ALL, Route
from cython_core.routing.stream_router cimport StreamRouter
from cython_core.timing.turn_times cimport DOWNSTREAM_FULL, StallReason, TurnTimes, ps_stopwatch_stop
from cython_core.tuples.tuple cimport POOL_SIZE, Tuple

import logging
from asyncio import CancelledError
from collections import deque

from cython_core.arrow.row_error import shown

# What fails the task as the component's own. All else (KeyboardInterrupt, what a test library raises) may come from
# outside of the call, and goes through.
COMPONENTS_OWN = (Exception, SystemExit, GeneratorExit, CancelledError)


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


def named_failure(component, task, method, tup, offset, error):
    """What to raise for an error that a component's method has raised: a ComponentFailed, or the error itself with a
    note. The one place that decides."""
    if isinstance(error, ComponentFailed):  # of a component in another process, which names it
        return error
    if isinstance(error, COMPONENTS_OWN):
        failure = ComponentFailed(component, task, method, tup, offset)
        failure.__cause__ = error
        return failure
    note = f"Raised in {method}() of component {component!r}, task {task}"
    if tup is not None:
        note += f", tuple {shown(tuple(tup.values), NOTE_LENGTH)} of {tup.component}.{tup.stream}"
    if offset >= 0:
        note += f", {'offset' if tup is not None else 'last offset'} {offset}"
    error.add_note(note + ".")
    return error


class Reported(deque):
    """The newest exceptions of a task; ``added`` counts all of them. ``retries``: what is reported now fails a tuple
    that comes again, as ``topology.retry.on`` says."""

    added = 0
    retries = False
    listener = None     # called with each entry and ``retries``, None for one that is taken back: of a child process

    def append(self, entry):
        self.added += 1
        super().append(entry)
        if self.listener is not None:
            self.listener(entry, self.retries)

    def take_back(self):
        """The last entry was no report."""
        self.pop()
        self.added -= 1
        if self.listener is not None:
            self.listener(None, False)


logger = logging.getLogger("pystorm.worker")

cdef int MOST_REPORTED = 100
cdef Py_ssize_t NOTE_LENGTH = 200   # characters of a tuple's values that a note shows


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
        self.inserters = tuple([
            inserter
            for router in routers.values()
            for route in (<StreamRouter>router).routes
            for inserter in (<Route>route).inserters
        ])
        self.most_calls = max(1, POOL_SIZE // max([tuples_of_emit(router) for router in routers.values()], default=1))
        self.writes_output = any([(<StreamRouter>router).row_sink is not None for router in routers.values()])
        self.exits = True
        self.reported = Reported(maxlen=MOST_REPORTED)
        self.times = TurnTimes()

    def flush_by(self, FlushFlag flag not None):
        """What is batched is published in the middle of a turn, too, where the flush timer asks for it."""
        self.flush_flag_object = flag
        self.flush_flag = flag.flag

    cdef long turn(self, long quota) except -1:
        raise NotImplementedError

    cdef bint held_back(self) noexcept:
        """1 where emits are pending still and the component may not be called: the executor stalls."""
        if self.pending.count == 0 or self.pending.drain():
            return 0
        # Order: what the drain has moved on may lie in a batch that is not full. A consumer that does not get it holds
        # the room that another producer waits for, and that one perhaps the room that is waited for here.
        if self.flush() or self.pending.count == 0:
            return 0
        self.stalls += 1
        self.times.stall(DOWNSTREAM_FULL)
        return 1

    cdef void end_turn(self, unsigned long long calls) noexcept:
        """After a turn that began by ``times.begin_turn`` and made so many calls."""
        self.out.in_call = False
        self.times.end_turn(calls)
        if self.pending.count > 0:
            self.times.stall(DOWNSTREAM_FULL)

    cdef void stall_begin(self, StallReason reason) noexcept:
        """Its thread waits from here on. Where the executor stalls already for that reason, this goes on."""
        self.times.stall(reason)
        ps_stopwatch_stop(&self.times.stopwatch.watch)

    cdef void stall_end(self) noexcept:
        """It stalls no more; a turn that does anything ends a stall by itself."""
        self.times.leave()

    cdef bint flush(self) noexcept:
        """Non-blocking. Publishes every batch as far as there is room; 1 where nothing is left, pending or batched."""
        cdef bint clean = self.pending.drain()
        for inserter in self.inserters:
            if (<BatchInserter>inserter).count > 0 and not (<BatchInserter>inserter).flush():
                clean = 0
        return clean

    cdef bint idle(self) noexcept:
        """1 where a turn could do nothing and nothing is held back."""
        return self.pending.count == 0 and not self.is_late()

    cdef bint is_late(self) noexcept:
        """Whether an emit was refused that came from no call of this run: the next turn says so."""
        return self.out.late_emits is not None and len(self.out.late_emits) > 0

    cdef int fail_late_emits(self) except -1:
        """The row of such an emit is lost, so it is an exception of the component. Others name their method."""
        while self.out.late_emits:
            error = self.out.late_emits.pop(0)
            method = getattr(error, "method", "emit")
            if self.exits:
                raise ComponentFailed(self.component, self.task, method, None, -1) from error
            self.survive(method, None, -1, error)
        return 0

    cdef int enter_call(self) noexcept:
        """A call of the component between two turns, by this thread."""
        self.out.thread = ps_this_thread()
        self.out.in_call = True
        self.out.calls += 1
        return 0

    cdef int leave_call(self) noexcept:
        self.out.in_call = False
        return 0

    cdef bint waits(self) noexcept:
        """1 where it is not idle, but only the outside world gives it anything to do."""
        return 0

    def start(self, dict conf, dict context):
        """Initializes the component. Called by the thread of its turns, as ``clean_up``."""
        self.instance._start(conf, context)

    def clean_up(self):
        """The component is given up."""
        self.instance.cleanup()

    def take_turn(self, long quota=256):
        """One turn by hand; returns how many calls it made."""
        return self.turn(quota)

    def ready(self):
        """Called before the turns of a run: what ``initialize`` has put in the place of a method or flag counts."""
        self.exits = bool(getattr(self.instance, "exit_on_exception", True))
        collector = getattr(self.instance, "_pystorm_collector", None)
        if isinstance(collector, OutputCollector):
            (<OutputCollector>collector).note_emit()

    def last_report(self):
        """The newest entry of ``reported``, or None."""
        for entry in reversed(self.reported):
            return entry
        return None

    def refuse_returns(self):
        """A call that returns rows instead of emitting them raises from here on, as in a test."""
        (<OutputCollector?>self.instance._pystorm_collector).refuses_returns = True

    @property
    def returned(self):
        """What a call has returned as if that were an emit, in words; None if nothing was."""
        collector = getattr(self.instance, "_pystorm_collector", None)
        return (<OutputCollector>collector).returned if isinstance(collector, OutputCollector) else None

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
            self.reported.retries = False
            if self.last_report() is not last:
                self.reported.take_back()  # the component's own entry says less
        self.errors += 1
        self.reported.append(failure)
        return failure

    cdef object interrupted(self, str method, Tuple tup, long long offset, object error):
        """What to raise for an error of the component that is no Exception."""
        return named_failure(self.component, self.task, method, tup, offset, error)

    def discard(self):
        """Drops whatever is pending, batched or queued, and takes no more; for a worker that is given up."""
        for error in self.out.late_emits or ():
            logger.warning("%s", error)
        self.out.detach()
        self.times.leave()
        self.pending.clear()
        for inserter in self.inserters:
            (<BatchInserter>inserter).clear()
            if (<BatchInserter>inserter).queue is not None:
                (<BatchInserter>inserter).queue.clear()


cdef Py_ssize_t tuples_of_emit(StreamRouter router) except -1:
    """How many tuples one emit makes; 1 if it makes none. One for all readers of a ring; one for a custom grouping,
    which may choose more."""
    cdef Route route
    cdef Py_ssize_t tuples = 0
    for route in router.routes:
        tuples += route.fan if route.kind == GROUPING_ALL else 1
    return max(tuples, 1)


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
