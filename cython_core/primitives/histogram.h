/* A histogram of durations with logarithmic buckets, as HdrHistogram has them, in plain slots.
 *
 *     nanoseconds   0 1 2 … 15 │ 16 17 … 31 │ 32 34 … 62 │ 64 68 … 124 │ … │ 2^44 …
 *     slot          0 1 2 … 15 │ 16 17 … 31 │ 32 33 … 47 │ 48 49 …  63 │ … │ … 671
 *
 * Each power of two is cut into 16 equal slots: below 32 ns a slot is one nanosecond, above it is at most a sixteenth
 * of the durations that it counts. The last one also counts whatever is longer than 2^45 ns (9.8 hours). The number of
 * durations, their sum and the longest are exact; only how they are spread within a slot is lost.
 *
 * Threading law: one thread records, any thread copies, without a lock. A slot is read as a whole, never half-written.
 * A copy holds every duration whose recording had ended when the copying began; of those recorded meanwhile, some. Sum
 * and maximum of a copy cover at least the durations that its slots count.
 */
#ifndef PYSTORM_HISTOGRAM_H
#define PYSTORM_HISTOGRAM_H

#include <stdint.h>

#include "cython_core/primitives/atomics.h"

#define PS_HISTOGRAM_STEP_BITS 4
#define PS_HISTOGRAM_STEPS (1 << PS_HISTOGRAM_STEP_BITS)
#define PS_HISTOGRAM_TOP_BITS 45
#define PS_HISTOGRAM_SLOTS ((PS_HISTOGRAM_TOP_BITS - PS_HISTOGRAM_STEP_BITS + 1) * PS_HISTOGRAM_STEPS)

typedef struct {
    ps_word sum;     /* nanoseconds */
    ps_word maximum; /* nanoseconds */
    ps_word slots[PS_HISTOGRAM_SLOTS];
} ps_histogram;

static inline int ps_histogram_top_bit(uint64_t nanos) {
#if defined(__GNUC__)
    return 63 - __builtin_clzll(nanos);
#else
    int bit = 0;
    while (nanos >>= 1) bit++;
    return bit;
#endif
}

/* Which slot counts a duration. */
static inline uint32_t ps_histogram_slot(uint64_t nanos) {
    if (nanos < PS_HISTOGRAM_STEPS) return (uint32_t)nanos;
    if (nanos >> PS_HISTOGRAM_TOP_BITS) return PS_HISTOGRAM_SLOTS - 1;
    int shift = ps_histogram_top_bit(nanos) - PS_HISTOGRAM_STEP_BITS;
    return (uint32_t)((uint64_t)shift * PS_HISTOGRAM_STEPS + (nanos >> shift));
}

/* The shortest duration that a slot counts; of the slot behind the last one: 2^45. */
static inline uint64_t ps_histogram_low(uint32_t slot) {
    if (slot < 2 * PS_HISTOGRAM_STEPS) return slot;
    uint32_t shift = slot / PS_HISTOGRAM_STEPS - 1;
    return (uint64_t)(slot % PS_HISTOGRAM_STEPS + PS_HISTOGRAM_STEPS) << shift;
}

/* Order: the slot last and with release, so that a reader that sees it sees sum and maximum, too. */
static inline void ps_histogram_add(ps_histogram *histogram, uint64_t each, uint64_t count, uint64_t total) {
    ps_word *slot = &histogram->slots[ps_histogram_slot(each)];
    ps_store_relaxed(&histogram->sum, ps_load_relaxed(&histogram->sum) + total);
    if (each > ps_load_relaxed(&histogram->maximum)) ps_store_relaxed(&histogram->maximum, each);
    ps_store_release(slot, ps_load_relaxed(slot) + count);
}

static inline void ps_histogram_record(ps_histogram *histogram, uint64_t nanos) {
    ps_histogram_add(histogram, nanos, 1, nanos);
}

/* `count` durations of `nanos` each. */
static inline void ps_histogram_record_many(ps_histogram *histogram, uint64_t nanos, uint64_t count) {
    if (count) ps_histogram_add(histogram, nanos, count, nanos * count);
}

/* `count` durations that make `total` together, each counted as their mean, rounded down; the sum stays exact. */
static inline void ps_histogram_record_mean(ps_histogram *histogram, uint64_t total, uint64_t count) {
    if (count) ps_histogram_add(histogram, total / count, count, total);
}

/* Any thread. Order: the slots first, each with acquire. */
static inline void ps_histogram_copy(ps_histogram *copy, const ps_histogram *histogram) {
    for (uint32_t i = 0; i < PS_HISTOGRAM_SLOTS; i++)
        ps_store_relaxed(&copy->slots[i], ps_load_acquire(&histogram->slots[i]));
    ps_store_relaxed(&copy->sum, ps_load_relaxed(&histogram->sum));
    ps_store_relaxed(&copy->maximum, ps_load_relaxed(&histogram->maximum));
}

/* Adds what `other` counts, as if all had been recorded here. Neither is written to meanwhile. */
static inline void ps_histogram_merge(ps_histogram *histogram, const ps_histogram *other) {
    uint64_t maximum = ps_load_relaxed(&other->maximum);
    for (uint32_t i = 0; i < PS_HISTOGRAM_SLOTS; i++) {
        ps_word *slot = &histogram->slots[i];
        ps_store_relaxed(slot, ps_load_relaxed(slot) + ps_load_relaxed(&other->slots[i]));
    }
    ps_store_relaxed(&histogram->sum, ps_load_relaxed(&histogram->sum) + ps_load_relaxed(&other->sum));
    if (maximum > ps_load_relaxed(&histogram->maximum)) ps_store_relaxed(&histogram->maximum, maximum);
}

/* How many durations were recorded. */
static inline uint64_t ps_histogram_count(const ps_histogram *histogram) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < PS_HISTOGRAM_SLOTS; i++) count += ps_load_relaxed(&histogram->slots[i]);
    return count;
}

/* The shortest duration such that a share of at least 0 <= `share` <= 1 of all, and at least one, is no longer; 0 if
 * there is none. In the slot that holds it, the durations count as spread evenly over the slot, up to the maximum. So
 * the answer lies in the slot of the true one: at most a sixteenth of it off, and the maximum itself for share 1. */
static inline double ps_histogram_quantile(const ps_histogram *histogram, double share) {
    uint64_t maximum = ps_load_relaxed(&histogram->maximum);
    uint64_t count = ps_histogram_count(histogram);
    uint64_t rank = (uint64_t)(share * (double)count), below = 0;
    if (count == 0) return 0;
    if ((double)rank < share * (double)count) rank++;
    if (rank == 0) rank = 1;
    if (rank >= count) return (double)maximum;
    for (uint32_t i = 0;; i++) {
        uint64_t here = ps_load_relaxed(&histogram->slots[i]);
        if (below + here >= rank) {
            uint64_t low = ps_histogram_low(i), last = ps_histogram_low(i + 1) - 1;
            if (last > maximum || i == PS_HISTOGRAM_SLOTS - 1) last = maximum;
            if (here == 1) return ((double)low + (double)last) / 2;
            return (double)low + (double)(last - low) * (double)(rank - below - 1) / (double)(here - 1);
        }
        below += here;
    }
}

#endif
