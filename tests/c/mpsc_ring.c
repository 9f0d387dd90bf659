/* The ring from several threads to one, turned by one, against a model; and a producer that stops half-way. */
#include "cython_core/queues/mpsc_ring.h"

#include "check.h"

static char cells[1 << 20]; /* items are addresses in here, one after the other: only ever compared */

static void refuses_other_capacities(void) {
    CHECK(ps_mpsc_new(0) == NULL);
    CHECK(ps_mpsc_new(6) == NULL);
    CHECK(ps_mpsc_new(UINT64_C(1) << 63) == NULL);
}

static void follows_the_model(uint64_t capacity, uint64_t start, unsigned long long seed) {
    ps_mpsc_ring *ring = ps_mpsc_new(capacity);
    uint64_t offered = 0, polled = 0;
    void *batch[40];
    CHECK(ring != NULL && ps_mpsc_capacity(ring) == capacity);
    ps_mpsc_indices_start(&ring->at, capacity, start);
    for (int step = 0; step < 20000; step++) {
        unsigned long long dice = check_random(&seed);
        uint64_t room = capacity - (offered - polled), count = (dice >> 8) % 40, went, wanted;
        CHECK(ps_mpsc_size(ring) == offered - polled);
        switch (dice % 4) {
        case 0:
            went = (uint64_t)ps_mpsc_offer(ring, cells + offered);
            CHECK(went == (room > 0));
            offered += went;
            break;
        case 1:
            for (uint64_t i = 0; i < count; i++) batch[i] = cells + offered + i;
            went = ps_mpsc_offer_batch(ring, batch, count);
            CHECK(went == (count < room ? count : room));
            offered += went;
            break;
        case 2:
            CHECK(ps_mpsc_poll(ring) == (polled < offered ? cells + polled : NULL));
            polled += polled < offered;
            break;
        default:
            wanted = offered - polled < count ? offered - polled : count;
            CHECK(ps_mpsc_drain(ring, batch, count) == wanted);
            for (uint64_t i = 0; i < wanted; i++) CHECK(batch[i] == cells + polled++);
        }
    }
    CHECK(polled > 1000 && offered < sizeof cells);
    ps_mpsc_free(ring);
}

/* A producer claims two slots and is stopped before it fills them. */
static void nothing_passes_a_gap_and_nothing_is_lost(void) {
    ps_mpsc_ring *ring = ps_mpsc_new(8);
    void *items[8];
    uint64_t count = 2;
    CHECK(ps_mpsc_offer(ring, cells) == 1);
    uint64_t gap = ps_mpsc_indices_claim(&ring->at, &count);
    CHECK(gap == 1 && count == 2);
    for (int i = 3; i < 8; i++) CHECK(ps_mpsc_offer(ring, cells + i) == 1);
    CHECK(ps_mpsc_offer(ring, cells + 8) == 0); /* the gap counts: no one takes its slots */
    CHECK(ps_mpsc_drain(ring, items, 8) == 1 && items[0] == cells);
    CHECK(ps_mpsc_poll(ring) == NULL && ps_mpsc_size(ring) == 7);
    CHECK(ps_mpsc_offer(ring, cells + 8) == 1);
    CHECK(ps_mpsc_offer(ring, cells + 9) == 0);
    ps_slot_store_release(&ring->slots[gap + 1], cells + 2);
    CHECK(ps_mpsc_drain(ring, items, 8) == 0);
    ps_slot_store_release(&ring->slots[gap], cells + 1);
    CHECK(ps_mpsc_drain(ring, items, 8) == 8);
    for (int i = 0; i < 8; i++) CHECK(items[i] == cells + i + 1);
    ps_mpsc_free(ring);
}

int main(void) {
    refuses_other_capacities();
    nothing_passes_a_gap_and_nothing_is_lost();
    for (uint64_t capacity = 1; capacity <= 64; capacity *= 2) {
        follows_the_model(capacity, 0, 88172645463325252ULL + capacity);
        follows_the_model(capacity, UINT64_MAX - 20, 88172645463325252ULL * capacity); /* indices wrap around */
    }
    return 0;
}
