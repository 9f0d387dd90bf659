/* The flush timer: one thread that asks executors to publish what they have batched, every interval.
 *
 *     timer                                        executor's thread
 *     sleep until the next tick                    ... calls of the component ...
 *     own receive queue full? leave it alone       ps_flush_take(flag)? publish every batch that is not empty
 *     set the flag                                 ... goes on
 *
 * Follows the flush tuples of Storm 2 (one timer per worker; a flush tuple into every executor's receive queue, none
 * into a full one), with a flag in place of the tuple: there is nothing that could be full or come late behind others.
 * An executor whose receive queue is full is left alone, too: it has all it can do, and its batches fill by themselves.
 *
 *     NOT_ASKED ──tick──► ASKED ──every flag is──► ASKED_AT_REST       the timer sleeps without an end
 *         ▲                 │                            │
 *         └──────take───────┴────────────take────────────┘ wakes the timer
 *
 * A flag is left untaken by an executor that publishes nothing: an idle worker's timer costs nothing.
 *
 * Guarantee: only pause, stop and add wait for the timer's thread, each for a few instructions.
 *
 * Threading law: start, pause, resume, stop and add by one thread at a time, a flag is taken by one thread. After
 * fork() the child has no timer thread: the next call of the law's first group sees that, start makes a new one.
 */
#ifndef PYSTORM_FLUSH_TIMER_H
#define PYSTORM_FLUSH_TIMER_H

#include "cython_core/primitives/parker.h"

#include <signal.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <unistd.h>

/* Whether the executor of this context shall be left alone. Called by the timer's thread; may wait for nothing. */
typedef int (*ps_flush_skip)(const void *context);

enum { PS_FLUSH_NOT_ASKED, PS_FLUSH_ASKED, PS_FLUSH_ASKED_AT_REST };
enum { PS_FLUSH_PAUSED, PS_FLUSH_TICKING, PS_FLUSH_ENDED };

typedef struct ps_flush_timer ps_flush_timer;

typedef struct {
    PS_APART ps_word asked;
    ps_flush_timer *timer;
    ps_flush_skip skip; /* NULL: never */
    const void *context;
} ps_flush_flag;

struct ps_flush_timer {
    ps_word state;
    ps_word ticks;         /* to look at */
    ps_word interval;      /* nanoseconds */
    pthread_mutex_t turn;  /* held while state or flags change, except where a flag is taken */
    ps_parker sleeper;
    pthread_t thread;
    pid_t process;         /* that has the thread; 0: there is none */
    size_t count;
    ps_flush_flag **flags; /* owned */
};

/* Executor's thread: whether a flush was asked for since it last was. */
static inline int ps_flush_take(ps_flush_flag *flag) {
    uint64_t seen = ps_load_relaxed(&flag->asked);
    if (PS_LIKELY(seen == PS_FLUSH_NOT_ASKED)) return 0;
    while (!ps_exchange_if_relaxed(&flag->asked, &seen, PS_FLUSH_NOT_ASKED)) {}
    if (seen == PS_FLUSH_ASKED_AT_REST) ps_parker_unpark(&flag->timer->sleeper);
    return 1;
}

static inline int64_t ps_flush_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t ps_flush_next(const ps_flush_timer *timer) {
    return ps_flush_now() + (int64_t)ps_load_relaxed(&timer->interval);
}

/* Sets every flag that is not set yet, unless it is skipped; returns how many it set. */
static inline size_t ps_flush_tick(ps_flush_timer *timer) {
    size_t asked = 0;
    pthread_mutex_lock(&timer->turn);
    if (ps_load_relaxed(&timer->state) == PS_FLUSH_TICKING) {
        for (size_t i = 0; i < timer->count; i++) {
            ps_flush_flag *flag = timer->flags[i];
            if (ps_load_relaxed(&flag->asked) != PS_FLUSH_NOT_ASKED) continue;
            if (flag->skip != NULL && flag->skip(flag->context)) continue;
            ps_store_relaxed(&flag->asked, PS_FLUSH_ASKED);
            asked++;
        }
        ps_store_relaxed(&timer->ticks, ps_load_relaxed(&timer->ticks) + 1);
    }
    pthread_mutex_unlock(&timer->turn);
    return asked;
}

/* Whether from here on any take wakes the timer: not if a flag was skipped, or was taken in the meantime. */
static inline int ps_flush_can_rest(ps_flush_timer *timer) {
    int all = 1;
    pthread_mutex_lock(&timer->turn);
    for (size_t i = 0; i < timer->count && all; i++) {
        ps_word *asked = &timer->flags[i]->asked;
        uint64_t seen = ps_load_relaxed(asked);
        while (seen == PS_FLUSH_ASKED && !ps_exchange_if_relaxed(asked, &seen, PS_FLUSH_ASKED_AT_REST)) {}
        all = seen != PS_FLUSH_NOT_ASKED;
    }
    pthread_mutex_unlock(&timer->turn);
    return all;
}

