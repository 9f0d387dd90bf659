/* A bounded ring of values of one size from several threads to one, capacity a power of two; published by the batch.
 *
 * The twin of spsc_values.h. A producer claims cells (mpsc_indices.h), writes them, and marks the first one with the
 * index behind its last: one store publishes a batch of any size, and no producer waits for another one. The consumer
 * goes from mark to mark, as it comes to the first cell of every batch and to no other one's mark.
 *
 *     capacity 8, mask 7                head = 5, tail = 12   (both only grow; cell = index & mask)
 *     cell   0   1   2   3   4   5   6   7
 *            v8  v9  .   .   -   v5  v6  v7      v5..v7 and v8..v9 are batches, 10 and 11 are claimed, not published
 *     mark   10  1   3   .   4   8   6   7
 *
 *     peek     at index 5: its mark is 8, so 5, 6 and 7 are there. At index 8: mark 10, so 8 and 9 are there, too. At
 *              index 10: mark 3, and a mark that is not above its own index is of an earlier lap: nothing yet.
 *
 *     A producer that was stopped between claim and publish holds back what lies behind its cells, as in mpsc_ring.h.
 *
 * Every function takes the width that the ring was made with: as a constant it makes the copy one move.
 *
 * Threading law: any thread claims, publishes and offers, one thread peeks, releases and polls, which may change hands
 * where something else orders the change. Nothing blocks. Values of one thread come out in the order in which it
 * claimed their cells. Any thread may ask for the size.
 */
#ifndef PYSTORM_MPSC_VALUES_H
#define PYSTORM_MPSC_VALUES_H

#include "mpsc_indices.h"

typedef struct {
    size_t width;
    ps_word *marks; /* of each cell; what it says of a batch, it says at the batch's first cell */
    ps_mpsc_indices at;
    uint64_t seen; /* everything below is published; the consumer's, on the line of head */
    PS_APART unsigned char cells[];
} ps_mpsc_values;

/* NULL where memory is short or the capacity is no power of two. */
static inline ps_mpsc_values *ps_mpsc_values_new(uint64_t capacity, size_t width) {
    ps_mpsc_values *ring = NULL;
    if (capacity == 0 || (capacity & (capacity - 1)) != 0) return NULL;
    ring = (ps_mpsc_values *)ps_alloc_apart(sizeof(ps_mpsc_values), capacity, width);
    if (ring == NULL) return NULL;
    ring->marks = (ps_word *)ps_alloc_apart(0, capacity, sizeof(ps_word));
    if (ring->marks == NULL) {
        free(ring);
        return NULL;
    }
    ring->width = width;
    ps_mpsc_indices_start(&ring->at, capacity, 0);
    return ring;
}

static inline void ps_mpsc_values_free(ps_mpsc_values *ring) {
    if (ring == NULL) return;
    free(ring->marks);
    free(ring);
}

static inline uint64_t ps_mpsc_values_capacity(const ps_mpsc_values *ring) { return ring->at.mask + 1; }

/* Claimed cells, published or not. Exact while nobody offers or polls, else a recent value. */
static inline uint64_t ps_mpsc_values_size(const ps_mpsc_values *ring) { return ps_mpsc_indices_size(&ring->at); }

static inline void *ps_mpsc_values_cell(ps_mpsc_values *ring, uint64_t index, size_t width) {
    return ring->cells + (size_t)(index & ring->at.mask) * width;
}

/* Cells to write, *count of them in one piece from *first on: at most as many as asked for, 0 (and NULL) where the ring
 * is full. All of them are to be published, as nothing behind them is polled before. */
static inline void *ps_mpsc_values_claim(ps_mpsc_values *ring, uint64_t *first, uint64_t *count, size_t width) {
    if (*count) *first = ps_mpsc_indices_claim(&ring->at, count, 1);
    return *count ? ps_mpsc_values_cell(ring, *first, width) : NULL;
}

/* Hands over `count` claimed cells from `first` on, at least one; a claim may be published in several parts. */
static inline void ps_mpsc_values_publish(ps_mpsc_values *ring, uint64_t first, uint64_t count) {
    ps_store_release(&ring->marks[first & ring->at.mask], first + count);
}

