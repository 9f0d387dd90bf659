/* The timing wheel against a model: all timers in an array, looked through from one end to the other. */
#include "cython_core/timing/timing_wheel.h"

#include <string.h>

#include "check.h"

#define TIMERS 400
#define FAR (UINT64_C(1) << 62)

typedef struct {
    ps_timer timer;
    uint64_t expiry; /* of those that are in */
    bool in;
} timed;

typedef struct {
    ps_wheel wheel;
    uint64_t tick_nanos, now, advanced; /* advanced: the tick that the wheel has come to */
    timed timers[TIMERS];
    size_t size;
} model;

static uint64_t due_tick(const model *m, uint64_t expiry) {
    return expiry / m->tick_nanos + (expiry % m->tick_nanos != 0);
}

static void insert(model *m, timed *t, uint64_t expiry) {
    int status = ps_wheel_insert(&m->wheel, &t->timer, expiry);
    bool before = t->in;
    t->in = due_tick(m, expiry) > m->advanced;
    t->expiry = expiry;
    CHECK(status == (int)t->in);
    m->size += (size_t)t->in - (size_t)before;
    CHECK(ps_wheel_size(&m->wheel) == m->size);
}

static void cancel(model *m, timed *t) {
    CHECK(ps_wheel_cancel(&m->wheel, &t->timer) == t->in);
    CHECK(!ps_wheel_cancel(&m->wheel, &t->timer));
    m->size -= t->in;
    t->in = false;
    CHECK(ps_wheel_size(&m->wheel) == m->size);
}

static timed *soonest(model *m) {
    timed *found = NULL;
    for (timed *t = m->timers; t < m->timers + TIMERS; t++)
        if (t->in && (found == NULL || t->expiry < found->expiry)) found = t;
    return found;
}

/* As many near expiries as far ones. */
static uint64_t distance(unsigned long long *seed) {
    unsigned bits = (unsigned)(check_random(seed) % 62);
    return check_random(seed) & ((UINT64_C(1) << bits) - 1);
}

/* What an owner may do between two calls of advance. */
static void interfere(model *m, unsigned long long *seed) {
    timed *t = &m->timers[check_random(seed) % TIMERS];
    switch (check_random(seed) % 8) {
    case 0: cancel(m, t); break;
    case 1: insert(m, t, m->now + distance(seed) % (300 * m->tick_nanos)); break;
    case 2: insert(m, t, m->now - distance(seed) % (m->now + 1)); break;
    default: break;
    }
}

static void advance(model *m, uint64_t now, bool interfering, unsigned long long *seed) {
    uint64_t last = 0;
    m->now = now;
    for (;;) {
        uint64_t next = ps_wheel_next(&m->wheel);
        timed *first = soonest(m), *got;
        CHECK((next == UINT64_MAX) == (first == NULL));
        CHECK(first == NULL || next / m->tick_nanos <= due_tick(m, first->expiry));
        got = (timed *)ps_wheel_advance(&m->wheel, now);
        if (got == NULL) break;
        CHECK(got->in && got->expiry <= now && next <= now);
        CHECK(due_tick(m, got->expiry) == due_tick(m, first->expiry));
        CHECK(due_tick(m, got->expiry) >= last);
        last = m->advanced = due_tick(m, got->expiry);
        got->in = false;
        m->size--;
        CHECK(ps_wheel_size(&m->wheel) == m->size);
        if (interfering) interfere(m, seed);
    }
    if (now / m->tick_nanos > m->advanced) m->advanced = now / m->tick_nanos;
    CHECK(soonest(m) == NULL || due_tick(m, soonest(m)->expiry) > now / m->tick_nanos);
    CHECK(ps_wheel_next(&m->wheel) > now || ps_wheel_next(&m->wheel) / m->tick_nanos > now / m->tick_nanos);
}

static void follows_the_model(uint64_t tick_nanos, unsigned long long seed, int steps) {
    static model m;
    memset(&m, 0, sizeof m);
    m.tick_nanos = tick_nanos;
    m.now = distance(&seed);
    m.advanced = m.now / tick_nanos;
    CHECK(ps_wheel_init(&m.wheel, tick_nanos, m.now) == 0);
    for (int i = 0; i < steps; i++) {
        timed *t = &m.timers[check_random(&seed) % TIMERS];
        unsigned kind = check_random(&seed) % 16;
        if (kind < 9) insert(&m, t, m.now + distance(&seed));
        else if (kind < 13) cancel(&m, t);
        else if (kind < 15) advance(&m, m.now + distance(&seed) % (1000 * tick_nanos), kind == 13, &seed);
        else if (m.now < FAR) advance(&m, m.now + distance(&seed), true, &seed);
    }
    ps_wheel_clear(&m.wheel);
    for (timed *t = m.timers; t < m.timers + TIMERS; t++) CHECK(!ps_wheel_cancel(&m.wheel, &t->timer));
    CHECK(ps_wheel_size(&m.wheel) == 0);
    CHECK(ps_wheel_next(&m.wheel) == UINT64_MAX);
    ps_wheel_free(&m.wheel);
}

