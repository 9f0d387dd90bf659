"""How long calls took: a histogram of nanoseconds with logarithmic buckets, Python binding of ``histogram.h``.

``count``, ``total`` and ``maximum`` are exact. A quantile is at most a sixteenth off the duration that a sorted list of
all of them has at that place, up to 9.8 hours; longer ones share a bucket.

Threading law: one thread records. Any thread that holds the interpreter's lock may read; as recording under that lock
is never interrupted, it reads all of each recording or nothing. C code that has not the lock copies as ``histogram.h``
says.
"""

cimport cython
from libc.stdint cimport uint64_t


@cython.final
cdef class LatencyHistogram:
    """``LatencyHistogram()``: empty; 5.4 KB, whatever it counts. Durations are whole nanoseconds."""

    @staticmethod
    def of(buckets, unsigned long long total, unsigned long long maximum):
        """What ``buckets()``, ``total`` and ``maximum`` of another one describe."""
        cdef LatencyHistogram made = LatencyHistogram()
        for low, count in buckets:
            ps_histogram_record_many(&made.counted, low, count)
        ps_store_relaxed(&made.counted.sum, total)
        ps_store_relaxed(&made.counted.maximum, maximum)
        return made

    def record(self, unsigned long long nanos, unsigned long long count=1):
        """Counts ``count`` durations of ``nanos`` each."""
        ps_histogram_record_many(&self.counted, nanos, count)

    def record_mean(self, unsigned long long total, unsigned long long count):
        """Counts ``count`` durations that took ``total`` together, each as their mean, rounded down."""
        ps_histogram_record_mean(&self.counted, total, count)

    def copy(self):
        """A LatencyHistogram of what is counted now; later durations are not recorded into it."""
        cdef LatencyHistogram taken = LatencyHistogram()
        ps_histogram_copy(&taken.counted, &self.counted)
        return taken

    def merge(self, LatencyHistogram other not None):
        """Counts also what ``other`` counts."""
        ps_histogram_merge(&self.counted, &other.counted)

    def quantile(self, double share):
        """The shortest duration, in nanoseconds, that a share of at least ``share`` does not exceed; 0.0 where empty.

        Between the bounds of its bucket the answer is linear, as if the durations there were spread evenly; quantile 1
        is the maximum. Raises ValueError for a share outside 0..1.
        """
        if not 0 <= share <= 1:
            raise ValueError(f"a quantile is asked for by a share from 0 to 1; Given: {share!r}")
        return ps_histogram_quantile(&self.counted, share)

    def buckets(self):
        """(shortest duration in nanoseconds, how many) of each bucket that counts any, shortest first."""
        cdef int slot
        return [
            (ps_histogram_low(slot), ps_load_relaxed(&self.counted.slots[slot]))
            for slot in range(PS_HISTOGRAM_SLOTS)
            if ps_load_relaxed(&self.counted.slots[slot]) > 0
        ]

    def since(self, LatencyHistogram earlier not None, int most):
        """What was recorded since ``earlier`` was copied: (total, longest, [slot, count, …]), shortest first.

        More slots than ``most`` are counted together with their neighbours, two by two, until they are so few. The
        longest is exact unless an earlier duration was as long, else at most a sixteenth too long.
        """
        cdef uint64_t counts[PS_HISTOGRAM_SLOTS]
        cdef uint64_t longest = ps_load_relaxed(&self.counted.maximum)
        cdef uint64_t total = ps_load_relaxed(&self.counted.sum) - ps_load_relaxed(&earlier.counted.sum)
        cdef int slot, last = -1, used = 0, shift = 0
        for slot in range(PS_HISTOGRAM_SLOTS):
            counts[slot] = ps_load_relaxed(&self.counted.slots[slot]) - ps_load_relaxed(&earlier.counted.slots[slot])
            if counts[slot] > 0:
                last = slot
                used += 1
        if last < 0:
            return 0, 0, []
        if longest == ps_load_relaxed(&earlier.counted.maximum):
            longest = min(longest, ps_histogram_low(last + 1) - 1)
        while used > most:
            shift += 1
            used = united(counts, last, shift)
        cdef list found = []
        for slot in range(0, last + 1, 1 << shift):
            if counts[slot] > 0:
                found += [min(slot + ((1 << shift) >> 1), last), counts[slot]]
        return total, longest, found

    def add_since(self, uint64_t total, uint64_t longest, list counts not None):
        """Counts what another histogram's ``since`` has answered."""
        cdef Py_ssize_t i
        cdef uint64_t slot
        for i in range(0, len(counts), 2):
            slot = counts[i]
            if slot >= PS_HISTOGRAM_SLOTS:
                raise ValueError(f"a histogram has {PS_HISTOGRAM_SLOTS} slots. Given: {slot}")
            ps_store_relaxed(
                &self.counted.slots[slot], ps_load_relaxed(&self.counted.slots[slot]) + <uint64_t>counts[i + 1]
            )
        ps_store_relaxed(&self.counted.sum, ps_load_relaxed(&self.counted.sum) + total)
        if longest > ps_load_relaxed(&self.counted.maximum):
            ps_store_relaxed(&self.counted.maximum, longest)

    @property
    def count(self):
        """How many durations."""
        return ps_histogram_count(&self.counted)

    @property
    def total(self):
        """Their sum, in nanoseconds."""
        return ps_load_relaxed(&self.counted.sum)

    @property
    def maximum(self):
        """The longest, in nanoseconds; 0 where there is none."""
        return ps_load_relaxed(&self.counted.maximum)


cdef int united(uint64_t *counts, int last, int shift) noexcept:
    """Counts each other slot of those left, ``1 << shift`` slots apart, together with the next; how many count any."""
    cdef int slot, used = 0
    cdef int half = 1 << (shift - 1)
    for slot in range(0, last + 1, 1 << shift):
        if slot + half <= last:
            counts[slot] += counts[slot + half]
        if counts[slot] > 0:
            used += 1
    return used
