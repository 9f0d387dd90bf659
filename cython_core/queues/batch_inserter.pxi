"""Single-level batching towards one receive queue, and the emits that wait for room.

    emit ──► pending empty? ──► BatchInserter ──(full: publish at once)──► ReceiveQueue
                  │ no                 │ batch and queue full
                  └──────► PendingEmits ◄┘      drained in order before the component is called again

One batch per (producer, destination), STORM-2306 §3.3; the pending emits are its §3.6. While pending emits last, the
executor's component is not called, so they hold what one call emitted and no more: memory stays bounded without an
overflow list, and order per destination survives because nothing overtakes them.

The three inserters of Storm's JCQueue are one class here, so that an emit calls through no table:

    direct     size 1: a tuple goes straight into the queue
    batch      published when it holds `size` tuples, or by a flush
    dynamic    published when it holds `limit` tuples, or by a flush; `limit` begins with 1, then

               a full batch is published, or finds no room       limit + 1, at most `size`      the load is heavy
               a flush empties a batch that is not full          limit / 2, at least 1          the load is light

That is additive increase and multiplicative decrease, as in Storm's DynamicBatchInserter. Storm halves also where a
flush leaves something of a batch that is not full; here the limit stays then, as a full queue is no light load.

Threading law: producer's thread only.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memmove

from cython_core.tuples.tuple cimport Tuple, TupleBatch


@cython.final
cdef class BatchInserter:
    """``BatchInserter(destination, task, size, dynamic)``: publishes at most ``size`` at once; 1 goes straight in.

    ``destination``: a ReceiveQueue, or the BroadcastRing that several tasks read. Raises ValueError for a size below 1,
    TypeError for another destination.
    """

    def __cinit__(self, destination not None, int task, long long size, bint dynamic=False):
        if size < 1:
            raise ValueError(f"a producer batch holds at least one tuple; Given: {size!r}")
        if isinstance(destination, BroadcastRing):
            self.ring = destination
        else:
            self.queue = <ReceiveQueue?>destination
        self.task = task
        self.size = <uint64_t>size
        if size == 1:
            return
        self.dynamic = dynamic
        self.limit = 1 if dynamic else self.size
        self.items = <PyObject **>calloc(size, sizeof(PyObject *))
        if self.items is NULL:
            raise MemoryError(f"no memory for a producer batch of {size} tuples")

    def __dealloc__(self):
        self.clear()
        free(self.items)

    @property
    def flushes(self):
        """Publishes that took something; ``published / flushes`` is how full a batch was, on average."""
        return self.published if self.limit == 0 else self.batches

    cdef bint insert_at_limit(self, Tuple tup) noexcept:
        """Non-blocking. The way in where there is no batch, or where a full one found no room before."""
        cdef PyObject *item = <PyObject *>tup
        if self.limit > 0:
            self.flush()
            return 0 if self.count == self.limit else insert(self, tup)
        Py_INCREF(tup)
        if self.offer(&item, 1) == 0:
            Py_DECREF(tup)
            self.refusals += 1
            return 0
        self.published += 1
        return 1

    cdef uint64_t offer(self, PyObject **items, uint64_t count) noexcept:
        """Non-blocking. Takes over the references of the first n tuples, as many as there is room for; returns n."""
        if self.queue is not None:
            return self.queue.offer_batch(items, count)
        return self.ring.offer_batch(items, count)

    cdef list blocked(self):
        """Parkers of the threads that wait for room at the destination."""
        return self.queue.blocked if self.queue is not None else self.ring.blocked

    cdef bint flush(self) noexcept:
        """Non-blocking. Publishes as many as the queue has room for, oldest first; 1 where nothing is left."""
        cdef uint64_t n
        cdef bint full = self.count == self.limit
        if self.count == 0:
            return 1
        n = self.offer(self.items, self.count)
        self.count -= n
        self.published += n
        self.batches += n > 0
        if self.count > 0:
            self.refusals += 1
            if n > 0:
                memmove(self.items, self.items + n, self.count * sizeof(PyObject *))
        if self.dynamic:
            if full:
                self.limit = min(self.limit + 1, self.size)
            elif self.count == 0:
                self.limit = max(self.limit >> 1, <uint64_t>1)
        return self.count == 0

    def put(self, Tuple tup not None):
        """Non-blocking. What an emit does: False where batch and queue are full, and the tuple is not taken."""
        return bool(insert(self, tup))

    def publish(self):
        """Non-blocking. What a flush does: False where tuples are left."""
        return bool(self.flush())

    def clear(self):
        """Drops what is not published; returns how many there were."""
        cdef uint64_t dropped = 0
        while self.count > 0:
            # Order: out first, then let go: a value's end may run code that emits.
            self.count -= 1
            dropped += 1
            Py_DECREF(<object>self.items[self.count])
        return dropped

    def __len__(self):
        return self.count


@cython.final
cdef class PendingEmits:
    """FIFO of (inserter, tuple) pairs that found their destination full."""

    def __cinit__(self):
        self.capacity = 64
        self.entries = <PyObject **>calloc(2 * self.capacity, sizeof(PyObject *))
        if self.entries is NULL:
            raise MemoryError("no memory for pending emits")

    def __dealloc__(self):
        if self.entries is not NULL:
            self.clear()
            free(self.entries)

    cdef int push(self, BatchInserter inserter, Tuple tup) except -1:
        cdef uint64_t at
        if self.count == self.capacity:
            self._grow()
        at = (self.first + self.count) & (self.capacity - 1)
        Py_INCREF(tup)
        self.entries[2 * at] = <PyObject *>inserter
        self.entries[2 * at + 1] = <PyObject *>tup
        self.count += 1
        self.high_mark = max(self.high_mark, self.count)
        return 0

    def _grow(self):
        cdef PyObject **larger = <PyObject **>calloc(4 * self.capacity, sizeof(PyObject *))
        cdef uint64_t i, at
        if larger is NULL:
            raise MemoryError(f"no memory for {2 * self.capacity} pending emits")
        for i in range(self.count):
            at = (self.first + i) & (self.capacity - 1)
            larger[2 * i] = self.entries[2 * at]
            larger[2 * i + 1] = self.entries[2 * at + 1]
        free(self.entries)
        self.entries = larger
        self.first = 0
        self.capacity *= 2

    cdef bint drain(self) noexcept:
        """Non-blocking. Moves entries on in order and stops at the first that finds no room; 1 where none is left."""
        cdef BatchInserter inserter
        cdef Tuple tup
        while self.count > 0:
            inserter = <BatchInserter>self.entries[2 * self.first]
            tup = <Tuple>self.entries[2 * self.first + 1]
            if not (insert_rows(inserter, tup) if isinstance(tup.payload, TupleBatch) else insert(inserter, tup)):
                return 0
            Py_DECREF(tup)
            self.first = (self.first + 1) & (self.capacity - 1)
            self.count -= 1
        return 1

    def clear(self):
        """Drops every entry; returns how many there were."""
        cdef uint64_t dropped = 0
        cdef PyObject *tup
        while self.count > 0:
            # Order: out first, then let go: a value's end may run code that emits, hence pushes.
            tup = self.entries[2 * self.first + 1]
            self.first = (self.first + 1) & (self.capacity - 1)
            self.count -= 1
            dropped += 1
            Py_DECREF(<object>tup)
        return dropped

    def __len__(self):
        return self.count
