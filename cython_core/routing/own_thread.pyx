"""Emits outside of the engine's calls: by a thread or an asyncio task that a component has started.

The engine takes such an emit if it knows which run (micro-batch of one task) the row belongs to:

    anchored to a tuple by name that has no verdict and is in a tree     to the run that waits for that tree
    in the context of a call of the engine (asyncio's tasks,             to the run of that call, and to no other one
    asyncio.to_thread, contextvars.copy_context().run), or as
    work for a ThreadPoolExecutor that is an attribute
    by a thread started since the run began                              to this run
    in the first run of the worker                                       to this run: there is none before
    of a spout without offsets                                           to the run that it comes in

It refuses all others: an older thread or task may have worked for an earlier run, whose rows must not enter this one.
The error names the component, is raised in the thread, and fails the run because a row is lost.

A thread that finds no room waits (STORM-2306 §3.6): while emits of its executor are pending, it sleeps by the
back-pressure strategy, unless the component is in a call, which may wait for the thread.

Threading law: any thread, with the interpreter's lock.
"""

import gc
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial

from cpython.exc cimport PyErr_CheckSignals
from cpython.contextvars cimport PyContextVar_Reset, PyContextVar_Set, get_value
from libc.stdint cimport int64_t, uint64_t

from cython_core.acking.acker cimport anchor_t
from cython_core.queues.queues cimport BatchInserter, PendingEmits, ps_broadcast_capacity, queue_capacity
from cython_core.routing.output_collector cimport (
    OutputCollector, SpoutOutputCollector, collector_or_none, name_of, ps_this_thread, spout_is_at_most, spout_is_spent,
)

import logging
import threading
import time

from cython_core.arrow.row_error import coded, shown


cdef extern from "Python.h":
    ctypedef struct PyThreadState:
        pass
    ctypedef struct PyInterpreterState:
        pass
    PyThreadState *PyThreadState_Get()
    PyInterpreterState *PyInterpreterState_Get()
    PyThreadState *PyThreadState_New(PyInterpreterState *interpreter)
    void PyThreadState_Clear(PyThreadState *state)
    void PyThreadState_Delete(PyThreadState *state)
    uint64_t PyThreadState_GetID(PyThreadState *state)

cdef extern from "cython_core/primitives/wait.h" nogil:
    void ps_sleep_nanos(int64_t nanos)


logger = logging.getLogger("pystorm.worker")

cdef object RUN = ContextVar("pystorm_run")
cdef str ATTRIBUTE = "_pystorm_collector"
cdef unsigned long long runs = 0
cdef set engine_threads = set()    # of executors: they take turns, so they never wait here
# Longer: room is seen late. Shorter: the thread takes the lock from those that make the room.
cdef int64_t LONGEST_WAIT_NANOS = 1_000_000
# How long a thread waits for its component's call to end. Shorter: more is pending while a call merely lasts.
# Longer: a call that waits for its own threads is held up for so long, once.
cdef uint64_t CALL_NANOS = 50_000_000
cdef uint64_t MOST_OF_A_CALL = 1 << 40     # any number
# More: of a call that merely listens, as many trees too many are open. Fewer: one that waits for threads is held up.
cdef uint64_t FEW_OF_A_CALL = 16
# Fewer: less is reported of threads that go on. More: their errors fill the memory until the next micro-batch.
cdef Py_ssize_t MOST_LATE_EMITS = 10


cdef object enter_run(unsigned long long run):
    return PyContextVar_Set(RUN, run)


cdef int leave_run(object token) except -1:
    PyContextVar_Reset(RUN, token)
    return 0


cdef int say_run(unsigned long long run) except -1:
    """In an executor's own thread, whose context is the engine's."""
    PyContextVar_Set(RUN, run)
    return 0


cdef int add_engine_thread() except -1:
    engine_threads.add(<object>ps_this_thread())
    return 0


cdef int forget_engine_thread() except -1:
    engine_threads.discard(<object>ps_this_thread())
    return 0


