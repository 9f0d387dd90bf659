/* The acker: which spout tuples are wholly processed (Storm's guaranteed message processing).
 *
 *     open ──► edges = e0 ──► new edge: edges ^= e1 ──► ack of e0: edges ^= e0 ──► ... ──► 0: acked
 *                                                  └──► fail, or its time has come ──► failed
 *
 * Every tuple of a tree is an edge with a random id of 64 bits; a root keeps the XOR of those without a verdict, so it
 * is 0 when all are acked, and before that with a chance of 2^-64. A root lies in a slot, and a tuple knows slot and
 * attempt: init, ack and fail are an array access. Each emit of a spout tuple, the first and every replay, is an
 * attempt with a number of its own, which is the slot's generation as well: what is not of the slot's attempt is late
 * and changes nothing.
 *
 *     attempts   ... 41 42 43 44 45 46 47        oldest = 43: all before it are decided
 *     window           .  R  .  R  R  .          slot of an open attempt; NULL: acked or failed
 *
 * Output rows carry the attempt that they belong to. A row of several roots ties these together (`ps_acker_link`): all
 * are acked at once or none, as the row can stay only if none of them is replayed.
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
 * Threading law: one thread at a time (the interpreter's lock is enough). Nothing here runs foreign code. */
#ifndef PYSTORM_ACKER_H
#define PYSTORM_ACKER_H

#include "cython_core/primitives/histogram.h"
#include "cython_core/primitives/mix.h"
#include "cython_core/timing/coarse_clock.h"
#include "cython_core/timing/stopwatch.h"
#include "cython_core/timing/timing_wheel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PS_ACKER_SLAB 256
#define PS_ACKER_FIRST_WINDOW 1024
#define PS_NO_TIMEOUT UINT64_MAX

enum ps_verdict {
    PS_ROOT_OPEN,
    PS_ROOT_COMPLETE,   /* all edges acked; those of the roots that it is linked with are not */
    PS_ROOT_ACKED,
    PS_ROOT_FAILED,
    PS_ROOT_TIMED_OUT,
    PS_ROOT_FAILED_WITH_GROUP, /* failed because a root that it was linked with failed */
    PS_ROOT_RETRY_DUE,  /* it had no tuples yet, and is to be emitted now */
    PS_ROOT_EMIT_RAISED /* its emit raised: its spout is not notified */
};

typedef struct ps_root ps_root;
typedef struct ps_group ps_group;

/* The trees of one spout task. */
typedef struct {
    ps_root *first, *last;      /* settled and not notified yet, oldest first */
    uint64_t settled;           /* how many these are */
    uint64_t open;              /* without a verdict */
    uint64_t acked;             /* of those that no spout was notified of */
    uint64_t fresh;             /* attempts from this one on are of its turn under way; 0: none is */
    uint64_t turn_began;        /* nanoseconds */
    bool notifies_acks;         /* acked roots wait for their notification; else their slots are free at once */
    ps_histogram *complete;     /* from emit to ack, of the attempts that are timed; NULL: of none */
} ps_spout_roots;

struct ps_root {
    ps_timer timer;             /* order: first */
    uint64_t edges;             /* XOR of the ids of the edges without verdict */
    uint64_t attempt;           /* 0: settled or free */
    uint64_t taken;             /* nanoseconds: when a bolt last took a tuple of it; odd: put off by its turn's end */
    uint32_t waiting;           /* tuples of it in queues, batches and pending emits */
    uint64_t failed_with_group; /* the attempt that failed with its group, until its spout is notified; else 0 */
    uint64_t deadline;          /* nanoseconds; PS_NO_TIMEOUT: never */
    uint64_t opened;            /* nanoseconds: when it was emitted, if its attempt is timed */
    ps_spout_roots *spout;
    ps_root *next;              /* of the free, or of the settled */
    ps_group *group;
    ps_root *sibling;           /* next of the group */
    void *id, *values, *where, *reason;     /* the spout's: kept, never looked at */
    int64_t offset;
    uint32_t emits;             /* of this tuple so far */
    uint32_t generation;
    bool rests;
    enum ps_verdict verdict;
};

/* Roots that share a row. */
struct ps_group {
    ps_root *members;
    size_t size;
    size_t open;                /* members with edges left */
};

