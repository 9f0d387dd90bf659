/* The flush timer: which flags it sets and when, which it skips, and that it ends; with executors that take flags. */
#define _DEFAULT_SOURCE
#include "cython_core/queues/flush_timer.h"

#include "stress.h"

#include <sys/wait.h>

#define MILLI INT64_C(1000000)
#define TAKERS 4

static void wait_for_ticks(const ps_flush_timer *timer, uint64_t more) {
    uint64_t until = ps_load_relaxed(&timer->ticks) + more;
    while (ps_load_relaxed(&timer->ticks) < until) usleep(100);
}

static void wait_until_asked(ps_flush_flag *flag) {
    while (!ps_flush_take(flag)) usleep(100);
}

static int is_full(const void *full) { return ps_load_relaxed((const ps_word *)full) != 0; }

static void asks_once_an_interval(void) {
    ps_flush_timer *timer = ps_flush_timer_new();
    ps_flush_flag *flag = ps_flush_timer_add(timer, NULL, NULL);
    int64_t begun = ps_flush_now();
    CHECK(ps_flush_timer_start(timer, 2 * MILLI) == 0);
    for (int i = 0; i < 20; i++) wait_until_asked(flag);
    CHECK(ps_flush_now() - begun >= 20 * 2 * MILLI);
    CHECK(ps_load_relaxed(&timer->ticks) >= 20);
    ps_flush_timer_free(timer);
}

static void leaves_full_ones_alone(void) {
    ps_flush_timer *timer = ps_flush_timer_new();
    ps_word full = {0};
    ps_flush_flag *crowded = ps_flush_timer_add(timer, is_full, &full);
    ps_flush_flag *other = ps_flush_timer_add(timer, is_full, &full);
    ps_flush_flag *busy = ps_flush_timer_add(timer, NULL, NULL);
    ps_store_relaxed(&full, 1);
    CHECK(ps_flush_timer_start(timer, MILLI) == 0);
    for (int i = 0; i < 10; i++) wait_until_asked(busy);
    CHECK(!ps_flush_take(crowded) && !ps_flush_take(other));
    ps_store_relaxed(&full, 0);
    wait_until_asked(crowded);
    wait_until_asked(other);
    ps_flush_timer_free(timer);
}

static void rests_while_nobody_takes(void) {
    ps_flush_timer *timer = ps_flush_timer_new(), *clock = ps_flush_timer_new();
    ps_flush_flag *flags[3], *beat = ps_flush_timer_add(clock, NULL, NULL);
    for (int i = 0; i < 3; i++) flags[i] = ps_flush_timer_add(timer, NULL, NULL);
    CHECK(ps_flush_timer_start(timer, MILLI) == 0);
    CHECK(ps_flush_timer_start(clock, MILLI) == 0);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 3; i++) {
            while (ps_load_relaxed(&flags[i]->asked) != PS_FLUSH_ASKED_AT_REST) usleep(100);
        }
        uint64_t ticks = ps_load_relaxed(&timer->ticks);
        for (int i = 0; i < 20; i++) wait_until_asked(beat);
        CHECK(ps_load_relaxed(&timer->ticks) == ticks);
        CHECK(ps_flush_take(flags[round % 3]));
        wait_until_asked(flags[round % 3]);
        CHECK(ps_load_relaxed(&timer->ticks) > ticks);
    }
    ps_flush_timer_free(clock);
    ps_flush_timer_free(timer);
}

static void asks_nobody_after_a_pause(void) {
    ps_flush_timer *timer = ps_flush_timer_new(), *clock = ps_flush_timer_new();
    ps_flush_flag *flag = ps_flush_timer_add(timer, NULL, NULL), *beat = ps_flush_timer_add(clock, NULL, NULL);
    CHECK(ps_flush_timer_start(timer, MILLI) == 0);
    CHECK(ps_flush_timer_start(clock, MILLI) == 0);
    for (int round = 0; round < 5; round++) {
        wait_until_asked(flag);
        ps_flush_timer_pause(timer);
        ps_flush_take(flag);
        uint64_t ticks = ps_load_relaxed(&timer->ticks);
        for (int i = 0; i < 10; i++) wait_until_asked(beat);
        CHECK(!ps_flush_take(flag));
        CHECK(ps_load_relaxed(&timer->ticks) == ticks);
        ps_flush_timer_resume(timer);
    }
    wait_until_asked(flag);
    ps_flush_timer_free(clock);
    ps_flush_timer_free(timer);
}

