/* A bounded ring of frames from one process to another, in memory that both have mapped; capacity a power of two.
 *
 * Follows Agrona's OneToOneRingBuffer: a frame lies in one piece, its length before it; what is left at the ring's end
 * and too short for a frame is padding. Other than there, the tail makes a frame visible and not its length, so that no
 * byte has to be cleared behind a reader, and a writer that is killed half-way leaves nothing that looks like a frame.
 *
 *     capacity 64, frames of 12 and 20 bytes, then one of 16      (positions only grow; byte = position & mask)
 *
 *     byte    0        8        16       24       32       40       48       56       64
 *             | 12, k  | 12 bytes, 4 | 20, k  | 20 bytes, 4 unused | padding         |
 *                        unused
 *     tail 48. The third frame needs 8 + 16 = 24 bytes, and 16 are left before the end. The writer waits until the
 *     reader has released the first frame (head 24): the padding of 16 fits then, and 24 bytes from 0 on; tail 88.
 *
 * A frame has at most half the capacity, its header included: so it fits into an empty ring wherever that begins.
 * Larger ones are for the layer above to split.
 *
 * Only head, tail and the bytes are shared. Each side keeps its position, and its last look at the other side's, in
 * memory of its own; the reader trusts no length that it reads. So a process whose memory is damaged can neither move
 * the other one's reads out of the ring nor its writes.
 *
 * Threading law: one thread of one process writes, one thread of one process reads. Nothing blocks, nothing wakes
 * (doorbell.h does).
 */
#ifndef PYSTORM_BYTE_RING_H
#define PYSTORM_BYTE_RING_H

#include "cython_core/primitives/atomics.h"

#define PS_FRAME_ALIGN 8
#define PS_FRAME_PADDING UINT32_MAX /* the kind of a frame that is none */

typedef struct {
    uint32_t length; /* bytes behind the header */
    uint32_t kind;   /* the layer above says what it means; not PS_FRAME_PADDING */
} ps_frame_header;

typedef struct {
    PS_APART ps_word tail; /* bytes that were ever written; the writer's line */
    PS_APART ps_word head; /* bytes that were ever released; the reader's line */
    PS_APART unsigned char bytes[];
} ps_byte_ring;

typedef struct {
    ps_byte_ring *ring;
    uint64_t mask;
    uint64_t at;    /* where the next frame begins */
    uint64_t limit; /* every byte below this position is known to be free */
} ps_byte_writer;

typedef struct {
    ps_byte_ring *ring;
    uint64_t mask;
    uint64_t at;   /* where the next frame begins */
    uint64_t next; /* where the one that was peeked at ends; `at`, where none was */
    uint64_t seen; /* tail, or what it was at the last look */
    int damaged;   /* lengths or positions make no sense: nothing is read any more */
} ps_byte_reader;

/* Bytes of memory that a ring takes, a multiple of PS_APART_BYTES; 0 where the capacity is no power of two of at least
 * two frames. */
static inline uint64_t ps_byte_ring_bytes(uint64_t capacity) {
    if (capacity < 4 * PS_FRAME_ALIGN || (capacity & (capacity - 1)) != 0 || capacity > UINT32_MAX) return 0;
    return (sizeof(ps_byte_ring) + capacity + PS_APART_BYTES - 1) & ~(uint64_t)(PS_APART_BYTES - 1);
}

/* Both before the fork, over zeroed memory that is aligned to PS_APART_BYTES. */
static inline ps_byte_writer ps_byte_writer_of(void *memory, uint64_t capacity) {
    ps_byte_writer writer = {(ps_byte_ring *)memory, capacity - 1, 0, capacity};
    return writer;
}

static inline ps_byte_reader ps_byte_reader_of(void *memory, uint64_t capacity) {
    ps_byte_reader reader = {(ps_byte_ring *)memory, capacity - 1, 0, 0, 0, 0};
    return reader;
}

/* The longest frame that ever fits, without its header. */
static inline uint64_t ps_byte_most(const ps_byte_writer *writer) {
    return (writer->mask + 1) / 2 - sizeof(ps_frame_header);
}

static inline uint64_t ps_frame_bytes(uint64_t length) {
    return (sizeof(ps_frame_header) + length + PS_FRAME_ALIGN - 1) & ~(uint64_t)(PS_FRAME_ALIGN - 1);
}

static inline void ps_frame_head(ps_byte_writer *writer, uint64_t length, uint32_t kind) {
    ps_frame_header header = {(uint32_t)length, kind};
    memcpy(writer->ring->bytes + (writer->at & writer->mask), &header, sizeof header);
}

/* Where to put a frame of `length` bytes, at most ps_byte_most; NULL where there is no room for it now. */
static inline unsigned char *ps_byte_claim(ps_byte_writer *writer, uint64_t length) {
    uint64_t size = ps_frame_bytes(length), left = writer->mask + 1 - (writer->at & writer->mask);
    uint64_t needed = left < size ? left + size : size;
    if (PS_UNLIKELY(writer->limit - writer->at < needed)) {
        /* Order: the reader has read the bytes before it released them. A head that makes no sense gives no room. */
        uint64_t used = writer->at - ps_load_acquire(&writer->ring->head);
        if (used > writer->mask + 1) return NULL;
        writer->limit = writer->at - used + writer->mask + 1;
        if (writer->limit - writer->at < needed) return NULL;
    }
    if (PS_UNLIKELY(left < size)) {
        ps_frame_head(writer, left - sizeof(ps_frame_header), PS_FRAME_PADDING);
        writer->at += left;
    }
    return writer->ring->bytes + (writer->at & writer->mask) + sizeof(ps_frame_header);
}

/* Hands over the frame that was claimed last; `length` may be shorter than was claimed. */
static inline void ps_byte_commit(ps_byte_writer *writer, uint64_t length, uint32_t kind) {
    ps_frame_head(writer, length, kind);
    writer->at += ps_frame_bytes(length);
    ps_store_release(&writer->ring->tail, writer->at);
}

/* The next frame, and what its header says; NULL where there is none, or the ring is damaged. */
static inline const unsigned char *ps_byte_peek(ps_byte_reader *reader, uint64_t *length, uint32_t *kind) {
    ps_frame_header header;
    if (PS_UNLIKELY(reader->damaged)) return NULL;
    for (;;) {
        if (reader->seen == reader->at) {
            reader->seen = ps_load_acquire(&reader->ring->tail);
            if (reader->seen == reader->at) return NULL;
        }
        uint64_t place = reader->at & reader->mask, there = reader->seen - reader->at;
        memcpy(&header, reader->ring->bytes + place, sizeof header);
        uint64_t size = ps_frame_bytes(header.length);
        if (PS_UNLIKELY(there > reader->mask + 1 || size > there || size > reader->mask + 1 - place)) {
            reader->damaged = 1;
            return NULL;
        }
        reader->next = reader->at + size;
        if (PS_LIKELY(header.kind != PS_FRAME_PADDING)) {
            *length = header.length;
            *kind = header.kind;
            return reader->ring->bytes + place + sizeof header;
        }
        reader->at = reader->next; /* released with the frame behind it, which came with it */
    }
}

/* Gives back the frame that was peeked at: its bytes may be written over from here on. */
static inline void ps_byte_release(ps_byte_reader *reader) {
    reader->at = reader->next;
    ps_store_release(&reader->ring->head, reader->at);
}

#endif