typedef struct {
    ps_root *free;
    ps_root **slabs;
    size_t slab_count;
    ps_root **window;           /* by attempt & mask */
    uint64_t mask;
    uint64_t oldest, next;      /* attempts: [oldest, next) are in the window */
    uint64_t watched;           /* attempts before it have an own timer or a verdict */
    uint64_t edge_state;
    uint64_t now, timeout;      /* nanoseconds; timeout 0: none */
    uint64_t paused;            /* nanoseconds that `now` is behind the clock: it stood while the worker rested */
    uint64_t resting;           /* roots that wait for their emit */
    bool by_progress;           /* every ack of an edge begins the time anew */
    bool coarse;                /* its clock is ps_coarse_nanos: what takes long between two turns counts */
    ps_timer oldest_timer;      /* for the first watched attempt */
    ps_wheel wheel;
    uint64_t *failed;           /* attempts, as they failed */
    size_t failed_count, failed_capacity;
} ps_acker;

static int ps_acker_init(ps_acker *acker, uint64_t seed, uint64_t now, uint64_t tick_nanos) {
    memset(acker, 0, sizeof *acker);
    acker->window = (ps_root **)calloc(PS_ACKER_FIRST_WINDOW, sizeof(ps_root *));
    if (!acker->window || ps_wheel_init(&acker->wheel, tick_nanos, now) < 0) {
        free(acker->window);
        acker->window = NULL;
        return -1;
    }
    acker->mask = PS_ACKER_FIRST_WINDOW - 1;
    acker->oldest = acker->next = acker->watched = 1;
    acker->edge_state = seed;
    acker->now = now;
    return 0;
}

/* Leaves its group, if any, without a verdict. */
static void ps_acker_leave_group(ps_root *root) {
    if (root->group && --root->group->size == 0) free(root->group);
    root->group = NULL;
}

/* All roots end without a verdict; what their slots keep is the caller's. For a worker that is given up. */
static void ps_acker_close(ps_acker *acker) {
    for (uint64_t attempt = acker->oldest; attempt < acker->next; attempt++) {
        ps_root *root = acker->window[attempt & acker->mask];
        if (!root) continue;
        acker->window[attempt & acker->mask] = NULL;
        root->attempt = 0;
        root->rests = false;
        ps_wheel_cancel(&acker->wheel, &root->timer);
        ps_acker_leave_group(root);
    }
    acker->resting = 0;
    ps_wheel_cancel(&acker->wheel, &acker->oldest_timer);
    acker->oldest = acker->watched = acker->next;
}

/* The caller has let go what the slots keep. */
static void ps_acker_free(ps_acker *acker) {
    if (!acker->window) return;
    ps_acker_close(acker);
    for (size_t i = 0; i < acker->slab_count; i++) free(acker->slabs[i]);
    free(acker->slabs);
    free(acker->window);
    free(acker->failed);
    ps_wheel_free(&acker->wheel);
    acker->window = NULL;
}

/* A new id for an edge: never 0, and never twice in 2^64 edges, as the mixer is one to one. */
static inline uint64_t ps_acker_edge(ps_acker *acker) {
    uint64_t edge = ps_mix64(acker->edge_state += UINT64_C(0x9E3779B97F4A7C15));
    return edge ? edge : ps_acker_edge(acker);
}

static int ps_acker_add_slab(ps_acker *acker) {
    ps_root **slabs = (ps_root **)realloc(acker->slabs, (acker->slab_count + 1) * sizeof(ps_root *));
    if (!slabs) return -1;
    acker->slabs = slabs;
    ps_root *slab = (ps_root *)calloc(PS_ACKER_SLAB, sizeof(ps_root));
    if (!slab) return -1;
    slabs[acker->slab_count++] = slab;
    for (size_t i = PS_ACKER_SLAB; i-- > 0;) {
        slab[i].next = acker->free;
        acker->free = &slab[i];
    }
    return 0;
}

static int ps_acker_widen(ps_acker *acker) {
    uint64_t mask = acker->mask * 2 + 1;
    ps_root **window = (ps_root **)calloc(mask + 1, sizeof(ps_root *));
    if (!window) return -1;
    for (uint64_t attempt = acker->oldest; attempt < acker->next; attempt++)
        window[attempt & mask] = acker->window[attempt & acker->mask];
    free(acker->window);
    acker->window = window;
    acker->mask = mask;
    return 0;
}

