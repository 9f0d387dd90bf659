"""Declares what queues.pyx and the parts that it includes define."""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint64_t

from cython_core.primitives.parker cimport Parker, ps_parker_unpark
from cython_core.queues.mpsc_ring cimport (
    ps_mpsc_capacity, ps_mpsc_free, ps_mpsc_new, ps_mpsc_offer_batch, ps_mpsc_poll, ps_mpsc_ring, ps_mpsc_size,
)
from cython_core.queues.spsc_ring cimport (
    ps_spsc_capacity, ps_spsc_free, ps_spsc_new, ps_spsc_offer_batch, ps_spsc_poll, ps_spsc_ring, ps_spsc_size,
)
from cython_core.tuples.tuple cimport Tuple, TupleBatch


# receive_queue.pxi

cdef extern from "cython_core/queues/ring.h" nogil:
    ctypedef struct ps_ring:
        void **slots
        uint64_t mask
        uint64_t head
        uint64_t tail
    uint64_t ps_ring_round_up(uint64_t n)
    int ps_ring_init(ps_ring *ring, uint64_t capacity)
    void ps_ring_free(ps_ring *ring)
    uint64_t ps_ring_size(const ps_ring *ring)
    uint64_t ps_ring_offer_batch(ps_ring *ring, void **items, uint64_t count)
    void *ps_ring_poll(ps_ring *ring)


@cython.final
cdef class ReceiveQueue:
    # Holds one reference to each tuple between offer and poll. One of the three rings is in use.
    cdef ps_ring ring            # all in one thread
    cdef ps_spsc_ring *spsc      # one thread offers, another one polls
    cdef ps_mpsc_ring *mpsc      # several threads offer
    cdef public Parker consumer  # of the thread that polls, woken by what arrives; None where there is but one thread
    cdef readonly list blocked   # Parkers of the threads that wait for room
    cdef readonly unsigned long long insert_failures  # offers of tuples or batches that did not go in as a whole
    cdef readonly unsigned long long recent_high_mark  # largest population since mark_anew()
    cdef unsigned long long earlier_high_mark          # and before
    cdef readonly unsigned long long held_rows     # of batches that are on their way to the consumer or in its hands
    cdef readonly unsigned long long held_bytes
    cdef public unsigned long long byte_limit      # of these
    cdef public bint takes_batches                 # the consumer is a bolt of batches: they come whole
    cdef public bint takes_columns                 # it has process_many: rows of an emit_many come as columns
    cdef bint offer(self, Tuple tup) noexcept
    cdef uint64_t offer_batch(self, PyObject **tuples, uint64_t count) noexcept
    cdef void wake_blocked(self) noexcept


cdef inline void *queue_poll(ReceiveQueue queue) noexcept nogil:
    # The oldest tuple, whose reference the caller takes over; NULL where the queue is empty.
    if queue.ring.slots is not NULL:  # hot
        return ps_ring_poll(&queue.ring)  # hot
    if queue.spsc is not NULL:  # hot
        return ps_spsc_poll(queue.spsc)  # hot
    return ps_mpsc_poll(queue.mpsc)  # hot


cdef inline uint64_t queue_size(ReceiveQueue queue) noexcept nogil:
    if queue.ring.slots is not NULL:  # hot
        return ps_ring_size(&queue.ring)  # hot
    if queue.spsc is not NULL:  # hot
        return ps_spsc_size(queue.spsc)  # hot
    return ps_mpsc_size(queue.mpsc)  # hot


cdef inline uint64_t queue_capacity(ReceiveQueue queue) noexcept nogil:
    if queue.ring.slots is not NULL:
        return queue.ring.mask + 1
    return ps_spsc_capacity(queue.spsc) if queue.spsc is not NULL else ps_mpsc_capacity(queue.mpsc)


cdef inline bint takes_rows(ReceiveQueue queue, Py_ssize_t rows, Py_ssize_t weight) noexcept nogil:
    # Whether a batch is within the bounds.
    if queue.held_rows == 0:
        return 1
    return queue.held_rows + rows <= queue_capacity(queue) and queue.held_bytes + weight <= queue.byte_limit


cdef inline int hold_rows(ReceiveQueue queue, Py_ssize_t rows, Py_ssize_t weight) noexcept:
    # A batch is on its way to the consumer.
    queue.held_rows += rows
    queue.held_bytes += weight
    return 0


cdef inline int release_rows(ReceiveQueue queue, Py_ssize_t rows, Py_ssize_t weight) noexcept:
    # The consumer is done with it.
    queue.held_rows -= rows
    queue.held_bytes -= weight
    return 0


# broadcast_ring.pxi

