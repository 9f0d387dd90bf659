"""Times that something waits for: the wheel, timers by it, and operations that time out."""

include "timing_wheel.pxi"
include "timer_service.pxi"
include "purgatory.pxi"
