cimport cython


@cython.final
cdef class AdaptiveLimit:
    cdef readonly long limit        # requests that may be under way now, 1 … most
    cdef readonly long most
    cdef bint starting              # nothing has lowered it yet: it doubles
    cdef long raises                # since it was lowered
    cdef double lowered_at          # when it was lowered last
    cdef double lowered_from        # mean of the round before that, until the next one is known; NaN: none
    cdef double base                # log of the answer time without a queue; NaN: no round yet
    cdef double variance            # of the log of single answer times
    cdef double weight              # answers that the base stands for
    cdef long unread                # answers that stem from before the last change
    cdef long count                 # of the round: answers, sum of logs, of their squares,
    cdef double total
    cdef double squares
    cdef bint reached               # and whether all places were taken
    cpdef void began(self, long in_flight) noexcept
    cpdef void ended(self, double begun, double now, bint refused) noexcept
    cdef void lower(self, double factor, double now) noexcept
    cdef void end_round(self, double now) noexcept
    cdef void raise_it(self) noexcept
