/* A hierarchical timing wheel: which of very many timers are due, at a price that does not depend on their number.
 *
 * Follows Varghese and Lauck, "Hashed and hierarchical timing wheels" (1997), with intrusive lists and overflow levels
 * made on demand as in the purgatory of Kafka. A level is a ring of 2048 buckets. A bucket of level 0 is one tick, one
 * of level 1 32 ticks, one of level 2 1024 ticks, and so on. A timer lies in the lowest level that reaches its expiry:
 *
 *     now: tick 1000        level 0: bucket 1000           level 1: bucket 31           level 2: bucket 0
 *
 *     due at tick    ahead     level   bucket
 *           1005         5         0   1005
 *           3000      2000         0   3000 % 2048 = 952, behind which the ring goes on
 *          31000     30000         1   31000 / 32 = 968: ticks 30976 to 31007
 *         121000    120000         2   121000 / 1024 = 118: ticks 120832 to 121855
 *
 * The tick goes from one bucket that is not empty to the next, found by a bit per bucket, however far that is. When a
 * bucket of an upper level begins, its timers are put into the levels below; what lies in the bucket of the tick itself
 * is due. As a ring reaches 64 times as far as a bucket of the next level is long, few timers go down at a time, and
 * those of the levels 1 and 2, up to 34 minutes ahead, at once to level 0. Cancelling unlinks a timer and leaves the
 * bit, which the next advance that comes by clears.
 *
 * Guarantees: no timer is early; it is due at the first advance at or after its expiry, rounded up to a tick. Insert
 * and cancel take constant time, an advance as much as there are buckets and timers that it comes by. Memory: 64 KB for
 * each level in use, of at most nine, whatever is in them. A timer belongs to its owner, which may free it as soon as
 * it is out.
 *
 * Threading law: one thread at a time. The clock is an argument: nanoseconds since any start, below 2^63, the same for
 * all calls; one that goes back is taken as standing still.
 */
#ifndef PYSTORM_TIMING_WHEEL_H
#define PYSTORM_TIMING_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define PS_WHEEL_BITS 11
#define PS_WHEEL_BUCKETS (1 << PS_WHEEL_BITS)
#define PS_WHEEL_WORDS (PS_WHEEL_BUCKETS / 64)
#define PS_WHEEL_STEP_BITS 5 /* a bucket is 32 times as long as one of the level below */
#define PS_WHEEL_LEVELS 9
#define PS_WHEEL_LANES 4
#define PS_WHEEL_FARTHEST \
    ((UINT64_C(1) << ((PS_WHEEL_LEVELS - 1) * PS_WHEEL_STEP_BITS + PS_WHEEL_BITS)) - 1) /* farther ones lie there */

typedef struct ps_timer ps_timer;
struct ps_timer { /* zeroed: in no wheel */
    ps_timer *next;
    ps_timer **link; /* that points here; NULL: in no wheel */
    uint64_t tick;   /* when it is due */
};

/* Several lists, filled in turn: while one's next timer is on its way from memory, those of the others are taken. */
typedef struct {
    ps_timer *lanes[PS_WHEEL_LANES];
} ps_wheel_bucket;

typedef struct {
    ps_wheel_bucket buckets[PS_WHEEL_BUCKETS];
    uint64_t occupied[PS_WHEEL_WORDS]; /* a bit per bucket; not set: empty */
    uint64_t words;                    /* a bit per word of these; not set: 0 */
} ps_wheel_level;

