/* The ring of values from several threads, turned by one, against a model: numbers that count up, of several widths;
 * and a producer that stops half-way. */
#include "mpsc_values.h"

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
    CHECK(ps_mpsc_values_new(0, 8) == NULL);
    CHECK(ps_mpsc_values_new(6, 8) == NULL);
    CHECK(ps_mpsc_values_new(8, 0) == NULL);
    CHECK(ps_mpsc_values_new(UINT64_C(1) << 63, 8) == NULL);
    ps_mpsc_values_free(NULL);
}

/* As if `start` values had gone through before: no mark may be above its index. */
static ps_mpsc_values *ring_from(uint64_t capacity, size_t width, uint64_t start) {
    ps_mpsc_values *ring = ps_mpsc_values_new(capacity, width);
    CHECK(ring != NULL && ps_mpsc_values_capacity(ring) == capacity);
    ps_mpsc_indices_start(&ring->at, capacity, start);
    ring->seen = start;
    for (uint64_t i = 0; i < capacity; i++) ps_store_relaxed(&ring->marks[i], start);
    return ring;
}

static void follows_the_model(uint64_t capacity, size_t width, uint64_t start, unsigned long long seed) {
    ps_mpsc_values *ring = ring_from(capacity, width, start);
    uint64_t offered = 0, polled = 0;
    unsigned char values[40 * WIDEST];
    for (int step = 0; step < 20000; step++) {
        unsigned long long dice = check_random(&seed);
        uint64_t room = capacity - (offered - polled), there = offered - polled;
        uint64_t count = (dice >> 8) % 40, took = count, first = 0, wanted;
        CHECK(ps_mpsc_values_size(ring) == there);
        switch (dice % 6) {
        case 0:
            write_value(values, offered, width);
            CHECK(ps_mpsc_values_offer(ring, values, width) == (room > 0));
            offered += room > 0;
            break;
        case 1:
            for (uint64_t i = 0; i < count; i++) write_value(values + i * width, offered + i, width);
            took = ps_mpsc_values_offer_batch(ring, values, count, width);
            CHECK(took == (count < room ? count : room));
            offered += took;
            break;
        case 2: {
            unsigned char *cell = ps_mpsc_values_claim(ring, &first, &took, width);
            uint64_t piece = capacity - ((start + offered) & (capacity - 1));
            wanted = count < room ? count : room;
            CHECK(took == (wanted < piece ? wanted : piece));
            CHECK((cell == NULL) == (took == 0));
            if (took == 0) break;
            CHECK(first == start + offered && ps_mpsc_values_size(ring) == there + took);
            for (uint64_t i = 0; i < took; i++) write_value(cell + i * width, offered + i, width);
            /* In two parts, the second one first. */
            if (took > 1) ps_mpsc_values_publish(ring, first + 1, took - 1);
            CHECK(ps_mpsc_values_there(ring, start + polled, UINT64_MAX) == there);
            ps_mpsc_values_publish(ring, first, 1);
            offered += took;
            break;
        }
        case 3:
            CHECK(ps_mpsc_values_poll(ring, values, width) == (there > 0));
            if (there > 0) check_value(values, polled++, width);
            break;
        case 4:
            took = ps_mpsc_values_drain(ring, values, count, width);
            CHECK(took == (count < there ? count : there));
            for (uint64_t i = 0; i < took; i++) check_value(values + i * width, polled++, width);
            break;
        default: {
            const unsigned char *cell = ps_mpsc_values_peek(ring, &took, width);
            uint64_t piece = capacity - ((start + polled) & (capacity - 1));
            wanted = count < there ? count : there;
            CHECK(took == (wanted < piece ? wanted : piece));
            CHECK((cell == NULL) == (took == 0));
            for (uint64_t i = 0; i < took; i++) check_value(cell + i * width, polled + i, width);
            ps_mpsc_values_release(ring, took);
            polled += took;
        }
        }
    }
    CHECK(polled > 1000);
    ps_mpsc_values_free(ring);
}

/* A producer claims two cells and is stopped before it publishes them. */
static void nothing_passes_a_gap_and_nothing_is_lost(void) {
    ps_mpsc_values *ring = ps_mpsc_values_new(8, sizeof(uint64_t));
    uint64_t values[8] = {0, 1, 2, 3, 4, 5, 6, 7}, seen[8], first = 0, count = 2;
    CHECK(ps_mpsc_values_offer(ring, values, sizeof(uint64_t)) == 1);
    uint64_t *gap = ps_mpsc_values_claim(ring, &first, &count, sizeof(uint64_t));
    CHECK(gap != NULL && first == 1 && count == 2);
    CHECK(ps_mpsc_values_offer_batch(ring, values + 3, 8, sizeof(uint64_t)) == 5);
    CHECK(ps_mpsc_values_offer(ring, values, sizeof(uint64_t)) == 0); /* the gap counts: no one takes its cells */
    CHECK(ps_mpsc_values_drain(ring, seen, 8, sizeof(uint64_t)) == 1 && seen[0] == 0);
    CHECK(ps_mpsc_values_poll(ring, seen, sizeof(uint64_t)) == 0 && ps_mpsc_values_size(ring) == 7);
    gap[0] = 1;
    gap[1] = 2;
    ps_mpsc_values_publish(ring, first, count);
    CHECK(ps_mpsc_values_drain(ring, seen, 8, sizeof(uint64_t)) == 7);
    for (uint64_t i = 0; i < 7; i++) CHECK(seen[i] == i + 1);
    ps_mpsc_values_free(ring);
}

int main(void) {
    static const size_t widths[] = {1, 8, 12, WIDEST};
    refuses_other_capacities();
    nothing_passes_a_gap_and_nothing_is_lost();
    for (uint64_t capacity = 1; capacity <= 64; capacity *= 2)
        for (int i = 0; i < 4; i++) {
            follows_the_model(capacity, widths[i], 0, 88172645463325252ULL + capacity + widths[i]);
            follows_the_model(capacity, widths[i], UINT64_MAX - 20, 88172645463325252ULL * capacity + widths[i]);
        }
    return 0;
}
