/* Threads of a stress test: started together, ended by a deadline if not before. */
#ifndef PYSTORM_TESTS_STRESS_H
#define PYSTORM_TESTS_STRESS_H

#include "check.h"

#include <pthread.h>
#include <stdint.h>
#include <unistd.h>


/* The signal ends the program, and the test with it. */
static inline void deadline(unsigned seconds) { alarm(seconds); }

/* ThreadSanitizer asks: the first race ends the program. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "halt_on_error=1"; }

static inline void run_threads(void *(*const *bodies)(void *), void *const *arguments, int count) {
    pthread_t threads[8];
    CHECK(count <= 8);
    for (int i = 0; i < count; i++) CHECK(pthread_create(&threads[i], NULL, bodies[i], arguments[i]) == 0);
    for (int i = 0; i < count; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

/* A payload: what the number `n` of a producer makes, in memory that only the queue's order protects. */
typedef struct {
    uint64_t producer;
    uint64_t n;
    uint64_t mixed;
} payload;

static inline payload payload_of(uint64_t producer, uint64_t n) {
    payload made = {producer, n, (n ^ producer << 56) * UINT64_C(0x9E3779B97F4A7C15)};
    return made;
}

static inline void payload_check(const payload *seen, uint64_t producer, uint64_t n) {
    payload wanted = payload_of(producer, n);
    CHECK(seen->producer == wanted.producer);
    CHECK(seen->n == wanted.n);
    CHECK(seen->mixed == wanted.mixed);
}

#endif
