/* The rings of the core, and two bare ones, between pinned threads; started and asked by benchmarks/harness/windows.py.
 *
 *     rings CPU CPU
 *
 * reads lines "case milliseconds" and answers each with one line: "items seconds", or "p50 p99" in nanoseconds for
 * round trips, or nanoseconds for "ping", a cache line's way there and back. The Java program beside answers the same.
 * Threads t0 and t2 run on the first processor, t1 and t3 on the second. */
#define _GNU_SOURCE
#include "cython_core/queues/broadcast_ring.h"
#include "cython_core/queues/mpsc_ring.h"
#include "cython_core/queues/spsc_ring.h"
#include "testbed/wait_turns.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#define CAPACITY 1024
#define BATCH 100
#define CHECK_EVERY 64 /* items or batches between looks at the clock's flag */

/* The plainest rings: what the machine allows. */
typedef struct {
    PS_APART uint64_t tail;
    PS_APART uint64_t head;
    PS_APART ps_slot slots[CAPACITY];
} bare_null_ring;

static int bare_null_offer(bare_null_ring *ring, void *item) {
    ps_slot *slot = &ring->slots[ring->tail % CAPACITY];
    if (ps_slot_load_acquire(slot) != NULL) return 0;
    ps_slot_store_release(slot, item);
    ring->tail++;
    return 1;
}

static void *bare_null_poll(bare_null_ring *ring) {
    ps_slot *slot = &ring->slots[ring->head % CAPACITY];
    void *item = ps_slot_load_acquire(slot);
    if (item == NULL) return NULL;
    ps_slot_store_release(slot, NULL);
    ring->head++;
    return item;
}

typedef struct {
    PS_APART ps_word tail;
    uint64_t head_seen;
    PS_APART ps_word head;
    uint64_t tail_seen;
    PS_APART void *slots[CAPACITY];
} bare_index_ring;

static uint64_t bare_index_offers(bare_index_ring *ring, void *const *items, uint64_t count) {
    uint64_t tail = ps_load_relaxed(&ring->tail);
    if (CAPACITY - (tail - ring->head_seen) < count) ring->head_seen = ps_load_acquire(&ring->head);
    if (CAPACITY - (tail - ring->head_seen) < count) return 0;
    for (uint64_t i = 0; i < count; i++) ring->slots[(tail + i) % CAPACITY] = items[i];
    ps_store_release(&ring->tail, tail + count);
    return count;
}

static uint64_t bare_index_polls(bare_index_ring *ring, void **items, uint64_t count) {
    uint64_t head = ps_load_relaxed(&ring->head);
    if (ring->tail_seen == head) ring->tail_seen = ps_load_acquire(&ring->tail);
    if (count > ring->tail_seen - head) count = ring->tail_seen - head;
    for (uint64_t i = 0; i < count; i++) items[i] = ring->slots[(head + i) % CAPACITY];
    if (count) ps_store_release(&ring->head, head + count);
    return count;
}

static ps_word stop;
static uint64_t taken;            /* by the last thread in the line */
static double began, ended;
static _Alignas(128) volatile uint64_t sink[4][16];

static struct {
    ps_spsc_ring *spsc, *back;
    ps_mpsc_ring *mpsc;
    bare_null_ring null;
    bare_index_ring index;
    ps_broadcast_ring *broadcast;
    ps_reader *readers[3];
} rings;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* One thread of a case: until it is told to stop; consumers count what they took. */
typedef void (*body)(int thread);

static void *item_of(uint64_t n) { return (void *)(uintptr_t)(n * 8 + 8); }

