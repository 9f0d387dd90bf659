"""A bounded ring of Python objects that each of its readers reads whole: Python binding of ``broadcast_ring.h``.

    ring = BroadcastRing(1024, {"journal": (), "replica": (), "application": ("journal", "replica")})
    journal, replica, application = ring.readers

Threads that read sleep where they find nothing, and are woken by what arrives: ``consumers``; threads that find the
ring full leave their ``Parker`` in ``blocked`` and are woken once half of it is free.

References: the ring holds one to each object until the slowest reader has passed it; a reader gives out new ones. What
is in it when the ring goes, goes too. The garbage collector does not look into it: a cycle through a ring lasts until
all readers have passed it.

Threading law: the interpreter's lock is held in every method, so that threads of Python may share ring and readers as
they like, as several writers, too. So it is in what compiled code calls: ``offer_batch``, ``reader_poll``,
``reader_size``, ``ring_room``. C code without the lock uses a ring of its own.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free, malloc

from cython_core.primitives.parker cimport Parker, ps_parker_unpark


cdef extern from "Python.h":
    object PySequence_Fast(object items, const char *message)
    PyObject **PySequence_Fast_ITEMS(object items)
    Py_ssize_t PySequence_Fast_GET_SIZE(object items)


@cython.final
cdef class BroadcastRing:
    """``BroadcastRing(capacity, readers)``: at most ``capacity`` objects, rounded up to a power of two.

    Tuples that stand for batches have bounds besides, as those of a ``ReceiveQueue``: each reader has at most
    ``capacity`` rows and ``byte_limit`` bytes of them that it has not finished, or one batch.

    ``readers``: name → the names, given before it, of those that it reads behind; none: it reads behind the writers.
    Raises ValueError for a capacity below 1, no reader or an unknown name, MemoryError where there is no room.
    """

    def __cinit__(self, long long capacity, readers):
        if capacity < 1:
            raise ValueError(f"the capacity of a ring is at least 1; Given: {capacity!r}")
        if not readers:
            raise ValueError(f"a ring without readers would keep nothing; Given: {readers!r}")
        self.ring = ps_broadcast_new(ps_ring_round_up(<uint64_t>capacity), sizeof(void *))
        if self.ring is NULL:
            raise MemoryError(f"no memory for a ring of {capacity} objects")
        self.held = <ps_held *>calloc(len(readers), sizeof(ps_held))
        if self.held is NULL:
            raise MemoryError(f"no memory for {len(readers)} readers of a ring")
        self.byte_limit = DEFAULT_BYTE_LIMIT
        self.names = ()
        self.consumers = []
        self.blocked = []
        for name, upstream in readers.items():
            unknown = [other for other in upstream if other not in self.names]
            if unknown:
                raise ValueError(f"reader {name!r} reads behind readers that are named before it; Given: {unknown!r}")
            _add_reader(self.ring, [self.names.index(other) for other in upstream])
            self.names += (name,)

    def __dealloc__(self):
        cdef void *item
        if self.ring is not NULL:
            while self.dropped != self.written:
                item = self.at(self.dropped)[0]
                self.dropped += 1
                Py_DECREF(<object>item)
            ps_broadcast_free(self.ring)
        free(self.held)

    cdef void **at(self, uint64_t sequence) noexcept:
        return <void **>ps_broadcast_at(self.ring, sequence, sizeof(void *))

    cdef uint64_t slowest(self) noexcept:
        """The sequence that the slowest reader reads next."""
        return ps_broadcast_slowest(self.ring.gates, self.ring.gates_count, self.written)

    cdef Py_ssize_t slowest_reader(self) noexcept:
        """Which of the readers, in their order, is behind the others, or as far as the others are."""
        cdef uint64_t slowest = self.slowest()
        cdef Py_ssize_t i, n = len(self.names)
        for i in range(n):
            if ps_reader_next(self.ring.readers[i]) == slowest:
                return i
        return 0

    cdef Py_ssize_t fullest_reader(self, Py_ssize_t rows, Py_ssize_t weight) noexcept:
        """The first reader, in their order, that a batch has to wait for; -1: it is within the bounds of each."""
        cdef Py_ssize_t i
        for i in range(len(self.names)):
            if self.held[i].rows > 0 and (
                self.held[i].rows + rows > ps_broadcast_capacity(self.ring)
                or self.held[i].bytes + weight > self.byte_limit
            ):
                return i
        return -1

    cdef void drop(self) noexcept:
        """Lets go what all have read, and wakes those that wait for room once half of the ring is free.

        Letting go may run code which uses the ring, so all is counted before.
        """
        cdef void *item
        while self.dropped != self.slowest():
            item = self.at(self.dropped)[0]
            self.dropped += 1
            Py_DECREF(<object>item)
        while len(self.blocked) > 0 and 2 * ring_room(self) >= ps_broadcast_capacity(self.ring):
            ps_parker_unpark(&(<Parker>self.blocked.pop()).place)

    cdef void release_rows(self, Py_ssize_t place, Py_ssize_t rows, Py_ssize_t weight) noexcept:
        """A reader is done with a batch: the threads that wait for that look again."""
        self.held[place].rows -= rows
        self.held[place].bytes -= weight
        while len(self.blocked) > 0:
            ps_parker_unpark(&(<Parker>self.blocked.pop()).place)

    cdef uint64_t offer_batch(self, PyObject **objects, uint64_t count) noexcept:
        """Non-blocking. Takes over the references of the first n objects, as many as there is room for; returns n."""
        cdef uint64_t first, i
        self.drop()
        # Order: no code runs from here on, so that every cell that can be claimed is empty.
        count = min(count, ring_room(self))
        if count == 0 or not ps_broadcast_try_claim(self.ring, count, &first):
            return 0
        for i in range(count):
            self.at(first + i)[0] = <void *>objects[i]
        ps_broadcast_publish(self.ring, first, count)
        self.written = first + count
        for i in range(<uint64_t>len(self.consumers)):
            ps_parker_unpark(&(<Parker>self.consumers[i]).place)
        return count

    def offer(self, item):
        """Non-blocking. True where the object went in, False where the slowest reader is ``capacity`` behind."""
        cdef PyObject *one = <PyObject *>item
        if self.offer_batch(&one, 1) == 0:
            return False
        Py_INCREF(item)
        return True

    def offer_many(self, items):
        """Non-blocking. Offers the first objects, in order, as many as there is room for; returns how many went in.

        Anything but a list or a tuple is read to its end before: what did not go in is then lost to the caller.
        """
        cdef object sequence = PySequence_Fast(items, b"offer_many takes an iterable")
        # Order: first, as letting go may run code, which may change the list.
        self.drop()
        cdef PyObject **objects = PySequence_Fast_ITEMS(sequence)
        cdef uint64_t n = self.offer_batch(objects, <uint64_t>PySequence_Fast_GET_SIZE(sequence))
        cdef uint64_t i
        # Order: behind the offer, which says how many. A reader needs the interpreter's lock to use what it gets.
        for i in range(n):
            Py_INCREF(<object>objects[i])
        return n

    def __len__(self):
        return self.written - self.slowest()

    @property
    def capacity(self):
        """Most objects that the slowest reader may be behind."""
        return ps_broadcast_capacity(self.ring)

    @property
    def readers(self):
        """The readers in the order in which they were named."""
        return tuple([BroadcastReader(self, name) for name in self.names])


cdef int _add_reader(ps_broadcast_ring *ring, list upstream) except -1:
    cdef ps_reader *added
    cdef ps_reader **others = <ps_reader **>malloc((len(upstream) + 1) * sizeof(ps_reader *))
    if others is NULL:
        raise MemoryError("no memory for a reader")
    for i in range(len(upstream)):
        others[i] = ring.readers[<size_t>upstream[i]]
    added = ps_broadcast_add_reader(ring, others, <size_t>len(upstream))
    free(others)
    if added is NULL:
        raise MemoryError("no memory for a reader")
    return 0


@cython.final
@cython.no_gc_clear  # guarantee: a finalizer that runs in a cycle collection may still read
cdef class BroadcastReader:
    """``BroadcastReader(ring, name)``: sees every object once, in order, and not before those that it reads behind.

    Several of the same name share its place. Keeps the ring. Raises ValueError for a name that the ring does not have.
    """

    def __cinit__(self, BroadcastRing ring not None, str name not None):
        if name not in ring.names:
            raise ValueError(f"the ring has the readers {', '.join(ring.names)}; Given: {name!r}")
        self.owner = ring
        self.name = name
        self.place = ring.names.index(name)
        self.reader = ring.ring.readers[self.place]

    def poll(self, default=None):
        """Non-blocking. The next object, or ``default`` where there is none for this reader yet."""
        cdef PyObject *item = reader_poll(self)
        if item is NULL:
            return default
        polled = <object>item
        Py_DECREF(polled)
        return polled

    def drain(self, Py_ssize_t limit):
        """Non-blocking. The next objects, at most ``limit``, in order. Raises ValueError for a limit below 0."""
        if limit < 0:
            raise ValueError(f"the limit of a drain is at least 0; Given: {limit!r}")
        cdef list drained = []
        cdef uint64_t sequence = ps_reader_next(self.reader)
        cdef uint64_t end = min(sequence + <uint64_t>limit, ps_reader_available(self.reader, <uint64_t>limit))
        while sequence != end:
            drained.append(<object>self.owner.at(sequence)[0])
            sequence += 1
        ps_reader_release(self.reader, end)
        self.owner.drop()
        return drained

    def __len__(self):
        return reader_size(self)
