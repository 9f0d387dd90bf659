/* How long the turns of executors take.
 *
 * CLOCK_MONOTONIC through the vDSO: no system call, one read of the processor's time stamp counter; 23 ns a reading on
 * the virtual machine of the benchmarks, of which the counter itself is 9 ns and its ordering as much again. So there
 * is one reading a turn: if the end of one turn is the begin of the next, the stopwatch runs on.
 *
 * Threading law: one thread.
 */
#ifndef PYSTORM_STOPWATCH_H
#define PYSTORM_STOPWATCH_H

#include <stdint.h>
#include <time.h>

typedef struct {
    uint64_t since; /* the last reading; 0: stopped */
} ps_stopwatch;

/* Nanoseconds since some start, never backwards, never 0. */
static inline uint64_t ps_stopwatch_nanos(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec + 1;
}

/* Starts it where it is stopped: what comes now begins where the last interval ended. */
static inline void ps_stopwatch_run_on(ps_stopwatch *watch) {
    if (watch->since == 0) watch->since = ps_stopwatch_nanos();
}

/* The time between the last interval and the next start is not counted. */
static inline void ps_stopwatch_stop(ps_stopwatch *watch) { watch->since = 0; }

/* Nanoseconds since the last reading, which this one replaces. The watch must run. */
static inline uint64_t ps_stopwatch_lap(ps_stopwatch *watch) {
    uint64_t now = ps_stopwatch_nanos();
    uint64_t passed = now - watch->since;
    watch->since = now;
    return passed;
}

#endif