#define PRODUCER(name, OFFER)                                                                                         \
    static void name(int thread) {                                                                                    \
        ps_wait wait = ps_wait_of(PS_WAIT_YIELD, 0);                                                                  \
        (void)thread;                                                                                                 \
        for (uint64_t n = 0; !ps_load_relaxed(&stop);)                                                                \
            for (int i = 0; i < CHECK_EVERY; i++) {                                                                   \
                while (!(OFFER)) {                                                                                    \
                    if (ps_load_relaxed(&stop)) return;                                                               \
                    ps_wait_turn(&wait);                                                                              \
                }                                                                                                     \
                ps_wait_over(&wait);                                                                                  \
                n++;                                                                                                  \
            }                                                                                                         \
    }

#define CONSUMER(name, POLL)                                                                                          \
    static void name(int thread) {                                                                                    \
        ps_wait wait = ps_wait_of(PS_WAIT_YIELD, 0);                                                                  \
        uint64_t sum = 0, count = 0;                                                                                  \
        began = seconds();                                                                                            \
        while (!ps_load_relaxed(&stop))                                                                               \
            for (int i = 0; i < CHECK_EVERY; i++) {                                                                   \
                void *item = POLL;                                                                                    \
                if (item == NULL) {                                                                                   \
                    ps_wait_turn(&wait);                                                                              \
                } else {                                                                                              \
                    ps_wait_over(&wait);                                                                              \
                    sum += (uintptr_t)item;                                                                           \
                    count++;                                                                                          \
                }                                                                                                     \
            }                                                                                                         \
        ended = seconds();                                                                                            \
        taken = count;                                                                                                \
        sink[thread][0] = sum;                                                                                        \
    }

#define BATCH_PRODUCER(name, OFFER)                                                                                   \
    static void name(int thread) {                                                                                    \
        ps_wait wait = ps_wait_of(PS_WAIT_YIELD, 0);                                                                  \
        (void)thread;                                                                                                 \
        for (uint64_t n = 0; !ps_load_relaxed(&stop);) {                                                              \
            void *items[BATCH];                                                                                       \
            for (int i = 0; i < BATCH; i++) items[i] = item_of(n++);                                                  \
            for (uint64_t went = 0; went < BATCH;) {                                                                  \
                uint64_t more = OFFER;                                                                                \
                went += more;                                                                                         \
                if (more) {                                                                                           \
                    ps_wait_over(&wait);                                                                              \
                } else {                                                                                              \
                    if (ps_load_relaxed(&stop)) return;                                                               \
                    ps_wait_turn(&wait);                                                                              \
                }                                                                                                     \
            }                                                                                                         \
        }                                                                                                             \
    }

#define BATCH_CONSUMER(name, DRAIN)                                                                                   \
    static void name(int thread) {                                                                                    \
        ps_wait wait = ps_wait_of(PS_WAIT_YIELD, 0);                                                                  \
        uint64_t sum = 0, count = 0;                                                                                  \
        began = seconds();                                                                                            \
        while (!ps_load_relaxed(&stop)) {                                                                             \
            void *items[BATCH];                                                                                       \
            uint64_t got = DRAIN;                                                                                     \
            for (uint64_t i = 0; i < got; i++) sum += (uintptr_t)items[i];                                            \
            count += got;                                                                                             \
            if (got) ps_wait_over(&wait);                                                                             \
            else ps_wait_turn(&wait);                                                                                 \
        }                                                                                                             \
        ended = seconds();                                                                                            \
        taken = count;                                                                                                \
        sink[thread][0] = sum;                                                                                        \
    }

PRODUCER(spsc_offers, ps_spsc_offer(rings.spsc, item_of(n)))
CONSUMER(spsc_polls, ps_spsc_poll(rings.spsc))
BATCH_PRODUCER(spsc_offers_batch, ps_spsc_offer_batch(rings.spsc, items + went, BATCH - went))
BATCH_CONSUMER(spsc_drains, ps_spsc_drain(rings.spsc, items, BATCH))
PRODUCER(mpsc_offers, ps_mpsc_offer(rings.mpsc, item_of(n)))
CONSUMER(mpsc_polls, ps_mpsc_poll(rings.mpsc))
BATCH_PRODUCER(mpsc_offers_batch, ps_mpsc_offer_batch(rings.mpsc, items + went, BATCH - went))
BATCH_CONSUMER(mpsc_drains, ps_mpsc_drain(rings.mpsc, items, BATCH))
PRODUCER(null_offers, bare_null_offer(&rings.null, item_of(n)))
CONSUMER(null_polls, bare_null_poll(&rings.null))
BATCH_PRODUCER(index_offers, bare_index_offers(&rings.index, items + went, BATCH - went))
BATCH_CONSUMER(index_polls, bare_index_polls(&rings.index, items, BATCH))

