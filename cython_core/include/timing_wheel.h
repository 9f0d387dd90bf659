/* A hierarchical timing wheel: which of very many timers are due, at a price that does not depend on their number.
 *
 * Follows Varghese and Lauck, "Hashed and hierarchical timing wheels" (1997), with intrusive lists and overflow levels
 * made on demand as in the purgatory of Kafka. A level is a ring of 256 buckets; a bucket of level 0 is one tick, one of
 * level 1 256 ticks, one of level 2 65,536 ticks. A timer lies in the lowest level that reaches as far as its expiry:
 *
 *     tick 1000 (level 0: bucket 232, level 1: bucket 3)          expiry, in ticks   due in   level   bucket
 *                                                                       1005              5       0   1005 & 255 = 237
 *     level 0   │ 1001 … 1023 │ 1024 … 1255 │                           1255            255       0   1255 & 255 = 231
 *     level 1        │ 1024 … 1279 │ 1280 … 1535 │ … 66303 │            1300            300       1   1300 >> 8  =   5
 *     level 2             │ 65536 … 131071 │ …                         70000          69000       2  70000 >> 16 =   1
 *
 * The tick goes from one bucket that is not empty to the next, found by a bit per bucket, however far that is. Where a
 * bucket of an upper level begins, its timers are put into the levels below; what lies in the bucket of the tick itself is
 * due. Cancelling unlinks a timer and leaves the bit, which whoever comes by clears.
 *
 * Guarantees: no timer is early; it is due at the first advance at or after its expiry, rounded up to a tick. Insert and
 * cancel take constant time, one advance as much as there are buckets and timers that it comes by. Memory: 2 KB per level
 * in use, at most seven levels, whatever is in them. A timer belongs to its owner, who may free it as soon as it is out.
 *
 * Threading law: one thread at a time. The clock is an argument: nanoseconds since any start, below 2^63, the same for all
 * calls; one that goes back is taken as standing still.
 */
#ifndef PYSTORM_TIMING_WHEEL_H
#define PYSTORM_TIMING_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define PS_WHEEL_BITS 8
#define PS_WHEEL_BUCKETS (1 << PS_WHEEL_BITS)
#define PS_WHEEL_WORDS (PS_WHEEL_BUCKETS / 64)
#define PS_WHEEL_LEVELS 7
#define PS_WHEEL_FARTHEST ((UINT64_C(1) << (PS_WHEEL_BITS * PS_WHEEL_LEVELS)) - 1) /* ticks ahead; farther ones lie there */

typedef struct ps_timer ps_timer;
struct ps_timer { /* zeroed: in no wheel */
    ps_timer *next;
    ps_timer **link; /* that points here; NULL: in no wheel */
    uint64_t tick;   /* when it is due */
};

typedef struct {
    ps_timer *buckets[PS_WHEEL_BUCKETS];
    uint64_t occupied[PS_WHEEL_WORDS]; /* a bit per bucket; not set: empty */
} ps_wheel_level;

typedef struct {
    uint64_t tick;                           /* whose timers are due, in `due` */
    uint64_t later;                          /* nanoseconds; before it nothing becomes due and no tick passes */
    uint64_t tick_nanos, per_nano;           /* per_nano: 2^64 / tick_nanos, rounded down */
    size_t size;
    ps_timer *due;
    ps_wheel_level *levels[PS_WHEEL_LEVELS]; /* owned; NULL: not needed so far */
} ps_wheel;

/* Places of the highest and the lowest bit of a number that is not 0. */
#if defined(__GNUC__)
static inline int ps_wheel_top_bit(uint64_t bits) { return 63 - __builtin_clzll(bits); }
static inline int ps_wheel_low_bit(uint64_t bits) { return __builtin_ctzll(bits); }
#else
static inline int ps_wheel_top_bit(uint64_t bits) {
    int place = 0;
    while (bits >>= 1) place++;
    return place;
}
static inline int ps_wheel_low_bit(uint64_t bits) { return ps_wheel_top_bit(bits & (~bits + 1)); }
#endif

/* Whole ticks in so many nanoseconds. Multiplying by the reciprocal gives that, or one less. */
static inline uint64_t ps_wheel_ticks(const ps_wheel *wheel, uint64_t nanos) {
#if defined(__SIZEOF_INT128__)
    uint64_t ticks = (uint64_t)(((unsigned __int128)nanos * wheel->per_nano) >> 64);
    return ticks + (nanos - ticks * wheel->tick_nanos >= wheel->tick_nanos);
#else
    return nanos / wheel->tick_nanos;
#endif
}

/* When a tick begins; the last time that there is for one behind it. */
static inline uint64_t ps_wheel_nanos(const ps_wheel *wheel, uint64_t tick) {
    return tick > wheel->per_nano ? UINT64_MAX - 1 : tick * wheel->tick_nanos;
}

