/* A bounded ring of pointers from several threads to one, capacity a power of two; an empty slot is NULL.
 *
 * Follows JCTools' MpscArrayQueue: a producer claims an index by one compare-exchange of tail, then fills the slot; the
 * consumer reads slots in order. `limit` is head + capacity as some producer last saw it, so that head's line, which
 * the consumer writes all the time, is read once per lap and not once per offer.
 *
 *     capacity 8, mask 7          head = 5, tail = 11, limit = 13   (all only grow; slot = index & mask)
 *     slot   0   1   2   3   4   5   6   7
 *            -   i9  i10 -   -   i5  i6  i7
 *
 *     Slot 0 is claimed (index 8) and not yet filled: its producer was stopped between the two. The consumer takes i5,
 *     i6 and i7, then sees an empty ring, though i9 and i10 are there, until i8 is. Nothing is lost or overtaken, and
 *     nobody waits in here; a consumer that wants to tell this gap from an empty ring asks for the size, which is 3.
 *     No claim passes limit: 2 more go in before a producer looks at head again.
 *
 * A batch claims its n slots by one compare-exchange and lies in the ring in one piece. Nobody asks for lines ahead as
 * in spsc_ring.h: near, where a claim costs more than a line, that took a tenth of the speed.
 *
 * Threading law: any thread offers, one thread polls, which may change hands where something else orders the change.
 * Nothing blocks. Items of one thread come out in the order in which it offered them. Any thread may ask for the size.
 */
#ifndef PYSTORM_MPSC_RING_H
#define PYSTORM_MPSC_RING_H

#include "atomics.h"

typedef struct {
    uint64_t mask;
    PS_APART ps_word tail;  /* next index to claim; every producer's */
    PS_APART ps_word limit; /* no index from here on may be claimed before head was looked at again */
    PS_APART ps_word head;  /* next index to poll; the consumer's */
    PS_APART ps_slot slots[];
} ps_mpsc_ring;

/* NULL where memory is short or the capacity is no power of two. */
static inline ps_mpsc_ring *ps_mpsc_new(uint64_t capacity) {
    ps_mpsc_ring *ring = NULL;
    if (capacity == 0 || (capacity & (capacity - 1)) != 0) return NULL;
    ring = (ps_mpsc_ring *)ps_alloc_apart(sizeof(ps_mpsc_ring), capacity, sizeof(ps_slot));
    if (ring == NULL) return NULL;
    ring->mask = capacity - 1;
    ps_store_relaxed(&ring->limit, capacity);
    return ring;
}

/* Items that are still in it are the caller's to drain before. */
static inline void ps_mpsc_free(ps_mpsc_ring *ring) { free(ring); }

static inline uint64_t ps_mpsc_capacity(const ps_mpsc_ring *ring) { return ring->mask + 1; }

/* Claimed slots, filled or not. Exact while nobody offers or polls, else a recent value. */
static inline uint64_t ps_mpsc_size(const ps_mpsc_ring *ring) {
    /* Order: head first. It can only have grown since, so that the difference is never below 0. */
    uint64_t head = ps_load_acquire(&ring->head);
    uint64_t size = ps_load_acquire(&ring->tail) - head;
    return size <= ring->mask ? size : ring->mask + 1;
}

/* Claims up to *count slots, *count of them, from the index that is returned; 0 slots where the ring is full. */
static inline uint64_t ps_mpsc_claim(ps_mpsc_ring *ring, uint64_t *count) {
    uint64_t wanted = *count;
    /* Order: whoever raised the limit saw the slots below it cleared, and hands that on with it. */
    uint64_t limit = ps_load_acquire(&ring->limit);
    uint64_t tail = ps_load_relaxed(&ring->tail);
    for (;;) {
        int64_t room = (int64_t)(limit - tail);
        if (PS_UNLIKELY(room < (int64_t)wanted)) {
            limit = ps_load_acquire(&ring->head) + ring->mask + 1;
            room = (int64_t)(limit - tail);
            if (room <= 0) {
                *count = 0;
                return tail;
            }
            /* The race of two producers for this store is benign: the smaller limit only costs another look. */
            ps_store_release(&ring->limit, limit);
        }
        *count = room < (int64_t)wanted ? (uint64_t)room : wanted;
        if (PS_LIKELY(ps_exchange_if_relaxed(&ring->tail, &tail, tail + *count))) return tail;
    }
}

/* 1 where the item, not NULL, went in; 0 where the ring is full. */
static inline int ps_mpsc_offer(ps_mpsc_ring *ring, void *item) {
    uint64_t count = 1;
    uint64_t index = ps_mpsc_claim(ring, &count);
    if (PS_UNLIKELY(count == 0)) return 0;
    ps_slot_store_release(&ring->slots[index & ring->mask], item);
    return 1;
}

/* Offers the first items of a batch, in one piece, as many as there is room for; returns how many went in. */
static inline uint64_t ps_mpsc_offer_batch(ps_mpsc_ring *ring, void *const *items, uint64_t count) {
    if (count == 0) return 0;
    uint64_t at = ps_mpsc_claim(ring, &count) & ring->mask, piece = ring->mask + 1 - at;
    if (piece > count) piece = count;
    ps_slots_fill_release(ring->slots + at, items, piece);
    ps_slots_fill_release(ring->slots, items + piece, count - piece);
    return count;
}

/* The oldest item; NULL where the ring is empty or the oldest slot is claimed and not yet filled. */
static inline void *ps_mpsc_poll(ps_mpsc_ring *ring) {
    uint64_t head = ps_load_relaxed(&ring->head);
    ps_slot *slot = &ring->slots[head & ring->mask];
    void *item = ps_slot_load_acquire(slot);
    if (item == NULL) return NULL;
    ps_slot_store_relaxed(slot, NULL);
    /* Order: the slot is NULL before a producer may claim it. */
    ps_store_release(&ring->head, head + 1);
    return item;
}

/* Polls up to `limit` items into `items`; returns how many there were. */
static inline uint64_t ps_mpsc_drain(ps_mpsc_ring *ring, void **items, uint64_t limit) {
    uint64_t head = ps_load_relaxed(&ring->head), drained = 0;
    if (limit > ring->mask + 1) limit = ring->mask + 1;
    while (drained < limit) {
        /* A line of slots at a time: seen filled, then taken, before a producer has it back. */
        uint64_t at = (head + drained) & ring->mask, filled = 0, most = PS_LINE_SLOTS - at % PS_LINE_SLOTS;
        if (most > limit - drained) most = limit - drained;
        if (most > ring->mask + 1 - at) most = ring->mask + 1 - at;
        while (filled < most && ps_slot_load_acquire(&ring->slots[at + filled]) != NULL) filled++;
        ps_slots_take_release(ring->slots + at, items + drained, filled);
        drained += filled;
        if (filled < most) break;
    }
    if (drained) ps_store_release(&ring->head, head + drained);
    return drained;
}

#endif
