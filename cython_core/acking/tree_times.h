/* The time of tuple trees: when it runs, when it is over, and how long trees took.
 *
 * A tree times out by the work on it, not by the queues before it: while a tuple of it waits in a queue or batch of
 * this worker, its time does not run, and whenever a bolt takes one, its time begins anew. So a bolt may be as slow as
 * it likes per queue, and a tuple that a bolt keeps or forgets is found all the same. A complete root waits only for
 * those that it is linked with: their time runs, its own does not.
 *
 *     emit        taken by bolt A              emits         taken by bolt B                  T later: timed out
 *     waiting 1 ──► 0, time runs ──────────────► 1 ─ any time ─► 0, time runs anew ──────────►
 *
 * Roots are watched in the order of their emits, so one timer in the wheel, for the oldest, serves them all; a root
 * whose time is not over when that finds it gets a timer of its own, and so has every root if progress counts
 * (STORM-2359). The clock is read at both ends of a spout's turn, not per emit, and a spout may wait in its turn: the
 * time of what it emits begins when the turn ends.
 *
 * How long trees take from emit to ack is measured on one attempt in 64, by two readings of a clock. They are spread
 * evenly over all attempts (Fibonacci hashing), so that no rhythm of turns or batches meets or misses them all.
 *
 * Threading law: as acker.h. */
#ifndef PYSTORM_TREE_TIMES_H
#define PYSTORM_TREE_TIMES_H

#include "cython_core/acking/tree_roots.h"
#include "cython_core/primitives/histogram.h"
#include "cython_core/timing/coarse_clock.h"
#include "cython_core/timing/stopwatch.h"
#include "cython_core/timing/timing_wheel.h"

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t ps_acker_deadline(const ps_acker *acker) {
    return acker->timeout ? acker->now + acker->timeout : PS_NO_TIMEOUT;
}

/* By the coarse clock, where that is the acker's. */
static inline void ps_acker_read_clock(ps_acker *acker) {
    uint64_t now = acker->coarse ? ps_coarse_nanos() - acker->paused : 0;
    if (now > acker->now) acker->now = now;
}

static inline bool ps_acker_is_timed(const ps_spout_roots *spout, uint64_t attempt) {
    return spout->complete && attempt * UINT64_C(0x9E3779B97F4A7C15) >> 58 == 0;
}

/* Finer than the acker's own reading: trees are often acked within a tick of that. Stands as the acker's time does. */
static inline uint64_t ps_acker_stamp(const ps_acker *acker) {
    return acker->coarse ? ps_stopwatch_nanos() - acker->paused : acker->now;
}

/* A timed attempt is acked. */
static void ps_acker_time(const ps_acker *acker, const ps_root *root) {
    uint64_t now = ps_acker_stamp(acker);
    ps_histogram_record(root->spout->complete, now > root->opened ? now - root->opened : 0);
}

/* A bolt takes a tuple of the root out of its queue: its time begins anew. False if the attempt has failed: nothing
 * that is made of the tuple counts. */
static inline bool ps_acker_take(const ps_acker *acker, ps_root *root, uint64_t attempt) {
    if (root->attempt != attempt) return false;
    if (root->waiting) root->waiting--; /* 0: it was found in the hands of a bolt (ps_acker_none_waits) */
    root->taken = acker->now & ~UINT64_C(1);
    return true;
}

/* A long turn is over, in which the clock stood at `began`: what bolts took since then counts as taken `now`. That
 * is too late by a turn at most. The turn's beginning would be too early by as much: a tree would fail in a bolt's
 * hands.
 *
 * Bit 0 of `taken` marks what was put off, as that happens once for each tuple: turns follow one another within a tick
 * of the clock and, between threads, overlap, so a tuple that a bolt keeps would be put off by every one of them. */
static inline void ps_acker_take_late(ps_acker *acker, uint64_t began, uint64_t now) {
    for (uint64_t attempt = acker->oldest; attempt < acker->next; attempt++) {
        ps_root *root = acker->window[attempt & acker->mask];
        if (root && !(root->taken & 1) && root->taken + 1 >= began && root->taken < now) root->taken = now | 1;
    }
}

/* All queues are drained and all batches processed. What still counts as waiting was thrown away or kept by a bolt:
 * from here on its time runs, or it never would. */
static inline void ps_acker_none_waits(ps_acker *acker) {
    for (uint64_t attempt = acker->oldest; attempt < acker->next; attempt++) {
        ps_root *root = acker->window[attempt & acker->mask];
        if (root) root->waiting = 0;
    }
}

/* A tuple that was taken waits again, for the engine to process its batch. */
static inline void ps_acker_wait(ps_root *root, uint64_t attempt) {
    if (root->attempt == attempt) root->waiting++;
}

/* In the wheel until the root's deadline. */
static inline void ps_acker_watch_by(ps_acker *acker, ps_root *root, ps_timer *timer) {
    /* Without memory for a level, or due and of a turn under way: the next advance finds it. */
    if (ps_wheel_insert(&acker->wheel, timer, root->deadline) != 1)
        ps_wheel_insert(&acker->wheel, timer, acker->now + acker->wheel.tick_nanos);
}

/* By a timer of its own, or by that for all roots. */
static inline void ps_acker_watch(ps_acker *acker, ps_root *root) {
    ps_acker_watch_by(acker, root, acker->by_progress ? &root->timer : &acker->oldest_timer);
}

/* A turn of the spout begins, the clock was read: nothing that it emits times out before the turn's end. */
static inline void ps_acker_begin_turn(const ps_acker *acker, ps_spout_roots *spout) {
    spout->fresh = acker->next;
    spout->turn_began = acker->now;
}

/* The turn is over, the clock was read: the time of what it has emitted begins here. */
static inline void ps_acker_end_turn(ps_acker *acker, ps_spout_roots *spout) {
    uint64_t attempt = spout->fresh < acker->oldest ? acker->oldest : spout->fresh;
    spout->fresh = 0;
    if (acker->now == spout->turn_began) return;
    for (; attempt < acker->next; attempt++) {
        ps_root *root = acker->window[attempt & acker->mask];
        if (!root || root->spout != spout || root->rests) continue;
        root->deadline = ps_acker_deadline(acker);
        ps_acker_watch_by(acker, root, &root->timer);
    }
}

/* Whether an open root's time has come, as far as its timer knows; else its deadline is when to look again. */
static inline bool ps_acker_is_due(const ps_acker *acker, ps_root *root) {
    if (root->rests) return root->deadline <= acker->now;
    if (root->spout->fresh && root->attempt >= root->spout->fresh) return false;
    if (root->waiting || root->verdict == PS_ROOT_COMPLETE) root->deadline = ps_acker_deadline(acker);
    else if (root->deadline < root->taken + acker->timeout) root->deadline = root->taken + acker->timeout;
    return root->deadline <= acker->now;
}

/* The root's time begins anew; -1 without memory. */
static int ps_acker_reset(ps_acker *acker, ps_root *root, uint64_t attempt) {
    if (root->attempt != attempt || !acker->timeout) return 0;
    root->deadline = ps_acker_deadline(acker);
    ps_wheel_cancel(&acker->wheel, &root->timer);
    return ps_wheel_insert(&acker->wheel, &root->timer, root->deadline) < 0 ? -1 : 0;
}

/* Whether anything waits for the clock. */
static inline bool ps_acker_keeps_time(const ps_acker *acker) {
    return acker->timeout > 0 || acker->resting > 0;
}

#endif