cdef extern from "cython_core/queues/broadcast_ring.h" nogil:
    ctypedef struct ps_reader:
        pass
    ctypedef struct ps_broadcast_ring:
        ps_reader **readers
        ps_reader **gates
        size_t gates_count
    ps_broadcast_ring *ps_broadcast_new(uint64_t capacity, size_t width)
    void ps_broadcast_free(ps_broadcast_ring *ring)
    ps_reader *ps_broadcast_add_reader(ps_broadcast_ring *ring, ps_reader **upstream, size_t width)
    uint64_t ps_broadcast_capacity(const ps_broadcast_ring *ring)
    void *ps_broadcast_at(ps_broadcast_ring *ring, uint64_t sequence, size_t width)
    uint64_t ps_broadcast_slowest(ps_reader **readers, size_t count, uint64_t most)
    int ps_broadcast_try_claim(ps_broadcast_ring *ring, uint64_t count, uint64_t *first)
    void ps_broadcast_publish(ps_broadcast_ring *ring, uint64_t first, uint64_t count)
    uint64_t ps_reader_next(const ps_reader *reader)
    uint64_t ps_reader_available(ps_reader *reader, uint64_t wanted)
    void ps_reader_release(ps_reader *reader, uint64_t next)


# Of the batches that a reader has not finished.
cdef struct ps_held:
    uint64_t rows
    uint64_t bytes


@cython.final
cdef class BroadcastRing:
    # Holds one reference to each object from `dropped` to `written`.
    cdef ps_broadcast_ring *ring
    cdef uint64_t written
    cdef uint64_t dropped  # sequences below have been read by all, and their references were let go
    cdef tuple names
    cdef readonly list consumers  # Parkers of the threads that read, woken by what arrives
    cdef readonly list blocked    # Parkers of the threads that wait for room
    cdef ps_held *held            # by each reader
    cdef public uint64_t byte_limit                # of batches that a reader has not finished
    cdef void **at(self, uint64_t sequence) noexcept
    cdef uint64_t slowest(self) noexcept
    cdef Py_ssize_t slowest_reader(self) noexcept
    cdef Py_ssize_t fullest_reader(self, Py_ssize_t rows, Py_ssize_t weight) noexcept
    cdef void drop(self) noexcept
    cdef void release_rows(self, Py_ssize_t place, Py_ssize_t rows, Py_ssize_t weight) noexcept
    cdef uint64_t offer_batch(self, PyObject **objects, uint64_t count) noexcept


@cython.final
cdef class BroadcastReader:
    cdef BroadcastRing owner
    cdef ps_reader *reader
    cdef readonly str name
    cdef Py_ssize_t place   # among the ring's names


cdef inline PyObject *reader_poll(BroadcastReader reader) noexcept:
    # The next object, a reference of its own that the caller takes over; NULL where there is none for this reader yet.
    cdef uint64_t sequence = ps_reader_next(reader.reader)
    cdef void *item
    if ps_reader_available(reader.reader, 1) == sequence:
        return NULL
    item = reader.owner.at(sequence)[0]
    Py_INCREF(<object>item)
    ps_reader_release(reader.reader, sequence + 1)
    reader.owner.drop()
    return <PyObject *>item


cdef inline uint64_t reader_size(BroadcastReader reader) noexcept:
    # Objects that this reader may read now.
    cdef uint64_t all = ps_broadcast_capacity(reader.owner.ring)
    return ps_reader_available(reader.reader, all) - ps_reader_next(reader.reader)


cdef inline uint64_t ring_room(BroadcastRing ring) noexcept:
    # Objects that go in now.
    return ps_broadcast_capacity(ring.ring) - (ring.written - ring.slowest())


cdef inline bint ring_takes_rows(BroadcastRing ring, Py_ssize_t rows, Py_ssize_t weight) noexcept:
    # Whether a batch is within the bounds of each reader, which are those of a queue.
    return ring.fullest_reader(rows, weight) < 0


cdef inline int ring_hold_rows(BroadcastRing ring, Py_ssize_t rows, Py_ssize_t weight) noexcept:
    # A batch is on its way to all readers.
    cdef Py_ssize_t i
    for i in range(len(ring.names)):
        ring.held[i].rows += rows
        ring.held[i].bytes += weight
    return 0


# batch_inserter.pxi

cdef extern from "Python.h":
    void ps_incref "Py_INCREF"(PyObject *)


@cython.final
cdef class BatchInserter:
    # The one level of batching: what one producer has for one destination and has not published yet.
    cdef readonly ReceiveQueue queue  # the destination,
    cdef readonly BroadcastRing ring  # or the one that all of several read
    cdef readonly int task          # the destination's task id; of a ring, its first reader's
    cdef PyObject **items           # owned references, oldest first; NULL where tuples go straight in
    cdef uint64_t count             # at most `limit`
    cdef readonly uint64_t limit    # tuples that make a batch full now; 0: they go straight in
    cdef readonly uint64_t size     # most that `limit` may be
    cdef readonly bint dynamic      # `limit` follows the load
    # Of the batch that found no room and is the oldest pending emit; 0 rows: there is none.
    cdef Py_ssize_t awaited_rows
    cdef Py_ssize_t awaited_weight
    # Counters, read from outside.
    cdef readonly unsigned long long published   # tuples
    cdef readonly unsigned long long refusals    # publishes that left tuples behind: the queue was full
    cdef unsigned long long batches              # publishes of a batch that took something
    cdef bint flush(self) noexcept
    cdef uint64_t offer(self, PyObject **items, uint64_t count) noexcept
    cdef list blocked(self)
    cdef bint insert_at_limit(self, Tuple tup) noexcept


