/* The acker: which spout tuples are wholly processed (Storm's guaranteed message processing).
 *
 *     open ──► edges = e0 ──► new edge: edges ^= e1 ──► ack of e0: edges ^= e0 ──► ... ──► 0: acked
 *                                                  └──► fail, or its time has come ──► failed
 *
 * Every tuple of a tree is an edge with a random id of 64 bits; a root keeps the XOR of those without a verdict, so it
 * is 0 when all are acked, and before that with a chance of 2^-64. An ack or fail of an attempt that is over is late
 * and changes nothing. Slots and attempts of roots: tree_roots.h. When a tree times out: tree_times.h.
 *
 * Output rows carry the attempt that they belong to. A row of several roots ties these together (`ps_acker_link`): all
 * are acked at once or none, as the row can stay only if none of them is replayed.
 *
 * Threading law: one thread at a time (the interpreter's lock is enough). Nothing here runs foreign code. */
#ifndef PYSTORM_ACKER_H
#define PYSTORM_ACKER_H

#include "cython_core/acking/tree_roots.h"
#include "cython_core/acking/tree_times.h"
#include "cython_core/primitives/mix.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* A new id for an edge: never 0, and never twice in 2^64 edges, as the mixer is one to one. */
static inline uint64_t ps_acker_edge(ps_acker *acker) {
    uint64_t edge = ps_mix64(acker->edge_state += UINT64_C(0x9E3779B97F4A7C15));
    return edge ? edge : ps_acker_edge(acker);
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

static void ps_acker_settle_alone(ps_acker *acker, ps_root *root, enum ps_verdict verdict) {
    uint64_t attempt = root->attempt;
    root->attempt = 0;
    root->verdict = verdict;
    acker->window[attempt & acker->mask] = NULL;
    if (verdict != PS_ROOT_ACKED) {
        acker->failures++;
        acker->failed[acker->failed_count++] = attempt;
    } else if (ps_acker_is_timed(root->spout, attempt)) ps_acker_time(acker, root);
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

/* Acks one edge. 1: it was the last one of a root in no group, whose spout is not notified of acks. The root is
 * settled; the caller drops what it keeps and releases it. */
static inline int ps_acker_ack(ps_acker *acker, ps_root *root, uint64_t attempt, uint64_t edge) {
    if (root->attempt != attempt) return 0; /* late: its attempt is over */
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
