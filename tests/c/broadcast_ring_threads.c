/* The writer and readers of the ring in threads of their own: each sees everything, in order, and none sees what its
 * upstream readers have not released.
 *
 * With PYSTORM_NEGATIVE_CONTROL (atomics.h) nothing orders the content any more: ThreadSanitizer must say so. */
#define _DEFAULT_SOURCE
#include "cython_core/queues/broadcast_ring.h"
#include "testbed/wait_turns.h"

#include "stress.h"

#define READERS 3
#define ITEMS 6000
#define MOST 7

/* What each upstream reader leaves behind in the cell, in memory that only the ring's order protects. */
typedef struct {
    payload written;
    uint64_t journaled, replicated;
} event;

typedef struct {
    ps_broadcast_ring *ring;
    ps_reader *readers[READERS];
} shared;

typedef struct {
    shared *all;
    uint64_t number;
    uint64_t next;
} task;

static void *write_events(void *argument) {
    const task *self = argument;
    ps_wait wait = ps_wait_of(PS_WAIT_YIELD, 0);
    for (uint64_t n = 0; n < ITEMS;) {
        uint64_t count = 1 + n % MOST, first, capacity = ps_broadcast_capacity(self->all->ring);
        if (count > ITEMS - n) count = ITEMS - n;
        if (count > capacity) count = capacity;
        while (!ps_broadcast_try_claim(self->all->ring, count, &first)) ps_wait_turn(&wait);
        ps_wait_over(&wait);
        for (uint64_t i = 0; i < count; i++) {
            event *cell = ps_broadcast_at(self->all->ring, first + i, sizeof(event));
            cell->written = payload_of(0, n + i);
            cell->journaled = cell->replicated = 0;
        }
        ps_broadcast_publish(self->all->ring, first, count);
        n += count;
    }
    return NULL;
}

static int read_event(void *context, void *cell, uint64_t sequence, int end_of_batch) {
    task *self = context;
    event *seen = cell;
    (void)end_of_batch;
    payload_check(&seen->written, 0, self->next++);
    if (self->number == 0) {
        seen->journaled = sequence + 1;
    } else if (self->number == 1) {
        seen->replicated = sequence + 1;
    } else {
        CHECK(seen->journaled == sequence + 1);
        CHECK(seen->replicated == sequence + 1);
    }
    return 0;
}

static void *read_events(void *argument) {
    task *self = argument;
    ps_reader *reader = self->all->readers[self->number];
    ps_wait wait = ps_wait_of(self->number == 1 ? PS_WAIT_PARK : PS_WAIT_YIELD, 1000);
    for (uint64_t n = 0; n < ITEMS;) {
        while (ps_reader_available(reader, 1) == ps_reader_next(reader)) ps_wait_turn(&wait);
        ps_wait_over(&wait);
        n += ps_reader_turn(reader, 1 + n % 40, sizeof(event), read_event, self);
    }
    CHECK(self->next == ITEMS);
    CHECK(ps_reader_available(reader, 1) == ps_reader_next(reader));
    return NULL;
}

static void everyone_sees_everything(uint64_t capacity, int pipeline) {
    shared all = {.ring = ps_broadcast_new(capacity, sizeof(event))};
    task tasks[READERS + 1] = {{NULL, 0, 0}};
    void *(*bodies[READERS + 1])(void *);
    void *arguments[READERS + 1];
    CHECK(all.ring != NULL);
    all.readers[0] = ps_broadcast_add_reader(all.ring, NULL, 0);
    all.readers[1] = ps_broadcast_add_reader(all.ring, all.readers, pipeline ? 1 : 0);
    all.readers[2] = ps_broadcast_add_reader(all.ring, all.readers + pipeline, pipeline ? 1 : 2);
    for (uint64_t i = 0; i <= READERS; i++) {
        tasks[i].all = &all;
        tasks[i].number = i;
        bodies[i] = i == READERS ? write_events : read_events;
        arguments[i] = &tasks[i];
    }
    run_threads(bodies, arguments, READERS + 1);
    ps_broadcast_free(all.ring);
}

int main(void) {
    deadline(200);
    for (int pipeline = 0; pipeline < 2; pipeline++) {
        everyone_sees_everything(2, pipeline);
        everyone_sees_everything(64, pipeline);
    }
    return 0;
}
