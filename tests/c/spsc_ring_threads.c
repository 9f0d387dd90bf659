/* Two threads and the rings between them: each item is there once, in order, and its content with it.
 *
 * With PYSTORM_NEGATIVE_CONTROL (atomics.h) nothing orders the content any more: ThreadSanitizer must say so. */
#define _DEFAULT_SOURCE
#include "cython_core/primitives/atomics.h"
#include "cython_core/queues/spsc_ring.h"
#include "testbed/wait_turns.h"

#include "stress.h"

#define ITEMS 20000
#define MOST 50

typedef struct {
    ps_spsc_ring *ring;
    payload *payloads;
    int batched;
} hand_over;

static void *offer_items(void *argument) {
    const hand_over *over = argument;
    ps_wait wait = ps_wait_of(PS_WAIT_YIELD, 0);
    void *batch[MOST];
    for (uint64_t n = 0; n < ITEMS; ps_wait_over(&wait)) {
        uint64_t count = over->batched ? 1 + n % MOST : 1, went = 0;
        if (count > ITEMS - n) count = ITEMS - n;
        for (uint64_t i = 0; i < count; i++) {
            over->payloads[n + i] = payload_of(7, n + i);
            batch[i] = &over->payloads[n + i];
        }
        while (went < count) {
            uint64_t more = over->batched ? ps_spsc_offer_batch(over->ring, batch + went, count - went)
                                          : (uint64_t)ps_spsc_offer(over->ring, batch[went]);
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
    void *batch[MOST];
    for (uint64_t n = 0; n < ITEMS;) {
        uint64_t count = 1;
        CHECK(ps_spsc_size(over->ring) <= ps_spsc_capacity(over->ring));
        if (over->batched) count = ps_spsc_drain(over->ring, batch, 1 + n % MOST);
        else count = (batch[0] = ps_spsc_poll(over->ring)) != NULL;
        if (count == 0) ps_wait_turn(&wait);
        else ps_wait_over(&wait);
        for (uint64_t i = 0; i < count; i++, n++) payload_check(batch[i], 7, n);
    }
    CHECK(ps_spsc_poll(over->ring) == NULL);
    return NULL;
}

static void hands_over_everything(uint64_t capacity, int batched) {
    hand_over over = {ps_spsc_new(capacity), calloc(ITEMS, sizeof(payload)), batched};
    void *(*items[])(void *) = {offer_items, poll_items};
    void *arguments[] = {&over, &over};
    CHECK(over.ring != NULL && over.payloads != NULL);
    run_threads(items, arguments, 2);
    ps_spsc_free(over.ring);
    free(over.payloads);
}

int main(void) {
    static const uint64_t capacities[] = {1, 2, 8, 64};
    deadline(200);
    for (int i = 0; i < 4; i++)
        for (int batched = 0; batched < 2; batched++) hands_over_everything(capacities[i], batched);
    return 0;
}
