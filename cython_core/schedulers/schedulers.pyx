"""Executors take turns: in one thread for all, or in one for each. What they wait by, and for."""

cdef double NEVER = float("inf")

include "wait_strategy.pxi"
include "waiting_spouts.pxi"
include "inline_scheduler.pxi"
include "executor_thread.pxi"
include "threads_scheduler.pxi"
