/* A bounded ring of values of one size from one thread to another, capacity a power of two; published by index.
 *
 * Lamport's ring with each side's copy of the other's index (Lee, Bu and Chandranmenon, MCRingBuffer): the indices are
 * read only when the copy no longer helps, and a batch is published by one store.
 *
 *     capacity 8, mask 7, width 16 bytes         head = 5, tail = 10   (both only grow; cell = index & mask)
 *     cell   0   1   2   3   4   5   6   7
 *            v8  v9  -   -   -   v5  v6  v7      room = capacity - (tail - head_seen)
 *
 *     claim    of 8 cells: 3, as head = 5 leaves room for 3 and cells 2..4 lie in one piece; they are the producer's
 *     publish  of 3: tail = 13, now they are the consumer's
 *     peek     of 8 cells: 3, as cells 5..7 lie in one piece and the rest begins at cell 0
 *     release  of 3: head = 8
 *
 * Every function takes the width that the ring was made with: as a constant it makes the copy one move.
 *
 * Threading law: one thread claims, publishes and offers, one thread peeks, releases and polls, which may change hands
 * where something else orders the change. Nothing blocks. Any thread may ask for the size.
 */
#ifndef PYSTORM_SPSC_VALUES_H
#define PYSTORM_SPSC_VALUES_H

#include "atomics.h"

typedef struct {
    uint64_t mask;
    size_t width;
    PS_APART ps_word tail; /* next index to offer; the producer's line */
    uint64_t head_seen;    /* head, or what it was */
    PS_APART ps_word head; /* next index to poll; the consumer's line */
    uint64_t tail_seen;    /* tail, or what it was */
    PS_APART unsigned char cells[];
} ps_spsc_values;

/* NULL where memory is short or the capacity is no power of two. */
static inline ps_spsc_values *ps_spsc_values_new(uint64_t capacity, size_t width) {
    ps_spsc_values *ring = NULL;
    if (capacity == 0 || (capacity & (capacity - 1)) != 0) return NULL;
    ring = (ps_spsc_values *)ps_alloc_apart(sizeof(ps_spsc_values), capacity, width);
    if (ring == NULL) return NULL;
    ring->mask = capacity - 1;
    ring->width = width;
    return ring;
}

static inline void ps_spsc_values_free(ps_spsc_values *ring) { free(ring); }

static inline uint64_t ps_spsc_values_capacity(const ps_spsc_values *ring) { return ring->mask + 1; }

/* Exact for the two threads while the other rests, else a recent value. */
static inline uint64_t ps_spsc_values_size(const ps_spsc_values *ring) {
    /* Order: head first. It can only have grown since, so that the difference is never below 0. */
    uint64_t head = ps_load_acquire(&ring->head);
    uint64_t size = ps_load_acquire(&ring->tail) - head;
    return size <= ring->mask ? size : ring->mask + 1;
}

/* Cells that the producer may write, at most `wanted`; looks at head only where the copy of it does not suffice. */
static inline uint64_t ps_spsc_values_room(ps_spsc_values *ring, uint64_t tail, uint64_t wanted) {
    uint64_t room = ring->mask + 1 - (tail - ring->head_seen);
    if (PS_LIKELY(room >= wanted)) return wanted;
    /* Order: the consumer has read the cells before it released them. */
    ring->head_seen = ps_load_acquire(&ring->head);
    room = ring->mask + 1 - (tail - ring->head_seen);
    return room < wanted ? room : wanted;
}

/* Cells that the consumer may read, at most `wanted`. */
static inline uint64_t ps_spsc_values_there(ps_spsc_values *ring, uint64_t head, uint64_t wanted) {
    uint64_t there = ring->tail_seen - head;
    if (PS_LIKELY(there >= wanted)) return wanted;
    /* Order: the producer has written the cells before it published them. */
    ring->tail_seen = ps_load_acquire(&ring->tail);
    there = ring->tail_seen - head;
    return there < wanted ? there : wanted;
}

static inline void *ps_spsc_values_cell(ps_spsc_values *ring, uint64_t index, size_t width) {
    return ring->cells + (size_t)(index & ring->mask) * width;
}

