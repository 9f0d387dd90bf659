cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint64_t

from cython_core.primitives.parker cimport Parker, ps_parker_unpark


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
