"""Verdicts of batches: given once, several times, too late, or never; and what is emitted for a batch."""

import gc
import logging

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pystorm_source import ArrowBolt, AsyncBolt, Bolt, Hopeless
from pystorm_source.errors import TupleFailed
from tests.worker.running import Batches, Numbers, above, rows, topology, worker_of
from tests.worker.test_arrow_bolts import BatchEach, PassBatch

TOTAL = 200
SPOUTS = pytest.mark.parametrize("spout", [Numbers, Batches])
ONE_RETRY = {"topology.max.spout.retries": 1, "topology.dead.letter": "drop"}


def run(spout, bolt, overrides=None, **more):
    """(Numbers that leave, worker) of a bolt behind a spout."""
    worker = above(bolt, spout, overrides=overrides, **more)
    try:
        return rows(worker.run("s", "p", 0, TOTAL)), worker
    finally:
        worker.stop()


class AcksFirst(ArrowBolt):
    outputs = ["n long"]
    auto_ack = False

    def process_batch(self, batch):
        self.ack(batch)
        self.emit_batch(batch)


@SPOUTS
def test_an_emit_behind_the_ack_of_its_batch_is_refused(spout):
    """Its tree is done: the rows would be taken for those of an attempt that has failed."""
    with pytest.raises(TupleFailed, match="after ack/fail: emit first, then ack"):
        run(spout, AcksFirst)


class FailsTwice(ArrowBolt):
    """Two calls, each with rows of its own, and an ack of what is left."""

    outputs = ["n long"]
    auto_ack = False

    def process_batch(self, batch):
        wrong = [pc.equal(batch.column(0), n) for n in (3, 50)]
        for mask in wrong:
            self.fail(batch, rows=mask)
        self.emit_batch(batch.filter(pc.invert(pc.or_(*wrong))))
        self.ack(batch)


@SPOUTS
def test_rows_of_a_batch_may_fail_by_several_calls(spout):
    found, worker = run(spout, FailsTwice, ONE_RETRY)
    assert sorted(found) == [(n,) for n in range(TOTAL) if n not in (3, 50)]
    counts = worker.report()["components"]
    assert counts["s"]["dead_letters"] == 2
    assert counts["b"]["failed"] == 4  # an emit and a retry of both


class FailsSome(ArrowBolt):
    """Leaves the verdict of the others to the engine."""

    outputs = ["n long"]

    def process_batch(self, batch):
        wrong = pc.less(batch.column(0), 7)
        if pc.any(wrong).as_py():
            self.fail(batch, rows=wrong)
        self.emit_batch(batch.filter(pc.invert(wrong)))


@pytest.mark.parametrize("bolt", [FailsSome, FailsTwice])
def test_rows_of_a_batch_are_counted_as_if_they_had_come_one_by_one(bolt):
    """Those that did not fail are acked, though what was emitted for them is taken back and they come again."""
    names = ("executed", "emitted", "acked", "failed", "duplicate_verdicts")
    found = {}
    for spout in (Numbers, Batches):
        _, worker = run(spout, bolt, {**ONE_RETRY, "topology.max.spout.pending": 100})
        counts = worker.report()["components"]["b"]
        found[spout] = {name: counts[name] for name in names}
        assert counts["executed"] == counts["acked"] + counts["failed"]
    assert found[Numbers] == found[Batches]


class AcksAndFails(ArrowBolt):
    """A verdict counts once, and the first one counts."""

    outputs = ["n long"]
    auto_ack = False

    def process_batch(self, batch):
        self.emit_batch(batch)
        self.fail(batch, rows=pc.equal(batch.column(0), 3))
        self.ack(batch)
        self.ack(batch)
        self.fail(batch, rows=pc.equal(batch.column(0), 4))


@SPOUTS
def test_a_row_that_was_acked_with_its_batch_does_not_fail_any_more(spout):
    _, worker = run(spout, AcksAndFails, ONE_RETRY)
    counts = worker.report()["components"]
    assert counts["s"]["dead_letters"] == 1
    assert counts["b"]["executed"] == counts["b"]["acked"] + counts["b"]["failed"]


