"""A bounded queue of Python objects from one thread to another: Python binding of ``spsc_ring.h``.

References: an offer takes one reference to each object that goes in, poll and drain hand it on to the caller; what is
refused keeps its own. A freed queue releases what is still in it. The garbage collector does not look into it: a cycle
through a queue lasts until the queue is emptied.

Threading law: the interpreter's lock is held in every method, so that threads of Python may share a queue as they like.
C code without the lock may use the ring itself, one thread as producer and one as consumer.
"""

cimport cython
from cpython.list cimport PyList_New
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint64_t


cdef extern from "Python.h":
    object PySequence_Fast(object items, const char *message)
    PyObject **PySequence_Fast_ITEMS(object items)
    Py_ssize_t PySequence_Fast_GET_SIZE(object items)
    int PyList_SetSlice(object items, Py_ssize_t low, Py_ssize_t high, PyObject *nothing) except -1
    ctypedef struct PyListObject:
        PyObject **ob_item


cdef extern from "cython_core/queues/ring.h" nogil:
    uint64_t ps_ring_round_up(uint64_t n)


@cython.final
cdef class SpscQueue:
    """``SpscQueue(capacity)``: holds at most ``capacity`` objects, rounded up to a power of two.

    Raises ValueError for a capacity below 1, MemoryError where there is no room for the slots.
    """

    def __cinit__(self, long long capacity):
        if capacity < 1:
            raise ValueError(f"the capacity of a queue is at least 1; Given: {capacity!r}")
        self.ring = ps_spsc_new(ps_ring_round_up(<uint64_t>capacity))
        if self.ring is NULL:
            raise MemoryError(f"no memory for a queue of {capacity} objects")

    def __dealloc__(self):
        cdef void *item
        if self.ring is not NULL:
            while True:
                item = ps_spsc_poll(self.ring)
                if item is NULL:
                    break
                Py_DECREF(<object>item)
            ps_spsc_free(self.ring)

    def offer(self, item):
        """Non-blocking. True where the object went in, False where the queue is full."""
        if not ps_spsc_offer(self.ring, <void *>item):
            return False
        Py_INCREF(item)
        return True

    def offer_many(self, items):
        """Non-blocking. Offers the first objects, in order, as many as there is room for; returns how many went in.

        Anything but a list or a tuple is read to its end before: what did not go in is then lost to the caller.
        """
        cdef object sequence = PySequence_Fast(items, b"offer_many takes an iterable")
        cdef PyObject **objects = PySequence_Fast_ITEMS(sequence)
        cdef uint64_t n = ps_spsc_offer_batch(self.ring, <void **>objects, <uint64_t>PySequence_Fast_GET_SIZE(sequence))
        cdef uint64_t i
        # Order: behind the offer, which says how many. The consumer needs the interpreter's lock to use what it gets.
        for i in range(n):
            Py_INCREF(<object>objects[i])
        return n

    def poll(self, default=None):
        """Non-blocking. The oldest object, or ``default`` where the queue is empty."""
        cdef void *item = ps_spsc_poll(self.ring)
        if item is NULL:
            return default
        polled = <object>item
        Py_DECREF(polled)
        return polled

    def drain(self, Py_ssize_t limit):
        """Non-blocking. The oldest objects, at most ``limit``, in order. Raises ValueError for a limit below 0."""
        if limit < 0:
            raise ValueError(f"the limit of a drain is at least 0; Given: {limit!r}")
        cdef Py_ssize_t n = min(limit, <Py_ssize_t>ps_spsc_size(self.ring))
        cdef list drained = PyList_New(n)
        # The drain may bring less: making the list may collect garbage, whose end may use the queue.
        cdef uint64_t there = ps_spsc_drain(self.ring, <void **>(<PyListObject *>drained).ob_item, <uint64_t>n)
        if there < <uint64_t>n:
            PyList_SetSlice(drained, <Py_ssize_t>there, n, NULL)
        return drained

    def __len__(self):
        return ps_spsc_size(self.ring)

    @property
    def capacity(self):
        """Most objects that it holds."""
        return ps_spsc_capacity(self.ring)
