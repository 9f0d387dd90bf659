cimport cython
from libc.stdint cimport uint64_t

from cython_core.compiled.spout cimport CompiledSpout
from cython_core.links.link_end cimport LinkEnd
from cython_core.tuples.tuple cimport Tuple


@cython.final
cdef class Arrivals:
    # Tuples of one source that have come and were not emitted yet.
    cdef object later           # deque of (first number or list of numbers, list of values or of batches), behind:
    cdef list rows              # their values; None: none is open
    cdef Py_ssize_t at          # the next one
    cdef Py_ssize_t end
    cdef uint64_t first         # its number is first + at, if `numbers` is None
    cdef list numbers
    cdef bint open_next(self) except -1


@cython.final
cdef class Inbox:
    cdef LinkEnd end
    cdef object unpack
    cdef object cancel
    cdef list of_place          # place of a source → Arrivals
    cdef dict of_source         # source → the same
    cdef Py_ssize_t count       # tuples and batches that have come and were not emitted
    cdef uint64_t number        # of what `next_of` has answered last
    cdef readonly uint64_t given    # rows that were emitted, or left out
    cdef readonly set lost
    cdef readonly object keys
    cdef bint has_keys          # some have come
    cdef public object mark
    cdef public uint64_t through
    cdef object next_of(self, Arrivals arrivals)
    cdef bint read_frame(self) except -1
    cdef int take_tuples(self, uint64_t first, object places, object values) except -1


@cython.final
cdef class Work:
    cdef object monotonic
    cdef uint64_t frame_size
    cdef uint64_t frame_bytes
    cdef double frame_seconds
    cdef uint64_t weight        # bytes of batches among the values
    cdef double sent_at
    cdef readonly list left
    cdef list streams
    cdef list numbers
    cdef list values
    cdef readonly list acks
    cdef readonly list fails
    cdef readonly list reports
    cdef list lost
    cdef int add_emit(self, Tuple tup, object values) except -1
    cdef bint is_full(self) noexcept
    cdef bint is_due(self) except -1


cdef class LinkSpoutBase(CompiledSpout):
    cdef Inbox inbox
    cdef Arrivals arrivals
    cdef Work work
    cdef object outbox
    cdef LinkEnd end
