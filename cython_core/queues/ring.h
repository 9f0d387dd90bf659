/* A bounded ring of pointers, capacity a power of two.
 *
 * Follows the receive queue of STORM-2306 (one bounded queue per executor, single-level batches published at once).
 *
 *     capacity 8, mask 7          head = 5, tail = 11   (both only grow; slot = index & mask)
 *     slot   0  1  2  3  4  5  6  7
 *            i8 i9 i10 -  -  i5 i6 i7        size = tail - head = 6, room = capacity - size = 2
 *
 * Threading law: one thread at a time. The ring belongs to the inline scheduler, where producer and consumer take turns
 * on one thread.
 */
#ifndef PYSTORM_RING_H
#define PYSTORM_RING_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    void **slots;
    uint64_t mask;
    uint64_t head; /* next index to poll */
    uint64_t tail; /* next index to offer */
} ps_ring;

/* Smallest power of two >= n; 0 where n is 0 or has none in 63 bits. */
static inline uint64_t ps_ring_round_up(uint64_t n) {
    uint64_t capacity = 1;
    if (n == 0 || n > (UINT64_C(1) << 62)) return 0;
    while (capacity < n) capacity <<= 1;
    return capacity;
}

/* 0 on success, -1 where memory is short or the capacity is no power of two. */
static inline int ps_ring_init(ps_ring *ring, uint64_t capacity) {
    ring->slots = NULL;
    ring->mask = 0;
    ring->head = ring->tail = 0;
    if (capacity == 0 || (capacity & (capacity - 1)) != 0 || capacity > SIZE_MAX / sizeof(void *)) return -1;
    ring->slots = (void **)calloc((size_t)capacity, sizeof(void *));
    if (ring->slots == NULL) return -1;
    ring->mask = capacity - 1;
    return 0;
}

static inline void ps_ring_free(ps_ring *ring) {
    free(ring->slots);
    ring->slots = NULL;
}

static inline uint64_t ps_ring_size(const ps_ring *ring) { return ring->tail - ring->head; }

static inline uint64_t ps_ring_room(const ps_ring *ring) { return ring->mask + 1 - (ring->tail - ring->head); }

/* 1 where the item went in, 0 where the ring is full. */
static inline int ps_ring_offer(ps_ring *ring, void *item) {
    if (ring->tail - ring->head > ring->mask) return 0;
    ring->slots[ring->tail & ring->mask] = item;
    ring->tail++;
    return 1;
}

/* Offers the first items of a batch, in order, as many as there is room for; returns how many went in. */
static inline uint64_t ps_ring_offer_batch(ps_ring *ring, void *const *items, uint64_t count) {
    uint64_t room = ps_ring_room(ring);
    uint64_t n = count < room ? count : room;
    uint64_t at = ring->tail & ring->mask;
    uint64_t first = ring->mask + 1 - at;
    if (first > n) first = n;
    memcpy(ring->slots + at, items, (size_t)first * sizeof(void *));
    memcpy(ring->slots, items + first, (size_t)(n - first) * sizeof(void *));
    ring->tail += n;
    return n;
}

/* The oldest item, or NULL where the ring is empty. */
static inline void *ps_ring_poll(ps_ring *ring) {
    if (ring->head == ring->tail) return NULL;
    return ring->slots[ring->head++ & ring->mask];
}

#endif