static inline void ps_wheel_set_tick(ps_wheel *wheel, uint64_t tick) {
    wheel->tick = tick;
    wheel->later = ps_wheel_nanos(wheel, tick + 1);
}

/* Makes the levels up to this one that are not there yet; false: there is no memory. */
static inline bool ps_wheel_make_levels(ps_wheel *wheel, int last) {
    for (int i = 0; i <= last; i++) {
        if (wheel->levels[i] != NULL) continue;
        wheel->levels[i] = (ps_wheel_level *)calloc(1, sizeof(ps_wheel_level));
        if (wheel->levels[i] == NULL) return false;
    }
    return true;
}

/* 0, or -1 where there is no memory. `tick_nanos`: at least 1, below 2^62. */
static inline int ps_wheel_init(ps_wheel *wheel, uint64_t tick_nanos, uint64_t now) {
    *wheel = (ps_wheel){.tick_nanos = tick_nanos, .per_nano = UINT64_MAX / tick_nanos};
    ps_wheel_set_tick(wheel, ps_wheel_ticks(wheel, now));
    return ps_wheel_make_levels(wheel, 0) ? 0 : -1;
}

/* Timers that are in it stay as they are: they are to be zeroed before they are used again, or cleared before. */
static inline void ps_wheel_free(ps_wheel *wheel) {
    for (int i = 0; i < PS_WHEEL_LEVELS; i++) free(wheel->levels[i]);
    *wheel = (ps_wheel){0};
}

static inline size_t ps_wheel_size(const ps_wheel *wheel) { return wheel->size; }

static inline void ps_wheel_link(ps_timer **bucket, ps_timer *timer) {
    ps_timer *first = *bucket;
    timer->next = first;
    timer->link = bucket;
    if (first != NULL) first->link = &timer->next;
    *bucket = timer;
}

static inline void ps_wheel_unlink(ps_timer *timer) {
    *timer->link = timer->next;
    if (timer->next != NULL) timer->next->link = timer->link;
}

/* Into the bucket of its tick, which the wheel's has not passed. False: there is no memory for its level, made with all
 * below it, so that timers that descend always find one. */
static inline bool ps_wheel_place(ps_wheel *wheel, ps_timer *timer) {
    uint64_t ahead = timer->tick - wheel->tick;
    if (ahead > PS_WHEEL_FARTHEST) ahead = PS_WHEEL_FARTHEST;
    int level_index = ps_wheel_top_bit(ahead | 1) / PS_WHEEL_BITS;
    uint64_t bucket = ((wheel->tick + ahead) >> (level_index * PS_WHEEL_BITS)) % PS_WHEEL_BUCKETS;
    if (wheel->levels[level_index] == NULL && !ps_wheel_make_levels(wheel, level_index)) return false;
    ps_wheel_level *level = wheel->levels[level_index];
    level->occupied[bucket / 64] |= UINT64_C(1) << bucket % 64;
    ps_wheel_link(&level->buckets[bucket], timer);
    return true;
}

/* False: it was in no wheel. A timer that is in another wheel must not be given. */
static inline bool ps_wheel_cancel(ps_wheel *wheel, ps_timer *timer) {
    if (timer->link == NULL) return false;
    ps_wheel_unlink(timer);
    timer->link = NULL;
    wheel->size--;
    return true;
}

/* `expiry` in nanoseconds; a timer that is in already is moved. 1: it is in; 0: it is due already, and not in; -1: there
 * is no memory for an overflow level, and it is not in. */
static inline int ps_wheel_insert(ps_wheel *wheel, ps_timer *timer, uint64_t expiry) {
    uint64_t tick = ps_wheel_ticks(wheel, expiry);
    tick += tick * wheel->tick_nanos != expiry;
    ps_wheel_cancel(wheel, timer);
    if (tick <= wheel->tick) return 0;
    timer->tick = tick;
    if (!ps_wheel_place(wheel, timer)) return -1;
    wheel->size++;
    return 1;
}

/* How many buckets ahead of `from` the next one lies whose bit is set, 1 to 256; 0: there is none. */
static inline uint64_t ps_wheel_ahead(const ps_wheel_level *level, uint64_t from) {
    uint64_t start = (from + 1) % PS_WHEEL_BUCKETS, word = start / 64;
    uint64_t bits = level->occupied[word] & (UINT64_MAX << start % 64);
    for (int i = 0; i <= PS_WHEEL_WORDS; i++) {
        if (bits != 0) return (word * 64 + (uint64_t)ps_wheel_low_bit(bits) - start) % PS_WHEEL_BUCKETS + 1;
        word = (word + 1) % PS_WHEEL_WORDS;
        bits = level->occupied[word];
    }
    return 0;
}

