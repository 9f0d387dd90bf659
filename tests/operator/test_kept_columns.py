"""apply(df, Topology, keep=...): rows repeat columns of the input row that they are anchored to."""

import random

import pyarrow as pa
import pytest

from pystorm_source import Bolt, Input, Topology
from pystorm_source.errors import ArgumentTypeError, OptionError, SchemaError
from pystorm_source.operator import kept_columns
from tests.operator import topologies
from tests.operator.tasks import function_of, rows_of, schedulers

WIDE = "id: long, text: string, tags: array<string>"


def wide_batches(count, rows=500):
    """Of the columns ``id``, ``text``, ``tags``."""
    for first in range(0, count * rows, rows):
        ids = range(first, first + rows)
        texts = pa.array([f"t{i}" if i % 5 else None for i in ids], pa.large_string())
        yield pa.RecordBatch.from_arrays(
            [pa.array(ids, pa.int64()), texts, pa.array([[str(i)] for i in ids])], names=["id", "text", "tags"]
        )


def expected(ids):
    return [(f"t{i}" if i % 5 else None, [str(i)], i) for i in ids]


class Thrice(Bolt):
    """Emits each row three times, some of them once more after others."""

    outputs = ["id long"]

    def process(self, tup):
        for _ in range(3):
            self.emit([tup.values.id])


class Thrices(Topology):
    rows = Input.spec(["id long"])
    thrice = Thrice.spec(inputs=[rows])


class Shuffled(Bolt):
    """Keeps 1,000 tuples and lets them go in any order: rows leave far from their neighbours."""

    outputs = ["id long"]
    auto_ack = False
    tick_freq_secs = 3600

    def initialize(self, conf, context):
        self.chance = random.Random(7)
        self.held = []

    def process(self, tup):
        self.held.append(tup)
        if len(self.held) > 1_000:
            self.let_go(self.held.pop(self.chance.randrange(1_000)))

    def process_tick(self, tup):
        while self.held:
            self.let_go(self.held.pop())

    def let_go(self, tup):
        self.emit([tup.values.id], anchors=[tup])
        self.ack(tup)


class Shuffles(Topology):
    rows = Input.spec(["id long"])
    shuffled = Shuffled.spec(inputs=[rows])


class Pairs(Bolt):
    """A row for each two tuples."""

    outputs = ["id long"]
    auto_anchor = False
    auto_ack = False
    first = None

    def process(self, tup):
        if self.first is None:
            self.first = tup
            return
        self.emit([tup.values.id], anchors=[self.first, tup])
        self.ack(self.first)
        self.ack(tup)
        self.first = None


class Paired(Topology):
    rows = Input.spec(["id long"])
    pairs = Pairs.spec(inputs=[rows])


@schedulers
def test_rows_of_each_attempt_and_order_repeat_their_own_columns(scheduler):
    options = {"topology.scheduler": scheduler, "output.batch.rows": 300}
    for topology, times in ((Thrices, 3), (topologies.Retried, 1), (Shuffles, 1)):
        found = rows_of(function_of(topology, WIDE, "*", **options)(wide_batches(8)))
        assert sorted(found, key=str) == sorted(expected(range(4_000)) * times, key=str), topology


def test_the_columns_that_are_named_come_first_in_their_order_and_types():
    function = function_of(topologies.Doubles, WIDE, ["TEXT"])
    batches = list(function(wide_batches(2)))
    assert {batch.schema for batch in batches} == {
        pa.schema([("text", pa.large_string()), ("id", pa.int64()), ("twice", pa.int64())])
    }


def test_a_dead_letter_repeats_the_columns_of_its_row():
    function = function_of(topologies.DeadLetters, WIDE, "*", streams="all")
    found = [row for batch in function(wide_batches(1, 10)) for row in batch.to_pylist()]
    assert [row["text"] for row in found if row["_stream"] == "__dead_letter"] == ["t3"]


@schedulers
def test_what_no_row_can_name_any_more_is_let_go(scheduler, monkeypatch):
    waiting = []
    took = kept_columns.KeptColumns.took

    def counted(self, batch):
        waiting.append(len(self._waiting))
        return took(self, batch)

    monkeypatch.setattr(kept_columns.KeptColumns, "took", counted)
    options = {"topology.scheduler": scheduler, "output.batch.rows": 100, "topology.max.spout.pending": 200}
    function = function_of(topologies.Doubles, WIDE, "*", **options)
    assert len(rows_of(function(wide_batches(200, 100)))) == 20_000
    assert max(waiting) < 20


@pytest.mark.parametrize("topology", [Paired, topologies.Counted])
def test_a_row_of_several_input_rows_or_of_none_is_refused(topology):
    name = "pairs" if topology is Paired else "last"
    with pytest.raises(ValueError, match=rf"a row of {name}\.default is anchored to several, or to none"):
        rows_of(function_of(topology, WIDE, "*")(wide_batches(1)))


class Keyed(Bolt):
    outputs = ["id long", "key string"]

    def process(self, tup):
        self.emit([tup.values.id, self.idempotency_key(tup)])


class Keys(Topology):
    rows = Input.spec(["id long"])
    keyed = Keyed.spec(inputs=[rows])


@schedulers
@pytest.mark.parametrize("keep", ["*", ()])
def test_a_key_has_the_values_of_the_columns_that_the_user_names(scheduler, keep):
    options = {"topology.scheduler": scheduler, "topology.max.spout.pending": 50, "output.batch.rows": 100}
    for topology in (Keys, FlakyKeys):
        found = rows_of(function_of(topology, WIDE, keep, ["tags", "id"], **options)(wide_batches(4)))
        assert sorted(row[-2:] for row in found) == [(i, f'[["{i}"], {i}]') for i in range(2_000)]


class FlakyKeyed(topologies.Flaky):
    outputs = ["id long", "key string"]

    def process(self, tup):
        self.emit([tup.values.id, self.idempotency_key(tup)])
        if tup.values.id % 7 == 0 and tup.values.id not in self.failed:
            self.failed.add(tup.values.id)
            raise ValueError("once")


class FlakyKeys(Topology):
    rows = Input.spec(["id long"])
    keyed = FlakyKeyed.spec(inputs=[rows])


def test_a_key_without_columns_counts_the_rows_of_the_partition():
    found = rows_of(function_of(Keys)(wide_batches(2, 3)))
    assert [key.split("/")[-3:] for _, key in found] == [["rows", "0", str(i)] for i in range(6)]
    assert len({key.rsplit("/", 3)[0] for _, key in found}) == 1


@pytest.mark.parametrize(
    ("keep", "error", "says"),
    [
        ("text", ArgumentTypeError, "keep is '\\*', or a list of names. Given: 'text'"),
        ([1], ArgumentTypeError, "keep is '\\*', or a list of names"),
        (["other"], SchemaError, "keep names column 'other', and the DataFrame has no such column"),
        (["text", "ID"], SchemaError, "'id', and the topology's rows have a field of that name"),
        (["twin"], SchemaError, "'twin', and the DataFrame has it more than once"),
    ],
)
def test_a_wrong_keep_is_refused(keep, error, says):
    with pytest.raises(error, match=says):
        function_of(topologies.Doubles, "id: long, text: string, twin: int, twin: int", keep)


def test_keep_needs_trees():
    with pytest.raises(OptionError, match=r"keep and key follow tuple trees.*topology\.acker\.executors=0"):
        function_of(topologies.Doubles, WIDE, "*", **{"topology.acker.executors": 0})
