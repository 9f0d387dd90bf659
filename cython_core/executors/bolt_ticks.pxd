from cython_core.executors.bolt_input cimport BoltInput
from cython_core.timing.timer_service cimport TimerService, TurnTimer
from cython_core.tuples.tuple cimport Tuple, TupleSource


cdef class BoltTicks(BoltInput):
    cdef readonly bint has_tick           # the component defines process_tick
    cdef readonly object tick_frequency   # seconds, as configured; None: no ticks but the final one
    cdef TupleSource tick_source
    cdef readonly unsigned long long ticks
    cdef TimerService timers              # of the thread that takes the turns
    cdef TurnTimer tick_timer
    cdef TurnTimer fire_timer             # a batching bolt's
    cdef unsigned long long executed_at_final_tick
    cdef unsigned long long emits_at_final_tick
    cdef unsigned long long emits_at_held_tick
    cdef unsigned long long executed_at_kept_batches   # when it was to process them and did not; -1: never
    cdef bint final_ticked
    cdef int fire_timers(self) except -1
    cdef int give_tick(self, bint final) except -1
    cdef Tuple new_tick(self, bint final)
    cdef int fire_batches(self, bint by_time=*) except -1
    cdef bint gives_batches(self) except -1


cdef inline bint timer_is_due(BoltTicks bolt) noexcept:
    return bolt.tick_timer.due or bolt.fire_timer.due
