/* The ring between two threads, turned by one, against a model: a plain first-in, first-out list of numbers. */
#include "cython_core/queues/spsc_ring.h"

#include "check.h"

static char cells[1 << 20]; /* items are addresses in here, one after the other: only ever compared */

static void refuses_other_capacities(void) {
    CHECK(ps_spsc_new(0) == NULL);
    CHECK(ps_spsc_new(6) == NULL);
    CHECK(ps_spsc_new(UINT64_C(1) << 63) == NULL);
}

static void follows_the_model(uint64_t capacity, uint64_t start, unsigned long long seed) {
    ps_spsc_ring *ring = ps_spsc_new(capacity);
    uint64_t offered = 0, polled = 0;
    void *batch[40];
    CHECK(ring != NULL && ps_spsc_capacity(ring) == capacity);
    ps_store_relaxed(&ring->head, start);
    ps_store_relaxed(&ring->tail, start);
    ring->limit = ring->tail_seen = start;
    for (int step = 0; step < 20000; step++) {
        unsigned long long dice = check_random(&seed);
        uint64_t room = capacity - (offered - polled), count = (dice >> 8) % 40, went, wanted;
        CHECK(ps_spsc_size(ring) == offered - polled);
        switch (dice % 4) {
        case 0:
            went = (uint64_t)ps_spsc_offer(ring, cells + offered);
            CHECK(went == (room > 0));
            offered += went;
            break;
        case 1:
            for (uint64_t i = 0; i < count; i++) batch[i] = cells + offered + i;
            went = ps_spsc_offer_batch(ring, batch, count);
            CHECK(went == (count < room ? count : room));
            offered += went;
            break;
        case 2:
            CHECK(ps_spsc_poll(ring) == (polled < offered ? cells + polled : NULL));
            polled += polled < offered;
            break;
        default:
            wanted = offered - polled < count ? offered - polled : count;
            CHECK(ps_spsc_drain(ring, batch, count) == wanted);
            for (uint64_t i = 0; i < wanted; i++) CHECK(batch[i] == cells + polled++);
        }
    }
    CHECK(polled > 1000 && offered < sizeof cells);
    ps_spsc_free(ring);
}

int main(void) {
    refuses_other_capacities();
    for (uint64_t capacity = 1; capacity <= 64; capacity *= 2) {
        follows_the_model(capacity, 0, 88172645463325252ULL + capacity);
        follows_the_model(capacity, UINT64_MAX - 20, 88172645463325252ULL * capacity); /* indices wrap around */
    }
    return 0;
}
