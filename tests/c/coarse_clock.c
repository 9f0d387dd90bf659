/* The coarse clock never runs backwards, and is at most a few ticks behind the fine one. */
#include "cython_core/timing/coarse_clock.h"

#include "check.h"

static uint64_t fine_nanos(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void never_runs_backwards(void) {
    uint64_t last = ps_coarse_nanos();
    for (int i = 0; i < 1000000; i++) {
        uint64_t now = ps_coarse_nanos();
        CHECK(now >= last);
        last = now;
    }
}

static void reaches_what_the_fine_clock_has_reached(void) {
    uint64_t goal = fine_nanos() + UINT64_C(30000000);
    while (fine_nanos() < goal) {
    }
    CHECK(ps_coarse_nanos() + UINT64_C(20000000) >= goal);
    CHECK(ps_coarse_nanos() <= fine_nanos());
}

int main(void) {
    never_runs_backwards();
    reaches_what_the_fine_clock_has_reached();
    return 0;
}
