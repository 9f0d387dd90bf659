/* A thread lets others run. Threading law: any thread, without the interpreter's lock. */
#ifndef PYSTORM_WAIT_H
#define PYSTORM_WAIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __APPLE__ /* which has no <threads.h>: the calls of POSIX that do the same */
#include <sched.h>
#define thrd_yield sched_yield
#define thrd_sleep nanosleep
#else
#include <threads.h>
#endif
#include <time.h>

/* Lets other threads run for so long, at least; 0: only where one is ready. A signal may end it early. */
static inline void ps_sleep_nanos(int64_t nanos) {
    if (nanos <= 0) {
        thrd_yield();
    } else {
        struct timespec span = {(time_t)(nanos / 1000000000), (long)(nanos % 1000000000)};
        thrd_sleep(&span, NULL);
    }
}

#endif