/* The tick at which the next bucket of a level begins whose bit is set; UINT64_MAX: there is none. `empty_too`: of the
 * bits that are left by cancelling, as well. */
static inline uint64_t ps_wheel_level_next(const ps_wheel *wheel, int level_index, bool empty_too) {
    const ps_wheel_level *level = wheel->levels[level_index];
    int shift = level_index * PS_WHEEL_BITS;
    uint64_t here = wheel->tick >> shift, ahead = 0, step;
    if (level == NULL) return UINT64_MAX;
    while ((step = ps_wheel_ahead(level, here + ahead)) != 0 && (ahead += step) <= PS_WHEEL_BUCKETS)
        if (empty_too || level->buckets[(here + ahead) % PS_WHEEL_BUCKETS] != NULL) return (here + ahead) << shift;
    return UINT64_MAX;
}

static inline uint64_t ps_wheel_next_tick(const ps_wheel *wheel, bool empty_too) {
    uint64_t soonest = UINT64_MAX;
    for (int i = 0; i < PS_WHEEL_LEVELS; i++) {
        uint64_t tick = ps_wheel_level_next(wheel, i, empty_too);
        if (tick < soonest) soonest = tick;
    }
    return soonest;
}

/* A time, in nanoseconds, before which advance gives no timer: when the next bucket begins that is not empty, at whatever
 * level. UINT64_MAX: there is no timer. */
static inline uint64_t ps_wheel_next(const ps_wheel *wheel) {
    if (wheel->size == 0) return UINT64_MAX;
    return ps_wheel_nanos(wheel, wheel->due != NULL ? wheel->tick : ps_wheel_next_tick(wheel, false));
}

/* The timers of the bucket of the wheel's tick, out of the level. */
static inline ps_timer *ps_wheel_take_bucket(ps_wheel *wheel, int level_index) {
    ps_wheel_level *level = wheel->levels[level_index];
    uint64_t bucket = (wheel->tick >> (level_index * PS_WHEEL_BITS)) % PS_WHEEL_BUCKETS;
    ps_timer *first;
    if (level == NULL) return NULL;
    first = level->buckets[bucket];
    level->buckets[bucket] = NULL;
    level->occupied[bucket / 64] &= ~(UINT64_C(1) << bucket % 64);
    return first;
}

/* Puts the timers of the upper levels' buckets that begin with the wheel's tick into the levels below. */
static inline void ps_wheel_descend(ps_wheel *wheel) {
    for (int i = PS_WHEEL_LEVELS - 1; i > 0; i--) {
        if (wheel->tick & ((UINT64_C(1) << (i * PS_WHEEL_BITS)) - 1)) continue;
        ps_timer *timer = ps_wheel_take_bucket(wheel, i);
        while (timer != NULL) {
            ps_timer *next = timer->next;
            ps_wheel_place(wheel, timer);
            timer = next;
        }
    }
}

/* Goes to the next bucket that begins at or before tick `last`; false: there is none. */
static inline bool ps_wheel_step(ps_wheel *wheel, uint64_t last) {
    uint64_t next = wheel->size == 0 ? UINT64_MAX : ps_wheel_next_tick(wheel, true);
    if (next > last) return false;
    ps_wheel_set_tick(wheel, next);
    ps_wheel_descend(wheel);
    wheel->due = ps_wheel_take_bucket(wheel, 0);
    if (wheel->due != NULL) wheel->due->link = &wheel->due;
    return true;
}

/* The next timer that is due at `now`, out of the wheel; NULL: there is none left. Those of an earlier tick come before
 * those of a later one. Between the calls, timers may be inserted and cancelled. */
static inline ps_timer *ps_wheel_advance(ps_wheel *wheel, uint64_t now) {
    ps_timer *timer;
    while ((timer = wheel->due) == NULL) {
        if (now < wheel->later) return NULL;
        uint64_t last = ps_wheel_ticks(wheel, now);
        if (!ps_wheel_step(wheel, last)) ps_wheel_set_tick(wheel, last);
    }
    ps_wheel_cancel(wheel, timer);
    return timer;
}

/* Takes all timers out. */
static inline void ps_wheel_clear(ps_wheel *wheel) {
    while (wheel->due != NULL) ps_wheel_cancel(wheel, wheel->due);
    for (int i = 0; i < PS_WHEEL_LEVELS && wheel->levels[i] != NULL; i++)
        for (int bucket = 0; bucket < PS_WHEEL_BUCKETS; bucket++)
            while (wheel->levels[i]->buckets[bucket] != NULL)
                ps_wheel_cancel(wheel, wheel->levels[i]->buckets[bucket]);
}

#endif
