/* A doorbell: a thread of one process sleeps until another process has something for it, and rings.
 *
 *     sleeper                                    ringer
 *     ps_doorbell_prepare(bell, 0)   SLEEPS       publish a frame, or give back room
 *     look once more: still nothing?             ps_doorbell_ring(bell, fd)
 *       yes: poll() the bell's eventfd, and        SLEEPS ─► AWAKE: this change made, it writes to the eventfd
 *            whatever else it waits for            AWAKE: nothing more, an exchange in all
 *     ps_doorbell_answer(bell)    AWAKE, then read the eventfd empty and look
 *
 * Guarantee: what is published before ps_doorbell_ring is seen by the second look, or ends the sleep. To store what is
 * published and then only load the state would not do: a processor keeps stores in a buffer, and may load first. So the
 * ringer finds AWAKE, the sleeper finds nothing, and never wakes. That order of a store and a later load takes a full
 * fence on both sides, or, as here, an exchange of one word on both: exchanges of a word have an order, and the later one
 * sees what was stored before the earlier one.
 *
 * An end that has read frames gives back room. The other end waits for that only if its ring was full. It says so by a
 * second word, by the same two exchanges, before it sleeps, and is rung for room only then: a wake for nothing costs both
 * processes a system call and the sleeper a turn.
 *
 * A ring while it is awake costs an exchange: so ring once a turn, not once a frame. The word lies in memory that both
 * processes have mapped. A ringer that is killed between its publishing and its ring wakes no one: the sleeper polls
 * that process's pidfd, too.
 *
 * Threading law: one thread sleeps, any thread of any process rings.
 */
#ifndef PYSTORM_DOORBELL_H
#define PYSTORM_DOORBELL_H

#include "cython_core/primitives/atomics.h"

#include <errno.h>
#include <unistd.h>

enum { PS_BELL_AWAKE, PS_BELL_SLEEPS };

typedef struct {
    PS_APART ps_word state;
    ps_word room; /* PS_BELL_SLEEPS where it sleeps for want of room */
} ps_doorbell;

/* From here on a ring ends the sleep, even one that comes before it has begun; `for_room`: also one for room. */
static inline void ps_doorbell_prepare(ps_doorbell *bell, int for_room) {
    if (for_room) ps_exchange(&bell->room, PS_BELL_SLEEPS);
    ps_exchange(&bell->state, PS_BELL_SLEEPS);
}

/* Awake, whether it was rung or not. The eventfd may still hold a ring: the next sleep then ends at once, for nothing. */
static inline void ps_doorbell_answer(ps_doorbell *bell) { ps_exchange(&bell->state, PS_BELL_AWAKE); }

/* `fd`: the bell's eventfd, non-blocking. 1 where it has woken the sleeper. */
static inline int ps_doorbell_ring(ps_doorbell *bell, int fd) {
    uint64_t one = 1;
    if (ps_exchange(&bell->state, PS_BELL_AWAKE) == PS_BELL_AWAKE) return 0;
    while (write(fd, &one, sizeof one) < 0 && errno == EINTR) { /* EAGAIN: it is full of rings that no one has read */
    }
    return 1;
}

/* The same behind frames that were read: only where the sleeper waits for room. */
static inline int ps_doorbell_ring_for_room(ps_doorbell *bell, int fd) {
    return ps_exchange(&bell->room, PS_BELL_AWAKE) != PS_BELL_AWAKE && ps_doorbell_ring(bell, fd);
}

#endif
