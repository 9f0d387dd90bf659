"""A bounded queue of values of one size from several threads to one: the coat of ``mpsc_values.h``.

    queue = MpscValues(1024, width=8)
    queue.offer_many(numpy.arange(100))          one bytes-like object, whole values one behind the other
    numpy.frombuffer(queue.drain(100), "i8")     so do they come out

Values are copied in and out: the queue holds no reference to anything.

Threading law: the interpreter's lock is held in every method, so that threads of Python may share a queue as they like.
C code without the lock may use the ring itself, any threads as producers and one as consumer.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint64_t


cdef extern from "ring.h" nogil:
    uint64_t ps_ring_round_up(uint64_t n)


@cython.final
cdef class MpscValues:
    """``MpscValues(capacity, width)``: at most ``capacity`` values of ``width`` bytes, rounded up to a power of two.

    Raises ValueError for a capacity or a width below 1, MemoryError where there is no room for the values.
    """

    def __cinit__(self, long long capacity, long long width):
        if capacity < 1:
            raise ValueError(f"the capacity of a queue is at least 1; Given: {capacity!r}")
        if width < 1:
            raise ValueError(f"the width of a value is at least 1 byte; Given: {width!r}")
        self.width = <size_t>width
        self.ring = ps_mpsc_values_new(ps_ring_round_up(<uint64_t>capacity), self.width)
        if self.ring is NULL:
            raise MemoryError(f"no memory for a queue of {capacity} values of {width} bytes")

    def __dealloc__(self):
        if self.ring is not NULL:
            ps_mpsc_values_free(self.ring)

    def offer(self, value):
        """Non-blocking. True where the value went in, False where the queue is full.

        Raises ValueError where it is not ``width`` bytes long, TypeError for what is not bytes-like.
        """
        cdef Py_buffer given
        PyObject_GetBuffer(value, &given, PyBUF_SIMPLE)
        try:
            if <size_t>given.len != self.width:
                raise ValueError(f"a value of this queue has {self.width} bytes; Given: {given.len}")
            return ps_mpsc_values_offer(self.ring, given.buf, self.width) == 1
        finally:
            PyBuffer_Release(&given)

    def offer_many(self, values):
        """Non-blocking. Offers the first of the values that lie one behind the other in a bytes-like object, as many as
        there is room for; returns how many went in.

        Raises ValueError where its length is no multiple of ``width``, TypeError for what is not bytes-like.
        """
        cdef Py_buffer given
        PyObject_GetBuffer(values, &given, PyBUF_SIMPLE)
        try:
            if <size_t>given.len % self.width:
                raise ValueError(f"values of this queue have {self.width} bytes each; Given: {given.len} bytes")
            return ps_mpsc_values_offer_batch(self.ring, given.buf, <size_t>given.len // self.width, self.width)
        finally:
            PyBuffer_Release(&given)

    def poll(self, default=None):
        """Non-blocking. The oldest value as bytes, or ``default`` where the queue is empty or its oldest value is
        claimed and not yet published."""
        cdef bytes polled = self.taken(1)
        return polled if polled else default

    def drain(self, Py_ssize_t limit):
        """Non-blocking. The oldest values, at most ``limit``, in order, as bytes. Raises ValueError for a limit below
        0."""
        if limit < 0:
            raise ValueError(f"the limit of a drain is at least 0; Given: {limit!r}")
        return self.taken(<uint64_t>limit)

    cdef bytes taken(self, uint64_t limit):
        cdef uint64_t n = min(limit, ps_mpsc_values_size(self.ring))
        cdef bytes values = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>(n * self.width))
        cdef uint64_t there = ps_mpsc_values_drain(self.ring, PyBytes_AS_STRING(values), n, self.width)
        return values if there == n else values[:<Py_ssize_t>(there * self.width)]

    def __len__(self):
        return ps_mpsc_values_size(self.ring)

    @property
    def capacity(self):
        """Most values that it holds."""
        return ps_mpsc_values_capacity(self.ring)
