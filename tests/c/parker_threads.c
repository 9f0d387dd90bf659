/* Two threads that hand a payload to and fro, each asleep while the other one works: none sleeps for ever.
 *
 * With PYSTORM_NEGATIVE_CONTROL (atomics.h) nothing orders the content any more: ThreadSanitizer must say so. */
#define _DEFAULT_SOURCE
#include "cython_core/primitives/parker.h"

#include "stress.h"

#define ROUNDS 5000

typedef struct {
    ps_parker sleeper;
    ps_word published;
    payload content;
} side;

typedef struct {
    side *mine;
    side *other;
    uint64_t number;
} player;

static void hand_to(side *there, uint64_t number, uint64_t n) {
    there->content = payload_of(number, n);
    ps_store_release(&there->published, n + 1);
    ps_parker_unpark(&there->sleeper);
}

static void *play(void *argument) {
    const player *self = argument;
    if (self->number == 0) hand_to(self->other, 0, 0);
    for (uint64_t n = 0; n < ROUNDS; n++) {
        while (ps_load_acquire(&self->mine->published) != n + 1) {
            ps_parker_prepare(&self->mine->sleeper);
            if (ps_load_acquire(&self->mine->published) == n + 1) ps_parker_cancel(&self->mine->sleeper);
            else ps_parker_park(&self->mine->sleeper, -1);
        }
        payload_check(&self->mine->content, 1 - self->number, n);
        if (self->number == 1) hand_to(self->other, 1, n);
        else if (n + 1 < ROUNDS) hand_to(self->other, 0, n + 1);
    }
    return NULL;
}

static void nobody_sleeps_for_ever(void) {
    side sides[2] = {0};
    player players[2] = {{&sides[0], &sides[1], 0}, {&sides[1], &sides[0], 1}};
    void *(*bodies[2])(void *) = {play, play};
    void *arguments[2] = {&players[0], &players[1]};
    for (int i = 0; i < 2; i++) CHECK(ps_parker_init(&sides[i].sleeper) == 0);
    run_threads(bodies, arguments, 2);
    for (int i = 0; i < 2; i++) ps_parker_destroy(&sides[i].sleeper);
}

static void a_sleep_ends_by_itself(void) {
    ps_parker sleeper;
    struct timespec before, after;
    CHECK(ps_parker_init(&sleeper) == 0);
    clock_gettime(CLOCK_MONOTONIC, &before);
    ps_parker_prepare(&sleeper);
    CHECK(ps_parker_is_parked(&sleeper));
    CHECK(ps_parker_park(&sleeper, 2000000) == 0);
    clock_gettime(CLOCK_MONOTONIC, &after);
    CHECK((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec >= 2000000);
    CHECK(ps_parker_is_parked(&sleeper));
    ps_parker_unpark(&sleeper);
    CHECK(ps_parker_park(&sleeper, -1) == 1);
    CHECK(!ps_parker_is_parked(&sleeper));
    ps_parker_prepare(&sleeper);
    ps_parker_cancel(&sleeper);
    CHECK(!ps_parker_is_parked(&sleeper));
    ps_parker_destroy(&sleeper);
}

static void a_wake_before_the_sleep_ends_it(void) {
    ps_parker sleeper;
    CHECK(ps_parker_init(&sleeper) == 0);
    ps_parker_prepare(&sleeper);
    ps_parker_unpark(&sleeper);
    CHECK(ps_parker_park(&sleeper, -1) == 1);
    ps_parker_destroy(&sleeper);
}

int main(void) {
    deadline(200);
    nobody_sleeps_for_ever();
    a_sleep_ends_by_itself();
    a_wake_before_the_sleep_ends_it();
    return 0;
}
