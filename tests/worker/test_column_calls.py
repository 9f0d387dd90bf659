"""One topology whose components emit and process by rows or by columns: the same rows, counts and dead letters."""

from collections import Counter
from typing import NamedTuple

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pystorm_source import BatchingBolt, Bolt, Grouping, PartitionedSpout, ReliableSpout, TicklessBatchingBolt
from pystorm_source.api.stream import DEAD_LETTER
from pystorm_source.testing import run_topology
from tests.sizes import sized
from tests.worker.running import pair, rows, topology, worker_of

ROWS = pa.schema([("n", pa.int64()), ("copy", pa.int32())])


class Rows(PartitionedSpout):
    """Emits (offset,) for each offset."""

    outputs = ["n long"]
    count = 0

    def partitions(self):
        return ["p"]

    def latest(self, partition):
        return self.count

    def open(self, partition, start, end):
        self.left = range(start, end)

    def next_tuple(self):
        now, self.left = self.left[:7], self.left[7:]
        self.send(now)
        return len(self.left) > 0

    def send(self, offsets):
        for n in offsets:
            self.emit([n], n)


class Columns(Rows):
    def send(self, offsets):
        self.emit_many(offsets, tup_ids=offsets)


class Batches(Rows):
    """As record batches: the rows of a bolt are columns of them."""

    next_tuple = PartitionedSpout.next_tuple

    def next_batch(self):
        now, self.left = self.left[:7], self.left[7:]
        return pa.record_batch([pa.array(now, pa.int64())], names=["n"]) if now else None


class Copies(Bolt):
    """Emits n % 3 copies of n; ``times``: fails n so often, after that."""

    outputs = ["n long", "copy int"]
    exit_on_exception = False
    times = {}

    def initialize(self, conf, context):
        self.seen = Counter()

    def fails(self, tup):
        self.seen[tup.values[0]] += 1
        return self.seen[tup.values[0]] <= self.times.get(tup.values[0], 0)

    def process(self, tup):
        for copy in range(tup.values.n % 3):
            self.emit([tup.values.n, copy])
        if self.fails(tup):
            self.fail(tup)


class CopiesEach(Copies):
    """Anchors the rows of each tuple to it."""

    def process_many(self, tups):
        for tup in tups:
            copies = range(tup.values.n % 3)
            self.emit_many([tup.values.n] * len(copies), copies, anchors=[tup])
            if self.fails(tup):
                self.fail(tup)


class CopiesOfGood(Copies):
    """One emit_many, anchored to what does not fail."""

    def process_many(self, tups):
        good = []
        for tup in tups:
            if self.fails(tup):
                self.fail(tup)
            else:
                good.append(tup)
        rows = [(tup.values.n, copy) for tup in good for copy in range(tup.values.n % 3)]
        self.emit_many([n for n, _ in rows], [copy for _, copy in rows], anchors=good)


class CopiesTogether(Copies):
    """Anchors all rows to all tuples, and fails them together."""

    def process_many(self, tups):
        rows = [(tup.values.n, copy) for tup in tups for copy in range(tup.values.n % 3)]
        self.emit_many([n for n, _ in rows], [copy for _, copy in rows])
        if sum(map(self.fails, tups)) > 0:
            raise ValueError("one of them")


class CopiesByEmit(Copies):
    """process_many with an emit for each row."""

    def process_many(self, tups):
        for tup in tups:
            for copy in range(tup.values.n % 3):
                self.emit((tup.values.n, copy))
        if sum(map(self.fails, tups)) > 0:
            raise ValueError("one of them")


class CopiesOfColumn(Copies):
    """Reads one column, and fails by the tuple; what it emits is anchored to all."""

    def process_many(self, tups):
        copied = [(n, copy) for n in tups.column("n") for copy in range(n % 3)]
        self.emit_many([n for n, _ in copied], [copy for _, copy in copied])
        if sum(map(self.fails, tups)) > 0:
            raise ValueError("one of them")


class Last(Copies):
    def process(self, tup):
        self.emit(tup.values)
        if self.fails(tup):
            self.fail(tup)


class LastInColumns(Last):
    def process_many(self, tups):
        self.emit_many(*zip(*[tup.values for tup in tups], strict=True))
        if sum(map(self.fails, tups)) > 0:
            raise ValueError("one of them")


class LastByColumn(Last):
    """Looks at tuples one by one only if one of them is to fail."""

    def process_many(self, tups):
        self.emit_many(tups.column("n"), tups.column(1))
        if self.times and sum(map(self.fails, tups)) > 0:
            raise ValueError("one of them")