/* The next cells to write, *count of them in one piece: at most as many as asked for, 0 (and NULL) where the ring is
 * full. They are published by ps_spsc_values_publish; claiming again before that gives the same cells. */
static inline void *ps_spsc_values_claim(ps_spsc_values *ring, uint64_t *count, size_t width) {
    uint64_t tail = ps_load_relaxed(&ring->tail);
    uint64_t piece = ring->mask + 1 - (tail & ring->mask);
    *count = ps_spsc_values_room(ring, tail, *count < piece ? *count : piece);
    return *count ? ps_spsc_values_cell(ring, tail, width) : NULL;
}

/* Hands over the first `count` of the claimed cells. */
static inline void ps_spsc_values_publish(ps_spsc_values *ring, uint64_t count) {
    ps_store_release(&ring->tail, ps_load_relaxed(&ring->tail) + count);
}

/* The oldest cells, *count of them in one piece: at most as many as asked for, 0 (and NULL) where the ring is empty.
 * They stay as they are until ps_spsc_values_release. */
static inline const void *ps_spsc_values_peek(ps_spsc_values *ring, uint64_t *count, size_t width) {
    uint64_t head = ps_load_relaxed(&ring->head);
    uint64_t piece = ring->mask + 1 - (head & ring->mask);
    *count = ps_spsc_values_there(ring, head, *count < piece ? *count : piece);
    return *count ? ps_spsc_values_cell(ring, head, width) : NULL;
}

/* Gives the first `count` of the peeked cells back. */
static inline void ps_spsc_values_release(ps_spsc_values *ring, uint64_t count) {
    ps_store_release(&ring->head, ps_load_relaxed(&ring->head) + count);
}

/* 1 where the value went in, 0 where the ring is full. */
static inline int ps_spsc_values_offer(ps_spsc_values *ring, const void *value, size_t width) {
    uint64_t tail = ps_load_relaxed(&ring->tail);
    if (ps_spsc_values_room(ring, tail, 1) == 0) return 0;
    memcpy(ps_spsc_values_cell(ring, tail, width), value, width);
    ps_store_release(&ring->tail, tail + 1);
    return 1;
}

/* 1 and the oldest value, 0 where the ring is empty. */
static inline int ps_spsc_values_poll(ps_spsc_values *ring, void *value, size_t width) {
    uint64_t head = ps_load_relaxed(&ring->head);
    if (ps_spsc_values_there(ring, head, 1) == 0) return 0;
    memcpy(value, ps_spsc_values_cell(ring, head, width), width);
    ps_store_release(&ring->head, head + 1);
    return 1;
}

/* Offers the first values of a batch, in order, as many as there is room for; returns how many went in. */
static inline uint64_t ps_spsc_values_offer_batch(
    ps_spsc_values *ring, const void *values, uint64_t count, size_t width) {
    uint64_t tail = ps_load_relaxed(&ring->tail);
    uint64_t n = ps_spsc_values_room(ring, tail, count);
    uint64_t piece = ring->mask + 1 - (tail & ring->mask);
    if (n == 0) return 0;
    if (piece > n) piece = n;
    memcpy(ps_spsc_values_cell(ring, tail, width), values, (size_t)piece * width);
    memcpy(ring->cells, (const unsigned char *)values + (size_t)piece * width, (size_t)(n - piece) * width);
    ps_store_release(&ring->tail, tail + n);
    return n;
}

/* Polls up to `limit` values; returns how many there were. */
static inline uint64_t ps_spsc_values_drain(ps_spsc_values *ring, void *values, uint64_t limit, size_t width) {
    uint64_t head = ps_load_relaxed(&ring->head);
    uint64_t n = ps_spsc_values_there(ring, head, limit);
    uint64_t piece = ring->mask + 1 - (head & ring->mask);
    if (n == 0) return 0;
    if (piece > n) piece = n;
    memcpy(values, ps_spsc_values_cell(ring, head, width), (size_t)piece * width);
    memcpy((unsigned char *)values + (size_t)piece * width, ring->cells, (size_t)(n - piece) * width);
    ps_store_release(&ring->head, head + n);
    return n;
}

#endif
