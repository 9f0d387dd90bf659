"""Column calls in whole topologies: the rows of the same topology that emits and processes one by one."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source import Bolt, Grouping, PartitionedSpout, Topology
from pystorm_source.clock import SystemClock
from pystorm_source.errors import ContractBroken, TupleFailed
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import ScriptedSpout, run_topology, verify_bolt
from pystorm_source.testing.script import FAIL

LINES = [["the cow jumped over the moon"], [""], ["an apple a day"], ["the cow"]] * 5


class Split(Bolt):
    outputs = ["word string", "length int"]

    def process(self, tup):
        for word in tup.values.line.split():
            self.emit([word, len(word)])


class SplitInColumns(Split):
    def process_many(self, tups):
        for tup in tups:
            words = tup.values.line.split()
            self.emit_many(words, [len(word) for word in words], anchors=[tup])


class SplitTogether(Split):
    def process_many(self, tups):
        words = " ".join(tup.values.line for tup in tups).split()
        self.emit_many(words, [len(word) for word in words])


class Count(Bolt):
    outputs = ["word string", "count long"]

    def initialize(self, conf, context):
        self.counts = Counter()

    def process(self, tup):
        self.counts[tup.values.word] += 1

    def process_tick(self, tup):
        if self.is_final_tick(tup):
            self.emit_many(self.counts.keys(), self.counts.values())
            self.counts.clear()


class CountInColumns(Count):
    def process_many(self, tups):
        self.counts.update(tup.values.word for tup in tups)


def word_count(spout, split, count, how=None):
    class WordCount(Topology):
        lines = spout
        words = split.spec(inputs=[lines], par=2)
        counts = count.spec(inputs={words: how or Grouping.fields("word")}, par=2)

    return WordCount


@pytest.mark.parametrize("split", [SplitInColumns, SplitTogether])
@pytest.mark.parametrize("how", [Grouping.fields("word"), Grouping.partial_key("word"), Grouping.SHUFFLE, Grouping.ALL])
@pytest.mark.parametrize("ackers", [0, 1])
def test_word_counts_are_the_same(split, how, ackers):
    config = {"topology.acker.executors": ackers, "topology.executor.receive.buffer.size": 8}
    spout = MemorySpout.spec(fields=["line string"], rows=LINES)

    def counted(*bolts):
        total = Counter()
        for word, count in run_topology(word_count(spout, *bolts, how), config).rows("counts"):
            total[word] += count
        return total

    assert counted(split, CountInColumns) == counted(Split, Count)


@settings(deadline=None, max_examples=15)
@given(fails=st.sets(st.integers(0, 5)), seed=st.integers(0, 9))
def test_tuples_that_fail_once_are_emitted_again_as_of_rows(fails, seed):
    script = [row for n, row in enumerate(LINES[:6]) for row in ([row, FAIL] if n in fails else [row])]

    def ran(split):
        spout = ScriptedSpout.of(["line string"], *script).spec()

        class Words(Topology):
            lines = spout
            words = split.spec(inputs=[lines])

        result = run_topology(Words, seed=seed)
        return Counter(result.rows("words")), result.acked, result.failed, result.unsettled

    assert ran(SplitInColumns) == ran(SplitTogether) == ran(Split)


class InColumns(PartitionedSpout):
    """Emits its range by calls of some rows each."""

    outputs = ["n long"]

    def partitions(self):
        return ["all"]

    def latest(self, partition):
        return 1000

    def open(self, partition, start, end):
        self.left = range(start, end)

    def next_tuple(self):
        now, self.left = self.left[:300], self.left[300:]
        self.emit_many([n * 2 for n in now], tup_ids=now)
        return len(self.left) > 0


class Double(Bolt):
    outputs = ["n long"]

    def process_many(self, tups):
        self.emit_many([tup.values.n for tup in tups])


@pytest.mark.parametrize("ackers", [0, 1])
def test_calls_of_more_rows_than_a_queue_holds(ackers):
    class Numbers(Topology):
        config = {"topology.executor.receive.buffer.size": 16, "topology.acker.executors": ackers}
        numbers = InColumns.spec()
        double = Double.spec(inputs=[numbers])

    assert run_topology(Numbers).rows("double") == [(n * 2,) for n in range(1000)]


def test_a_bolt_of_column_calls_keeps_the_laws_of_bolts():
    for bolt in (SplitInColumns, SplitTogether):
        verify_bolt(bolt, LINES[:4], fields=["line string"])


def test_a_bolt_whose_rows_depend_on_what_comes_together_breaks_them():
    class Sums(Bolt):
        outputs = ["n int"]

        def process_many(self, tups):
            self.emit([len(tups)])

    with pytest.raises(ContractBroken):
        verify_bolt(Sums, LINES[:4], fields=["line string"])


def test_an_error_names_process_many():
    class Raises(Bolt):
        def process_many(self, tups):
            raise ValueError("no")

    class Line(Topology):
        lines = MemorySpout.spec(fields=["line string"], rows=LINES)
        raises = Raises.spec(inputs=[lines])

    with pytest.raises(TupleFailed, match=r"process_many\(\) raised ValueError: no"):
        run_topology(Line)


def test_rows_that_it_returns_are_refused():
    class Returns(Bolt):
        outputs = ["line string"]

        def process_many(self, tups):
            return [tup.values for tup in tups]

    class Line(Topology):
        lines = MemorySpout.spec(fields=["line string"], rows=LINES)
        returns = Returns.spec(inputs=[lines])

    with pytest.raises(TupleFailed, match=r"process_many\(\) returned a list and emitted nothing"):
        run_topology(Line)


def test_a_slow_call_gets_fewer_tuples_the_next_time():
    sizes = []
    clock = SystemClock()

    class Slow(Bolt):
        def process_many(self, tups):
            sizes.append(len(tups))
            until = clock.monotonic() + len(tups) * 0.001
            while clock.monotonic() < until:
                pass

    class Line(Topology):
        config = {"topology.scheduler": "inline", "topology.producer.batch.size": 256}
        numbers = InColumns.spec()
        slow = Slow.spec(inputs=[numbers])

    run_topology(Line, clock=SystemClock())
    assert sum(sizes) == 1000
    assert max(sizes[-5:]) < max(sizes)
