/* How a thread waits for another one: a turn at a time, the loop and its condition are the caller's.
 *
 *     ps_wait wait = ps_wait_of(PS_WAIT_YIELD, 0);
 *     while ((item = ps_spsc_poll(ring)) == NULL) ps_wait_turn(&wait);
 *     ps_wait_over(&wait);
 *
 *     turn      1 .. 100      101 .. 200      201 ..
 *     SPIN      pause         pause           pause            a core of its own, least latency
 *     YIELD     pause         yield           yield            as many threads as cores, or more
 *     PARK      pause         yield           sleep of nanos   idle for long; wakes up to the timer's slack late
 *
 * No thread is woken: a publisher that had to look for sleepers would pay a full fence for each item.
 *
 * Threading law: a ps_wait belongs to one thread.
 */
#ifndef PYSTORM_WAIT_TURNS_H
#define PYSTORM_WAIT_TURNS_H

#include "cython_core/primitives/atomics.h"
#include "cython_core/primitives/wait.h"

enum ps_wait_kind { PS_WAIT_SPIN, PS_WAIT_YIELD, PS_WAIT_PARK };

/* Turns of each stage. Too large: a thread keeps its core busy for longer before it yields or sleeps. Too small: a
 * short wait costs a system call. */
#define PS_WAIT_SPINS 100

typedef struct {
    int kind;
    unsigned turns;
    int64_t nanos;
} ps_wait;

/* `nanos`: how long a parked turn sleeps, at least. */
static inline ps_wait ps_wait_of(enum ps_wait_kind kind, int64_t nanos) {
    ps_wait wait = {kind, 0, nanos};
    return wait;
}

static inline void ps_wait_turn(ps_wait *wait) {
    if (wait->kind == PS_WAIT_SPIN || wait->turns < PS_WAIT_SPINS) {
        wait->turns++;
        ps_pause();
    } else if (wait->kind == PS_WAIT_YIELD || wait->turns < 2 * PS_WAIT_SPINS) {
        wait->turns++;
        ps_sleep_nanos(0);
    } else {
        ps_sleep_nanos(wait->nanos);
    }
}

/* What was waited for has come: the next wait begins with its first turn. */
static inline void ps_wait_over(ps_wait *wait) { wait->turns = 0; }

#endif
