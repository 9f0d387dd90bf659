/* Two threads and the ring of frames between them: each frame is there once, in order, whole.
 *
 * With PYSTORM_NEGATIVE_CONTROL (atomics.h) nothing orders the bytes any more: ThreadSanitizer must say so. */
#define _DEFAULT_SOURCE
#include "cython_core/links/byte_ring.h"
#include "testbed/wait_turns.h"

#include "stress.h"

#define FRAMES 20000

typedef struct {
    ps_byte_writer writer;
    ps_byte_reader reader;
    uint64_t most; /* words in a frame */
} hand_over;

static uint64_t words_of(const hand_over *over, uint64_t n) { return n % (over->most + 1); }

static void *write_frames(void *argument) {
    hand_over *over = argument;
    ps_wait wait = ps_wait_of(PS_WAIT_YIELD, 0);
    for (uint64_t n = 0; n < FRAMES; n++) {
        uint64_t words = words_of(over, n);
        uint64_t *place;
        while ((place = (uint64_t *)ps_byte_claim(&over->writer, words * 8)) == NULL) ps_wait_turn(&wait);
        ps_wait_over(&wait);
        for (uint64_t i = 0; i < words; i++) place[i] = payload_of(n, i).mixed;
        ps_byte_commit(&over->writer, words * 8, (uint32_t)n);
    }
    return NULL;
}

static void *read_frames(void *argument) {
    hand_over *over = argument;
    ps_wait wait = ps_wait_of(PS_WAIT_YIELD, 0);
    for (uint64_t n = 0; n < FRAMES; n++) {
        uint64_t length;
        uint32_t kind;
        const uint64_t *place;
        while ((place = (const uint64_t *)ps_byte_peek(&over->reader, &length, &kind)) == NULL) ps_wait_turn(&wait);
        ps_wait_over(&wait);
        CHECK(length == words_of(over, n) * 8 && kind == (uint32_t)n);
        for (uint64_t i = 0; i < length / 8; i++) CHECK(place[i] == payload_of(n, i).mixed);
        ps_byte_release(&over->reader);
    }
    CHECK(!over->reader.damaged);
    return NULL;
}

static void hands_over_everything(uint64_t capacity) {
    void *memory = ps_alloc_apart(0, 1, ps_byte_ring_bytes(capacity));
    CHECK(memory != NULL);
    hand_over over = {ps_byte_writer_of(memory, capacity), ps_byte_reader_of(memory, capacity), 0};
    over.most = ps_byte_most(&over.writer) / 8;
    void *(*bodies[])(void *) = {write_frames, read_frames};
    void *arguments[] = {&over, &over};
    run_threads(bodies, arguments, 2);
    free(memory);
}

int main(void) {
    deadline(200);
    hands_over_everything(32);
    hands_over_everything(64);
    hands_over_everything(1024);
    return 0;
}