/* Cells that the consumer may read, at most `wanted`. */
static inline uint64_t ps_mpsc_values_there(ps_mpsc_values *ring, uint64_t head, uint64_t wanted) {
    while (ring->seen - head < wanted) {
        /* Order: a producer has written the cells of a batch before it marked the first one. */
        uint64_t end = ps_load_acquire(&ring->marks[ring->seen & ring->at.mask]);
        if ((int64_t)(end - ring->seen) <= 0) return ring->seen - head;
        ring->seen = end;
    }
    return wanted;
}

/* The oldest cells, *count of them in one piece: at most as many as asked for, 0 (and NULL) where the ring is empty or
 * the oldest cell is claimed and not yet published. They stay as they are until ps_mpsc_values_release. */
static inline const void *ps_mpsc_values_peek(ps_mpsc_values *ring, uint64_t *count, size_t width) {
    uint64_t head = ps_load_relaxed(&ring->at.head);
    uint64_t piece = ring->at.mask + 1 - (head & ring->at.mask);
    *count = ps_mpsc_values_there(ring, head, *count < piece ? *count : piece);
    return *count ? ps_mpsc_values_cell(ring, head, width) : NULL;
}

/* Gives the first `count` of the peeked cells back. */
static inline void ps_mpsc_values_release(ps_mpsc_values *ring, uint64_t count) {
    ps_store_release(&ring->at.head, ps_load_relaxed(&ring->at.head) + count);
}

/* 1 where the value went in, 0 where the ring is full. */
static inline int ps_mpsc_values_offer(ps_mpsc_values *ring, const void *value, size_t width) {
    uint64_t count = 1, index = ps_mpsc_indices_claim(&ring->at, &count, 0);
    if (PS_UNLIKELY(count == 0)) return 0;
    memcpy(ps_mpsc_values_cell(ring, index, width), value, width);
    ps_mpsc_values_publish(ring, index, 1);
    return 1;
}

/* 1 and the oldest value, 0 where the ring is empty or the oldest cell is claimed and not yet published. */
static inline int ps_mpsc_values_poll(ps_mpsc_values *ring, void *value, size_t width) {
    uint64_t head = ps_load_relaxed(&ring->at.head);
    if (ps_mpsc_values_there(ring, head, 1) == 0) return 0;
    memcpy(value, ps_mpsc_values_cell(ring, head, width), width);
    ps_store_release(&ring->at.head, head + 1);
    return 1;
}

/* Offers the first values of a batch, in a row, as many as there is room for; returns how many went in. */
static inline uint64_t ps_mpsc_values_offer_batch(
    ps_mpsc_values *ring, const void *values, uint64_t count, size_t width) {
    if (count == 0) return 0;
    uint64_t first = ps_mpsc_indices_claim(&ring->at, &count, 0);
    if (count == 0) return 0;
    uint64_t piece = ring->at.mask + 1 - (first & ring->at.mask);
    if (piece > count) piece = count;
    memcpy(ps_mpsc_values_cell(ring, first, width), values, (size_t)piece * width);
    memcpy(ring->cells, (const unsigned char *)values + (size_t)piece * width, (size_t)(count - piece) * width);
    ps_mpsc_values_publish(ring, first, count);
    return count;
}

/* Polls up to `limit` values; returns how many there were. */
static inline uint64_t ps_mpsc_values_drain(ps_mpsc_values *ring, void *values, uint64_t limit, size_t width) {
    uint64_t head = ps_load_relaxed(&ring->at.head);
    uint64_t n = ps_mpsc_values_there(ring, head, limit);
    uint64_t piece = ring->at.mask + 1 - (head & ring->at.mask);
    if (n == 0) return 0;
    if (piece > n) piece = n;
    memcpy(values, ps_mpsc_values_cell(ring, head, width), (size_t)piece * width);
    memcpy((unsigned char *)values + (size_t)piece * width, ring->cells, (size_t)(n - piece) * width);
    ps_store_release(&ring->at.head, head + n);
    return n;
}

#endif
