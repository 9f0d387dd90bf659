/* A bounded ring of pointers from one thread to another, capacity a power of two; an empty slot is NULL.
 *
 * Follows JCTools' SpscArrayQueue (after FastForward of Giacomoni, Moseley and Vachharajani): full and empty are read
 * off the slots themselves, so that the line which carries the items is the only one that goes to and fro. Measured
 * against a ring whose threads read each other's index, one item at a time: two to four times as quick,
 * as a full or an empty ring makes two threads fight for the line of an index. Batches are what that ring is quick at,
 * and drain does as it does: it reads tail once and never looks at slots that are being filled.
 *
 *     capacity 8, mask 7, step 2          head = 5, tail = 10   (both only grow; slot = index & mask)
 *     slot   0   1   2   3   4   5   6   7
 *            i8  i9  -   -   -   i5  i6  i7
 *
 *     poll    takes slot 5, stores NULL there, head = 6. Were slot 5 NULL, the ring would be empty.
 *     offer   looks `step` slots ahead: slot 12 & 7 = 4 is NULL, and the consumer clears in order, so 2 and 3 are NULL,
 *             too: limit = 12, and the next two offers do not look at all. Were slot 4 taken, slot 2 alone would count.
 *
 * Threading law: one thread offers, one thread polls, which may change hands where something else orders the change.
 * Nothing blocks. Any thread may ask for the size.
 */
#ifndef PYSTORM_SPSC_RING_H
#define PYSTORM_SPSC_RING_H

#include "cython_core/primitives/atomics.h"

#define PS_SPSC_STEP 256 /* at most: 32 lines */

/* How many slots ahead poll asks for a line, while it takes items one after the other. Measured, million items a second
 * one at a time, on near cores and on far ones; 24 slots ahead the producer near is still filling the line:
 *
 *     ahead   none    8    16    20    22    24
 *     near     570  740   870   900   840   375
 *     far      170  235   280   295   315   325
 */
#define PS_SPSC_AHEAD 20

typedef struct {
    uint64_t mask;
    uint64_t step; /* how far an offer looks ahead */
    PS_APART ps_word tail; /* next index to offer; the producer's line */
    uint64_t limit; /* every slot below this index is known to be free */
    PS_APART ps_word head; /* next index to poll; the consumer's line */
    uint64_t tail_seen; /* tail, or what it was when drain last looked */
    uint64_t starved;   /* head when poll last found nothing */
    PS_APART ps_slot slots[];
} ps_spsc_ring;

/* NULL where memory is short or the capacity is no power of two. */
static inline ps_spsc_ring *ps_spsc_new(uint64_t capacity) {
    ps_spsc_ring *ring = NULL;
    if (capacity == 0 || (capacity & (capacity - 1)) != 0) return NULL;
    ring = (ps_spsc_ring *)ps_alloc_apart(sizeof(ps_spsc_ring), capacity, sizeof(ps_slot));
    if (ring == NULL) return NULL;
    ring->mask = capacity - 1;
    ring->step = capacity < 4 ? 1 : capacity / 4 < PS_SPSC_STEP ? capacity / 4 : PS_SPSC_STEP;
    return ring;
}

/* Items that are still in it are the caller's to drain before. */
static inline void ps_spsc_free(ps_spsc_ring *ring) { free(ring); }

static inline uint64_t ps_spsc_capacity(const ps_spsc_ring *ring) { return ring->mask + 1; }

/* Exact for the two threads while the other rests, else a recent value. */
static inline uint64_t ps_spsc_size(const ps_spsc_ring *ring) {
    /* Order: head first. It can only have grown since, so that no size is seen that was never there. */
    uint64_t head = ps_load_acquire(&ring->head);
    int64_t size = (int64_t)(ps_load_acquire(&ring->tail) - head);
    if (size < 0) return 0; /* a polled item whose tail is still on its way */
    return (uint64_t)size <= ring->mask ? (uint64_t)size : ring->mask + 1;
}

