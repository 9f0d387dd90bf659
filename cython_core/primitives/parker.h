/* A parker: one thread parks until another one has something for it and unparks it, or until a time has passed.
 *
 *     sleeper                                    waker
 *     ps_parker_prepare(w)    PARKED             publish to the sleeper's queue
 *     look once more: still nothing?             ps_parker_unpark(w)   costs an exchange if the thread is awake
 *       yes: ps_parker_park(w, nanos)            PARKED ─► UNPARKED, and the sleeper returns
 *            ... nanos have passed: look once more, park again or ps_parker_cancel(w)
 *       no:  ps_parker_cancel(w)
 *
 * Guarantee: what is published before ps_parker_unpark is seen by the second look, or ends the sleep. Both exchange the
 * state, and exchanges of one word have an order: the later one sees what was stored before the earlier one.
 *
 * Threading law: one thread sleeps, any thread wakes.
 */
#ifndef PYSTORM_PARKER_H
#define PYSTORM_PARKER_H

#include "cython_core/primitives/atomics.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

enum { PS_UNPARKED, PS_PARKED };

typedef struct {
    ps_word state;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    int fd; /* of a thread that sleeps in a system call instead; -1: none */
} ps_parker;

/* 0 on success. */
static inline int ps_parker_init(ps_parker *w) {
    pthread_condattr_t attributes;
    int status;
    ps_store_relaxed(&w->state, PS_UNPARKED);
    w->fd = -1;
    if (pthread_mutex_init(&w->lock, NULL) != 0) return -1;
    if (pthread_condattr_init(&attributes) != 0) {
        pthread_mutex_destroy(&w->lock);
        return -1;
    }
#ifndef __APPLE__ /* whose condition variables have a wait by a span instead */
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
#endif
    status = pthread_cond_init(&w->woken, &attributes);
    pthread_condattr_destroy(&attributes);
    if (status != 0) pthread_mutex_destroy(&w->lock);
    return status == 0 ? 0 : -1;
}

static inline void ps_parker_destroy(ps_parker *w) {
    pthread_cond_destroy(&w->woken);
    pthread_mutex_destroy(&w->lock);
}

static inline void ps_parker_prepare(ps_parker *w) { ps_exchange(&w->state, PS_PARKED); }

static inline void ps_parker_cancel(ps_parker *w) { ps_exchange(&w->state, PS_UNPARKED); }

/* Whether it is prepared or sleeps, and no thread has woken it. */
static inline int ps_parker_is_parked(const ps_parker *w) { return ps_load_acquire(&w->state) == PS_PARKED; }

static inline int ps_parker_wait(ps_parker *w, const struct timespec *span, const struct timespec *end) {
#ifdef __APPLE__
    (void)end;
    return pthread_cond_timedwait_relative_np(&w->woken, &w->lock, span);
#else
    (void)span;
    return pthread_cond_timedwait(&w->woken, &w->lock, end);
#endif
}

/* From here on ps_parker_unpark also writes 8 bytes to `fd`, by which a sleeper that waits for files in a system call
 * returns from it. -1: no more. By the sleeper, before it prepares, and after it has cancelled. */
static inline void ps_parker_write_to(ps_parker *w, int fd) {
    pthread_mutex_lock(&w->lock);
    w->fd = fd;
    pthread_mutex_unlock(&w->lock);
}

/* Blocking, after ps_parker_prepare. 1 where it was woken, 0 where `nanos` have passed (below 0: for ever): it is still
 * prepared then, so that no wake is lost until it parks again or cancels. */
static inline int ps_parker_park(ps_parker *w, int64_t nanos) {
    struct timespec span, end;
    if (nanos >= 0) {
        span.tv_sec = (time_t)(nanos / 1000000000);
        span.tv_nsec = (long)(nanos % 1000000000);
        clock_gettime(CLOCK_MONOTONIC, &end);
        end.tv_sec += span.tv_sec;
        end.tv_nsec += span.tv_nsec;
        if (end.tv_nsec >= 1000000000) {
            end.tv_sec++;
            end.tv_nsec -= 1000000000;
        }
    }
    pthread_mutex_lock(&w->lock);
    while (ps_parker_is_parked(w)) {
        if (nanos < 0) pthread_cond_wait(&w->woken, &w->lock);
        else if (ps_parker_wait(w, &span, &end) == ETIMEDOUT) break;
    }
    pthread_mutex_unlock(&w->lock);
    return !ps_parker_is_parked(w);
}

/* Never waits for more than the few instructions that the sleeper holds the lock. */
static inline void ps_parker_unpark(ps_parker *w) {
    if (ps_exchange(&w->state, PS_UNPARKED) == PS_UNPARKED) return;
    /* Order: under the lock, so that the sleeper has not looked yet or waits already. */
    pthread_mutex_lock(&w->lock);
    if (w->fd >= 0) {
        uint64_t one = 1;
        if (write(w->fd, &one, sizeof one) < 0) { /* it is full: the sleeper will return from its call */
        }
    }
    pthread_cond_signal(&w->woken);
    pthread_mutex_unlock(&w->lock);
}

#endif