static void ends_at_once_whatever_it_does(void) {
    for (int round = 0; round < 300; round++) {
        ps_flush_timer *timer = ps_flush_timer_new();
        ps_flush_timer_add(timer, NULL, NULL);
        int64_t begun = ps_flush_now();
        CHECK(ps_flush_timer_start(timer, round % 3 == 0 ? MILLI / 100 : 60000 * MILLI) == 0);
        if (round % 3 == 2) ps_flush_timer_pause(timer);
        if (round % 5 == 0) ps_flush_timer_stop(timer);
        if (round % 10 == 0) CHECK(ps_flush_timer_start(timer, MILLI) == 0);
        ps_flush_timer_free(timer);
        CHECK(ps_flush_now() - begun < 5000 * MILLI);
    }
}

/* Neither ThreadSanitizer nor QEMU 7 knows threads in the child of a process that has some. */
#if !defined(__SANITIZE_THREAD__) && !defined(PYSTORM_EMULATED)
static void a_child_process_has_none_and_may_start_its_own(void) {
    ps_flush_timer *timer = ps_flush_timer_new();
    ps_flush_flag *flag = ps_flush_timer_add(timer, NULL, NULL);
    int status = 0;
    CHECK(ps_flush_timer_start(timer, MILLI / 10) == 0);
    wait_until_asked(flag);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        ps_flush_timer_pause(timer);
        ps_flush_timer_stop(timer);
        ps_flush_take(flag);
        if (ps_flush_timer_start(timer, MILLI / 10) != 0) _exit(2);
        wait_until_asked(flag);
        ps_flush_timer_free(timer);
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    wait_until_asked(flag);
    ps_flush_timer_free(timer);
}
#endif

typedef struct {
    ps_flush_flag *flag;
    ps_word *over;
    uint64_t taken;
} taker;

static void *take_all_the_time(void *argument) {
    taker *self = argument;
    unsigned long long state = 88172645463325252ULL + (uintptr_t)self;
    while (!ps_load_acquire(self->over)) {
        self->taken += (uint64_t)ps_flush_take(self->flag);
        if (check_random(&state) % 4096 == 0) usleep((unsigned)(check_random(&state) % 2000));
    }
    return NULL;
}

typedef struct {
    ps_flush_timer *timer;
    ps_word *over;
} controller;

static void *control(void *argument) {
    controller *self = argument;
    unsigned long long state = 2463534242ULL;
    for (int i = 0; i < 400; i++) {
        switch (check_random(&state) % 6) {
            case 0: ps_flush_timer_pause(self->timer); break;
            case 1: ps_flush_timer_stop(self->timer); break;
            case 2: ps_flush_timer_resume(self->timer); break;
            default: CHECK(ps_flush_timer_start(self->timer, MILLI / 5) == 0);
        }
        usleep((unsigned)(check_random(&state) % 3000));
    }
    CHECK(ps_flush_timer_start(self->timer, MILLI / 5) == 0);
    wait_for_ticks(self->timer, 5);
    ps_store_release(self->over, 1);
    return NULL;
}

static void executors_take_while_it_is_controlled(void) {
    ps_flush_timer *timer = ps_flush_timer_new();
    ps_word over = {0};
    taker takers[TAKERS];
    controller one = {timer, &over};
    void *(*bodies[TAKERS + 1])(void *) = {take_all_the_time, take_all_the_time, take_all_the_time, take_all_the_time,
                                           control};
    void *arguments[TAKERS + 1] = {&takers[0], &takers[1], &takers[2], &takers[3], &one};
    for (int i = 0; i < TAKERS; i++) {
        takers[i] = (taker){ps_flush_timer_add(timer, NULL, NULL), &over, 0};
    }
    run_threads(bodies, arguments, TAKERS + 1);
    for (int i = 0; i < TAKERS; i++) {
        CHECK(takers[i].taken > 0);
        CHECK(takers[i].taken <= ps_load_relaxed(&timer->ticks));
    }
    ps_flush_timer_free(timer);
}

int main(void) {
    deadline(200);
    asks_once_an_interval();
    leaves_full_ones_alone();
    rests_while_nobody_takes();
    asks_nobody_after_a_pause();
    ends_at_once_whatever_it_does();
    executors_take_while_it_is_controlled();
#if !defined(__SANITIZE_THREAD__) && !defined(PYSTORM_EMULATED)
    a_child_process_has_none_and_may_start_its_own();
#endif
    return 0;
}