/* The timer's thread. */
static inline void *ps_flush_run(void *argument) {
    ps_flush_timer *timer = (ps_flush_timer *)argument;
    int64_t due = ps_flush_next(timer), left;
    int untaken = 0;
#ifdef __linux__
    prctl(PR_SET_NAME, "pystorm-flush");
#endif
    for (;;) {
        /* Order: prepared, then looked at state and flags: a change from here on ends the sleep. */
        ps_parker_prepare(&timer->sleeper);
        uint64_t state = ps_load_acquire(&timer->state);
        if (state == PS_FLUSH_ENDED) return NULL;
        if (state == PS_FLUSH_PAUSED || (untaken && ps_flush_can_rest(timer))) {
            ps_parker_park(&timer->sleeper, -1);
            due = ps_flush_next(timer);
            untaken = 0;
            continue;
        }
        /* The interval may be another one than before the last sleep. */
        if (due > ps_flush_next(timer)) due = ps_flush_next(timer);
        left = due - ps_flush_now();
        if (ps_parker_park(&timer->sleeper, left > 0 ? left : 0)) continue;
        untaken = ps_flush_tick(timer) == 0;
        /* Ticks that were missed are not made up for. */
        due += (int64_t)ps_load_relaxed(&timer->interval);
        if (due < ps_flush_now()) due = ps_flush_next(timer);
    }
}

/* 0 on success. */
static inline int ps_flush_init_locks(ps_flush_timer *timer) {
    if (pthread_mutex_init(&timer->turn, NULL) != 0) return -1;
    if (ps_parker_init(&timer->sleeper) == 0) return 0;
    pthread_mutex_destroy(&timer->turn);
    return -1;
}

/* In a child process: what the parent's thread may have left locked is made anew. */
static inline void ps_flush_forget_parent(ps_flush_timer *timer) {
    if (timer->process == 0 || timer->process == getpid()) return;
    timer->process = 0;
    ps_store_relaxed(&timer->state, PS_FLUSH_PAUSED);
    ps_flush_init_locks(timer);
}

static inline void ps_flush_set_state(ps_flush_timer *timer, uint64_t state) {
    pthread_mutex_lock(&timer->turn);
    ps_store_release(&timer->state, state);
    pthread_mutex_unlock(&timer->turn);
    ps_parker_unpark(&timer->sleeper);
}

/* NULL where there is no memory. */
static inline ps_flush_timer *ps_flush_timer_new(void) {
    ps_flush_timer *timer = (ps_flush_timer *)calloc(1, sizeof(ps_flush_timer));
    if (timer == NULL || ps_flush_init_locks(timer) == 0) return timer;
    free(timer);
    return NULL;
}

/* A new executor's flag, which lives as long as the timer; NULL where there is no memory. */
static inline ps_flush_flag *ps_flush_timer_add(ps_flush_timer *timer, ps_flush_skip skip, const void *context) {
    ps_flush_flag **flags, *flag = (ps_flush_flag *)ps_alloc_apart(sizeof(ps_flush_flag), 0, 1);
    if (flag == NULL) return NULL;
    flag->timer = timer;
    flag->skip = skip;
    flag->context = context;
    ps_flush_forget_parent(timer);
    pthread_mutex_lock(&timer->turn);
    flags = (ps_flush_flag **)realloc(timer->flags, (timer->count + 1) * sizeof(ps_flush_flag *));
    if (flags != NULL) {
        timer->flags = flags;
        timer->flags[timer->count++] = flag;
    }
    pthread_mutex_unlock(&timer->turn);
    if (flags == NULL) free(flag);
    else ps_parker_unpark(&timer->sleeper);
    return flags == NULL ? NULL : flag;
}

/* Ticks from now on, the first time after an interval; 0 on success, else an errno. */
static inline int ps_flush_timer_start(ps_flush_timer *timer, int64_t interval_nanos) {
    sigset_t all, before;
    int status;
    ps_flush_forget_parent(timer);
    ps_store_relaxed(&timer->interval, (uint64_t)interval_nanos);
    ps_flush_set_state(timer, PS_FLUSH_TICKING);
    if (timer->process != 0) return 0;
    /* Signals are for threads that know what to do about them. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    status = pthread_create(&timer->thread, NULL, ps_flush_run, timer);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status == 0) timer->process = getpid();
    return status;
}

/* No flag is set once it returns, until start or resume. */
static inline void ps_flush_timer_pause(ps_flush_timer *timer) {
    ps_flush_forget_parent(timer);
    ps_flush_set_state(timer, PS_FLUSH_PAUSED);
}

/* Ticks on where it was paused; without effect where there is no thread. */
static inline void ps_flush_timer_resume(ps_flush_timer *timer) {
    ps_flush_forget_parent(timer);
    if (timer->process != 0) ps_flush_set_state(timer, PS_FLUSH_TICKING);
}

/* Ends the thread, where there is one; it may be started again. */
static inline void ps_flush_timer_stop(ps_flush_timer *timer) {
    ps_flush_forget_parent(timer);
    if (timer->process == 0) return;
    ps_flush_set_state(timer, PS_FLUSH_ENDED);
    pthread_join(timer->thread, NULL);
    timer->process = 0;
    ps_store_relaxed(&timer->state, PS_FLUSH_PAUSED);
}

static inline void ps_flush_timer_free(ps_flush_timer *timer) {
    ps_flush_timer_stop(timer);
    for (size_t i = 0; i < timer->count; i++) free(timer->flags[i]);
    free(timer->flags);
    ps_parker_destroy(&timer->sleeper);
    pthread_mutex_destroy(&timer->turn);
    free(timer);
}

#endif
