/* The ring against a model: a plain first-in, first-out list of numbers. */
#include "cython_core/queues/ring.h"

#include "check.h"

static void rounds_up_to_powers_of_two(void) {
    CHECK(ps_ring_round_up(0) == 0);
    CHECK(ps_ring_round_up(1) == 1);
    CHECK(ps_ring_round_up(5) == 8);
    CHECK(ps_ring_round_up(4096) == 4096);
    CHECK(ps_ring_round_up(UINT64_C(1) << 62) == UINT64_C(1) << 62);
    CHECK(ps_ring_round_up((UINT64_C(1) << 62) + 1) == 0);
}

static void refuses_other_capacities(void) {
    ps_ring ring;
    CHECK(ps_ring_init(&ring, 0) == -1);
    CHECK(ps_ring_init(&ring, 6) == -1);
    CHECK(ps_ring_init(&ring, UINT64_C(1) << 63) == -1);
    ps_ring_free(&ring); /* harmless after a failed init */
}

static void follows_the_model(uint64_t capacity, unsigned long long seed) {
    ps_ring ring;
    char cells[1];
    uintptr_t offered = 0, polled = 0; /* items are cells + n, n counting up: only ever compared */
    void *batch[40];
    CHECK(ps_ring_init(&ring, capacity) == 0);
    ring.head = ring.tail = UINT64_MAX - 20; /* indices wrap around within the test */
    for (int step = 0; step < 20000; step++) {
        unsigned long long dice = check_random(&seed);
        uint64_t room = capacity - (offered - polled);
        CHECK(ps_ring_size(&ring) == offered - polled);
        CHECK(ps_ring_room(&ring) == room);
        if (dice % 3 == 0) {
            int went_in = ps_ring_offer(&ring, (void *)((uintptr_t)cells + offered));
            CHECK(went_in == (room > 0));
            offered += (uintptr_t)went_in;
        } else if (dice % 3 == 1) {
            uint64_t count = (dice >> 8) % 40;
            for (uint64_t i = 0; i < count; i++) batch[i] = (void *)((uintptr_t)cells + offered + i);
            uint64_t went_in = ps_ring_offer_batch(&ring, batch, count);
            CHECK(went_in == (count < room ? count : room));
            offered += went_in;
        } else {
            for (uint64_t left = (dice >> 8) % 40; left > 0; left--) {
                void *item = ps_ring_poll(&ring);
                if (polled == offered) {
                    CHECK(item == NULL);
                    break;
                }
                CHECK(item == (void *)((uintptr_t)cells + polled));
                polled++;
            }
        }
    }
    CHECK(polled > 1000);
    ps_ring_free(&ring);
}

int main(void) {
    rounds_up_to_powers_of_two();
    refuses_other_capacities();
    for (uint64_t capacity = 1; capacity <= 64; capacity *= 2) follows_the_model(capacity, 88172645463325252ULL + capacity);
    return 0;
}
