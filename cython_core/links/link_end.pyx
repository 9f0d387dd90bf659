"""One end of the link of a task that runs in another process: frames there, frames back, a doorbell for each end.

    parent                       shared memory, mapped before the fork                        child
    LinkEnd(memory, …, True, …)  ┌ bell of the parent, bell of the child, "taken through" ┐   LinkEnd(…, False, …)
      write ──────────────────►  │ ring down                                              │  ─► read
      read  ◄──────────────────  │ ring up                                                │  ◄─ write
                                 └────────────────────────────────────────────────────────┘

A frame is a small number, its kind, and bytes. One that is longer than half a ring crosses in pieces, and comes out
whole: what does not fit now is kept, and ``flush`` goes on with it. Both ends ring for pieces and for what was kept;
their users ring for a frame that fits at once. ``taken`` is the credit: how many tuples of all that were ever sent the
child's task has taken out of its queue.

Bytes are copied once on each side, the parts of a frame straight into the ring. Large frames come out in memory that
an earlier one has left (large_frame.pxi).

Non-blocking. Threading law: an end belongs to one thread of one process; ``ring`` and ``taken`` are for any.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy

cdef enum:
    MOST_KINDS = 1 << 16        # so that no kind with its marks is that of padding
    PIECE = 1 << 29             # of a longer frame
    FIRST = 1 << 30             # of its pieces: its length lies before it
    LENGTH_BYTES = 8

# A longer frame is taken for damage: a length that was written over is not to ask for all the memory of a machine.
cdef uint64_t MOST_BYTES = (<uint64_t>1) << 36

include "large_frame.pxi"

DAMAGED = "the memory that two processes share is damaged: some code has written where it must not"


cdef object new_frame(Py_ssize_t length):
    """To be filled."""
    if length >= LARGE:
        return LargeFrame(length)
    return PyBytes_FromStringAndSize(NULL, length)


cdef char *start_of(object frame) noexcept:
    if isinstance(frame, LargeFrame):
        return <char *>(<LargeFrame>frame).memory
    return PyBytes_AS_STRING(frame)


def link_bytes(unsigned long long down, unsigned long long up):
    """Bytes of shared memory that a link takes, whose rings have these capacities.

    Raises ValueError for one that is no power of two from 32 to 2 GiB.
    """
    for capacity in (down, up):
        if ps_byte_ring_bytes(capacity) == 0:
            raise ValueError(
                f"the capacity of a ring of frames is a power of two from 32 to 2 GiB; Given: {capacity!r}"
            )
    return 3 * PS_APART_BYTES + ps_byte_ring_bytes(down) + ps_byte_ring_bytes(up)


@cython.final
cdef class LinkEnd:
    """``LinkEnd(memory, down, up, is_parent, own_fd, there_fd)``, both ends before the fork.

    ``memory``: zeroed and writable, of ``link_bytes``; ``down`` and ``up``: the rings' capacities; the eventfds of this
    end and of the other one, non-blocking, -1 for none. Raises ValueError if the memory is too small or not aligned.
    """

    def __cinit__(self, memory, unsigned long long down, unsigned long long up, bint is_parent, int own_fd=-1,
                  int there_fd=-1):
        cdef unsigned char *at
        cdef unsigned char *rings
        PyObject_GetBuffer(memory, &self.memory, PyBUF_WRITABLE | PyBUF_SIMPLE)
        needed = link_bytes(down, up)
        at = <unsigned char *>self.memory.buf
        if self.memory.len < needed or <uintptr_t>at % PS_APART_BYTES:
            raise ValueError(
                f"a link takes {needed} bytes of memory, aligned to {PS_APART_BYTES}; Given: {self.memory.len} bytes"
            )
        rings = at + 3 * PS_APART_BYTES
        self.own_bell = <ps_doorbell *>(at if is_parent else at + PS_APART_BYTES)
        self.there_bell = <ps_doorbell *>(at + PS_APART_BYTES if is_parent else at)
        self.taken_word = <ps_word *>(at + 2 * PS_APART_BYTES)
        if is_parent:
            self.writer = ps_byte_writer_of(rings, down)
            self.reader = ps_byte_reader_of(rings + ps_byte_ring_bytes(down), up)
        else:
            self.reader = ps_byte_reader_of(rings, down)
            self.writer = ps_byte_writer_of(rings + ps_byte_ring_bytes(down), up)
        self.is_parent = is_parent
        self.own_fd = own_fd
        self.there_fd = there_fd
        self.rest = []

    def __dealloc__(self):
        PyBuffer_Release(&self.memory)

    @property
    def writes(self):
        """Whether a part of a frame is still to be written, and no other frame can be."""
        return len(self.rest) > 0

    def write(self, unsigned int kind, list parts not None):
        """One frame of these parts, bytes-like objects in one piece each. Whether all of it is in the ring; if not,
        they must stay as they are until ``flush`` says so.

        Raises ValueError if the frame before is not in the ring yet, or for a kind from 65536 on.
        """
        if self.rest or kind >= MOST_KINDS:
            raise ValueError(f"a frame is written behind the whole of the last one; Given: kind {kind}, {self.rest!r}")
        self.rest = [memoryview(part).cast("B") for part in parts]
        self.rest.append(memoryview(b""))
        self.rest_bytes = sum([part.nbytes for part in self.rest])
        self.part_at = 0
        self.rest_kind = kind
        return self.write_rest()

    def flush(self):
        """Goes on with a frame that did not fit, and rings for it. Whether all of it is in the ring."""
        if not self.rest:
            return True
        done = self.write_rest()
        if done:
            self.ring()
        return done

    cdef bint write_rest(self) except -1:
        cdef Py_ssize_t most = <Py_ssize_t>ps_byte_most(&self.writer)
        cdef unsigned char *place
        cdef Py_ssize_t count
        cdef uint64_t length = <uint64_t>self.rest_bytes
        cdef bint wrote = False
        if self.rest_bytes > most and not self.rest_kind & PIECE:
            place = ps_byte_claim(&self.writer, most)
            if place is NULL:
                return False
            memcpy(place, &length, LENGTH_BYTES)
            self.fill(place + LENGTH_BYTES, most - LENGTH_BYTES)
            self.rest_kind |= PIECE
            ps_byte_commit(&self.writer, most, self.rest_kind | FIRST)
            wrote = True
        while self.rest:
            count = min(self.rest_bytes, most)
            place = ps_byte_claim(&self.writer, count)
            if place is NULL:
                if wrote:
                    self.ring()  # the pieces so far: no one else rings for less than a frame
                return False
            self.fill(place, count)
            ps_byte_commit(&self.writer, count, self.rest_kind)
            wrote = True
            if self.rest_bytes == 0:
                self.rest = []
        return True

    cdef int fill(self, unsigned char *place, Py_ssize_t length) except -1:
        """The next ``length`` bytes of the parts, to ``place``."""
        cdef const unsigned char[::1] part
        cdef Py_ssize_t count
        self.rest_bytes -= length
        while length > 0:
            part = self.rest[0]
            count = min(length, part.shape[0] - self.part_at)
            if count > 0:
                ps_copy(place, &part[self.part_at], <size_t>count)
            place += count
            length -= count
            self.part_at += count
            if self.part_at == part.shape[0]:
                self.rest.pop(0)
                self.part_at = 0
        return 0

    def read(self):
        """Returns kind and bytes of the next whole frame, a LargeFrame if they are many; None if there is no frame.
        Raises MemoryError if the memory is damaged."""
        cdef uint64_t length = 0
        cdef uint64_t total = 0
        cdef uint32_t kind = 0
        cdef const unsigned char *place
        cdef bint released = False
        while True:
            place = ps_byte_peek(&self.reader, &length, &kind)
            if place is NULL:
                if self.reader.damaged:
                    raise self.damage()
                if released:
                    self.ring()  # there is room for the next pieces, and no one else rings for less than a frame
                return None
            if not kind & PIECE:
                if self.partial is not None or kind >= MOST_KINDS:
                    raise self.damage()
                frame = new_frame(<Py_ssize_t>length)
                ps_copy(start_of(frame), place, <size_t>length)
                ps_byte_release(&self.reader)
                return kind, frame
            if kind & FIRST:
                if length < LENGTH_BYTES or self.partial is not None:
                    raise self.damage()
                memcpy(&total, place, LENGTH_BYTES)
                if total > MOST_BYTES:
                    raise self.damage()
                self.partial = new_frame(<Py_ssize_t>total)
                self.partial_at = 0
                place += LENGTH_BYTES
                length -= LENGTH_BYTES
            if self.partial is None or <Py_ssize_t>length > len(self.partial) - self.partial_at:
                raise self.damage()
            ps_copy(start_of(self.partial) + self.partial_at, place, <size_t>length)
            ps_byte_release(&self.reader)
            released = True
            self.partial_at += <Py_ssize_t>length
            if self.partial_at == len(self.partial):
                frame, self.partial = self.partial, None
                return kind & (MOST_KINDS - 1), frame

    cdef object damage(self):
        """To raise; nothing is read any more."""
        self.reader.damaged = True
        return MemoryError(DAMAGED)

    cdef bint has_frame(self) noexcept:
        """Whether a frame, or a part of one, waits to be read, or the memory is damaged, which reading says."""
        cdef uint64_t length = 0
        cdef uint32_t kind = 0
        return ps_byte_peek(&self.reader, &length, &kind) is not NULL or self.reader.damaged

    @property
    def readable(self):
        """Whether ``read`` has something to do."""
        return self.has_frame()

    cdef bint is_writing(self) noexcept:
        return len(self.rest) > 0

    cdef uint64_t taken_now(self) noexcept:
        return ps_load_acquire(self.taken_word)

    def ring(self):
        """Wakes the other end if it sleeps. Whether it did."""
        return ps_doorbell_ring(self.there_bell, self.there_fd)

    def ring_for_room(self):
        """Frames were read: wakes the other end if it sleeps because its ring was full. Whether it did."""
        return ps_doorbell_ring_for_room(self.there_bell, self.there_fd)

    cdef int prepare_sleep(self) noexcept:
        ps_doorbell_prepare(self.own_bell, len(self.rest) > 0)
        return 0

    def prepare(self):
        """This end is about to sleep: look once more, then poll ``own_fd``, then ``answer``."""
        self.prepare_sleep()

    def answer(self):
        """This end is awake. A ring may still be in ``own_fd``."""
        ps_doorbell_answer(self.own_bell)

    @property
    def taken(self):
        """Tuples that the child's task has ever taken out of its queue. The child sets it."""
        return ps_load_acquire(self.taken_word)

    @taken.setter
    def taken(self, unsigned long long count):
        ps_store_release(self.taken_word, count)
