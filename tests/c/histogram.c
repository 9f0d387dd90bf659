/* The histogram against a model: the sorted list of what was recorded. */
#include "cython_core/primitives/histogram.h"

#include "check.h"

#define MOST 3000

static int by_size(const void *a, const void *b) {
    uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
    return (first > second) - (first < second);
}

/* As many small durations as long ones: the number of bits is drawn first. */
static uint64_t duration(unsigned long long *seed) {
    unsigned bits = (unsigned)(check_random(seed) % (PS_HISTOGRAM_TOP_BITS + 1));
    return check_random(seed) & ((UINT64_C(1) << bits) - 1);
}

static void slots_follow_one_another(void) {
    for (uint32_t slot = 0; slot < PS_HISTOGRAM_SLOTS; slot++) {
        uint64_t low = ps_histogram_low(slot), next = ps_histogram_low(slot + 1);
        CHECK(low < next);
        CHECK(ps_histogram_slot(low) == slot);
        CHECK(ps_histogram_slot(next - 1) == slot);
        CHECK(next - low == 1 || (next - low) * PS_HISTOGRAM_STEPS <= low);
    }
    CHECK(ps_histogram_low(0) == 0);
    CHECK(ps_histogram_low(PS_HISTOGRAM_SLOTS) == UINT64_C(1) << PS_HISTOGRAM_TOP_BITS);
}

static void the_last_slot_counts_what_is_longer(void) {
    static ps_histogram histogram;
    uint64_t day = UINT64_C(86400) * 1000000000;
    CHECK(ps_histogram_slot(day) == PS_HISTOGRAM_SLOTS - 1);
    CHECK(ps_histogram_slot(UINT64_MAX) == PS_HISTOGRAM_SLOTS - 1);
    ps_histogram_record(&histogram, day);
    ps_histogram_record(&histogram, day + 1);
    CHECK(ps_histogram_count(&histogram) == 2);
    CHECK(ps_load_relaxed(&histogram.sum) == 2 * day + 1);
    CHECK(ps_histogram_quantile(&histogram, 1.0) == (double)(day + 1));
    CHECK(ps_histogram_quantile(&histogram, 0.5) <= (double)(day + 1));
}

static void nothing_has_no_quantiles(void) {
    static ps_histogram histogram;
    ps_histogram_record_many(&histogram, 5, 0);
    ps_histogram_record_mean(&histogram, 5, 0);
    CHECK(ps_histogram_count(&histogram) == 0);
    CHECK(ps_load_relaxed(&histogram.sum) == 0);
    CHECK(ps_load_relaxed(&histogram.maximum) == 0);
    CHECK(ps_histogram_quantile(&histogram, 0.5) == 0);
}

static void quantiles_are_close(const ps_histogram *histogram, uint64_t *sorted, uint64_t count) {
    qsort(sorted, count, sizeof *sorted, by_size);
    for (uint64_t rank = 1; rank <= count; rank++) {
        uint64_t truth = sorted[rank - 1], slot = ps_histogram_slot(truth);
        double answer = ps_histogram_quantile(histogram, ((double)rank - 0.5) / (double)count);
        CHECK(answer >= (double)ps_histogram_low((uint32_t)slot));
        CHECK(answer < (double)ps_histogram_low((uint32_t)slot + 1));
        CHECK(answer <= (double)sorted[count - 1]);
        CHECK(answer <= (double)truth * (1 + 1.0 / PS_HISTOGRAM_STEPS));
        CHECK(answer >= (double)truth * (1 - 1.0 / PS_HISTOGRAM_STEPS));
    }
    CHECK(ps_histogram_quantile(histogram, 1.0) == (double)sorted[count - 1]);
}

static void follows_the_model(uint64_t count, unsigned long long seed) {
    static uint64_t recorded[MOST];
    ps_histogram histogram = {0}, half = {0}, copy;
    uint64_t sum = 0, n = 0;
    while (n < count) {
        uint64_t nanos = duration(&seed), times = 1 + check_random(&seed) % 3;
        ps_histogram *into = check_random(&seed) % 2 ? &histogram : &half;
        if (times > count - n) times = count - n;
        if (times == 1) ps_histogram_record(into, nanos);
        else ps_histogram_record_many(into, nanos, times);
        sum += nanos * times;
        while (times-- > 0) recorded[n++] = nanos;
    }
    ps_histogram_merge(&histogram, &half);
    ps_histogram_copy(&copy, &histogram);
    CHECK(ps_histogram_count(&copy) == count);
    CHECK(ps_load_relaxed(&copy.sum) == sum);
    quantiles_are_close(&copy, recorded, count);
    CHECK(ps_load_relaxed(&copy.maximum) == recorded[count - 1]);
}

static void means_keep_the_sum(unsigned long long seed) {
    ps_histogram histogram = {0};
    uint64_t sum = 0, count = 0, longest = 0;
    for (int i = 0; i < 2000; i++) {
        uint64_t total = duration(&seed), calls = 1 + check_random(&seed) % 300;
        ps_histogram_record_mean(&histogram, total, calls);
        sum += total;
        count += calls;
        if (total / calls > longest) longest = total / calls;
    }
    CHECK(ps_histogram_count(&histogram) == count);
    CHECK(ps_load_relaxed(&histogram.sum) == sum);
    CHECK(ps_load_relaxed(&histogram.maximum) == longest);
}

int main(void) {
    slots_follow_one_another();
    the_last_slot_counts_what_is_longer();
    nothing_has_no_quantiles();
    for (uint64_t count = 1; count <= MOST; count = count * 3 / 2 + 1) follows_the_model(count, 7 + count);
    means_keep_the_sum(99);
    return 0;
}