def begin_run(executors, bint by_this_thread):
    """A micro-batch begins; returns the number of its run. ``by_this_thread``: it takes all turns."""
    global runs
    cdef OutputCollector collector
    cdef uint64_t newest = newest_thread()
    runs += 1
    for executor in executors:
        collector = <OutputCollector?>executor.out
        collector.run = runs
        collector.runs += 1
        collector.newest_thread = newest
        collector.between_runs = False
        if by_this_thread:
            collector.thread = ps_this_thread()
        pass_run_on(collector.instance)
    return runs


cdef int pass_run_on(object component) except -1:
    """A pool of threads that a component keeps outlives a run, and its threads know of none: what is given to it from
    now on belongs to the run of the call that gives it."""
    # Order: no look at __dict__. CPython 3.11 would read each attribute of the component more slowly from then on.
    for held in gc.get_referents(component):
        for value in list(held.values()) if type(held) is dict and ATTRIBUTE in held else (held,):
            # No subclass: one of the standard library's gives its work to another interpreter.
            if type(value) is ThreadPoolExecutor and "submit" not in vars(value):
                value.submit = partial(submit_with_run, value.submit)
    return 0


def submit_with_run(submit, function, /, *args, **named):
    """As ``ThreadPoolExecutor.submit``. Not in the whole context: to a thread of its own an AsyncBolt's request is none
    that goes on."""
    said = get_value(RUN)
    return submit(function, *args, **named) if said is None else submit(in_run, said, function, *args, **named)


def in_run(said, function, /, *args, **named):
    """In a thread of the pool."""
    token = PyContextVar_Set(RUN, said)
    try:
        return function(*args, **named)
    finally:
        PyContextVar_Reset(RUN, token)


cdef uint64_t newest_thread() except? 0:
    """An id above those of all threads that were started before, and below those that will be."""
    cdef PyThreadState *state = PyThreadState_New(PyInterpreterState_Get())
    cdef uint64_t newest
    if state is NULL:
        raise MemoryError("no memory for the number of a run")
    newest = PyThreadState_GetID(state)
    PyThreadState_Clear(state)
    PyThreadState_Delete(state)
    return newest


cdef bint is_of_run(OutputCollector collector) except -1:
    """Whether what this thread or task does is known to belong to the run that goes on."""
    said = get_value(RUN)
    if said is not None and <unsigned long long>said == collector.run:
        return True
    if collector.runs <= 1:
        return said is None or <unsigned long long>said == 0
    if said is not None:
        return False
    return collector.thread == ps_this_thread() or PyThreadState_GetID(PyThreadState_Get()) > collector.newest_thread


cdef int admit(OutputCollector collector, const anchor_t *anchor, bint named, object values) except -1:
    """Refuses an emit whose run is not known. ``anchor``: NULL for a spout; ``named``: it came by ``anchors``."""
    if anchor is NULL:
        if not (<SpoutOutputCollector>collector).bounded:
            return 0
    elif anchor.root is not NULL or anchor.roots is not NULL:
        if named:
            return 0
    elif collector.between_runs:
        return refuse(collector, values)
    if collector.between_runs or not is_of_run(collector):
        return refuse(collector, values)
    return 0


cdef int refuse(OutputCollector collector, object values) except -1:
    """Order: recorded first, because the exception in the thread may never be seen."""
    when = "between two micro-batches" if collector.between_runs else "which may work for a micro-batch before this one"
    if isinstance(collector, SpoutOutputCollector):
        how = (
            "start it in open() and join it in close(), or hand its rows to next_tuple() in a queue"
        )
    else:
        how = (
            "emit before process_tick() has returned for the tick that ends one, or anchor to a tuple that is in a "
            "tree and has no verdict yet (anchors=[tup])"
        )
    error = coded(
        RuntimeError,
        "PYSTORM_EMIT_OUTSIDE_OF_RUN",
        f"{name_of(collector.instance)}.emit by a thread of its own, {when}: {how}. What such a thread or task does "
        f"for one call it may do in the context of that call, contextvars.copy_context().run(...); "
        f"Given: {shown(values)}"
    )
    note_late(collector, error)
    raise error


cdef int note_late(OutputCollector collector, object error) except -1:
    if collector.late_emits is None:
        collector.late_emits = []
    if len(collector.late_emits) < MOST_LATE_EMITS:
        collector.late_emits.append(error)
    return 0