/* Whether slot `tail` is free; raises the limit as far as one look shows. */
static inline int ps_spsc_look_ahead(ps_spsc_ring *ring, uint64_t tail) {
    /* Order: the consumer's release of a slot also covers those that it cleared before. */
    if (ps_slot_load_acquire(&ring->slots[(tail + ring->step) & ring->mask]) == NULL) {
        ring->limit = tail + ring->step;
        /* The consumer has written these lines last. To ask for all of them at once costs little more than for one. */
        for (uint64_t i = 0; i < ring->step; i += PS_LINE_SLOTS)
            ps_prefetch_to_write(&ring->slots[(tail + i) & ring->mask]);
        return 1;
    }
    return ps_slot_load_acquire(&ring->slots[tail & ring->mask]) == NULL;
}

/* 1 where the item, not NULL, went in; 0 where the ring is full. */
static inline int ps_spsc_offer(ps_spsc_ring *ring, void *item) {
    uint64_t tail = ps_load_relaxed(&ring->tail);
    if (PS_UNLIKELY((int64_t)(ring->limit - tail) <= 0) && !ps_spsc_look_ahead(ring, tail)) return 0;
    ps_slot_store_release(&ring->slots[tail & ring->mask], item);
    ps_store_release(&ring->tail, tail + 1);
    return 1;
}

/* Offers the first items of a batch, in order, as many as there is room for; returns how many went in. */
static inline uint64_t ps_spsc_offer_batch(ps_spsc_ring *ring, void *const *items, uint64_t count) {
    uint64_t tail = ps_load_relaxed(&ring->tail), offered = 0;
    while (offered < count) {
        int64_t room = (int64_t)(ring->limit - tail);
        if (room <= 0) {
            if (!ps_spsc_look_ahead(ring, tail)) break;
            room = (int64_t)(ring->limit - tail);
            if (room <= 0) room = 1;
        }
        uint64_t at = tail & ring->mask, n = (uint64_t)room;
        if (n > count - offered) n = count - offered;
        if (n > ring->mask + 1 - at) n = ring->mask + 1 - at;
        ps_slots_fill_release(ring->slots + at, items + offered, n);
        offered += n;
        tail += n;
    }
    if (offered) ps_store_release(&ring->tail, tail);
    return offered;
}

/* The oldest item, or NULL where the ring is empty. */
static inline void *ps_spsc_poll(ps_spsc_ring *ring) {
    uint64_t head = ps_load_relaxed(&ring->head);
    ps_slot *slot = &ring->slots[head & ring->mask];
    void *item = ps_slot_load_acquire(slot);
    if (item == NULL) {
        if (ring->starved != head) ring->starved = head;
        return NULL;
    }
    /* If the ring is found empty between items, the line ahead is the producer's, which would have to get it back. */
    if ((head + PS_SPSC_AHEAD) % PS_LINE_SLOTS == 0 && head - ring->starved >= PS_LINE_SLOTS)
        ps_prefetch_to_write(&ring->slots[(head + PS_SPSC_AHEAD) & ring->mask]);
    /* Order: slots become NULL one after the other, also for the producer that looks at one of them only. */
    ps_slot_store_release(slot, NULL);
    ps_store_release(&ring->head, head + 1);
    return item;
}

/* Polls up to `limit` items into `items`; returns how many there were. */
static inline uint64_t ps_spsc_drain(ps_spsc_ring *ring, void **items, uint64_t limit) {
    uint64_t head = ps_load_relaxed(&ring->head), at = head & ring->mask, piece = ring->mask + 1 - at;
    if (limit > ring->mask + 1) limit = ring->mask + 1;
    int64_t there = (int64_t)(ring->tail_seen - head);
    if (there < (int64_t)limit) {
        /* The slot shows an empty ring, too, and looking at it leaves the producer's line alone. */
        if (ps_slot_load_relaxed(&ring->slots[at]) == NULL) return 0;
        ring->tail_seen = ps_load_acquire(&ring->tail);
        there = (int64_t)(ring->tail_seen - head);
        if (there <= 0) return 0;
        if (there < (int64_t)limit) limit = (uint64_t)there;
    }
    if (piece > limit) piece = limit;
    ps_slots_take_release(ring->slots + at, items, piece);
    ps_slots_take_release(ring->slots, items + piece, limit - piece);
    ps_store_release(&ring->head, head + limit);
    return limit;
}

#endif
