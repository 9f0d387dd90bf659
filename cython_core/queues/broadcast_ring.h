/* A bounded ring that every reader reads whole: the Disruptor's ring, sequences and barriers.
 *
 * Follows LMAX Disruptor 4. A sequence counts what has been published or read, so it is the next one to publish or
 * read. Readers are added before the first claim. A reader without others upstream of it reads behind the writer, one
 * with others reads behind the slowest of those. The writer waits only for the readers that no other one reads behind:
 * the others are ahead.
 *
 *     capacity 8, mask 7, cell = sequence & mask          journal ──┐
 *                                              writer ──┤           ├─ application
 *                                                       replica ────┘
 *     claimed 13   published 12   journal 11   replica 9   application 7
 *     cell   0   1   2   3   4   5   6   7
 *            e8  e9  e10 e11 e12 -   -   e7
 *
 *     The writer fills cell 4 (sequence 12). Sequence 11 is the last one that journal may read now, 9 and 10 wait for
 *     replica, application may read up to 8, as replica is at 9. Two more claims go through (13 and 14 fit while 7 is
 *     unread: 7 + 8 = 15), the next waits until application has released 7.
 *
 * The writer publishes by raising `published` past all that it claimed.
 *
 * Threading law: claim and publish from one thread; a reader belongs to one thread. Nothing blocks.
 */
#ifndef PYSTORM_BROADCAST_RING_H
#define PYSTORM_BROADCAST_RING_H

#include "cython_core/primitives/atomics.h"

typedef struct {
    PS_APART ps_word value;
} ps_sequence;

typedef struct ps_broadcast_ring ps_broadcast_ring;

typedef struct ps_reader {
    ps_sequence read; /* next sequence to read; written by this reader only */
    PS_APART ps_broadcast_ring *ring;
    uint64_t seen; /* everything below may be read; this reader's own */
    size_t width; /* number of: */
    struct ps_reader *upstream[];
} ps_reader;

struct ps_broadcast_ring {
    uint64_t mask;
    size_t width;    /* bytes per cell */
    ps_reader **gates; /* readers that no other one reads behind */
    size_t gates_count;
    ps_reader **readers; /* all, to be freed */
    size_t readers_count;
    ps_sequence published;
    PS_APART ps_word claimed; /* next sequence to claim */
    uint64_t limit;  /* no sequence from here on may be claimed before the gates were looked at again; the writer's */
    PS_APART unsigned char cells[];
};

static inline void ps_broadcast_free(ps_broadcast_ring *ring) {
    if (ring == NULL) return;
    for (size_t i = 0; i < ring->readers_count; i++) free(ring->readers[i]);
    free(ring->readers);
    free(ring->gates);
    free(ring);
}

/* Cells of `width` bytes, zeroed. NULL where memory is short or the capacity is no power of two. */
static inline ps_broadcast_ring *ps_broadcast_new(uint64_t capacity, size_t width) {
    ps_broadcast_ring *ring = NULL;
    if (capacity == 0 || (capacity & (capacity - 1)) != 0) return NULL;
    ring = (ps_broadcast_ring *)ps_alloc_apart(sizeof(ps_broadcast_ring), capacity, width);
    if (ring == NULL) return NULL;
    ring->mask = capacity - 1;
    ring->width = width;
    ring->limit = capacity;
    return ring;
}

/* A reader of all that is published, behind `width` others of this ring; the ring owns it. NULL where memory is short
 * or something was claimed already. */
static inline ps_reader *ps_broadcast_add_reader(ps_broadcast_ring *ring, ps_reader *const *upstream, size_t width) {
    if (ps_load_relaxed(&ring->claimed) != 0) return NULL;
    /* Room first, so that nothing is to be undone. */
    size_t bytes = (ring->readers_count + 1) * sizeof(ps_reader *);
    ps_reader **readers = (ps_reader **)realloc(ring->readers, bytes);
    if (readers == NULL) return NULL;
    ring->readers = readers;
    ps_reader **gates = (ps_reader **)realloc(ring->gates, bytes);
    if (gates == NULL) return NULL;
    ring->gates = gates;
    ps_reader *reader = (ps_reader *)ps_alloc_apart(sizeof(ps_reader), width + 1, sizeof(ps_reader *));
    if (reader == NULL) return NULL;
    reader->ring = ring;
    reader->width = width;
    for (size_t i = 0; i < width; i++) {
        reader->upstream[i] = upstream[i];
        size_t kept = 0;
        for (size_t j = 0; j < ring->gates_count; j++)
            if (gates[j] != upstream[i]) gates[kept++] = gates[j];
        ring->gates_count = kept;
    }
    gates[ring->gates_count++] = reader;
    readers[ring->readers_count++] = reader;
    return reader;
}

