/* One thread turns the core's rings, for callgrind: how many instructions an offer and a poll cost.
 *
 *     ring_turns CASE ITEMS */
#include "cython_core/queues/broadcast_ring.h"
#include "cython_core/queues/mpsc_ring.h"
#include "cython_core/queues/spsc_ring.h"

#include <stdio.h>

#define CAPACITY 1024
#define BATCH 100

static volatile uint64_t sink;

static void *item_of(uint64_t n) { return (void *)(uintptr_t)(n * 8 + 8); }

/* Not inlined, so that each operation costs as much as it does for any caller. */
#define ONE_BY_ONE(name, TYPE, NEW, OFFER, POLL, FREE)                                                                \
    static __attribute__((noinline)) int name##_offer(TYPE *ring, void *item) { return OFFER; }                       \
    static __attribute__((noinline)) void *name##_poll(TYPE *ring) {                                                  \
        void *item = NULL;                                                                                            \
        POLL;                                                                                                         \
        return item;                                                                                                  \
    }                                                                                                                 \
    static void name(uint64_t items) {                                                                                \
        TYPE *ring = NEW;                                                                                             \
        for (uint64_t n = 0; n < items; n++) {                                                                        \
            if (!name##_offer(ring, item_of(n))) exit(3);                                                             \
            sink = (uintptr_t)name##_poll(ring);                                                                      \
        }                                                                                                             \
        FREE;                                                                                                         \
    }

#define BATCHES(name, TYPE, NEW, OFFER, DRAIN, FREE)                                                                  \
    static __attribute__((noinline)) uint64_t name##_offer(TYPE *ring, void **items) { return OFFER; }                \
    static __attribute__((noinline)) uint64_t name##_drain(TYPE *ring, void **items) { return DRAIN; }                \
    static void name(uint64_t count) {                                                                                \
        TYPE *ring = NEW;                                                                                             \
        void *items[BATCH];                                                                                           \
        for (int i = 0; i < BATCH; i++) items[i] = item_of((uint64_t)i);                                              \
        for (uint64_t n = 0; n < count; n += BATCH)                                                                   \
            if (name##_offer(ring, items) != BATCH || name##_drain(ring, items) != BATCH) exit(3);                    \
        FREE;                                                                                                         \
    }

ONE_BY_ONE(spsc, ps_spsc_ring, ps_spsc_new(CAPACITY), ps_spsc_offer(ring, item), item = ps_spsc_poll(ring),
           ps_spsc_free(ring))
BATCHES(spsc_batch, ps_spsc_ring, ps_spsc_new(CAPACITY), ps_spsc_offer_batch(ring, items, BATCH),
        ps_spsc_drain(ring, items, BATCH), ps_spsc_free(ring))
ONE_BY_ONE(mpsc, ps_mpsc_ring, ps_mpsc_new(CAPACITY), ps_mpsc_offer(ring, item), item = ps_mpsc_poll(ring),
           ps_mpsc_free(ring))
BATCHES(mpsc_batch, ps_mpsc_ring, ps_mpsc_new(CAPACITY), ps_mpsc_offer_batch(ring, items, BATCH),
        ps_mpsc_drain(ring, items, BATCH), ps_mpsc_free(ring))

/* One writer, one reader. */
static int write_one(ps_broadcast_ring *ring, void *item) {
    uint64_t sequence;
    if (!ps_broadcast_try_claim(ring, 1, &sequence)) return 0;
    *(void **)ps_broadcast_at(ring, sequence, sizeof item) = item;
    ps_broadcast_publish(ring, sequence, 1);
    return 1;
}

static void *read_one(ps_broadcast_ring *ring) {
    ps_reader *reader = ring->readers[0];
    uint64_t next = ps_reader_next(reader);
    if (ps_reader_available(reader, 1) == next) return NULL;
    void *item = *(void **)ps_broadcast_at(ring, next, sizeof item);
    ps_reader_release(reader, next + 1);
    return item;
}

static ps_broadcast_ring *broadcast_new(void) {
    ps_broadcast_ring *ring = ps_broadcast_new(CAPACITY, sizeof(void *));
    if (ring == NULL || ps_broadcast_add_reader(ring, NULL, 0) == NULL) exit(3);
    return ring;
}

ONE_BY_ONE(broadcast, ps_broadcast_ring, broadcast_new(), write_one(ring, item), item = read_one(ring),
           ps_broadcast_free(ring))

static const struct {
    const char *name;
    void (*turn)(uint64_t items);
} cases[] = {
    {"spsc", spsc},
    {"spsc-batch", spsc_batch},
    {"mpsc", mpsc},
    {"mpsc-batch", mpsc_batch},
    {"broadcast", broadcast},
};

int main(int count, char **arguments) {
    if (count != 3) return 2;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i].name, arguments[1]) == 0) {
            cases[i].turn(strtoull(arguments[2], NULL, 10));
            return 0;
        }
    return 2;
}
