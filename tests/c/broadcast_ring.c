/* The ring that everybody reads whole, turned by one thread: claims, gates, readers behind readers, ends of batches. */
#include "cython_core/queues/broadcast_ring.h"

#include "check.h"

typedef struct {
    uint64_t next, ends;
    uint64_t stop_at; /* the handler has enough after this sequence */
    int at_end;
} watcher;

static int watch(void *context, void *cell, uint64_t sequence, int end_of_batch) {
    watcher *seen = context;
    CHECK(*(uint64_t *)cell == sequence * 3);
    CHECK(sequence == seen->next);
    seen->next++;
    seen->ends += (uint64_t)end_of_batch;
    seen->at_end = end_of_batch;
    return sequence == seen->stop_at;
}

static watcher fresh(void) {
    watcher made = {0, 0, UINT64_MAX, 0};
    return made;
}

static int write_cells(ps_broadcast_ring *ring, uint64_t count) {
    uint64_t first;
    if (!ps_broadcast_try_claim(ring, count, &first)) return 0;
    for (uint64_t s = first; s < first + count; s++)
        *(uint64_t *)ps_broadcast_at(ring, s, sizeof(uint64_t)) = s * 3;
    ps_broadcast_publish(ring, first, count);
    return 1;
}

static uint64_t turn(ps_reader *reader, uint64_t limit, watcher *seen) {
    return ps_reader_turn(reader, limit, sizeof(uint64_t), watch, seen);
}

static void refuses_other_capacities_and_late_readers(void) {
    CHECK(ps_broadcast_new(0, 8) == NULL);
    CHECK(ps_broadcast_new(6, 8) == NULL);
    CHECK(ps_broadcast_new(8, 0) == NULL);
    CHECK(ps_broadcast_new(UINT64_C(1) << 63, 8) == NULL);
    ps_broadcast_free(NULL);
    ps_broadcast_ring *ring = ps_broadcast_new(4, sizeof(uint64_t));
    CHECK(write_cells(ring, 1));
    CHECK(ps_broadcast_add_reader(ring, NULL, 0) == NULL);
    ps_broadcast_free(ring);
}

static void nobody_is_lapped(void) {
    ps_broadcast_ring *ring = ps_broadcast_new(4, sizeof(uint64_t));
    ps_reader *quick = ps_broadcast_add_reader(ring, NULL, 0);
    ps_reader *slow = ps_broadcast_add_reader(ring, NULL, 0);
    watcher quick_seen = fresh(), slow_seen = fresh();
    CHECK(ps_broadcast_capacity(ring) == 4);
    CHECK(turn(quick, 9, &quick_seen) == 0 && quick_seen.ends == 0);
    CHECK(write_cells(ring, 3));
    CHECK(!write_cells(ring, 2)); /* all or none */
    CHECK(write_cells(ring, 1) && !write_cells(ring, 1));
    CHECK(turn(quick, 9, &quick_seen) == 4 && quick_seen.ends == 1 && quick_seen.at_end);
    CHECK(!write_cells(ring, 1)); /* the slow one has read nothing */
    CHECK(turn(slow, 1, &slow_seen) == 1 && slow_seen.ends == 1);
    CHECK(write_cells(ring, 1) && !write_cells(ring, 1));
    slow_seen.stop_at = 2;
    CHECK(turn(slow, 9, &slow_seen) == 2 && slow_seen.ends == 1 && !slow_seen.at_end);
    CHECK(turn(slow, 9, &slow_seen) == 2 && turn(slow, 9, &slow_seen) == 0);
    CHECK(!write_cells(ring, 5)); /* never fits */
    CHECK(!write_cells(ring, UINT64_MAX) && !write_cells(ring, UINT64_C(1) << 63));
    CHECK(write_cells(ring, 3));
    ps_broadcast_free(ring);
}

/* journal ──┐
 *           ├─ application, in random turns against counts. */
static void a_diamond_keeps_its_order(uint64_t capacity, unsigned long long seed) {
    ps_broadcast_ring *ring = ps_broadcast_new(capacity, sizeof(uint64_t));
    ps_reader *readers[3];
    watcher seen[3] = {fresh(), fresh(), fresh()};
    uint64_t written = 0;
    readers[0] = ps_broadcast_add_reader(ring, NULL, 0);
    readers[1] = ps_broadcast_add_reader(ring, NULL, 0);
    readers[2] = ps_broadcast_add_reader(ring, readers, 2);
    CHECK(ring->gates_count == 1 && ring->gates[0] == readers[2]);
    for (int step = 0; step < 30000; step++) {
        unsigned long long dice = check_random(&seed);
        uint64_t most = capacity < 9 ? capacity + 1 : 9, count = 1 + (dice >> 8) % most, who = (dice >> 20) % 3;
        if (dice % 2) {
            int fits = written + count - seen[2].next <= capacity;
            CHECK(write_cells(ring, count) == fits);
            if (fits) written += count;
        } else {
            uint64_t before = seen[who].next;
            uint64_t ahead = who < 2 ? written : seen[0].next < seen[1].next ? seen[0].next : seen[1].next;
            uint64_t went = turn(readers[who], count, &seen[who]);
            CHECK(seen[who].next == before + went && seen[who].next <= ahead);
            CHECK(went == (ahead - before < count ? ahead - before : count));
            CHECK(ps_reader_next(readers[who]) == seen[who].next);
        }
    }
    CHECK(seen[2].next > 1000);
    ps_broadcast_free(ring);
}

int main(void) {
    refuses_other_capacities_and_late_readers();
    nobody_is_lapped();
    for (uint64_t capacity = 1; capacity <= 64; capacity *= 2)
        a_diamond_keeps_its_order(capacity, 88172645463325252ULL + capacity);
    return 0;
}