class Holds(ArrowBolt):
    """Keeps its batches until the tick."""

    outputs = ["n long"]
    auto_ack = False

    def initialize(self, conf, context):
        self.held = []
        self.raised = False

    def process_batch(self, batch):
        self.held.append(batch)

    def process_tick(self, tup):
        for batch in self.held:
            self.emit_batch(batch, anchors=[batch])
            if self.raised:
                self.ack(batch)
            else:  # the rows that it has emitted are none then
                self.raised = True
                self.fail(batch)
        self.held = []


@SPOUTS
def test_a_batch_that_is_held_is_an_anchor_until_it_has_its_verdict(spout):
    found, _ = run(spout, Holds, ONE_RETRY)
    assert sorted(found) == [(n,) for n in range(TOTAL)]


class Keeps(Holds):
    """Acks when the batch is long gone."""

    def process_tick(self, tup):
        for batch in self.held:
            self.ack(batch)
            self.emit_batch(batch, anchors=[batch])
        self.held = []


@SPOUTS
def test_a_batch_that_was_acked_is_no_anchor(spout):
    with pytest.raises(TupleFailed, match="after ack/fail"):
        run(spout, Keeps)


class Forgets(ArrowBolt):
    outputs = ["n long"]
    auto_ack = False

    def process_batch(self, batch):
        """Neither acks nor fails it."""


@SPOUTS
def test_a_batch_that_the_bolt_throws_away_is_not_kept_either(spout):
    gc.collect()
    before = sum(isinstance(each, pa.RecordBatch) for each in gc.get_objects())
    worker = above(
        Forgets, spout, overrides={"topology.message.timeout.secs": 0.05, **ONE_RETRY, "topology.max.spout.retries": 0}
    )
    assert list(worker.run("s", "p", 0, TOTAL)) == []
    assert worker.report()["components"]["s"]["dead_letters"] == TOTAL
    gc.collect()
    assert sum(isinstance(each, pa.RecordBatch) for each in gc.get_objects()) <= before  # less: of others
    worker.stop()


class Raises(ArrowBolt):
    outputs = ["n long"]
    exit_on_exception = False

    def process_batch(self, batch):
        raise ValueError("as it must")


@SPOUTS
def test_without_trees_the_error_says_what_the_bolt_has_raised(spout, caplog):
    caplog.set_level(logging.CRITICAL)
    with pytest.raises(TupleFailed, match=r"process_batch\(\) raised ValueError: as it must"):
        run(spout, Raises, {"topology.acker.executors": 0})


class AsyncBatches(AsyncBolt):
    """Emits its rows as batches; fails some when they come first, behind their emits."""

    outputs = ["n long"]
    exit_on_exception = False

    async def initialize(self, conf, context):
        self.seen = set()

    async def process(self, tup):
        self.emit_batch(pa.record_batch([pa.array([tup.values.n])], names=["n"]))
        if tup.values.n % 10 == 3 and tup.values.n not in self.seen:
            self.seen.add(tup.values.n)
            raise ValueError("once")


@pytest.mark.parametrize("ordered", [False, True])
def test_a_batch_of_an_async_bolt_belongs_to_its_request(ordered, caplog):
    caplog.set_level(logging.CRITICAL)
    found, _ = run(Numbers, AsyncBatches, {"topology.async.ordered": ordered, **ONE_RETRY})
    assert sorted(found) == [(n,) for n in range(TOTAL)]


@pytest.mark.parametrize(("bolt", "known"), [(BatchEach, True), (PassBatch, False)])
def test_rows_of_a_batch_have_the_offset_of_their_tuple_if_that_is_one(bolt, known):
    """Of those that were gathered it would be another one's, as it happens."""
    schema = pa.schema([("n", pa.int64()), ("_offset", pa.int64())])
    found, _ = run(Numbers, bolt, schema=schema, offset_column=1)
    assert sorted(found, key=str) == sorted([(n, n if known else None) for n in range(TOTAL)], key=str)


class BigText(Numbers):
    outputs = ["text string"]

    def next_tuple(self):
        if self.at == min(self.end, 80):
            return False
        self.emit((chr(97 + self.at % 26) * (1 << 20),), self.at)
        self.at += 1