/* Each boundary between levels, seen from ticks at and around the boundaries of buckets. */
static void no_expiry_is_early_or_forgotten(void) {
    const uint64_t around[] = {0, 1, 31, 32, 33, 2047, 2048, 2049};
    for (unsigned from = 11; from <= 51; from += 5)
        for (unsigned to = 11; to <= 56; to += 5)
            for (int i = 0; i < 8; i++)
                for (int j = 0; j < 8; j++) {
                    uint64_t now = (UINT64_C(1) << from) - 1024 + around[i];
                    uint64_t expiry = now + (UINT64_C(1) << to) - 1024 + around[j];
                    ps_timer timer = {0};
                    ps_wheel wheel;
                    CHECK(ps_wheel_init(&wheel, 1, now) == 0);
                    CHECK(ps_wheel_insert(&wheel, &timer, expiry) == 1);
                    while (ps_wheel_next(&wheel) < expiry) CHECK(!ps_wheel_advance(&wheel, ps_wheel_next(&wheel)));
                    CHECK(!ps_wheel_advance(&wheel, expiry - 1));
                    CHECK(ps_wheel_next(&wheel) == expiry);
                    CHECK(ps_wheel_advance(&wheel, expiry) == &timer);
                    CHECK(ps_wheel_next(&wheel) == UINT64_MAX);
                    ps_wheel_free(&wheel);
                }
}

static void what_never_expires_can_be_cancelled(void) {
    ps_timer timer = {0}, soon = {0};
    ps_wheel wheel;
    for (uint64_t tick = 1; tick < FAR; tick *= 3) {
        CHECK(ps_wheel_init(&wheel, tick, 5) == 0);
        CHECK(ps_wheel_insert(&wheel, &timer, UINT64_MAX) == 1);
        CHECK(ps_wheel_next(&wheel) < UINT64_MAX);
        CHECK(ps_wheel_insert(&wheel, &soon, 6 + tick) == 1);
        CHECK(ps_wheel_advance(&wheel, FAR * 2 - 1) == &soon);
        CHECK(ps_wheel_advance(&wheel, FAR * 2 - 1) == NULL);
        CHECK(ps_wheel_cancel(&wheel, &timer));
        CHECK(ps_wheel_next(&wheel) == UINT64_MAX);
        ps_wheel_free(&wheel);
    }
}

/* Of a tick's timers, those cancelled while others of it are taken do not come; those moved come when they are due. */
static void the_rest_of_a_tick_may_change(void) {
    ps_timer timers[4] = {{0}}, *first, *last;
    ps_wheel wheel;
    CHECK(ps_wheel_init(&wheel, 10, 0) == 0);
    for (int i = 0; i < 4; i++) CHECK(ps_wheel_insert(&wheel, &timers[i], 95) == 1);
    CHECK(ps_wheel_advance(&wheel, 99) == NULL);
    first = ps_wheel_advance(&wheel, 100);
    last = first == &timers[0] ? &timers[3] : &timers[0];
    CHECK(ps_wheel_next(&wheel) == 100);
    CHECK(ps_wheel_insert(&wheel, first, 100) == 0);
    CHECK(ps_wheel_insert(&wheel, first, 101) == 1);
    CHECK(ps_wheel_cancel(&wheel, last));
    CHECK(ps_wheel_size(&wheel) == 3);
    for (int i = 0; i < 2; i++) {
        ps_timer *other = ps_wheel_advance(&wheel, 5); /* a clock that goes back keeps none of those that are due */
        CHECK(other != NULL && other != first && other != last);
    }
    CHECK(ps_wheel_advance(&wheel, 109) == NULL);
    CHECK(ps_wheel_advance(&wheel, 0) == NULL);
    CHECK(ps_wheel_advance(&wheel, 110) == first);
    ps_wheel_free(&wheel);
}

int main(void) {
    const uint64_t ticks[] = {1, 7, 1000, 1000000, UINT64_C(1) << 40};
    no_expiry_is_early_or_forgotten();
    what_never_expires_can_be_cancelled();
    the_rest_of_a_tick_may_change();
    for (int i = 0; i < 5; i++)
        for (unsigned long long seed = 1; seed <= 20; seed++) follows_the_model(ticks[i], seed * 7919, 3000);
    return 0;
}
