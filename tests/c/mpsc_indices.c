/* The indices that several producers claim, by one thread: the limit, and what wraps around. */
#include "cython_core/queues/mpsc_indices.h"

#include "check.h"

static uint64_t claimed(ps_mpsc_indices *indices, uint64_t asked, uint64_t expected_first) {
    uint64_t count = asked, first = ps_mpsc_indices_claim(indices, &count);
    CHECK(first == expected_first);
    return count;
}

static void claims_what_there_is_room_for(uint64_t start) {
    ps_mpsc_indices indices;
    ps_mpsc_indices_start(&indices, 8, start);
    CHECK(ps_mpsc_indices_size(&indices) == 0);
    CHECK(claimed(&indices, 5, start) == 5);
    CHECK(claimed(&indices, 5, start + 5) == 3);
    CHECK(claimed(&indices, 1, start + 8) == 0);
    CHECK(ps_mpsc_indices_size(&indices) == 8);
    ps_store_release(&indices.head, start + 2);
    CHECK(ps_mpsc_indices_size(&indices) == 6);
    CHECK(claimed(&indices, 1, start + 8) == 1); /* raises the limit */
    CHECK(ps_load_relaxed(&indices.limit) == start + 10);
    CHECK(claimed(&indices, 9, start + 9) == 1);
    CHECK(claimed(&indices, 9, start + 10) == 0);
}

/* What a producer stored that had looked at head before another one did. */
static void a_limit_that_fell_back_costs_a_look(void) {
    ps_mpsc_indices indices;
    ps_mpsc_indices_start(&indices, 4, 100);
    ps_store_release(&indices.head, 103);
    ps_store_relaxed(&indices.tail, 104);
    ps_store_relaxed(&indices.limit, 101);
    CHECK(claimed(&indices, 9, 104) == 3);
    CHECK(ps_load_relaxed(&indices.limit) == 107);
}

int main(void) {
    claims_what_there_is_room_for(0);
    claims_what_there_is_room_for(UINT64_MAX - 6);
    a_limit_that_fell_back_costs_a_look();
    return 0;
}
