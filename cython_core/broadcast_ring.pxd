cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t


cdef extern from "broadcast_ring.h" nogil:
    ctypedef struct ps_reader:
        pass
    ctypedef struct ps_broadcast_ring:
        ps_reader **readers
        ps_reader **gates
        size_t gates_count
    ps_broadcast_ring *ps_broadcast_new(uint64_t capacity, size_t width, int several_writers)
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


@cython.final
cdef class BroadcastRing:
    # Holds one reference to each object from `dropped` to `written`.
    cdef ps_broadcast_ring *ring
    cdef uint64_t written
    cdef uint64_t dropped  # sequences below have been read by all, and their references were let go
    cdef tuple names
    cdef void **at(self, uint64_t sequence) noexcept
    cdef void drop(self) noexcept
    cdef uint64_t put(self, PyObject **objects, uint64_t count) noexcept


@cython.final
cdef class BroadcastReader:
    cdef BroadcastRing owner
    cdef ps_reader *reader
    cdef readonly str name