class LastKeepsThem(Last):
    """Acks by itself, some of the call before and some of its own."""

    auto_ack = False
    kept = ()

    def process_many(self, tups):
        tups = [*self.kept, *tups]
        self.kept = tups[len(tups) // 2 :] if len(tups) < 8 else []
        for tup in tups[: len(tups) - len(self.kept)]:
            if self.fails(tup):
                self.fail(tup)
            else:
                self.emit(tup.values, anchors=[tup])
                self.ack(tup)

    def process_tick(self, tup):
        for each in self.kept:
            self.emit(each.values, anchors=[each])
            self.ack(each)
        self.kept = ()


class Tombs(Bolt):
    outputs = list(DEAD_LETTER.fields)

    def process(self, tup):
        self.emit(tup.values)


class Drawn(NamedTuple):
    """What a topology is but for the form of its components."""

    count: int
    times: dict
    last_times: dict
    how: Grouping
    tasks: int
    queue: int
    batch: int


DRAWN = st.builds(
    Drawn,
    count=st.integers(0, 40),
    times=st.dictionaries(st.integers(0, 39), st.integers(1, 4), max_size=3),
    last_times=st.dictionaries(st.integers(0, 39), st.integers(1, 2), max_size=2),
    how=st.sampled_from([Grouping.SHUFFLE, Grouping.fields("n"), Grouping.partial_key("n"), Grouping.GLOBAL]),
    tasks=st.integers(1, 3),
    queue=st.sampled_from([2, 8, 64]),
    batch=st.sampled_from([1, 3]),
)


def made_of(drawn, spout, copies, last):
    def failing(bolt, times):
        return type(bolt.__name__, (bolt,), {"times": times})

    s = type("Spout", (spout,), {"count": drawn.count}).spec()
    c = failing(copies, drawn.times).spec(inputs=[s])
    return topology(
        s=s,
        copies=c,
        last=failing(last, drawn.last_times).spec(inputs={c: drawn.how}, par=drawn.tasks),
        tombs=Tombs.spec(inputs=[s["__dead_letter"]]),
    )


def config_of(drawn, retries):
    return {
        "topology.executor.receive.buffer.size": drawn.queue,
        "topology.producer.batch.size": min(drawn.queue // 2, drawn.batch),
        "topology.max.spout.retries": retries,
        "topology.dead.letter": "stream",
    }


def ran(drawn, *forms, retries):
    """The rows that leave, sorted, and what was counted, by component."""
    made = worker_of(made_of(drawn, *forms), "last", (0, 1), ROWS, config_of(drawn, retries))
    try:
        return sorted(rows(made.run("s", "p", 0, drawn.count))), made.report()["components"]
    finally:
        made.stop()


def counted(components, *names):
    return {(name, key): counts[key] for name, counts in components.items() for key in names if key in counts}


@settings(max_examples=sized(150), deadline=None)
@given(
    drawn=DRAWN,
    spout=st.sampled_from([Rows, Columns, Batches]),
    copies=st.sampled_from([CopiesEach, CopiesOfGood, CopiesTogether, CopiesByEmit, CopiesOfColumn]),
    last=st.sampled_from([Last, LastInColumns, LastByColumn, LastKeepsThem]),
)
@example(Drawn(40, {}, {8: 1}, Grouping.SHUFFLE, 1, 64, 3), Columns, CopiesTogether, LastInColumns)
def test_whatever_fails_and_comes_again_each_row_is_there_once(drawn, spout, copies, last):
    found, components = ran(drawn, spout, copies, last, retries=1000)
    assert found == [(n, copy) for n in range(drawn.count) for copy in range(n % 3)]
    assert components["s"]["dead_letters"] == 0


@settings(max_examples=sized(150), deadline=None)
@given(
    drawn=DRAWN.map(lambda drawn: drawn._replace(last_times={})),
    spout=st.sampled_from([Rows, Columns]),
    copies=st.sampled_from([CopiesEach, CopiesOfGood]),
    last=st.sampled_from([Last, LastInColumns, LastByColumn]),
)
def test_counts_and_dead_letters_are_those_of_rows(drawn, spout, copies, last):
    def seen(*forms):
        found, components = ran(drawn, *forms, retries=2)
        buried = run_topology(made_of(drawn, *forms), config_of(drawn, 2)).rows("tombs")
        copied = {key: components["copies"][key] for key in ("executed", "acked", "failed", "errors")}
        spouted = {key: components["s"][key] for key in ("emitted", "acked", "failed", "retries", "dead_letters")}
        return found, sorted(row[:-1] for row in buried), copied, spouted

    assert seen(spout, copies, last) == seen(Rows, Copies, Last)


@settings(max_examples=sized(50), deadline=None)
@given(
    drawn=DRAWN.map(lambda drawn: drawn._replace(times={}, last_times={})),
    forms=st.sampled_from([(Last, LastInColumns), (Last, LastByColumn), (Copies, CopiesTogether)]),
)
def test_if_nothing_fails_everything_is_counted_as_of_rows(drawn, forms):
    last, in_columns = forms

    def seen(*forms):
        found, components = ran(drawn, *forms, retries=0)
        names = ("emitted", "transferred", "acked", "failed", "skipped", "errors", "duplicate_verdicts", "rows")
        return found, counted(components, *names), [components[name]["executed"] for name in ("copies", "last")]

    assert seen(Columns, CopiesTogether, in_columns) == seen(Rows, Copies, last)


def test_columns_leave_bolts_that_are_given_batches():
    class Sizes(BatchingBolt):
        outputs = ["n long", "size int"]

        def process_batch(self, key, tups):
            self.emit_many([tup.values.n for tup in tups], [len(tups)] * len(tups))

    for base in (BatchingBolt, TicklessBatchingBolt):
        sizes = type("B", (base,), {"outputs": Sizes.outputs, "process_batch": Sizes.process_batch})
        result = run_topology(pair(sizes, type("Spout", (Rows,), {"count": 5})))
        assert result.rows("b") == [(n, 5) for n in range(5)]
        assert (result.acked["s"], result.unsettled["s"]) == (5, 0)


def test_columns_leave_a_reliable_spout_which_emits_again_what_fails():
    class Again(ReliableSpout):
        outputs = ["n long"]
        left = [[1, 2, 3]]

        def next_tuple(self):
            for column in self.left:
                self.emit_many(column, tup_ids=column)
            self.left = []

    s = Again.spec()
    c = type("C", (CopiesEach,), {"times": {2: 1}}).spec(inputs=[s])
    result = run_topology(topology(s=s, c=c))
    with_failed = result.rows("c", of_failed_attempts=True)
    assert sorted(with_failed) == [(1, 0), (2, 0), (2, 0), (2, 1), (2, 1)]
    assert sorted(result.rows("c")) == [(1, 0), (2, 0), (2, 1)]
    assert (result.acked["s"], result.failed["s"]) == (3, 1)
