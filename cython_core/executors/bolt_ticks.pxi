"""A bolt's ticks, and the batches that it holds until a tick, a time or the end of the micro-batch.

    timer ─► fire_timers ──┬─► give_tick ────► process_tick
    a spout waits ─► held ─┤
    the end ─► final_tick ─┴─► fire_batches ─► process_batches of a batching bolt

Threading law: as every executor.
"""

from cython_core.routing.output_collector cimport refuse_rows, set_current_collector
from cython_core.timing.timers cimport TimerService, new_timer, to_seconds
from cython_core.tuples.tuple cimport Tuple, TupleSource, name_values, new_tuple


cdef class BoltTicks(BoltInput):
    """An executor with timers."""

    def __cinit__(self, *_arguments, **_named):
        self.tick_source = TupleSource("__system", "__tick", -1, ("rate_secs",))
        self.executed_at_kept_batches = <unsigned long long>-1

    def share_timers(self, TimerService timers not None):
        """Takes the timers of a thread that takes the turns of other executors, too."""
        self.timers = timers
        self.tick_timer = new_timer(timers)
        self.fire_timer = new_timer(timers)

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
