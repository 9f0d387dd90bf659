/* Several threads into one ring: each item comes out once, each thread's in order, its content with it.
 *
 * With PYSTORM_NEGATIVE_CONTROL (atomics.h) nothing orders the content any more: ThreadSanitizer must say so. */
#define _DEFAULT_SOURCE
#include "cython_core/queues/mpsc_ring.h"
#include "testbed/wait_turns.h"

#include "stress.h"

#define PRODUCERS 3
#define ITEMS 8000 /* of each */
#define MOST 50

typedef struct {
    ps_mpsc_ring *ring;
    payload *payloads[PRODUCERS];
    int batched;
} hand_over;

typedef struct {
    const hand_over *over;
    uint64_t number;
} producer;

static void *offer_items(void *argument) {
    const producer *self = argument;
    const hand_over *over = self->over;
    payload *payloads = over->payloads[self->number];
    ps_wait wait = ps_wait_of(PS_WAIT_YIELD, 0);
    void *batch[MOST];
    for (uint64_t n = 0; n < ITEMS; ps_wait_over(&wait)) {
        uint64_t count = over->batched ? 1 + n % MOST : 1, went = 0;
        if (count > ITEMS - n) count = ITEMS - n;
        for (uint64_t i = 0; i < count; i++) {
            payloads[n + i] = payload_of(self->number, n + i);
            batch[i] = &payloads[n + i];
        }
        while (went < count) {
            uint64_t more = over->batched ? ps_mpsc_offer_batch(over->ring, batch + went, count - went)
                                          : (uint64_t)ps_mpsc_offer(over->ring, batch[went]);
            if (more == 0) ps_wait_turn(&wait);
            went += more;
        }
        n += count;
    }
    return NULL;
}

static void *poll_items(void *argument) {
    const hand_over *over = argument;
    ps_wait wait = ps_wait_of(PS_WAIT_YIELD, 0);
    uint64_t next[PRODUCERS] = {0};
    void *batch[MOST];
    for (uint64_t n = 0; n < PRODUCERS * ITEMS;) {
        uint64_t count = 1;
        CHECK(ps_mpsc_size(over->ring) <= ps_mpsc_capacity(over->ring));
        if (over->batched) count = ps_mpsc_drain(over->ring, batch, 1 + n % MOST);
        else count = (batch[0] = ps_mpsc_poll(over->ring)) != NULL;
        if (count == 0) ps_wait_turn(&wait);
        else ps_wait_over(&wait);
        for (uint64_t i = 0; i < count; i++, n++) {
            const payload *seen = batch[i];
            CHECK(seen->producer < PRODUCERS);
            payload_check(seen, seen->producer, next[seen->producer]++);
        }
    }
    CHECK(ps_mpsc_poll(over->ring) == NULL);
    for (int i = 0; i < PRODUCERS; i++) CHECK(next[i] == ITEMS);
    return NULL;
}

static void hands_over_everything(uint64_t capacity, int batched) {
    hand_over over = {ps_mpsc_new(capacity), {NULL}, batched};
    producer producers[PRODUCERS];
    void *(*bodies[PRODUCERS + 1])(void *) = {poll_items};
    void *arguments[PRODUCERS + 1] = {&over};
    CHECK(over.ring != NULL);
    for (uint64_t i = 0; i < PRODUCERS; i++) {
        over.payloads[i] = calloc(ITEMS, sizeof(payload));
        CHECK(over.payloads[i] != NULL);
        producers[i].over = &over;
        producers[i].number = i;
        bodies[i + 1] = offer_items;
        arguments[i + 1] = &producers[i];
    }
    run_threads(bodies, arguments, PRODUCERS + 1);
    ps_mpsc_free(over.ring);
    for (int i = 0; i < PRODUCERS; i++) free(over.payloads[i]);
}

int main(void) {
    static const uint64_t capacities[] = {1, 2, 64};
    deadline(200);
    for (int i = 0; i < 3; i++)
        for (int batched = 0; batched < 2; batched++) hands_over_everything(capacities[i], batched);
    return 0;
}
