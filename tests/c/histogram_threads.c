/* One thread records, others copy: no copy is torn, goes back, or has a sum or maximum too small for its slots.
 *
 * With PYSTORM_NEGATIVE_CONTROL (atomics.h) a slot no longer vouches for what was written before it was counted:
 * ThreadSanitizer must say so. */
#define _DEFAULT_SOURCE
#include "cython_core/primitives/histogram.h"

#include "stress.h"

#define RECORDED 20000
#define WIDE (UINT64_C(0x0123456789))

static ps_histogram histogram;
static payload payloads[RECORDED];

/* Longer and longer, so that every record is a new maximum: half of them in new slots. */
static uint64_t duration(uint64_t n) { return n % 2 ? n : n * WIDE; }

static void *record(void *argument) {
    (void)argument;
    for (uint64_t n = 0; n < RECORDED; n++) {
        payloads[n] = payload_of(3, n);
        if (n % 3) ps_histogram_record(&histogram, duration(n));
        else ps_histogram_record_many(&histogram, duration(n), 1);
    }
    return NULL;
}

static void *copy(void *argument) {
    (void)argument;
    uint64_t seen = 0, sum = 0;
    while (seen < RECORDED) {
        ps_histogram taken;
        uint64_t least = 0, low = 0, count;
        ps_histogram_copy(&taken, &histogram);
        count = ps_histogram_count(&taken);
        for (uint32_t i = 0; i < PS_HISTOGRAM_SLOTS; i++) {
            uint64_t here = ps_load_relaxed(&taken.slots[i]);
            CHECK(here <= RECORDED);
            if (here > 0) low = ps_histogram_low(i);
            least += here * ps_histogram_low(i);
        }
        CHECK(count >= seen);
        CHECK(ps_load_relaxed(&taken.sum) >= least);
        CHECK(ps_load_relaxed(&taken.sum) >= sum);
        CHECK(ps_load_relaxed(&taken.maximum) >= low);
        for (uint64_t n = seen; n < count; n++) payload_check(&payloads[n], 3, n);
        seen = count;
        sum = ps_load_relaxed(&taken.sum);
    }
    return NULL;
}

int main(void) {
    void *(*const bodies[])(void *) = {record, copy, copy};
    void *const arguments[] = {NULL, NULL, NULL};
    uint64_t total = 0;
    deadline(200);
    run_threads(bodies, arguments, 3);
    for (uint64_t n = 0; n < RECORDED; n++) total += duration(n);
    CHECK(ps_histogram_count(&histogram) == RECORDED);
    CHECK(ps_load_relaxed(&histogram.sum) == total);
    CHECK(ps_load_relaxed(&histogram.maximum) == duration(RECORDED - 2));
    return 0;
}
