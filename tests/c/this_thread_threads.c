/* Threads that live at the same time: each has one id, which no other one has. */
#define _DEFAULT_SOURCE
#include "cython_core/primitives/this_thread.h"

#include "stress.h"

#define THREADS 8

static pthread_barrier_t all_live;
static uintptr_t ids[THREADS];

static void *look(void *argument) {
    uintptr_t *mine = argument;
    *mine = ps_this_thread();
    pthread_barrier_wait(&all_live); /* none has ended before all have looked */
    CHECK(ps_this_thread() == *mine);
    pthread_barrier_wait(&all_live);
    return NULL;
}

int main(void) {
    void *(*bodies[THREADS])(void *);
    void *arguments[THREADS];
    deadline(60);
    CHECK(pthread_barrier_init(&all_live, NULL, THREADS) == 0);
    for (int i = 0; i < THREADS; i++) {
        bodies[i] = look;
        arguments[i] = &ids[i];
    }
    run_threads(bodies, arguments, THREADS);
    for (int i = 0; i < THREADS; i++) {
        CHECK(ids[i] != 0);
        CHECK(ids[i] != ps_this_thread());
        for (int j = 0; j < i; j++) CHECK(ids[i] != ids[j]);
    }
    return 0;
}
