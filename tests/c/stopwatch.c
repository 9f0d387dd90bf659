/* The stopwatch: laps follow one another without a gap, and what lies before a start belongs to no lap. */
#include "cython_core/timing/stopwatch.h"

#include "check.h"

static void never_runs_backwards(void) {
    uint64_t last = ps_stopwatch_nanos();
    for (int i = 0; i < 1000000; i++) {
        uint64_t now = ps_stopwatch_nanos();
        CHECK(now >= last);
        last = now;
    }
}

static void wait_nanos(uint64_t nanos) {
    uint64_t goal = ps_stopwatch_nanos() + nanos;
    while (ps_stopwatch_nanos() < goal) {
    }
}

static void laps_make_the_whole(void) {
    ps_stopwatch watch = {0};
    uint64_t sum = 0, before = ps_stopwatch_nanos(), began, after;
    ps_stopwatch_run_on(&watch);
    began = watch.since;
    for (int i = 0; i < 1000; i++) {
        ps_stopwatch_run_on(&watch); /* it runs: this changes nothing */
        sum += ps_stopwatch_lap(&watch);
    }
    after = ps_stopwatch_nanos();
    CHECK(before <= began);
    CHECK(watch.since == began + sum);
    CHECK(watch.since <= after);
}

static void a_stop_leaves_out_what_follows(void) {
    ps_stopwatch watch = {0};
    ps_stopwatch_run_on(&watch);
    ps_stopwatch_stop(&watch);
    wait_nanos(2000000);
    uint64_t resumed = ps_stopwatch_nanos(), lap;
    ps_stopwatch_run_on(&watch);
    CHECK(watch.since >= resumed);
    wait_nanos(1000000);
    lap = ps_stopwatch_lap(&watch);
    CHECK(lap >= 1000000);
    CHECK(lap <= ps_stopwatch_nanos() - resumed);
}

int main(void) {
    never_runs_backwards();
    laps_make_the_whole();
    a_stop_leaves_out_what_follows();
    return 0;
}
