"""Bolts of batches, batches before bolts of rows, and calls for many rows: the rows are those of tuples."""

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source import ArrowBolt, Bolt, Grouping
from tests.sizes import sized
from tests.worker.running import Batches, Numbers, Pass, numbers, topology, worker_of

TOTAL = 700


class Even(ArrowBolt):
    """Passes even numbers on, as a batch."""

    outputs = ["n long"]

    def process_batch(self, batch):
        self.emit_batch(batch.filter(pc.equal(pc.bit_wise_and(batch.column(0), 1), 0)))


class PassBatch(ArrowBolt):
    outputs = ["n long"]

    def process_batch(self, batch):
        self.emit_batch(batch)


class PassEach(ArrowBolt):
    """Batches in, rows out."""

    outputs = ["n long"]

    def process_batch(self, batch):
        for n in batch.column(0).to_pylist():
            self.emit((n,))


class BatchEach(Bolt):
    """Rows in, batches of one row out."""

    outputs = ["n long"]

    def process(self, tup):
        self.emit_batch(pa.record_batch([pa.array([tup.values.n])], names=["n"]))


class PassMany(Bolt):
    """Rows by calls for many, each behind its own."""

    outputs = ["n long"]

    def process_many(self, tups):
        for tup in tups:
            self.emit_many([tup.values.n], anchors=[tup])


class PassTogether(Bolt):
    """All rows of a call, behind all that it got."""

    outputs = ["n long"]

    def process_many(self, tups):
        self.emit_many([tup.values.n for tup in tups])


class EmitMany(Numbers):
    """Emits seven offsets by a call."""

    def next_tuple(self):
        if self.at == self.end:
            return False
        now = range(self.at, min(self.at + 7, self.end))
        self.emit_many(now, tup_ids=now)
        self.at = now.stop


class PassBatches(Numbers):
    """Emits batches of seven offsets from next_tuple."""

    def next_tuple(self):
        if self.at == self.end:
            return False
        stop = min(self.at + 7, self.end)
        self.emit_batch(pa.record_batch([pa.array(range(self.at, stop))], names=["n"]), tup_id=stop - 1)
        self.at = stop


SPOUTS = (Numbers, Batches, PassBatches, EmitMany)
APART = (Pass, PassBatch, PassEach, BatchEach, PassMany)
BOLTS = (*APART, PassTogether)


def output_of(made, component, overrides=None, total=TOTAL):
    worker = worker_of(made, component, overrides=overrides)
    try:
        return numbers(worker.run("s", "p", 0, total)), worker
    finally:
        worker.stop()


@pytest.mark.parametrize("scheduler", ["inline", "threads"])
@pytest.mark.parametrize("spout", SPOUTS)
def test_a_filter_gives_the_rows_that_it_keeps(spout, scheduler):
    source = spout.spec()
    made = topology(s=source, even=Even.spec(inputs=[source]))
    found, _ = output_of(made, "even", {"topology.scheduler": scheduler})
    assert found == list(range(0, TOTAL, 2))


GROUPINGS = {
    "shuffle": Grouping.SHUFFLE,
    "n": Grouping.fields("n"),
    "part": Grouping.partial_key("n"),
    "all": Grouping.ALL,
    "global": Grouping.GLOBAL,
}
DRAWN_TOTAL = 120


def drawn_lines(bolts):
    of_one = st.tuples(st.sampled_from(bolts), st.sampled_from(sorted(GROUPINGS)), st.integers(1, 3))
    return st.lists(of_one, min_size=1, max_size=3)


DRAWN_OPTIONS = st.fixed_dictionaries(
    {
        "topology.scheduler": st.sampled_from(["inline", "threads"]),
        "topology.executor.receive.buffer.size": st.sampled_from([2, 8, 1024]),
        "topology.executor.receive.buffer.bytes": st.sampled_from([1, 100, 1 << 20]),
    }
)


def line_of(spout, line):
    """A topology of the spout and its bolts, one behind the other; how many copies of each row come to each bolt."""
    parts = {"s": spout.spec()}
    below, times = parts["s"], [1]
    for number, (bolt, grouping, tasks) in enumerate(line):
        below = parts[f"b{number}"] = bolt.spec(inputs={below: GROUPINGS[grouping]}, par=tasks)
        times.append(times[-1] * (tasks if grouping == "all" else 1))
    return topology(**parts), times[1:]


def left_in_queues(worker):
    """Rows and bytes of batches that queues hold."""
    queues = [executor.queue for executor in worker.executors if hasattr(executor, "queue")]
    return sum(queue.held_rows for queue in queues), sum(queue.held_bytes for queue in queues)


@given(st.sampled_from(SPOUTS), drawn_lines(BOLTS), DRAWN_OPTIONS)
@settings(max_examples=sized(60), deadline=None)
def test_any_line_of_both_forms_gives_the_rows_and_counts_of_one_form(spout, line, options):
    made, times = line_of(spout, line)
    found, worker = output_of(made, f"b{len(line) - 1}", options, DRAWN_TOTAL)
    assert Counter(found) == Counter(list(range(DRAWN_TOTAL)) * times[-1])
    counts = worker.report()["components"]
    for number, copies in enumerate(times):
        of_bolt = counts[f"b{number}"]
        assert (of_bolt["executed"], of_bolt["acked"]) == (DRAWN_TOTAL * copies, DRAWN_TOTAL * copies)
        assert (of_bolt["emitted"], of_bolt["failed"]) == (DRAWN_TOTAL * copies, 0)
    assert left_in_queues(worker) == (0, 0)