def blame(component, error):
    """What a call of the component has done wrong without an exception: its executor raises the error in its next turn,
    as of the method ``error.method``. False if that is no component of a running topology."""
    collector = collector_or_none(component)
    if collector is not None:
        note_late(collector, error)
    return collector is not None


def counts_for_run(component):
    """Whether a metric reported now, in any thread, belongs to the current run. If not, the log says so once."""
    cdef OutputCollector collector = collector_or_none(component)
    if collector is None or (collector.thread == ps_this_thread() and collector.in_call):
        return True
    if isinstance(collector, SpoutOutputCollector) and not (<SpoutOutputCollector>collector).bounded:
        return True
    if not collector.between_runs and is_of_run(collector):
        return True
    if not collector.late_counts:
        logger.warning(
            "%s: a metric that a thread or task of its own reports is not counted: it may belong to a micro-batch that "
            "is over. Further ones are left out silently", name_of(component),
        )
    collector.late_counts = True
    return False


cdef bint has_room(OutputCollector collector) except -1:
    cdef PendingEmits pending = collector.pending
    cdef uint64_t more = collector.let_in if collector.in_call and collector.let_call == collector.calls else 0
    cdef SpoutOutputCollector spout
    if pending is None or collector.new_strategy is None:  # in no worker, nothing waits
        return True
    if isinstance(collector, SpoutOutputCollector):
        spout = <SpoutOutputCollector>collector
        if not spout.bounded and (spout.closed or spout_is_spent(spout) or spout_is_at_most(spout)):
            collector.let_in -= more > 0
            return more > 0
        if collector.between_runs and spout.bounded:
            return True  # it is refused
    elif collector.between_runs:
        return True
    if pending.count == 0:
        return True
    if collector.in_call:
        return pending.count < capacity_ahead(pending) + more
    # Order: this thread may drain, because no turn is under way; with the lock held throughout, none begins.
    return pending.drain()


cdef uint64_t capacity_ahead(PendingEmits pending) noexcept:
    """Capacity of the queue that the oldest pending emit waits for; there is one."""
    cdef BatchInserter inserter = <BatchInserter>pending.entries[2 * pending.first]
    return queue_capacity(inserter.queue) if inserter.queue is not None else ps_broadcast_capacity(inserter.ring.ring)


cdef bint await_room(OutputCollector collector) except -1:
    """Blocking, in a component's own thread: until its executor has no emits pending. False: it was detached."""
    cdef object strategy = None
    cdef int64_t nanos, counter = 0
    cdef uint64_t since = 0
    cdef unsigned long long call = 0
    if <object>ps_this_thread() in engine_threads:
        return True
    while not has_room(collector):
        if collector.in_call:
            if since == 0 or call != collector.calls:
                since, call = <uint64_t>time.monotonic_ns(), collector.calls
            elif <uint64_t>time.monotonic_ns() - since >= CALL_NANOS:
                let_in(collector)
                continue
        if strategy is None:
            strategy = strategy_of(collector)
            collector.thread_waits += 1
        nanos = strategy.nanos_at(counter)
        if nanos < 0:
            counter = strategy.idle(counter)
        else:
            nanos = min(nanos, LONGEST_WAIT_NANOS)
            with nogil:
                ps_sleep_nanos(nanos)
            counter += 1
        PyErr_CheckSignals()
        if collector.detached:
            return False
    return True


cdef int let_in(OutputCollector collector) except -1:
    """The call seems to wait for its threads. A bolt's tuples bound what its threads emit for a call. A spout's call
    may also last because it listens: as many emits as the queue holds are let in at a time. If no emit is pending,
    because its slice is over or too many trees are open, a few are."""
    if collector.let_call != collector.calls:
        collector.let_call, collector.let_in = collector.calls, 0
    if collector.is_bolt:
        collector.let_in = MOST_OF_A_CALL
    else:
        collector.let_in += FEW_OF_A_CALL if collector.pending.count == 0 else capacity_ahead(collector.pending)
    return 0


cdef object strategy_of(OutputCollector collector):
    """A WaitStrategy for each thread: only one thread calls an object of the user's class."""
    if collector.strategies is None:
        collector.strategies = threading.local()
    found = getattr(collector.strategies, "strategy", None)
    if found is None:
        found = collector.strategies.strategy = collector.new_strategy()
    return found
