cimport cython
from cpython.buffer cimport Py_buffer
from libc.stdint cimport uint32_t, uint64_t


cdef extern from "cython_core/primitives/atomics.h" nogil:
    ctypedef struct ps_word:
        pass
    uint64_t ps_load_acquire(const ps_word *word)
    uint64_t ps_load_relaxed(const ps_word *word)
    void ps_store_release(ps_word *word, uint64_t value)
    enum:
        PS_APART_BYTES


cdef extern from "cython_core/primitives/copy.h" nogil:
    void ps_copy(void *to, const void *place, size_t count)


cdef extern from "cython_core/links/byte_ring.h" nogil:
    ctypedef struct ps_byte_writer:
        pass
    ctypedef struct ps_byte_reader:
        bint damaged
    uint64_t ps_byte_ring_bytes(uint64_t capacity)
    ps_byte_writer ps_byte_writer_of(void *memory, uint64_t capacity)
    ps_byte_reader ps_byte_reader_of(void *memory, uint64_t capacity)
    uint64_t ps_byte_most(const ps_byte_writer *writer)
    unsigned char *ps_byte_claim(ps_byte_writer *writer, uint64_t length)
    void ps_byte_commit(ps_byte_writer *writer, uint64_t length, uint32_t kind)
    const unsigned char *ps_byte_peek(ps_byte_reader *reader, uint64_t *length, uint32_t *kind)
    void ps_byte_release(ps_byte_reader *reader)


cdef extern from "cython_core/links/doorbell.h" nogil:
    ctypedef struct ps_doorbell:
        pass
    void ps_doorbell_prepare(ps_doorbell *bell, bint for_room)
    void ps_doorbell_answer(ps_doorbell *bell)
    bint ps_doorbell_ring(ps_doorbell *bell, int fd)
    bint ps_doorbell_ring_for_room(ps_doorbell *bell, int fd)


@cython.final
cdef class LinkEnd:
    cdef Py_buffer memory               # shared with the other end
    cdef ps_byte_writer writer
    cdef ps_byte_reader reader
    cdef ps_doorbell *own_bell
    cdef ps_doorbell *there_bell
    cdef ps_word *taken_word
    cdef bint is_parent
    cdef readonly int own_fd            # eventfd that this end sleeps on; -1: the kit's, one thread turns both ends
    cdef readonly int there_fd
    cdef list rest                      # of the frame that is being written: its parts
    cdef Py_ssize_t rest_bytes          # of them, not written yet
    cdef Py_ssize_t part_at             # of its first part, written
    cdef uint32_t rest_kind
    cdef object partial                 # the frame that is being read: bytes, filled up to:
    cdef Py_ssize_t partial_at
    cdef bint write_rest(self) except -1
    cdef int fill(self, unsigned char *place, Py_ssize_t length) except -1
    cdef object damage(self)
    cdef bint has_frame(self) noexcept
    cdef bint is_writing(self) noexcept
    cdef int prepare_sleep(self) noexcept
    cdef uint64_t taken_now(self) noexcept
