"""What comes due, and where time goes: timing wheel, timers, delayed operations, clocks, times of turns."""