/* Broadcast: every reader adds up what it reads; the last in the line counts. */
static void writes(int thread) {
    ps_wait wait = ps_wait_of(PS_WAIT_YIELD, 0);
    uint64_t sequence;
    (void)thread;
    for (uint64_t n = 0;; n++) {
        while (!ps_broadcast_try_claim(rings.broadcast, 1, &sequence)) {
            if (ps_load_relaxed(&stop)) return;
            ps_wait_turn(&wait);
        }
        ps_wait_over(&wait);
        *(uint64_t *)ps_broadcast_at(rings.broadcast, sequence, sizeof(uint64_t)) = n;
        ps_broadcast_publish(rings.broadcast, sequence, 1);
        if (n % CHECK_EVERY == 0 && ps_load_relaxed(&stop)) return;
    }
}

static int add_up(void *context, void *cell, uint64_t sequence, int end_of_batch) {
    (void)sequence, (void)end_of_batch;
    *(uint64_t *)context += *(uint64_t *)cell;
    return 0;
}

static void reads(int thread) {
    ps_reader *reader = rings.readers[thread - 1];
    ps_wait wait = ps_wait_of(PS_WAIT_YIELD, 0);
    uint64_t sum = 0, count = 0;
    double from = seconds();
    while (!ps_load_relaxed(&stop)) {
        uint64_t got = ps_reader_turn(reader, CAPACITY, sizeof(uint64_t), add_up, &sum);
        count += got;
        if (got) ps_wait_over(&wait);
        else ps_wait_turn(&wait);
    }
    sink[thread][0] = sum;
    if (reader == rings.broadcast->readers[rings.broadcast->readers_count - 1]) {
        began = from;
        ended = seconds();
        taken = count;
    }
}

/* Round trips, one item at a time, each timed. */
#define LONGEST 100000
static unsigned trips[LONGEST];

