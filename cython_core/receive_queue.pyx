"""The bounded receive queue of one executor (STORM-2306 §3.1): a ring of tuples, capacity a power of two.

Threading law: the inline scheduler's one thread. References: an offered tuple's reference moves into the queue and
out again with the poll; a refused offer moves nothing.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint64_t

from cython_core.tuple cimport Tuple


@cython.final
cdef class ReceiveQueue:
    """``ReceiveQueue(capacity)``: holds at most ``capacity`` tuples, rounded up to a power of two.

    Raises ValueError for a capacity below 1, MemoryError where there is no room for the slots.
    """

    def __cinit__(self, long long capacity):
        if capacity < 1:
            raise ValueError(f"the capacity of a receive queue is at least 1; Given: {capacity!r}")
        if ps_ring_init(&self.ring, ps_ring_round_up(<uint64_t>capacity)) != 0:
            raise MemoryError(f"no memory for a receive queue of {capacity} tuples")

    def __dealloc__(self):
        cdef void *item
        if self.ring.slots is not NULL:
            while True:
                item = ps_ring_poll(&self.ring)
                if item is NULL:
                    break
                Py_DECREF(<object>item)
            ps_ring_free(&self.ring)

    cdef bint offer(self, Tuple tup) noexcept:
        """Non-blocking. 1 where the tuple went in, 0 where the queue is full."""
        if not ps_ring_offer(&self.ring, <void *>tup):
            self.insert_failures += 1
            return 0
        Py_INCREF(tup)
        self.high_mark = max(self.high_mark, ps_ring_size(&self.ring))
        return 1

    cdef uint64_t offer_batch(self, PyObject **tuples, uint64_t count) noexcept:
        """Non-blocking. Takes over the references of the first n tuples, as many as there is room for; returns n."""
        cdef uint64_t n = ps_ring_offer_batch(&self.ring, <void **>tuples, count)
        if n < count:
            self.insert_failures += 1
        self.high_mark = max(self.high_mark, ps_ring_size(&self.ring))
        return n

    def poll(self):
        """Non-blocking. The oldest tuple, or None where the queue is empty."""
        cdef void *item = ps_ring_poll(&self.ring)
        if item is NULL:
            return None
        tup = <object>item
        Py_DECREF(tup)
        return tup

    def put(self, Tuple tup not None):
        """Non-blocking. True where the tuple went in, False where the queue is full."""
        return bool(self.offer(tup))

    def clear(self):
        """Drops every tuple; returns how many there were."""
        dropped = 0
        while self.poll() is not None:
            dropped += 1
        return dropped

    def __len__(self):
        return ps_ring_size(&self.ring)

    @property
    def capacity(self):
        return self.ring.mask + 1