/* Room for one more root: 0, or -1 without memory. */
static inline int ps_acker_reserve(ps_acker *acker) {
    if (!acker->free && ps_acker_add_slab(acker) < 0) return -1;
    if (acker->next - acker->oldest > acker->mask && ps_acker_widen(acker) < 0) return -1;
    if (acker->failed_count + (acker->next - acker->oldest) + 1 > acker->failed_capacity) {
        /* Order: reserved now, so that a verdict never needs memory. */
        size_t capacity = acker->failed_capacity ? acker->failed_capacity * 2 : PS_ACKER_FIRST_WINDOW;
        uint64_t *failed = (uint64_t *)realloc(acker->failed, capacity * sizeof(uint64_t));
        if (!failed) return -1;
        acker->failed = failed;
        acker->failed_capacity = capacity;
    }
    return 0;
}

static inline uint64_t ps_acker_deadline(const ps_acker *acker) {
    return acker->timeout ? acker->now + acker->timeout : PS_NO_TIMEOUT;
}

/* By the coarse clock, where that is the acker's. */
static inline void ps_acker_read_clock(ps_acker *acker) {
    uint64_t now = acker->coarse ? ps_coarse_nanos() - acker->paused : 0;
    if (now > acker->now) acker->now = now;
}

static inline void ps_acker_watch(ps_acker *acker, ps_root *root);

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

/* A new attempt whose first edge is `edge`. NULL without memory. */
static inline ps_root *ps_acker_open(ps_acker *acker, ps_spout_roots *spout, uint64_t edge) {
    if (ps_acker_reserve(acker) < 0) return NULL;
    ps_root *root = acker->free;
    acker->free = root->next;
    root->edges = edge;
    root->attempt = acker->next;
    root->waiting = 0;
    root->deadline = ps_acker_deadline(acker);
    root->spout = spout;
    root->next = NULL;
    root->group = NULL;
    root->verdict = PS_ROOT_OPEN;
    if (ps_acker_is_timed(spout, root->attempt)) root->opened = ps_acker_stamp(acker);
    acker->window[acker->next++ & acker->mask] = root;
    spout->open++;
    if (acker->timeout && (acker->by_progress || !acker->oldest_timer.link)) ps_acker_watch(acker, root);
    return root;
}

static inline bool ps_acker_is_open(const ps_root *root, uint64_t attempt) {
    return root->attempt == attempt;
}

/* Gives the slot back; what it kept was let go. */
static inline void ps_acker_release(ps_acker *acker, ps_root *root) {
    root->next = acker->free;
    acker->free = root;
}

static inline void ps_acker_advance_oldest(ps_acker *acker) {
    while (acker->oldest < acker->next && !acker->window[acker->oldest & acker->mask]) acker->oldest++;
    if (acker->watched < acker->oldest) acker->watched = acker->oldest;
}

/* Adds a settled root behind the others. */
static inline void ps_acker_keep_settled(ps_spout_roots *spout, ps_root *root) {
    root->next = NULL;
    if (spout->last) spout->last->next = root;
    else spout->first = root;
    spout->last = root;
    spout->settled++;
}

static void ps_acker_settle_alone(ps_acker *acker, ps_root *root, enum ps_verdict verdict) {
    uint64_t attempt = root->attempt;
    root->attempt = 0;
    root->verdict = verdict;
    acker->window[attempt & acker->mask] = NULL;
    if (verdict != PS_ROOT_ACKED) acker->failed[acker->failed_count++] = attempt;
    else if (ps_acker_is_timed(root->spout, attempt)) ps_acker_time(acker, root);
    if (attempt == acker->oldest) ps_acker_advance_oldest(acker);
    ps_wheel_cancel(&acker->wheel, &root->timer);
    ps_spout_roots *spout = root->spout;
    spout->open--;
    ps_acker_keep_settled(spout, root);
}

static void ps_acker_settle_group(ps_acker *acker, ps_root *first, enum ps_verdict verdict) {
    ps_group *group = first->group;
    enum ps_verdict others = verdict == PS_ROOT_ACKED ? PS_ROOT_ACKED : PS_ROOT_FAILED_WITH_GROUP;
    ps_root *root = group->members, *next;
    for (; root; root = next) {
        next = root->sibling;
        root->sibling = NULL;
        root->group = NULL;
        if (others == PS_ROOT_FAILED_WITH_GROUP && root != first) root->failed_with_group = root->attempt;
        ps_acker_settle_alone(acker, root, root == first ? verdict : others);
    }
    free(group);
}

