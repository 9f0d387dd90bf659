/* The indices of a ring from several threads to one: which of them a producer may claim.
 *
 * Follows JCTools' MpscArrayQueue: one compare-exchange of tail claims any number of indices in a row. `limit` is head
 * + capacity as some producer last saw it, so that head's line, which the consumer writes all the time, is read once
 * per lap and not once per claim.
 *
 *     capacity 8         head = 5, tail = 11, limit = 13   (all only grow; slot = index & mask)
 *
 *     claim of 4: limit leaves room for 2, so head is looked at: 6 by now, limit = 14, and 3 are claimed: 11, 12, 13.
 *
 * Each of them lies on lines of its own: an offer writes tail, a poll writes head, and limit is read by all producers
 * and written once per lap.
 *
 * Threading law: any thread claims, one thread moves head. Nothing blocks.
 */
#ifndef PYSTORM_MPSC_INDICES_H
#define PYSTORM_MPSC_INDICES_H

#include "cython_core/primitives/atomics.h"

typedef struct {
    uint64_t mask;
    PS_APART ps_word tail;  /* next index to claim; every producer's */
    PS_APART ps_word limit; /* no index from here on may be claimed before head was looked at again */
    PS_APART ps_word head;  /* next index to poll; the consumer's */
} ps_mpsc_indices;

/* As if so many had been claimed and polled before. */
static inline void ps_mpsc_indices_start(ps_mpsc_indices *indices, uint64_t capacity, uint64_t first) {
    indices->mask = capacity - 1;
    ps_store_relaxed(&indices->tail, first);
    ps_store_relaxed(&indices->limit, first + capacity);
    ps_store_relaxed(&indices->head, first);
}

/* Claimed and not yet polled, published or not. Exact while no thread offers or polls, else a recent value. */
static inline uint64_t ps_mpsc_indices_size(const ps_mpsc_indices *indices) {
    /* Order: head first. It can only have grown since, so that the difference is never below 0. */
    uint64_t head = ps_load_acquire(&indices->head);
    uint64_t size = ps_load_acquire(&indices->tail) - head;
    return size <= indices->mask ? size : indices->mask + 1;
}

/* Claims up to *count indices in a row, *count of them, from the one that is returned; 0 if the ring is full. */
static inline uint64_t ps_mpsc_indices_claim(ps_mpsc_indices *indices, uint64_t *count) {
    const uint64_t wanted = *count;
    /* Order: the producer that raised the limit saw the slots below it given back, and hands that on with it. */
    uint64_t limit = ps_load_acquire(&indices->limit);
    uint64_t tail = ps_load_relaxed(&indices->tail);
    for (;;) {
        int64_t room = (int64_t)(limit - tail);
        if (PS_UNLIKELY(room < (int64_t)wanted)) {
            limit = ps_load_acquire(&indices->head) + indices->mask + 1;
            room = (int64_t)(limit - tail);
            if (room <= 0) {
                *count = 0;
                return tail;
            }
            /* The race of two producers for this store is benign: the smaller limit only costs another look. */
            ps_store_release(&indices->limit, limit);
        }
        *count = room < (int64_t)wanted ? (uint64_t)room : wanted;
        if (PS_LIKELY(ps_exchange_if_relaxed(&indices->tail, &tail, tail + *count))) return tail;
    }
}

#endif