class Poisoned(Bolt):
    """Fails some rows whenever they come."""

    outputs = ["n long"]

    def process(self, tup):
        if tup.values.n % 10 == 3:
            self.fail(tup)
        else:
            self.emit(tup.values)


class PoisonedMany(Bolt):
    outputs = ["n long"]

    def process_many(self, tups):
        for tup in tups:
            if tup.values.n % 10 == 3:
                self.fail(tup)
            else:
                self.emit_many([tup.values.n], anchors=[tup])


class PoisonedBatch(ArrowBolt):
    outputs = ["n long"]

    def process_batch(self, batch):
        mask = pa.array([n % 10 == 3 for n in batch.column(0).to_pylist()])
        self.fail(batch, rows=mask)
        self.emit_batch(batch.filter(pc.invert(mask)))


class PoisonedCall(ArrowBolt):
    """Raises for all rows of the batch."""

    outputs = ["n long"]
    exit_on_exception = False

    def process_batch(self, batch):
        if any(n % 10 == 3 for n in batch.column(0).to_pylist()):
            raise ValueError("three")
        self.emit_batch(batch)


@given(
    st.sampled_from(SPOUTS),
    drawn_lines(APART),  # one tuple that fails takes all with it that were emitted together
    st.tuples(
        st.sampled_from([Poisoned, PoisonedMany, PoisonedBatch, PoisonedCall]),
        st.sampled_from(["shuffle", "n", "part", "global"]),
        st.integers(1, 3),
    ),
    st.integers(0, 3),
    DRAWN_OPTIONS,
    st.integers(1, 3),
)
@settings(max_examples=sized(60), deadline=None)
def test_rows_that_always_fail_are_dead_letters_and_all_others_are_there_once(
    spout, line, failing, place, options, retries
):
    line = [*line[:place], failing, *line[place:]]
    made, times = line_of(spout, line)
    options = {**options, "topology.max.spout.retries": retries, "topology.dead.letter": "drop"}
    found, worker = output_of(made, f"b{len(line) - 1}", options, DRAWN_TOTAL)
    assert Counter(found) == Counter([n for n in range(DRAWN_TOTAL) if n % 10 != 3] * times[-1])
    counts = worker.report()["components"]["s"]
    assert counts["dead_letters"] == DRAWN_TOTAL // 10
    assert counts["unsettled"] == 0
    assert left_in_queues(worker) == (0, 0)


class Tagged(Bolt):
    """The task that got each row."""

    outputs = ["n long"]

    def process(self, tup):
        self.emit((tup.values.n * 100 + self.task_id,))


class TaggedBatch(ArrowBolt):
    outputs = ["n long"]

    def process_batch(self, batch):
        self.emit_batch(pa.record_batch([pc.add(pc.multiply(batch.column(0), 100), self.task_id)], names=["n"]))


@pytest.mark.parametrize("hashing", ["stable", "java"])
@pytest.mark.parametrize("grouping", [Grouping.SHUFFLE, Grouping.fields("n"), Grouping.partial_key("n"), Grouping.NONE])
def test_a_row_goes_to_the_same_task_in_either_form(grouping, hashing):
    seen = []
    for spout in (Numbers, Batches):
        for bolt in (Tagged, TaggedBatch):
            source = spout.spec()
            made = topology(s=source, tagged=bolt.spec(inputs={source: grouping}, par=3))
            found, _ = output_of(made, "tagged", {"topology.fields.grouping.hash": hashing})
            seen.append(sorted(found))
    assert seen[1:] == seen[:-1]


class FailsOnce(ArrowBolt):
    """Fails the rows that a number divides, once each."""

    outputs = ["n long"]
    divisor = 50

    def initialize(self, conf, context):
        self.seen = set()

    def process_batch(self, batch):
        values = batch.column(0).to_pylist()
        mask = [n % self.divisor == 0 and n not in self.seen for n in values]
        self.seen.update(values)
        if any(mask):
            self.fail(batch, rows=mask)
        self.emit_batch(batch)


@pytest.mark.parametrize("scheduler", ["inline", "threads"])
@pytest.mark.parametrize("spout", SPOUTS)
def test_rows_that_fail_come_again_and_every_row_is_there_once(spout, scheduler):
    source = spout.spec()
    made = topology(s=source, fails=FailsOnce.spec(inputs=[source]))
    found, _ = output_of(made, "fails", {"topology.scheduler": scheduler, "topology.max.spout.retries": 1})
    assert sorted(found) == list(range(TOTAL))


class AlwaysFails(FailsOnce):
    def process_batch(self, batch):
        mask = [n % self.divisor == 0 for n in batch.column(0).to_pylist()]
        if any(mask):
            self.fail(batch, rows=pa.array(mask))
        self.emit_batch(batch)


@pytest.mark.parametrize("spout", SPOUTS)
def test_rows_that_go_on_failing_are_dead_letters_one_by_one(spout):
    source = spout.spec()
    made = topology(s=source, fails=AlwaysFails.spec(inputs=[source]))
    options = {"topology.max.spout.retries": 1, "topology.dead.letter": "drop"}
    found, worker = output_of(made, "fails", options)
    assert sorted(found) == [n for n in range(TOTAL) if n % 50]
    assert worker.report()["components"]["s"]["dead_letters"] == TOTAL // 50
    assert worker.report()["components"]["fails"]["failed"] == 2 * TOTAL // 50  # an emit and a retry
