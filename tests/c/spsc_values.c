/* The ring of values between two threads, turned by one, against a model: numbers that count up, of several widths. */
#include "spsc_values.h"

#include "check.h"

#define WIDEST 24

static void write_value(unsigned char *value, uint64_t n, size_t width) {
    for (size_t i = 0; i < width; i++) value[i] = (unsigned char)(n >> (i % 3 * 8) ^ i);
}

static void check_value(const unsigned char *value, uint64_t n, size_t width) {
    unsigned char wanted[WIDEST];
    write_value(wanted, n, width);
    CHECK(memcmp(value, wanted, width) == 0);
}

static void refuses_other_capacities(void) {
    CHECK(ps_spsc_values_new(0, 8) == NULL);
    CHECK(ps_spsc_values_new(6, 8) == NULL);
    CHECK(ps_spsc_values_new(8, 0) == NULL);
    CHECK(ps_spsc_values_new(UINT64_C(1) << 63, 8) == NULL);
}

static void follows_the_model(uint64_t capacity, size_t width, uint64_t start, unsigned long long seed) {
    ps_spsc_values *ring = ps_spsc_values_new(capacity, width);
    uint64_t offered = 0, polled = 0;
    unsigned char values[40 * WIDEST];
    CHECK(ring != NULL && ps_spsc_values_capacity(ring) == capacity);
    ps_store_relaxed(&ring->head, start);
    ps_store_relaxed(&ring->tail, start);
    ring->head_seen = ring->tail_seen = start;
    for (int step = 0; step < 20000; step++) {
        unsigned long long dice = check_random(&seed);
        uint64_t room = capacity - (offered - polled), there = offered - polled;
        uint64_t count = (dice >> 8) % 40, took = count, wanted;
        CHECK(ps_spsc_values_size(ring) == there);
        switch (dice % 6) {
        case 0:
            write_value(values, offered, width);
            CHECK(ps_spsc_values_offer(ring, values, width) == (room > 0));
            offered += room > 0;
            break;
        case 1:
            for (uint64_t i = 0; i < count; i++) write_value(values + i * width, offered + i, width);
            took = ps_spsc_values_offer_batch(ring, values, count, width);
            CHECK(took == (count < room ? count : room));
            offered += took;
            break;
        case 2: {
            unsigned char *cell = ps_spsc_values_claim(ring, &took, width);
            uint64_t piece = capacity - ((start + offered) & (capacity - 1));
            wanted = count < room ? count : room;
            CHECK(took == (wanted < piece ? wanted : piece));
            CHECK((cell == NULL) == (took == 0));
            CHECK(ps_spsc_values_size(ring) == there);
            for (uint64_t i = 0; i < took; i++) write_value(cell + i * width, offered + i, width);
            took -= took > 1; /* the last one is claimed again later */
            ps_spsc_values_publish(ring, took);
            offered += took;
            break;
        }
        case 3:
            CHECK(ps_spsc_values_poll(ring, values, width) == (there > 0));
            if (there > 0) check_value(values, polled++, width);
            break;
        case 4:
            took = ps_spsc_values_drain(ring, values, count, width);
            CHECK(took == (count < there ? count : there));
            for (uint64_t i = 0; i < took; i++) check_value(values + i * width, polled++, width);
            break;
        default: {
            const unsigned char *cell = ps_spsc_values_peek(ring, &took, width);
            uint64_t piece = capacity - ((start + polled) & (capacity - 1));
            wanted = count < there ? count : there;
            CHECK(took == (wanted < piece ? wanted : piece));
            CHECK((cell == NULL) == (took == 0));
            for (uint64_t i = 0; i < took; i++) check_value(cell + i * width, polled + i, width);
            ps_spsc_values_release(ring, took);
            polled += took;
        }
        }
    }
    CHECK(polled > 1000);
    ps_spsc_values_free(ring);
}

int main(void) {
    static const size_t widths[] = {1, 8, 12, WIDEST};
    refuses_other_capacities();
    for (uint64_t capacity = 1; capacity <= 64; capacity *= 2)
        for (int i = 0; i < 4; i++) {
            follows_the_model(capacity, widths[i], 0, 88172645463325252ULL + capacity + widths[i]);
            follows_the_model(capacity, widths[i], UINT64_MAX - 20, 88172645463325252ULL * capacity + widths[i]);
        }
    return 0;
}
