"""Compiled forms of the components in ``components.py`` that Storm's three topologies need."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from cython_core.compiled.bolt cimport CompiledBolt, field
from cython_core.compiled.columns cimport ArrowBase, text_column, texts
from cython_core.compiled.spout cimport MORE, CompiledSpout
from cython_core.tuples.tuple cimport Tuple

import pyarrow as pa

from benchmarks.harness.components import SENTENCES
from pystorm_source.api import ArrowBolt, Bolt, Spout

ROWS_OF_BATCH = 1_000


cdef class _Const(CompiledSpout):
    cdef int next_emit(self) except -1:
        self.emit_values(("some data",))
        return MORE


class ConstSpout(_Const, Spout):
    outputs = ["str string"]


cdef class _ConstAcked(CompiledSpout):
    cdef long long count

    cdef int next_emit(self) except -1:
        self.count += 1
        self.emit_with_id(("some data",), self.count)
        return MORE


class ConstSpoutAcked(_ConstAcked, Spout):
    outputs = ["str string"]
    gives_ids = True


cdef class _Id(CompiledBolt):
    cdef int process_tuple(self, Tuple tup) except -1:
        return self.emit1(field(tup, 0))


class IdBolt(_Id, Bolt):
    outputs = ["str string"]


cdef class _Null(CompiledBolt):
    cdef int process_tuple(self, Tuple tup) except -1:
        return 0


class NullBolt(_Null, Bolt):
    pass


cdef class _Sentences(CompiledSpout):
    cdef tuple sentences
    cdef Py_ssize_t place
    cdef long long count

    def __cinit__(self, *args, **kwargs):
        self.sentences = tuple(SENTENCES)

    cdef object turn(self):
        sentence = self.sentences[self.place]
        self.place = self.place + 1 if self.place + 1 < len(self.sentences) else 0
        return sentence

    cdef int next_emit(self) except -1:
        self.emit_values((self.turn(),))
        return MORE


class SentenceSpout(_Sentences, Spout):
    outputs = ["sentence string"]


cdef class _SentencesAcked(_Sentences):
    cdef int next_emit(self) except -1:
        self.count += 1
        self.emit_with_id((self.turn(),), self.count)
        return MORE


class SentenceSpoutAcked(_SentencesAcked, Spout):
    outputs = ["sentence string"]
    gives_ids = True


cdef class _Split(CompiledBolt):
    cdef int process_tuple(self, Tuple tup) except -1:
        for word in (<str>field(tup, 0)).split():
            self.emit1(word)
        return 0


class SplitBolt(_Split, Bolt):
    outputs = ["word string"]


cdef class _Count(CompiledBolt):
    cdef dict counts

    def __cinit__(self, *args, **kwargs):
        self.counts = {}

    cdef int process_tuple(self, Tuple tup) except -1:
        word = field(tup, 0)
        self.counts[word] = self.counts.get(word, 0) + 1
        return 0


class CountBolt(_Count, Bolt):
    pass


class _Batches(Spout):
    """Emits the same batch repeatedly; each batch is a tuple tree if the spout gives ids."""

    def initialize(self, conf, context):
        self.batch = pa.RecordBatch.from_arrays([pa.array(self.texts())], names=["str"])
        self.count = 0

    def next_tuple(self):
        self.count += 1
        self.emit_batch(self.batch, self.count if self.gives_ids else None)


class ConstBatches(_Batches):
    outputs = ["str string"]
    gives_ids = False

    def texts(self):
        return ["some data"] * ROWS_OF_BATCH


class ConstBatchesAcked(ConstBatches):
    gives_ids = True


class SentenceBatches(_Batches):
    outputs = ["sentence string"]
    gives_ids = False

    def texts(self):
        return (list(SENTENCES) * ROWS_OF_BATCH)[:ROWS_OF_BATCH]


class SentenceBatchesAcked(SentenceBatches):
    gives_ids = True


cdef class _IdOfBatches(ArrowBase):
    def process_batch(self, batch):
        self.emit_batch(batch)


class IdOfBatches(_IdOfBatches, ArrowBolt):
    outputs = ["str string"]


cdef class _NullOfBatches(ArrowBase):
    def process_batch(self, batch):
        pass


class NullOfBatches(_NullOfBatches, ArrowBolt):
    pass


cdef class _SplitOfBatches(ArrowBase):
    """Splits at spaces."""

    def process_batch(self, batch):
        cdef text_column lines = texts(batch, 0)
        cdef Py_ssize_t size = lines.ends[lines.rows] - lines.ends[0]
        cdef bytes ends = PyBytes_FromStringAndSize(NULL, (size // 2 + lines.rows + 2) * sizeof(int32_t))
        cdef bytes heap = PyBytes_FromStringAndSize(NULL, size)
        cdef int32_t *end = <int32_t *>PyBytes_AS_STRING(ends)
        cdef char *to = PyBytes_AS_STRING(heap)
        cdef Py_ssize_t i, at, begin, words = 0, length = 0
        end[0] = 0
        for i in range(lines.rows):
            begin = lines.ends[i]
            for at in range(lines.ends[i], lines.ends[i + 1] + 1):
                if at == lines.ends[i + 1] or lines.bytes[at] == b" ":
                    if at > begin:
                        memcpy(to + length, lines.bytes + begin, at - begin)
                        length += at - begin
                        words += 1
                        end[words] = <int32_t>length
                    begin = at + 1
        found = pa.StringArray.from_buffers(words, pa.py_buffer(ends), pa.py_buffer(heap))
        self.emit_batch(pa.RecordBatch.from_arrays([found], names=["word"]))


class SplitOfBatches(_SplitOfBatches, ArrowBolt):
    outputs = ["word string"]


cdef struct _Word:
    uint32_t hash
    int32_t size    # 0: the place is free
    long long count
    char text[24]


DEF PLACES = 1 << 16


cdef class _CountOfBatches(ArrowBase):
    """Counts in a table; in a dict, words of more than 24 bytes and words that find the table full."""
    cdef _Word *table
    cdef long long used
    cdef dict others

    def __cinit__(self, *args, **kwargs):
        self.table = <_Word *>calloc(PLACES, sizeof(_Word))
        self.others = {}
        if self.table is NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.table)

    def process_batch(self, batch):
        cdef text_column words = texts(batch, 0)
        cdef Py_ssize_t i, at
        cdef int32_t size
        cdef const char *text
        cdef uint32_t hash
        cdef _Word *word
        for i in range(words.rows):
            text, size = words.bytes + words.ends[i], words.ends[i + 1] - words.ends[i]
            hash = 2166136261u
            for at in range(size):
                hash = (hash ^ <unsigned char>text[at]) * 16777619u
            at = hash & (PLACES - 1)
            word = self.table + at
            while word.size > 0 and (word.hash != hash or word.size != size or memcmp(word.text, text, size) != 0):
                at = (at + 1) & (PLACES - 1)
                word = self.table + at
            if word.size > 0:
                word.count += 1
            elif 0 < size <= 24 and self.used < PLACES // 2:
                word.hash, word.size, word.count = hash, size, 1
                memcpy(word.text, text, size)
                self.used += 1
            else:
                self.others[text[:size]] = self.others.get(text[:size], 0) + 1


class CountOfBatches(_CountOfBatches, ArrowBolt):
    pass
