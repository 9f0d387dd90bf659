/* The ring of frames, turned by one thread, against a model: lengths and kinds in order, bytes by their number. */
#include "cython_core/links/byte_ring.h"

#include "check.h"

#define FRAMES 20000

typedef struct {
    void *memory;
    ps_byte_writer writer;
    ps_byte_reader reader;
} ends;

static ends ends_of(uint64_t capacity) {
    ends made;
    made.memory = ps_alloc_apart(0, 1, ps_byte_ring_bytes(capacity));
    CHECK(made.memory != NULL);
    made.writer = ps_byte_writer_of(made.memory, capacity);
    made.reader = ps_byte_reader_of(made.memory, capacity);
    return made;
}

static unsigned char byte_of(uint64_t frame, uint64_t i) { return (unsigned char)(frame * 31 + i * 7); }

static void refuses_other_capacities(void) {
    CHECK(ps_byte_ring_bytes(0) == 0);
    CHECK(ps_byte_ring_bytes(16) == 0);
    CHECK(ps_byte_ring_bytes(48) == 0);
    CHECK(ps_byte_ring_bytes(UINT64_C(1) << 33) == 0);
    CHECK(ps_byte_ring_bytes(64) >= 64);
}

/* Whether a frame fits is a matter of the bytes alone: those that are used, and what is left before the end. */
static void follows_the_model(uint64_t capacity, unsigned long long seed) {
    ends both = ends_of(capacity);
    uint64_t *lengths = calloc(FRAMES, sizeof *lengths), *ended = calloc(FRAMES + 1, sizeof *ended);
    uint64_t written = 0, read = 0, at = 0, length;
    uint32_t kind;
    CHECK(lengths != NULL && ended != NULL);
    while (written < FRAMES) {
        unsigned long long dice = check_random(&seed);
        if (dice % 2) {
            uint64_t claimed = (dice >> 8) % (ps_byte_most(&both.writer) + 1), size = (8 + claimed + 7) & ~UINT64_C(7);
            uint64_t left = capacity - at % capacity, needed = left < size ? left + size : size;
            unsigned char *place = ps_byte_claim(&both.writer, claimed);
            CHECK((place != NULL) == (at - ended[read] + needed <= capacity));
            CHECK(place != NULL || read < written); /* an empty ring takes every frame */
            if (place == NULL) continue;
            length = dice >> 60 ? claimed : claimed / 2;
            for (uint64_t i = 0; i < length; i++) place[i] = byte_of(written, i);
            ps_byte_commit(&both.writer, length, (uint32_t)written);
            at += (left < size ? left : 0) + ((8 + length + 7) & ~UINT64_C(7));
            lengths[written++] = length;
            ended[written] = at;
        } else {
            const unsigned char *place = ps_byte_peek(&both.reader, &length, &kind);
            CHECK((place != NULL) == (read < written));
            if (place == NULL) continue;
            CHECK(length == lengths[read] && kind == (uint32_t)read);
            for (uint64_t i = 0; i < length; i++) CHECK(place[i] == byte_of(read, i));
            CHECK(ps_byte_peek(&both.reader, &length, &kind) == place);
            ps_byte_release(&both.reader);
            read++;
        }
    }
    CHECK(read > FRAMES / 2 && !both.reader.damaged);
    free(lengths);
    free(ended);
    free(both.memory);
}

/* Whatever stands in the shared memory: the reader stays inside of it, or says that it is damaged, for good. */
static void damage_is_noticed(unsigned long long seed) {
    int noticed = 0;
    for (int round = 0; round < 3000; round++) {
        ends both = ends_of(256);
        uint64_t length, sum = 0;
        uint32_t kind;
        for (int i = 0; i < 3; i++) {
            CHECK(ps_byte_claim(&both.writer, 20) != NULL);
            ps_byte_commit(&both.writer, 20, 1);
        }
        unsigned long long dice = check_random(&seed);
        uint64_t wild = dice % 3 ? check_random(&seed) : check_random(&seed) % 512;
        ps_byte_ring *ring = both.memory;
        if (dice & 256) memcpy(ring->bytes + (dice >> 32) % 249, &wild, sizeof wild);
        else ps_store_relaxed(dice & 512 ? &ring->tail : &ring->head, wild);
        for (int i = 0; i < 40; i++) {
            const unsigned char *place = ps_byte_peek(&both.reader, &length, &kind);
            if (place == NULL) break;
            CHECK(place >= ring->bytes && length <= 256 && place + length <= ring->bytes + 256);
            for (uint64_t j = 0; j < length; j++) sum += place[j];
            ps_byte_release(&both.reader);
        }
        noticed += both.reader.damaged;
        if (both.reader.damaged) CHECK(ps_byte_peek(&both.reader, &length, &kind) == NULL);
        if (ps_byte_claim(&both.writer, 100) != NULL) ps_byte_commit(&both.writer, 100, 1);
        CHECK(sum < UINT64_MAX);
        free(both.memory);
    }
    CHECK(noticed > 500);
}

int main(void) {
    refuses_other_capacities();
    for (uint64_t capacity = 32; capacity <= 4096; capacity *= 2) follows_the_model(capacity, 88172645463325252ULL + capacity);
    damage_is_noticed(88172645463325252ULL);
    return 0;
}
