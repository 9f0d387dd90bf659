"""Splits lines into words and counts them, without Python on the way."""

from cython_core.compiled.bolt cimport CompiledBolt, field
from cython_core.compiled.columns cimport ArrowBase, is_null, text_column, texts
from cython_core.tuples.tuple cimport Tuple

from pystorm_source import ArrowBolt, Bolt


cdef class SplitWords(CompiledBolt):
    cdef int process_tuple(self, Tuple tup) except -1:
        cdef str line = field(tup, 0)
        for word in line.split():
            self.emit1(word)
        return 0


class Split(SplitWords, Bolt):
    """The words of a line."""

    outputs = ["word string"]


cdef class CountWords(CompiledBolt):
    cdef dict counts
    cdef long long total

    def __cinit__(self, *args, **kwargs):
        self.counts = {}

    cdef int process_tuple(self, Tuple tup) except -1:
        word = field(tup, 0)
        count = self.counts.get(word, 0) + 1
        self.counts[word] = count
        self.total += 1
        return 0

    def take(self):
        """The counts so far, which begin anew."""
        counts, self.counts, self.total = self.counts, {}, 0
        return counts


class Count(CountWords, Bolt):
    """The count of each word in its part of a micro-batch; Spark adds the parts up."""

    outputs = ["word string", "count long"]

    def process_tick(self, tup):
        for item in sorted(self.take().items()):
            self.emit(item)


cdef class AddLengths(ArrowBase):
    cdef long long bytes

    def process_batch(self, batch):
        cdef text_column words = texts(batch, 0)
        cdef Py_ssize_t i
        for i in range(words.rows):
            if not is_null(&words, i):
                self.bytes += words.ends[i + 1] - words.ends[i]

    def take(self):
        """The sum so far, which begins anew."""
        total, self.bytes = self.bytes, 0
        return total


class Lengths(AddLengths, ArrowBolt):
    """The bytes of all words in its part of a micro-batch."""

    outputs = ["bytes long"]

    def process_tick(self, tup):
        self.emit([self.take()])
