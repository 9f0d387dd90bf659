/* Several threads into one ring of values: each comes out once and whole, those of one thread in order.
 *
 * With PYSTORM_NEGATIVE_CONTROL (atomics.h) nothing orders the values any more: ThreadSanitizer must say so. */
#define _DEFAULT_SOURCE
#include "mpsc_values.h"
#include "wait.h"

#include "stress.h"

#define PRODUCERS 3
#define ITEMS 8000 /* of each */
#define MOST 50

typedef struct {
    ps_mpsc_values *ring;
    int batched;
} hand_over;

typedef struct {
    const hand_over *over;
    uint64_t number;
} producer;

static void *write_values(void *argument) {
    const producer *self = argument;
    ps_mpsc_values *ring = self->over->ring;
    ps_wait wait = ps_wait_of(PS_WAIT_YIELD, 0);
    for (uint64_t n = 0; n < ITEMS;) {
        payload batch[MOST];
        uint64_t count = 1 + n % MOST, first = 0;
        if (count > ITEMS - n) count = ITEMS - n;
        if (!self->over->batched) {
            batch[0] = payload_of(self->number, n);
            count = (uint64_t)ps_mpsc_values_offer(ring, batch, sizeof(payload));
        } else if (n & 1) {
            for (uint64_t i = 0; i < count; i++) batch[i] = payload_of(self->number, n + i);
            count = ps_mpsc_values_offer_batch(ring, batch, count, sizeof(payload));
        } else {
            payload *cells = ps_mpsc_values_claim(ring, &first, &count, sizeof(payload));
            for (uint64_t i = 0; i < count; i++) cells[i] = payload_of(self->number, n + i);
            if (count) ps_mpsc_values_publish(ring, first, count);
        }
        if (count == 0) ps_wait_turn(&wait);
        else ps_wait_over(&wait);
        n += count;
    }
    return NULL;
}

static void *read_values(void *argument) {
    const hand_over *over = argument;
    ps_wait wait = ps_wait_of(PS_WAIT_YIELD, 0);
    uint64_t next[PRODUCERS] = {0};
    for (uint64_t n = 0; n < PRODUCERS * ITEMS;) {
        payload batch[MOST];
        const payload *cells = batch;
        uint64_t count = 1 + n % MOST;
        int peeks = over->batched && (n & 1) == 0;
        CHECK(ps_mpsc_values_size(over->ring) <= ps_mpsc_values_capacity(over->ring));
        if (!over->batched) count = (uint64_t)ps_mpsc_values_poll(over->ring, batch, sizeof(payload));
        else if (peeks) cells = ps_mpsc_values_peek(over->ring, &count, sizeof(payload));
        else count = ps_mpsc_values_drain(over->ring, batch, count, sizeof(payload));
        for (uint64_t i = 0; i < count; i++) {
            CHECK(cells[i].producer < PRODUCERS);
            payload_check(&cells[i], cells[i].producer, next[cells[i].producer]++);
        }
        if (peeks) ps_mpsc_values_release(over->ring, count);
        if (count == 0) ps_wait_turn(&wait);
        else ps_wait_over(&wait);
        n += count;
    }
    CHECK(ps_mpsc_values_size(over->ring) == 0);
    for (int i = 0; i < PRODUCERS; i++) CHECK(next[i] == ITEMS);
    return NULL;
}

static void hands_over_everything(uint64_t capacity, int batched) {
    hand_over over = {ps_mpsc_values_new(capacity, sizeof(payload)), batched};
    producer producers[PRODUCERS];
    void *(*bodies[PRODUCERS + 1])(void *) = {read_values};
    void *arguments[PRODUCERS + 1] = {&over};
    CHECK(over.ring != NULL);
    for (uint64_t i = 0; i < PRODUCERS; i++) {
        producers[i].over = &over;
        producers[i].number = i;
        bodies[i + 1] = write_values;
        arguments[i + 1] = &producers[i];
    }
    run_threads(bodies, arguments, PRODUCERS + 1);
    ps_mpsc_values_free(over.ring);
}

int main(void) {
    static const uint64_t capacities[] = {1, 2, 64};
    deadline(200);
    for (int i = 0; i < 3; i++)
        for (int batched = 0; batched < 2; batched++) hands_over_everything(capacities[i], batched);
    return 0;
}