typedef struct {
    uint64_t tick;                           /* whose timers are due, in `due` */
    uint64_t later;                          /* nanoseconds; before it nothing becomes due and no tick passes */
    uint64_t tick_nanos, per_nano;           /* per_nano: 2^64 / tick_nanos, rounded down */
    size_t size;
    unsigned turn;                           /* which lane the next timer goes into */
    unsigned due_turn;                       /* which lane the next timer is taken from */
    bool giving;                             /* false: there is no timer in `due` */
    ps_wheel_bucket due;
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

static inline void ps_wheel_prefetch(const void *memory) {
#if defined(__GNUC__)
    __builtin_prefetch(memory, 1);
#else
    (void)memory;
#endif
}

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

static inline void ps_wheel_link(ps_timer **lane, ps_timer *timer) {
    ps_timer *first = *lane;
    timer->next = first;
    timer->link = lane;
    if (first != NULL) first->link = &timer->next;
    *lane = timer;
}

static inline void ps_wheel_unlink(ps_timer *timer) {
    *timer->link = timer->next;
    if (timer->next != NULL) timer->next->link = timer->link;
}

/* The lowest level whose buckets reach so many ticks ahead. */
static inline int ps_wheel_level_of(uint64_t ahead) {
    const uint64_t nearest = PS_WHEEL_BUCKETS - 1;
    return (ps_wheel_top_bit(ahead | nearest) + PS_WHEEL_STEP_BITS - PS_WHEEL_BITS) / PS_WHEEL_STEP_BITS;
}

/* Into the bucket of its tick, which the wheel's has not passed. False: there is no memory for its level, made with all
 * below it, so that timers that descend always find one. */
static inline bool ps_wheel_place(ps_wheel *wheel, ps_timer *timer) {
    uint64_t ahead = timer->tick - wheel->tick;
    if (ahead > PS_WHEEL_FARTHEST) ahead = PS_WHEEL_FARTHEST;
    int level_index = ps_wheel_level_of(ahead);
    uint64_t bucket = ((wheel->tick + ahead) >> (level_index * PS_WHEEL_STEP_BITS)) % PS_WHEEL_BUCKETS;
    if (wheel->levels[level_index] == NULL && !ps_wheel_make_levels(wheel, level_index)) return false;
    ps_wheel_level *level = wheel->levels[level_index];
    level->occupied[bucket / 64] |= UINT64_C(1) << bucket % 64;
    level->words |= UINT64_C(1) << bucket / 64;
    ps_wheel_link(&level->buckets[bucket].lanes[wheel->turn++ % PS_WHEEL_LANES], timer);
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

/* `expiry` in nanoseconds; a timer that is in already is moved. 1: it is in; 0: it is due already, and not in; -1:
 * there is no memory for an overflow level, and it is not in. */
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

/* The first bucket from this one on whose bit is set; PS_WHEEL_BUCKETS: there is none before the ring's end. */
static inline uint64_t ps_wheel_first(const ps_wheel_level *level, uint64_t from) {
    uint64_t word = from / 64, bits, words;
    if (from == PS_WHEEL_BUCKETS) return from;
    bits = level->occupied[word] & (UINT64_MAX << from % 64);
    if (bits != 0) return word * 64 + (uint64_t)ps_wheel_low_bit(bits);
    words = level->words & (UINT64_MAX << word) & ~(UINT64_C(1) << word);
    if (words == 0) return PS_WHEEL_BUCKETS;
    word = (uint64_t)ps_wheel_low_bit(words);
    return word * 64 + (uint64_t)ps_wheel_low_bit(level->occupied[word]);
}

/* How many buckets ahead of `from` the next one lies whose bit is set, 1 to 2048; 0: there is none. */
static inline uint64_t ps_wheel_ahead(const ps_wheel_level *level, uint64_t from) {
    uint64_t here = from % PS_WHEEL_BUCKETS, found = ps_wheel_first(level, here + 1);
    if (found < PS_WHEEL_BUCKETS) return found - here;
    found = ps_wheel_first(level, 0);
    return found < PS_WHEEL_BUCKETS ? found + PS_WHEEL_BUCKETS - here : 0;
}

static inline bool ps_wheel_is_empty(const ps_wheel_bucket *bucket) {
    for (int i = 0; i < PS_WHEEL_LANES; i++)
        if (bucket->lanes[i] != NULL) return false;
    return true;
}

/* The first timer of the lane whose turn it is, still in it; NULL: all lanes are empty. */
static inline ps_timer *ps_wheel_peek(const ps_wheel_bucket *bucket, unsigned *turn) {
    for (int i = 0; i < PS_WHEEL_LANES; i++) {
        ps_timer *timer = bucket->lanes[(*turn)++ % PS_WHEEL_LANES];
        if (timer == NULL) continue;
        ps_wheel_prefetch(timer->next);
        return timer;
    }
    return NULL;
}

/* The tick at which the next bucket of a level begins whose bit is set; UINT64_MAX: there is none. `empty_too`: of the
 * bits that are left by cancelling, as well. */
static inline uint64_t ps_wheel_level_next(const ps_wheel *wheel, int level_index, bool empty_too) {
    const ps_wheel_level *level = wheel->levels[level_index];
    int shift = level_index * PS_WHEEL_STEP_BITS;
    uint64_t here = wheel->tick >> shift, ahead = 0, step;
    if (level == NULL) return UINT64_MAX;
    while ((step = ps_wheel_ahead(level, here + ahead)) != 0 && (ahead += step) <= PS_WHEEL_BUCKETS)
        if (empty_too || !ps_wheel_is_empty(&level->buckets[(here + ahead) % PS_WHEEL_BUCKETS]))
            return (here + ahead) << shift;
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

/* A time, in nanoseconds, before which advance gives no timer: when the next bucket begins that is not empty, at
 * whatever level. UINT64_MAX: there is no timer. */
static inline uint64_t ps_wheel_next(const ps_wheel *wheel) {
    if (wheel->size == 0) return UINT64_MAX;
    return ps_wheel_nanos(wheel, !ps_wheel_is_empty(&wheel->due) ? wheel->tick : ps_wheel_next_tick(wheel, false));
}

/* The bucket of the wheel's tick at this level, which is empty afterwards. */
static inline ps_wheel_bucket ps_wheel_take_bucket(ps_wheel *wheel, int level_index) {
    ps_wheel_level *level = wheel->levels[level_index];
    uint64_t bucket = (wheel->tick >> (level_index * PS_WHEEL_STEP_BITS)) % PS_WHEEL_BUCKETS;
    ps_wheel_bucket taken = level->buckets[bucket];
    level->buckets[bucket] = (ps_wheel_bucket){{NULL}};
    level->occupied[bucket / 64] &= ~(UINT64_C(1) << bucket % 64);
    if (level->occupied[bucket / 64] == 0) level->words &= ~(UINT64_C(1) << bucket / 64);
    return taken;
}

/* Puts the timers of the upper levels' buckets that begin with the wheel's tick into the levels below. */
static inline void ps_wheel_descend(ps_wheel *wheel) {
    for (int i = PS_WHEEL_LEVELS - 1; i > 0; i--) {
        if (wheel->levels[i] == NULL) continue;
        if (wheel->tick & ((UINT64_C(1) << (i * PS_WHEEL_STEP_BITS)) - 1)) continue;
        ps_wheel_bucket bucket = ps_wheel_take_bucket(wheel, i);
        unsigned turn = 0;
        for (ps_timer *timer; (timer = ps_wheel_peek(&bucket, &turn)) != NULL;) {
            bucket.lanes[(turn - 1) % PS_WHEEL_LANES] = timer->next;
            ps_wheel_place(wheel, timer);
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
    wheel->giving = true;
    for (int i = 0; i < PS_WHEEL_LANES; i++)
        if (wheel->due.lanes[i] != NULL) wheel->due.lanes[i]->link = &wheel->due.lanes[i];
    return true;
}

/* The next timer that is due at `now`, out of the wheel; NULL: there is none left. Those of an earlier tick come before
 * those of a later one. Between the calls, timers may be inserted and cancelled. */
static inline ps_timer *ps_wheel_advance(ps_wheel *wheel, uint64_t now) {
    for (;;) {
        ps_timer *timer = wheel->giving ? ps_wheel_peek(&wheel->due, &wheel->due_turn) : NULL;
        if (timer != NULL) {
            ps_wheel_cancel(wheel, timer);
            return timer;
        }
        wheel->giving = false;
        if (now < wheel->later) return NULL;
        uint64_t last = ps_wheel_ticks(wheel, now);
        if (!ps_wheel_step(wheel, last)) ps_wheel_set_tick(wheel, last);
    }
}

static inline void ps_wheel_clear_bucket(ps_wheel *wheel, ps_wheel_bucket *bucket) {
    for (int i = 0; i < PS_WHEEL_LANES; i++)
        while (bucket->lanes[i] != NULL) ps_wheel_cancel(wheel, bucket->lanes[i]);
}

/* Takes all timers out. */
static inline void ps_wheel_clear(ps_wheel *wheel) {
    ps_wheel_clear_bucket(wheel, &wheel->due);
    for (int i = 0; i < PS_WHEEL_LEVELS && wheel->levels[i] != NULL; i++)
        for (int bucket = 0; bucket < PS_WHEEL_BUCKETS; bucket++)
            ps_wheel_clear_bucket(wheel, &wheel->levels[i]->buckets[bucket]);
}

#endif