/* An open root gets its verdict, and so do those that it is linked with. */
static inline void ps_acker_settle(ps_acker *acker, ps_root *root, enum ps_verdict verdict) {
    if (root->group) ps_acker_settle_group(acker, root, verdict);
    else ps_acker_settle_alone(acker, root, verdict);
}

/* All edges are acked. */
static void ps_acker_complete(ps_acker *acker, ps_root *root) {
    if (root->group && --root->group->open > 0) {
        root->verdict = PS_ROOT_COMPLETE;
        return;
    }
    ps_acker_settle(acker, root, PS_ROOT_ACKED);
}

/* A new edge of the root, if it is of that attempt still: a tuple on its way into a queue. */
static inline void ps_acker_add(ps_root *root, uint64_t attempt, uint64_t edge) {
    if (root->attempt != attempt) return;
    root->edges ^= edge;
    root->waiting++;
}

/* A bolt takes a tuple of the root out of its queue: its time begins anew. False if the attempt has failed: nothing
 * that is made of the tuple counts. */
static inline bool ps_acker_take(const ps_acker *acker, ps_root *root, uint64_t attempt) {
    if (root->attempt != attempt) return false;
    if (root->waiting) root->waiting--; /* 0: it was found in the hands of a bolt (ps_acker_none_waits) */
    root->taken = acker->now & ~UINT64_C(1);
    return true;
}

/* A long turn is over, in which the clock stood at `began`: what bolts took since then counts as taken `now`. Too late
 * by a turn at most, where the first reading would be too early by so much: a tree would fail in a bolt's hands.
 *
 * Once for each tuple that is taken, hence the odd readings: turns follow one another within a tick of the clock and,
 * between threads, overlap, so a tuple that a bolt keeps would be put off by every one of them. */
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

/* Acks one edge. 1: it was the last one of a root in no group, whose spout is not notified of acks. The root is
 * settled; the caller drops what it keeps and releases it. */
static inline int ps_acker_ack(ps_acker *acker, ps_root *root, uint64_t attempt, uint64_t edge) {
    if (root->attempt != attempt) return 0;
    root->edges ^= edge;
    if (acker->by_progress) {
        ps_acker_read_clock(acker);
        root->deadline = ps_acker_deadline(acker);
    }
    if (root->edges) return 0;
    if (root->group || root->spout->notifies_acks) {
        ps_acker_complete(acker, root);
        return 0;
    }
    if (ps_acker_is_timed(root->spout, attempt)) ps_acker_time(acker, root);
    root->attempt = 0;
    root->verdict = PS_ROOT_ACKED;
    root->spout->open--;
    root->spout->acked++;
    acker->window[attempt & acker->mask] = NULL;
    if (attempt == acker->oldest) ps_acker_advance_oldest(acker);
    if (root->timer.link) ps_wheel_cancel(&acker->wheel, &root->timer);
    return 1;
}

/* Fail-fast: one edge fails its root at once. Whether it counts: the root was open, or failed with its group a moment
 * ago and has failed by itself, too, as all of a batch do one after the other. */
static inline bool ps_acker_fail(ps_acker *acker, ps_root *root, uint64_t attempt, enum ps_verdict verdict) {
    if (root->attempt == attempt) {
        ps_acker_settle(acker, root, verdict);
        return true;
    }
    if (root->failed_with_group != attempt || verdict != PS_ROOT_FAILED) return false;
    root->failed_with_group = 0;
    root->verdict = verdict;
    return true;
}

