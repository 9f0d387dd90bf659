/* A bounded ring of pointers from several threads to one, capacity a power of two; an empty slot is NULL.
 *
 * Follows JCTools' MpscArrayQueue: a producer claims an index (mpsc_indices.h), then fills the slot; the consumer reads
 * slots in order.
 *
 *     capacity 8, mask 7          head = 5, tail = 11   (both only grow; slot = index & mask)
 *     slot   0   1   2   3   4   5   6   7
 *            -   i9  i10 -   -   i5  i6  i7
 *
 *     Slot 0 is claimed (index 8) and not yet filled: its producer was stopped between the two. The consumer takes i5,
 *     i6 and i7, then sees an empty ring, though i9 and i10 are there, until i8 is. Nothing is lost or overtaken, and
 *     no thread waits in here. A consumer that has to tell this gap from an empty ring asks for the size, which is 3.
 *
 * A batch claims its n slots by one compare-exchange and lies in the ring in one piece.
 *
 * Threading law: any thread offers, one thread polls, which may change hands where something else orders the change.
 * Nothing blocks. Items of one thread come out in the order in which it offered them. Any thread may ask for the size.
 */
#ifndef PYSTORM_MPSC_RING_H
#define PYSTORM_MPSC_RING_H

#include "cython_core/queues/mpsc_indices.h"

/* How many slots ahead a line is asked for: by the consumer, while it takes items one after the other (spsc_ring.h says
 * why), and by a producer, as the next compare-exchange waits for the line of this slot to arrive. Two producers, one
 * item at a time: near 3 in 100 more than without, far 20. An offer that asks two lines ahead takes them from the
 * consumer: far a quarter less. */
#define PS_MPSC_POLL_AHEAD (2 * PS_LINE_SLOTS)
#define PS_MPSC_OFFER_AHEAD PS_LINE_SLOTS

typedef struct {
    ps_mpsc_indices at;
    uint64_t starved; /* head when poll last found nothing; the consumer's */
    PS_APART ps_slot slots[];
} ps_mpsc_ring;

/* NULL where memory is short or the capacity is no power of two. */
static inline ps_mpsc_ring *ps_mpsc_new(uint64_t capacity) {
    ps_mpsc_ring *ring = NULL;
    if (capacity == 0 || (capacity & (capacity - 1)) != 0) return NULL;
    ring = (ps_mpsc_ring *)ps_alloc_apart(sizeof(ps_mpsc_ring), capacity, sizeof(ps_slot));
    if (ring == NULL) return NULL;
    ps_mpsc_indices_start(&ring->at, capacity, 0);
    return ring;
}

/* Items that are still in it are the caller's to drain before. */
static inline void ps_mpsc_free(ps_mpsc_ring *ring) { free(ring); }

static inline uint64_t ps_mpsc_capacity(const ps_mpsc_ring *ring) { return ring->at.mask + 1; }

/* Claimed slots, filled or not. Exact while no thread offers or polls, else a recent value. */
static inline uint64_t ps_mpsc_size(const ps_mpsc_ring *ring) { return ps_mpsc_indices_size(&ring->at); }

/* 1 where the item, not NULL, went in; 0 where the ring is full. */
static inline int ps_mpsc_offer(ps_mpsc_ring *ring, void *item) {
    uint64_t count = 1;
    uint64_t index = ps_mpsc_indices_claim(&ring->at, &count);
    if (PS_UNLIKELY(count == 0)) return 0;
    /* Only where all of that line was polled, as far as the limit shows. */
    if (index % PS_LINE_SLOTS == 0 &&
        (int64_t)(ps_load_relaxed(&ring->at.limit) - index) > PS_MPSC_OFFER_AHEAD + PS_LINE_SLOTS)
        ps_prefetch_to_write(&ring->slots[(index + PS_MPSC_OFFER_AHEAD) & ring->at.mask]);
    ps_slot_store_release(&ring->slots[index & ring->at.mask], item);
    return 1;
}

/* Offers the first items of a batch, in one piece, as many as there is room for; returns how many went in. */
static inline uint64_t ps_mpsc_offer_batch(ps_mpsc_ring *ring, void *const *items, uint64_t count) {
    if (count == 0) return 0;
    uint64_t at = ps_mpsc_indices_claim(&ring->at, &count) & ring->at.mask, piece = ring->at.mask + 1 - at;
    if (piece > count) piece = count;
    ps_slots_fill_release(ring->slots + at, items, piece);
    ps_slots_fill_release(ring->slots, items + piece, count - piece);
    return count;
}

/* The oldest item; NULL where the ring is empty or the oldest slot is claimed and not yet filled. */
static inline void *ps_mpsc_poll(ps_mpsc_ring *ring) {
    uint64_t head = ps_load_relaxed(&ring->at.head);
    ps_slot *slot = &ring->slots[head & ring->at.mask];
    void *item = ps_slot_load_acquire(slot);
    if (item == NULL) {
        if (ring->starved != head) ring->starved = head;
        return NULL;
    }
    if ((head + PS_MPSC_POLL_AHEAD) % PS_LINE_SLOTS == 0 && head - ring->starved >= PS_LINE_SLOTS)
        ps_prefetch_to_write(&ring->slots[(head + PS_MPSC_POLL_AHEAD) & ring->at.mask]);
    ps_slot_store_relaxed(slot, NULL);
    /* Order: the slot is NULL before a producer may claim it. */
    ps_store_release(&ring->at.head, head + 1);
    return item;
}

/* Polls up to `limit` items into `items`; returns how many there were. */
static inline uint64_t ps_mpsc_drain(ps_mpsc_ring *ring, void **items, uint64_t limit) {
    uint64_t head = ps_load_relaxed(&ring->at.head), drained = 0;
    if (limit > ring->at.mask + 1) limit = ring->at.mask + 1;
    while (drained < limit) {
        /* A line of slots at a time: seen filled, then taken, before a producer has it back. */
        uint64_t at = (head + drained) & ring->at.mask, filled = 0, most = PS_LINE_SLOTS - at % PS_LINE_SLOTS;
        if (most > limit - drained) most = limit - drained;
        if (most > ring->at.mask + 1 - at) most = ring->at.mask + 1 - at;
        while (filled < most && ps_slot_load_acquire(&ring->slots[at + filled]) != NULL) filled++;
        ps_slots_take_release(ring->slots + at, items + drained, filled);
        drained += filled;
        if (filled < most) break;
    }
    /* Order: the slots are NULL before a producer may claim them. */
    if (drained) ps_store_release(&ring->at.head, head + drained);
    return drained;
}

#endif
