/* Roots of tuple trees: where they lie, which are open, and which a spout is still to be notified of.
 *
 *     attempts   ... 41 42 43 44 45 46 47        oldest = 43: all before it are decided
 *     window           .  R  .  R  R  .          slot of an open attempt; NULL: acked or failed
 *
 * A root lies in a slot, and a tuple knows slot and attempt: init, ack and fail are an array access. Each emit of a
 * spout tuple, the first and every replay, is an attempt with a number of its own: what is not of the slot's
 * attempt is late and changes nothing.
 *
 *     free ──open──► in the window ──verdict──► settled, in its spout's list ──notified──► free
 *
 * Threading law: as acker.h. */
#ifndef PYSTORM_TREE_ROOTS_H
#define PYSTORM_TREE_ROOTS_H

#include "cython_core/primitives/histogram.h"
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
    uint64_t taken;             /* nanoseconds: when a bolt last took a tuple of it. Bit 0: this is its turn's end */
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
    uint32_t generation;        /* its collector's when it was emitted */
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
    uint64_t failures;  /* attempts that have failed so far */
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

#endif