static inline uint64_t ps_broadcast_capacity(const ps_broadcast_ring *ring) { return ring->mask + 1; }

/* The cell of a sequence that is claimed and not yet published, or may be read and is not yet released. */
static inline void *ps_broadcast_at(ps_broadcast_ring *ring, uint64_t sequence, size_t width) {
    return ring->cells + (size_t)(sequence & ring->mask) * width;
}

/* The smallest of the readers' sequences, `most` where there are none or all are ahead of it. */
static inline uint64_t ps_broadcast_slowest(ps_reader *const *readers, size_t count, uint64_t most) {
    for (size_t i = 0; i < count; i++) {
        /* Order: a reader has read the cells before it released them. */
        uint64_t read = ps_load_acquire(&readers[i]->read.value);
        if ((int64_t)(read - most) < 0) most = read;
    }
    return most;
}

/* 1 and the first of `count` sequences in a row; 0 if not all of them fit now. More than the capacity never fit. */
static inline int ps_broadcast_try_claim(ps_broadcast_ring *ring, uint64_t count, uint64_t *first) {
    if (PS_UNLIKELY(count > ring->mask + 1)) return 0;
    uint64_t claimed = ps_load_relaxed(&ring->claimed);
    if (PS_UNLIKELY((int64_t)(ring->limit - claimed) < (int64_t)count)) {
        ring->limit = ps_broadcast_slowest(ring->gates, ring->gates_count, claimed) + ring->mask + 1;
        if ((int64_t)(ring->limit - claimed) < (int64_t)count) return 0;
    }
    *first = claimed;
    ps_store_relaxed(&ring->claimed, claimed + count);
    return 1;
}

/* Hands claimed cells to the readers, in the order of the claims. */
static inline void ps_broadcast_publish(ps_broadcast_ring *ring, uint64_t first, uint64_t count) {
    ps_store_release(&ring->published.value, first + count);
}

/* The next sequence to read. */
static inline uint64_t ps_reader_next(const ps_reader *reader) { return ps_load_relaxed(&reader->read.value); }

/* The reader may read up to this sequence, exclusive; looks only where its last look leaves less than is wanted. */
static inline uint64_t ps_reader_available(ps_reader *reader, uint64_t wanted) {
    const ps_broadcast_ring *ring = reader->ring;
    uint64_t read = ps_reader_next(reader);
    if (reader->seen - read >= wanted) return reader->seen;
    if (reader->width) {
        /* Order: with the release of a reader comes all that it had acquired. */
        reader->seen = ps_broadcast_slowest(reader->upstream, reader->width, read + ring->mask + 1);
    } else {
        reader->seen = ps_load_acquire(&ring->published.value);
    }
    return reader->seen;
}

/* Gives back all cells below `next`, one that was available; readers behind this one may go on to it. */
static inline void ps_reader_release(ps_reader *reader, uint64_t next) { ps_store_release(&reader->read.value, next); }

/* Not 0: the batch ends with this cell. */
typedef int (*ps_read)(void *context, void *cell, uint64_t sequence, int end_of_batch);

/* Hands what is available, at most `limit` cells, to `each`, then releases them in one; returns how many.
 * `end_of_batch` is 1 for the last cell of the turn: the time to write out what was gathered. */
static inline uint64_t ps_reader_turn(ps_reader *reader, uint64_t limit, size_t width, ps_read each, void *context) {
    uint64_t read = ps_reader_next(reader), first = read;
    uint64_t end = ps_reader_available(reader, limit);
    if (end - read > limit) end = read + limit;
    while (read != end) {
        void *cell = ps_broadcast_at(reader->ring, read, width);
        int enough = each(context, cell, read, read + 1 == end);
        read++;
        if (enough) break;
    }
    if (read != first) ps_reader_release(reader, read);
    return read - first;
}

#endif