cdef inline bint insert(BatchInserter batch, Tuple tup) noexcept:
    # Non-blocking, producer's thread only. 0 where both the batch and the queue are full; the tuple is then not taken.
    if batch.count == batch.limit:  # hot
        return batch.insert_at_limit(tup)  # hot
    ps_incref(<PyObject *>tup)  # hot
    batch.items[batch.count] = <PyObject *>tup  # hot
    batch.count += 1  # hot
    if batch.count == batch.limit:  # hot
        batch.flush()  # hot
    return 1  # hot


cdef inline bint queue_has_room(BatchInserter batch) noexcept nogil:
    # Whether the destination's queue has room now. 0 for a ring: it is unknown without the interpreter's lock.
    # Order: what a refused batch needs, too; a thread that is told of room and finds none would not let others in.
    if batch.queue is None or queue_size(batch.queue) >= queue_capacity(batch.queue):
        return 0
    if batch.awaited_rows == 0 or batch.count > 0:
        return 1
    return takes_rows(batch.queue, batch.awaited_rows, batch.awaited_weight)


cdef inline bint has_room(BatchInserter batch) noexcept:
    # The same of any destination, with the interpreter's lock.
    if batch.ring is None:
        return queue_has_room(batch)
    if ring_room(batch.ring) == 0:
        return 0
    if batch.awaited_rows == 0 or batch.count > 0:
        return 1
    return ring_takes_rows(batch.ring, batch.awaited_rows, batch.awaited_weight)


cdef inline bint insert_rows(BatchInserter inserter, Tuple tup) noexcept:
    # As `insert`, a tuple that stands for many rows.
    cdef TupleBatch rows = <TupleBatch>tup.payload
    cdef bint fits
    if inserter.ring is None:
        fits = takes_rows(inserter.queue, rows.count, rows.weight)
    else:
        fits = ring_takes_rows(inserter.ring, rows.count, rows.weight)
    inserter.awaited_rows = 0 if fits else rows.count
    inserter.awaited_weight = rows.weight
    if not fits:
        inserter.refusals += 1
        inserter.flush()  # order: what it waits for may be in here, and its executor flushes no more before it has room
        return 0
    if not insert(inserter, tup):
        return 0
    inserter.published += rows.count - 1  # and one when it is
    if inserter.ring is None:
        hold_rows(inserter.queue, rows.count, rows.weight)
    else:
        ring_hold_rows(inserter.ring, rows.count, rows.weight)
    return 1


@cython.final
cdef class PendingEmits:
    # What one call of a component emitted beyond a full queue, in order (STORM-2306 §3.6). FIFO, one per executor.
    cdef PyObject **entries         # pairs: inserter (borrowed: the router owns it), tuple (owned)
    cdef uint64_t capacity          # of pairs, a power of two
    cdef uint64_t first
    cdef uint64_t count
    cdef readonly uint64_t high_mark
    cdef int push(self, BatchInserter inserter, Tuple tup) except -1
    cdef bint drain(self) noexcept


# flush_timer.pxi

cdef extern from "cython_core/queues/flush_timer.h" nogil:
    ctypedef struct ps_word:
        pass
    ctypedef struct ps_flush_flag:
        ps_word asked
    ctypedef struct ps_flush_timer:
        ps_word ticks
        ps_word state
    ctypedef bint (*ps_flush_skip)(const void *context) noexcept nogil
    enum:
        PS_FLUSH_TICKING
    uint64_t ps_load_relaxed(const ps_word *word)
    bint ps_flush_take(ps_flush_flag *flag)
    ps_flush_timer *ps_flush_timer_new()
    ps_flush_flag *ps_flush_timer_add(ps_flush_timer *timer, ps_flush_skip skip, const void *context)
    int ps_flush_timer_start(ps_flush_timer *timer, int64_t interval_nanos)
    void ps_flush_timer_pause(ps_flush_timer *timer)
    void ps_flush_timer_resume(ps_flush_timer *timer)
    void ps_flush_timer_stop(ps_flush_timer *timer)
    void ps_flush_timer_free(ps_flush_timer *timer)


@cython.final
@cython.no_gc_clear
cdef class FlushTimer:
    cdef ps_flush_timer *timer
    cdef list queues            # keeps what the timer looks at


@cython.final
cdef class FlushFlag:
    cdef ps_flush_flag *flag    # the timer's
    cdef FlushTimer timer


cdef inline bint flush_asked(FlushFlag flag) noexcept nogil:
    # Executor's thread, between two calls: whether to publish what is batched, asked since it last was.
    return ps_flush_take(flag.flag)  # hot
