"""How many requests a service takes at a time, found by its answers: more until they come later, then fewer.

    answers of one round (as many as the limit) ─► their mean, compared with the base, the mean without a queue
        above it by more than the noise of a mean   limit × 0.8: requests queue in the service
        else, if all places were taken              limit + 1, later + 2, + 4, …; doubled until it is first lowered
    a refusal                                       limit × 0.9, once for all requests that had begun before

Additive up, multiplicative down, as Vector's adaptive request concurrency. Means are of logarithms: with answers from
20 ms to 2 s a plain mean says nothing for minutes, while a queue, which is added to each, lengthens the short ones.

The base follows a lower mean soon and a higher one slowly. It would creep up with the queue that the limit allows, if
0.8 × the highest mean that is let pass (1.16 × the base) were not below it: each lowering shows it the service without
a queue. A lowering that shortens nothing shows a service that is slower by itself: the base follows at once.

Threading law: one thread owns it. The clock is an argument.
"""

cimport cython
from libc.math cimport fmax, fmin, isnan, log, sqrt

cdef double NONE = float("nan")
# Requests at first. Larger: a service that takes one at a time refuses more of the first ones. Smaller: a slow service
# with many places is found later.
cdef long START = 4
# Answers of a round, at least: while it starts, and then. Fewer: noise lowers a small limit. More: it is found later.
cdef long LEAST_AT_START = 8
cdef long LEAST = 32
# Excess of the logarithm over the base. Smaller: pauses of our own count as a queue. Larger than -log(LOWERED): creeps.
cdef double LEAST_EXCESS = 0.15
# Larger: answers of a long tail let a long queue pass at small limits. Smaller: their noise lowers the limit.
cdef double MOST_EXCESS = 0.7
cdef double SIGMAS = 3.5            # of the noise of a mean. Fewer: lowered by chance. More: longer queues
cdef double LOWERED = 0.8           # Larger: see the base. Smaller: places are empty after each lowering
cdef double REFUSED = 0.9           # Larger: more refusals. Smaller: fewer answers between them
cdef double SINKS = 0.1             # share of a difference by which the base follows down. Larger: down to luck
cdef double RISES = 0.01            # and up. Larger: creeps. Smaller: a service that is slower by itself is held back
cdef double FITS = 0.3              # share by which the variance follows
cdef long SAME = 4                  # raises by the same step. Fewer: overshoots. More: new capacity is found later
cdef long HIGHEST_DOUBLING = 20
# Seconds that an answer counts as, at least. Smaller: answers from a cache hide those of the service.
cdef double SHORTEST = 0.001


@cython.final
@cython.auto_pickle(True)
cdef class AdaptiveLimit:
    """``most``: beyond which the limit is never raised."""

    def __init__(self, long most=10_000):
        if most < 1:
            raise ValueError(f"at least one request must be allowed under way; Given: {most!r}")
        self.most = most
        self.limit = min(START, most)
        self.unread = self.limit  # the first answers are the quick ones
        self.starting = True
        self.base = self.lowered_from = NONE
        self.lowered_at = float("-inf")

    cpdef void began(self, long in_flight) noexcept:
        """A request begins, as the ``in_flight``-th."""
        if in_flight >= self.limit:
            self.reached = True

    cpdef void ended(self, double begun, double now, bint refused) noexcept:
        """It has ended; times in seconds. ``refused``: by the service, or its time was over."""
        cdef double answer
        if refused:
            if begun >= self.lowered_at:
                self.lowered_from = NONE
                self.lower(REFUSED, now)
            return
        if self.unread > 0:
            self.unread -= 1
            return
        answer = log(fmax(now - begun, SHORTEST))
        self.count += 1
        self.total += answer
        self.squares += answer * answer
        if self.count >= max(self.limit, LEAST_AT_START if self.starting else LEAST):
            self.end_round(now)

    cdef void lower(self, double factor, double now) noexcept:
        self.unread = self.limit
        self.limit = max(1, min(self.limit - 1, <long>(self.limit * factor)))
        self.starting = False
        self.raises = 0
        self.lowered_at = now
        self.count = 0
        self.total = self.squares = 0.0
        self.reached = False

    cdef void end_round(self, double now) noexcept:
        cdef double count = self.count
        cdef double mean = self.total / count
        cdef double variance = fmax(0.0, self.squares / count - mean * mean)
        cdef double above, excess
        cdef bint reached = self.reached
        self.count = 0
        self.total = self.squares = 0.0
        self.reached = False
        if isnan(self.base):
            self.base, self.variance, self.weight = mean, variance, count
            if reached:
                self.raise_it()
            return
        self.variance += FITS * (variance - self.variance)
        excess = SIGMAS * sqrt(self.variance * (1 / count + 1 / self.weight))
        if not self.starting:
            excess = fmin(excess, MOST_EXCESS)
        excess = fmax(excess, LEAST_EXCESS)
        if not isnan(self.lowered_from):
            if mean > self.lowered_from + log(LOWERED) / 2:
                self.base += (mean - self.base) / 2
            self.lowered_from = NONE
        above = mean - self.base
        self.weight = fmin(self.weight + count, 10 * fmax(count, LEAST))
        if self.starting and above < excess:
            self.base += above * count / self.weight
        else:
            self.base += above * (SINKS if above < 0 else RISES)
        if above > excess:
            self.lowered_from = mean if self.limit > 1 else NONE
            self.lower(LOWERED, now)
        elif reached:
            self.raise_it()

    cdef void raise_it(self) noexcept:
        cdef long step = self.limit if self.starting else 1L << min(HIGHEST_DOUBLING, self.raises // SAME)
        if self.starting:
            self.unread = 2 * self.limit
        self.raises += 1
        self.limit = min(self.most, self.limit + step)
