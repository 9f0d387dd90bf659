"""Spouts that wait for verdicts: whether time gives one, which bolt holds what they wait for, a warning if none does.

Threading law: asked by the thread that runs the scheduler, while no executor takes a turn.
"""

cimport cython

from cython_core.acking.acker cimport Acker, ps_acker_keeps_time
from cython_core.executors.bolt_executor cimport BoltExecutor
from cython_core.executors.spout_executor cimport SpoutExecutor

from cython_core.executors.executor import logger


# Too short: a bolt that acks in a thread of its own is warned of although it works. Too long: a query stands still
# without a warning.
cdef double STALL_SECONDS = 10


cdef bint trees_to_await(Acker acker, tuple executors) except -1:
    """Whether trees of a spout's range have no verdict, and time may give them one."""
    if acker is None or not ps_acker_keeps_time(&acker.acker):
        return False
    for executor in executors:
        if isinstance(executor, SpoutExecutor) and (<SpoutExecutor>executor).awaits():
            return True
    return False


cdef bint spouts_at_most(tuple executors) except -1:
    """Whether a spout is not asked because as many of its trees are open as may be."""
    for executor in executors:
        if isinstance(executor, SpoutExecutor) and not (<SpoutExecutor>executor).exhausted:
            if (<SpoutExecutor>executor).at_most():
                return True
    return False


cdef unsigned long long emits_of_spouts(tuple executors) except? 0:
    """How many tuples all spouts have emitted so far."""
    cdef unsigned long long emits = 0
    for executor in executors:
        if isinstance(executor, SpoutExecutor):
            emits += (<SpoutExecutor>executor).collector.emits
    return emits


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


@cython.final
cdef class SpoutStall:
    """Tells of a spout that is not asked any more because bolts keep its tuples without a verdict, which without
    time-outs may last for ever."""

    def __cinit__(self):
        self.since = -1

    cdef int end(self) noexcept:
        """Something has moved."""
        self.since = -1
        return 0

    cdef int look(self, tuple executors, object monotonic) except -1:
        """Nothing moves; ``monotonic``: the scheduler's clock."""
        cdef double now
        if self.reported or not spouts_at_most(executors):
            return 0
        now = monotonic()
        if self.since < 0:
            self.since = now
        if now - self.since < STALL_SECONDS:
            return 0
        self.reported = True
        for executor in executors:
            if isinstance(executor, SpoutExecutor) and (<SpoutExecutor>executor).at_most():
                logger.warning(
                    "component %r, task %d: the spout has waited for %g s, as %d of its tuples are neither acked nor "
                    "failed and nothing else is left to process. A bolt with auto_ack = False keeps them: ack them in "
                    "process or process_tick, or allow for more by topology.max.spout.pending",
                    executor.component, executor.task, now - self.since, executor.unsettled,
                )
        return 0
