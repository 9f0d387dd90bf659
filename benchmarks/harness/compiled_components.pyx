"""The components of ``components.py`` that Storm's three topologies need, compiled."""

from cython_core.compiled.bolt cimport CompiledBolt, field
from cython_core.compiled.spout cimport MORE, CompiledSpout
from cython_core.tuples.tuple cimport Tuple

from benchmarks.harness.components import SENTENCES
from pystorm_source.api import Bolt, Spout


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