static uint64_t nanos(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void calls(int thread) {
    (void)thread;
    for (uint64_t n = 0; !ps_load_relaxed(&stop); n++) {
        uint64_t from = nanos(), took;
        while (!ps_spsc_offer(rings.spsc, item_of(n))) ps_pause();
        while (ps_spsc_poll(rings.back) == NULL)
            if (ps_load_relaxed(&stop)) return;
        took = nanos() - from;
        trips[took < LONGEST ? took : LONGEST - 1]++;
    }
}

static void answers(int thread) {
    (void)thread;
    while (!ps_load_relaxed(&stop)) {
        void *item = ps_spsc_poll(rings.spsc);
        if (item != NULL) ps_spsc_offer(rings.back, item);
    }
}

static uint64_t trip_at(double share) {
    uint64_t all = 0, seen = 0;
    for (int i = 0; i < LONGEST; i++) all += trips[i];
    for (int i = 0; i < LONGEST; i++)
        if ((double)(seen += trips[i]) >= share * (double)all) return (uint64_t)i;
    return LONGEST;
}

static ps_word there, here;
#define PINGS 4000

static void pings(int thread) {
    (void)thread;
    uint64_t best = UINT64_MAX, from = nanos();
    for (uint64_t n = 1; n <= PINGS; n++) {
        ps_store_release(&there, n);
        while (ps_load_acquire(&here) != n) continue;
        if (n % 200 == 0) {
            uint64_t now = nanos();
            if (now - from < best) best = now - from;
            from = now;
        }
    }
    taken = best / 200;
}

static void pongs(int thread) {
    (void)thread;
    for (uint64_t n = 1; n <= PINGS; n++) {
        while (ps_load_acquire(&there) != n) continue;
        ps_store_release(&here, n);
    }
}

static const struct {
    const char *name;
    body threads[4];
} cases[] = {
    {"spsc", {spsc_offers, spsc_polls}},
    {"spsc-batch", {spsc_offers_batch, spsc_drains}},
    {"bare-null", {null_offers, null_polls}},
    {"bare-index-batch", {index_offers, index_polls}},
    {"mpsc", {mpsc_offers, mpsc_polls, mpsc_offers}},
    {"mpsc-batch", {mpsc_offers_batch, mpsc_drains, mpsc_offers_batch}},
    {"broadcast", {writes, reads, reads, reads}},
    {"pipeline", {writes, reads, reads}},
    {"round-trip", {calls, answers}},
    {"ping", {pings, pongs}},
};

typedef struct {
    body run;
    int number;
} thread;

static void *run_thread(void *argument) {
    const thread *self = argument;
    self->run(self->number);
    return NULL;
}

static void fresh_rings(int pipeline) {
    ps_spsc_free(rings.spsc);
    ps_spsc_free(rings.back);
    ps_mpsc_free(rings.mpsc);
    ps_broadcast_free(rings.broadcast);
    memset(&rings, 0, sizeof rings);
    rings.spsc = ps_spsc_new(CAPACITY);
    rings.back = ps_spsc_new(CAPACITY);
    rings.mpsc = ps_mpsc_new(CAPACITY);
    rings.broadcast = ps_broadcast_new(CAPACITY, sizeof(uint64_t));
    for (int i = 0; i < (pipeline ? 2 : 3); i++)
        rings.readers[i] = ps_broadcast_add_reader(rings.broadcast, i ? rings.readers + i - 1 : NULL, pipeline && i);
    ps_store_relaxed(&there, 0);
    ps_store_relaxed(&here, 0);
    ps_store_relaxed(&stop, 0);
    memset(trips, 0, sizeof trips);
}

int main(int count, char **arguments) {
    char name[32];
    int millis;
    if (count != 3) return 2;
    while (scanf("%31s %d", name, &millis) == 2) {
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            if (strcmp(cases[c].name, name) != 0) continue;
            pthread_t started[4];
            thread threads[4];
            int n = 0;
            fresh_rings(strcmp(name, "pipeline") == 0);
            for (; n < 4 && cases[c].threads[n]; n++) {
                pthread_attr_t attributes;
                cpu_set_t cpus;
                CPU_ZERO(&cpus);
                CPU_SET(atoi(arguments[1 + n % 2]), &cpus);
                pthread_attr_init(&attributes);
                pthread_attr_setaffinity_np(&attributes, sizeof cpus, &cpus);
                threads[n] = (thread){cases[c].threads[n], n};
                if (pthread_create(&started[n], &attributes, run_thread, &threads[n]) != 0) return 3;
                pthread_attr_destroy(&attributes);
            }
            if (strcmp(name, "ping") != 0) {
                struct timespec span = {millis / 1000, millis % 1000 * 1000000L};
                nanosleep(&span, NULL);
            }
            ps_store_relaxed(&stop, 1);
            for (int i = 0; i < n; i++) pthread_join(started[i], NULL);
        }
        if (strcmp(name, "ping") == 0) printf("%llu\n", (unsigned long long)taken);
        else if (strcmp(name, "round-trip") == 0)
            printf("%llu %llu\n", (unsigned long long)trip_at(0.5), (unsigned long long)trip_at(0.99));
        else printf("%llu %.9f\n", (unsigned long long)taken, ended - began);
        fflush(stdout);
    }
    return 0;
}