/* Ties two open roots. 0, or -1 without memory. */
static int ps_acker_link(ps_acker *acker, ps_root *one, ps_root *other) {
    (void)acker;
    ps_root *root;
    if (one == other || (one->group && one->group == other->group)) return 0;
    if (!one->group) {
        ps_group *group = (ps_group *)calloc(1, sizeof(ps_group));
        if (!group) return -1;
        group->members = one;
        group->size = group->open = 1;
        one->group = group;
        one->sibling = NULL;
    }
    if (!other->group) {
        other->group = one->group;
        other->sibling = one->group->members;
        one->group->members = other;
        one->group->size++;
        one->group->open++;
        return 0;
    }
    ps_group *large = one->group, *small = other->group;
    if (large->size < small->size) { ps_group *swap = large; large = small; small = swap; }
    for (root = small->members;; root = root->sibling) {
        root->group = large;
        if (!root->sibling) break;
    }
    root->sibling = large->members;
    large->members = small->members;
    large->size += small->size;
    large->open += small->open;
    free(small);
    return 0;
}

/* The oldest settled root, taken out; NULL without. */
static inline ps_root *ps_acker_take_settled(ps_spout_roots *spout) {
    ps_root *root = spout->first;
    if (!root) return NULL;
    spout->first = root->next;
    if (!spout->first) spout->last = NULL;
    root->next = NULL;
    root->failed_with_group = 0;
    spout->settled--;
    return root;
}

/* Puts one that was taken back in its place. */
static inline void ps_acker_put_back(ps_spout_roots *spout, ps_root *root) {
    root->next = spout->first;
    spout->first = root;
    if (!spout->last) spout->last = root;
    spout->settled++;
}

/* ---- time-outs ---- */

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

/* An open root without tuples, to be emitted when the clock reads `due`. 0, or -1 without memory. */
static int ps_acker_rest(ps_acker *acker, ps_root *root, uint64_t due) {
    root->deadline = due > acker->now ? due : acker->now + 1;
    ps_wheel_cancel(&acker->wheel, &root->timer);
    int inside = ps_wheel_insert(&acker->wheel, &root->timer, root->deadline);
    if (inside < 0) return -1;
    if (inside == 0) {
        ps_acker_settle(acker, root, PS_ROOT_RETRY_DUE);
        return 0;
    }
    root->rests = true;
    acker->resting++;
    return 0;
}

/* Whether anything waits for the clock. */
static inline bool ps_acker_keeps_time(const ps_acker *acker) {
    return acker->timeout > 0 || acker->resting > 0;
}

/* Fails the attempts whose time has come, oldest first, and watches the next one. */
static size_t ps_acker_expire_watched(ps_acker *acker) {
    size_t expired = 0;
    while (acker->watched < acker->next) {
        ps_root *root = acker->window[acker->watched & acker->mask];
        if (!root || root->timer.link) {
            acker->watched++;
            continue;
        }
        if (root->deadline > acker->now) {
            ps_acker_watch(acker, root);
            break;
        }
        if (!ps_acker_is_due(acker, root)) {
            ps_acker_watch_by(acker, root, &root->timer);
            continue;
        }
        ps_acker_settle(acker, root, PS_ROOT_TIMED_OUT);
        expired++;
    }
    return expired;
}

/* The clock reads `now`: fails the roots whose time has come, and answers how many. */
static size_t ps_acker_expire(ps_acker *acker, uint64_t now) {
    size_t expired = 0;
    ps_timer *timer;
    if (now > acker->now) acker->now = now;
    while ((timer = ps_wheel_advance(&acker->wheel, acker->now))) {
        if (timer == &acker->oldest_timer) {
            expired += ps_acker_expire_watched(acker);
            continue;
        }
        ps_root *root = (ps_root *)timer;
        if (!ps_acker_is_due(acker, root)) {
            ps_acker_watch_by(acker, root, timer);
            continue;
        }
        if (root->rests) acker->resting--;
        ps_acker_settle(acker, root, root->rests ? PS_ROOT_RETRY_DUE : PS_ROOT_TIMED_OUT);
        root->rests = false;
        expired++;
    }
    return expired;
}

/* Forgets the failed attempts before this one: no row of theirs is kept any more. */
static void ps_acker_forget(ps_acker *acker, uint64_t before) {
    size_t kept = 0;
    for (size_t i = 0; i < acker->failed_count; i++)
        if (acker->failed[i] >= before) acker->failed[kept++] = acker->failed[i];
    acker->failed_count = kept;
}

/* When the next root may time out; PS_NO_TIMEOUT: none will. */
static inline uint64_t ps_acker_next_expiry(const ps_acker *acker) {
    return acker->oldest == acker->next ? PS_NO_TIMEOUT : ps_wheel_next(&acker->wheel);
}

#endif
