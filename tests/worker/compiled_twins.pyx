"""Compiled components, each the twin of the one of the same name in test_compiled_bolts.py."""

from cython_core.compiled.bolt cimport CompiledBolt, field
from cython_core.compiled.spout cimport END, MORE, CompiledSpout
from cython_core.tuples.tuple cimport Tuple

from pystorm_source import Bolt, PartitionedSpout, Spout, Stream


cdef class _Obey(CompiledBolt):
    cdef int process_tuple(self, Tuple tup) except -1:
        cdef str order = field(tup, 0)
        n = field(tup, 1)
        if "twice" in order:
            self.emit2(order, n)
        if "emit" in order:
            self.emit_values((order, n + 100))
        if "same" in order:
            self.emit_values(tup.payload)
            self.emit_values([order, n])
        if "list" in order:
            self.emit([order, n + 200])
        if "odd" in order:
            self.emit_to("odd", (n,))
        if "free" in order:
            self.emit([order, n + 300], anchors=[])
        if "ack" in order:
            self.ack_tuple(tup)
        if "fail" in order:
            self.fail_tuple(tup)
        if "late" in order:
            self.emit2(order, n + 400)
        if "raise" in order:
            raise ValueError(order)
        if "field" in order:
            field(tup, 7)
        if "arity" in order:
            self.emit1(n)
        if "none" in order:
            self.emit_values(None)
        if "stream" in order:
            self.emit_to("nowhere", (n,))
        return 0


class Obey(_Obey, Bolt):
    outputs = ["order string", "n long", Stream(["n long"], name="odd")]

    def process_tick(self, tup):
        self.emit(["tick", int(self.is_final_tick(tup))])


class ObeySurviving(Obey):
    exit_on_exception = False


class ObeyByHand(Obey):
    exit_on_exception = False
    auto_ack = False
    auto_fail = False
    auto_anchor = False


class InPython(Obey):
    """Its own `process` counts, not the compiled one."""

    def process(self, tup):
        self.emit([f"python {tup.values.order}", tup.values.n])


cdef class _Unfinished(CompiledBolt):
    pass


class Unfinished(_Unfinished, Bolt):
    outputs = ["n long"]


cdef class _Count(CompiledBolt):
    cdef dict counts

    cdef int process_tuple(self, Tuple tup) except -1:
        word = field(tup, 0)
        self.counts[word] = self.counts.get(word, 0) + 1
        return 0

    def begin(self):
        self.counts = {}

    def found(self):
        return sorted(self.counts.items())


class Count(_Count, Bolt):
    outputs = ["word string", "n long"]

    def initialize(self, conf, context):
        self.begin()

    def process_tick(self, tup):
        for item in self.found():
            self.emit(item)
        self.begin()


cdef class _Split(CompiledBolt):
    cdef int process_tuple(self, Tuple tup) except -1:
        for word in (<str>field(tup, 0)).split():
            self.emit1(word)
        return 0


class Split(_Split, Bolt):
    outputs = ["word string"]


cdef class _Numbers(CompiledSpout):
    cdef long long at, end

    def begin(self, start, end):
        self.at, self.end = start, end

    cdef int next_emit(self) except -1:
        if self.at == self.end:
            return END
        self.at += 1
        self.emit_with_id((self.at - 1,), self.at - 1)
        return MORE


class Numbers(_Numbers, PartitionedSpout):
    outputs = ["n long"]

    def partitions(self):
        return ["a", "b"]

    def latest(self, partition):
        return 300

    def open(self, partition, start, end):
        self.begin(start, end)


cdef class _Words(CompiledSpout):
    cdef int left

    cdef int next_emit(self) except -1:
        if self.left < 20:
            self.left += 1
            if self.left % 5 == 0:
                self.emit_with_id((f"word {self.left}",), self.left)
            else:
                self.emit_values((f"word {self.left}",))
        return MORE


class Words(_Words, Spout):
    outputs = ["word string"]
    heard = []

    def ack(self, tup_id):
        self.heard.append(tup_id)


class Beyond(Numbers):
    """Emits an offset outside of its range."""

    def open(self, partition, start, end):
        self.begin(end, end + 1)