class Lengths(ArrowBolt):
    outputs = ["n long"]
    most = 0

    def process_batch(self, batch):
        type(self).most = max(self.most, batch.nbytes)
        self.emit_batch(pa.record_batch([pc.utf8_length(batch.column(0)).cast(pa.int64())], names=["n"]))


def test_gathered_rows_of_many_bytes_come_in_several_batches():
    """Beyond 2 GiB they would not fit one."""
    found, worker = run(BigText, Lengths)
    assert found == [(1 << 20,)] * 80
    assert worker.report()["components"]["b"]["acked"] == 80
    assert Lengths.most <= 66 << 20


def test_a_mask_of_another_length_is_refused():
    class Short(ArrowBolt):
        outputs = ["n long"]

        def process_batch(self, batch):
            self.fail(batch, rows=[True])

    with pytest.raises(TupleFailed, match="a mask has a value for each of the 100 rows"):
        run(Batches, Short)


class FailsOnce(Bolt):
    """Each of some rows the first time."""

    outputs = ["n long"]
    exit_on_exception = False

    def initialize(self, conf, context):
        self.seen = {}

    def process(self, tup):
        (n,) = tup.values
        self.seen[n] = self.seen.get(n, 0) + 1
        if self.fails(n):
            raise self.error(n)
        self.emit([n])

    def fails(self, n):
        return 10 <= n < 16 and self.seen[n] == 1

    def error(self, n):
        return OSError(f"row {n}")


@SPOUTS
def test_rows_that_fail_beside_each_other_do_not_share_attempts(spout):
    """With a batch as one tree the fourth of them would have had none left."""
    found, worker = run(spout, FailsOnce, ONE_RETRY)
    assert sorted(found) == [(n,) for n in range(TOTAL)]
    counts = worker.report()["components"]
    assert counts["b"]["failed"] == 6
    assert counts["s"]["dead_letters"] == 0


class FailsOften(FailsOnce):
    def fails(self, n):
        return n in (10, 120)


@SPOUTS
def test_a_row_that_always_fails_has_its_attempts_and_others_none(spout):
    found, worker = run(spout, FailsOften, {"topology.max.spout.retries": 3, "topology.dead.letter": "drop"})
    assert sorted(found) == [(n,) for n in range(TOTAL) if n not in (10, 120)]
    assert worker.report()["components"]["b"]["failed"] == 2 * 4
    assert worker.report()["components"]["s"]["dead_letters"] == 2


class Gives(FailsOften):
    def error(self, n):
        return Hopeless(f"row {n}")


@SPOUTS
def test_a_hopeless_row_of_a_batch_is_seen_once(spout):
    found, worker = run(spout, Gives, {"topology.max.spout.retries": 3, "topology.dead.letter": "drop"})
    assert sorted(found) == [(n,) for n in range(TOTAL) if n not in (10, 120)]
    assert worker.report()["components"]["b"]["failed"] == 2


class Copies(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.emit(tup.values)


class Doubles(ArrowBolt):
    """Batches of its own: a place in them is none in the spout's batch."""

    outputs = ["n long"]

    def process_batch(self, batch):
        self.emit_batch(batch.take(pa.array([i for i in range(batch.num_rows) for _ in range(2)])))


@pytest.mark.parametrize(
    ("spout", "between", "times"), [(Numbers, Copies, 1), (Batches, Copies, 1), (Batches, Doubles, 2)]
)
@pytest.mark.parametrize("bolt", [FailsOften, Gives])
def test_only_the_row_is_lost_that_a_failed_tuple_behind_another_bolt_stems_from(spout, between, times, bolt):
    source = spout.spec()
    middle = between.spec(inputs=[source])
    worker = worker_of(
        topology(s=source, m=middle, b=bolt.spec(inputs=[middle])),
        "b",
        overrides={"topology.max.spout.retries": 3, "topology.dead.letter": "drop"},
    )
    try:
        found = rows(worker.run("s", "p", 0, TOTAL))
    finally:
        worker.stop()
    assert sorted(found) == [(n,) for n in range(TOTAL) for _ in range(times) if n not in (10, 120)]
