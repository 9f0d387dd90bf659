"""The bounded receive queue of one executor (STORM-2306 §3.1): a ring of tuples, capacity a power of two.

Like Storm's JCQueue it chooses its ring by the threads that offer: the consumer's own under the inline scheduler, one
or several others under the threads scheduler. A consumer sleeps if the queue is empty; an arrival wakes it. Producers
that found the queue full sleep in ``blocked``.

Threading law: by ``producers``. References: an offered tuple's reference moves into the queue and out again with the
poll; a refused offer moves nothing.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint64_t

from cython_core.primitives.parker cimport Parker, ps_parker_unpark
from cython_core.tuples.tuple cimport Tuple


@cython.final
cdef class ReceiveQueue:
    """``ReceiveQueue(capacity, producers)``: holds at most ``capacity`` tuples, rounded up to a power of two.

    A tuple that stands for a batch takes one place. Batches together have at most ``capacity`` rows and ``byte_limit``
    bytes; one of any size may come if there is no other.

    ``producers``: threads that offer, while another one polls; 0: all is done by one thread. Raises ValueError for
    a capacity below 1, MemoryError where there is no room for the slots.
    """

    def __cinit__(self, long long capacity, int producers=0):
        if capacity < 1:
            raise ValueError(f"the capacity of a receive queue is at least 1; Given: {capacity!r}")
        if producers < 0:
            raise ValueError(f"as many threads as offer to a queue, or 0; Given: {producers!r}")
        cdef uint64_t slots = ps_ring_round_up(<uint64_t>capacity)
        self.blocked = []
        self.byte_limit = DEFAULT_BYTE_LIMIT
        if producers == 0:
            ps_ring_init(&self.ring, slots)
        elif producers == 1:
            self.spsc = ps_spsc_new(slots)
        else:
            self.mpsc = ps_mpsc_new(slots)
        if self.ring.slots is NULL and self.spsc is NULL and self.mpsc is NULL:
            raise MemoryError(f"no memory for a receive queue of {capacity} tuples")

    def __dealloc__(self):
        cdef void *item
        if self.ring.slots is NULL and self.spsc is NULL and self.mpsc is NULL:
            return
        while True:
            item = queue_poll(self)
            if item is NULL:
                break
            Py_DECREF(<object>item)
        ps_ring_free(&self.ring)
        ps_spsc_free(self.spsc)
        ps_mpsc_free(self.mpsc)

    cdef bint offer(self, Tuple tup) noexcept:
        """Non-blocking. 1 where the tuple went in, 0 where the queue is full."""
        cdef PyObject *item = <PyObject *>tup
        Py_INCREF(tup)
        if self.offer_batch(&item, 1) == 1:
            return 1
        Py_DECREF(tup)
        return 0

    cdef uint64_t offer_batch(self, PyObject **tuples, uint64_t count) noexcept:
        """Non-blocking. Takes over the references of the first n tuples, as many as there is room for; returns n."""
        cdef uint64_t n
        if self.ring.slots is not NULL:
            n = ps_ring_offer_batch(&self.ring, <void **>tuples, count)
        elif self.spsc is not NULL:
            n = ps_spsc_offer_batch(self.spsc, <void **>tuples, count)
        else:
            n = ps_mpsc_offer_batch(self.mpsc, <void **>tuples, count)
        if n < count:
            self.insert_failures += 1
        self.recent_high_mark = max(self.recent_high_mark, queue_size(self))
        if self.consumer is not None:
            ps_parker_unpark(&self.consumer.place)
        return n

    cdef void wake_blocked(self) noexcept:
        """Wakes those that wait for room, once half of the queue is free: fewer, longer turns.

        The oldest first, and no more of them than there is room for: the others would only fight for the lock.
        """
        cdef uint64_t room
        if len(self.blocked) == 0 or 2 * queue_size(self) > queue_capacity(self):
            return
        room = queue_capacity(self) - queue_size(self)
        while len(self.blocked) > 0 and room > 0:
            ps_parker_unpark(&(<Parker>self.blocked.pop(0)).place)
            room -= 1

    def poll(self):
        """Non-blocking. The oldest tuple, or None where the queue is empty."""
        cdef void *item = queue_poll(self)
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
        self.held_rows = self.held_bytes = 0
        return dropped

    def mark_anew(self):
        """``recent_high_mark`` is that of the tuples that are there, and of those to come."""
        self.earlier_high_mark = self.high_mark
        self.recent_high_mark = queue_size(self)

    @property
    def high_mark(self):
        """Most tuples that the queue has ever held."""
        return max(self.earlier_high_mark, self.recent_high_mark)

    def __len__(self):
        return queue_size(self)

    @property
    def capacity(self):
        return queue_capacity(self)
