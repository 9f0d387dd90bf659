"""CombinerBolt: the sums of what it emits are those of the rows, each row once, however rows are cut and fail."""

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source import ArrowBolt, Bolt, GlobalStreamId, Grouping, PartitionedSpout, Topology
from pystorm_source.bolts import CombinerBolt
from pystorm_source.clock import ManualClock
from pystorm_source.errors import ArgumentError, ArgumentTypeError, SchemaError, TopologyError, TupleFailed
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology
from tests.sizes import sized
from tests.worker.running import topology, worker_of

KEYS = ["a", "b", "", "ü", None]
OUT = pa.schema([("key", pa.string()), ("n", pa.int64()), ("values", pa.int64()), ("total", pa.int64()),
                 ("least", pa.int64()), ("most", pa.int64())])  # fmt: skip
AGGREGATES = {
    "n": "count",
    "values": ("value", "count"),
    "total": ("value", "sum"),
    "least": ("value", "min"),
    "most": ("value", "max"),
}


class Cut(PartitionedSpout):
    """Rows (key, value), in batches that end after the rows of ``cuts``."""

    outputs = ["key string", "value long"]
    rows, cuts = (), ()

    def partitions(self):
        return ["p"]

    def latest(self, partition):
        return len(self.rows)

    def open(self, partition, start, end):
        self.at, self.end = start, end

    def next_batch(self):
        if self.at == self.end:
            return None
        stop = min([cut for cut in self.cuts if cut > self.at] + [self.end])
        keys, values = zip(*self.rows[self.at : stop], strict=True)
        self.at = stop
        return pa.record_batch([pa.array(keys, pa.string()), pa.array(values, pa.int64())], names=["key", "value"])


class OneByOne(Cut):
    next_batch = PartitionedSpout.next_batch

    def next_tuple(self):
        if self.at == self.end:
            return False
        self.emit(self.rows[self.at], self.at)
        self.at += 1


def aggregated(rows):
    """In plain Python."""
    found = {}
    for key in {key for key, _ in rows}:
        values = [value for other, value in rows if other == key and value is not None]
        ends = (sum(values), min(values), max(values)) if values else (None, None, None)
        found[key] = (sum(other == key for other, _ in rows), len(values), *ends)
    return found


def merged(partials):
    """Partial aggregates to one for each key, as Spark's groupBy makes them."""
    found = {}
    for key, *partial in partials:
        found.setdefault(key, []).append(partial)
    calls = (sum, sum, sum, min, max)
    return {
        key: tuple(
            call([value for value in values if value is not None]) if any(v is not None for v in values) else None
            for call, values in zip(calls, zip(*partials, strict=True), strict=True)
        )
        for key, partials in found.items()
    }


class FailsOnce(ArrowBolt):
    """Fails some rows of the stream when they come first; emits nothing."""

    outputs = ["key string"]
    every = 3

    def initialize(self, conf, context):
        self.seen = Counter()

    def process_batch(self, batch):
        mask = []
        for value in batch["value"].to_pylist():
            self.seen[value] += 1
            mask.append(value is not None and value % self.every == 0 and self.seen[value] == 1)
        if any(mask):
            self.fail(batch, rows=mask)


class RaisesOnce(FailsOnce):
    """Raises for the first batches, behind the combiner."""

    exit_on_exception = False
    outputs = [f"{field.name} {'string' if field.name == 'key' else 'long'}" for field in OUT]

    def process_batch(self, batch):
        self.seen["calls"] += 1
        if self.seen["calls"] <= 2:
            raise ValueError("not yet")
        self.emit_batch(batch)


ROWS = st.lists(st.tuples(st.sampled_from(KEYS), st.none() | st.integers(-5, 5)), min_size=1, max_size=40)
OPTIONS = st.fixed_dictionaries(
    {
        "topology.scheduler": st.sampled_from(["inline", "threads"]),
        "topology.executor.receive.buffer.size": st.sampled_from([2, 1024]),
        "topology.max.spout.pending": st.sampled_from([None, 1, 3]),
        "topology.acker.executors": st.sampled_from([0, 1]),
    }
)


def spouts_of(rows, cuts, form):
    return type("Cut", (form,), {"rows": tuple(rows), "cuts": tuple(cuts)}).spec()


def output_of(made, component, options, total):
    options = {key: value for key, value in options.items() if value is not None}
    worker = worker_of(made, component, columns=range(len(OUT)), schema=OUT, overrides=options)
    try:
        batches = list(worker.run("s", "p", 0, total))
    finally:
        worker.stop()
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()], worker


@given(
    ROWS, st.sets(st.integers(1, 40)), st.sampled_from([Cut, OneByOne]), st.integers(1, 3),
    st.sampled_from([Grouping.SHUFFLE, Grouping.fields("key"), Grouping.partial_key("key")]),
    st.integers(1, 50), st.sampled_from([1, 1 << 20]), OPTIONS,
)  # fmt: skip
@settings(max_examples=sized(60), deadline=None)
def test_the_sums_are_those_of_the_rows(rows, cuts, form, tasks, grouping, most_rows, most_bytes, options):
    source = spouts_of(rows, cuts, form)
    counts = CombinerBolt.spec(inputs={source: grouping}, by=["key"], aggregates=AGGREGATES, par=tasks,
                               max_rows=most_rows, max_bytes=most_bytes)  # fmt: skip
    found, worker = output_of(topology(s=source, counts=counts), "counts", options, len(rows))
    assert merged(found) == aggregated(rows)
    report = worker.report()["components"]
    assert (report["counts"]["acked"], report["counts"]["failed"]) == (len(rows), 0)
    assert report["s"]["unsettled"] == 0


@given(
    ROWS, st.sets(st.integers(1, 40)), st.sampled_from([Cut, OneByOne]), st.integers(1, 2), st.integers(1, 50),
    st.sampled_from(["inline", "threads"]), st.booleans(),
)  # fmt: skip
@settings(max_examples=sized(60), deadline=None)
def test_rows_that_fail_and_come_again_are_counted_once(rows, cuts, form, tasks, most_rows, scheduler, behind):
    """They fail in a bolt beside the combiner, and what it emits in one behind it."""
    source = spouts_of(rows, cuts, form)
    counts = CombinerBolt.spec(inputs=[source], by=["key"], aggregates=AGGREGATES, par=tasks, max_rows=most_rows)
    parts = {"s": source, "counts": counts, "beside": FailsOnce.spec(inputs=[source])}
    if behind:
        parts["behind"] = RaisesOnce.spec(inputs=[counts])
    options = {"topology.scheduler": scheduler, "topology.max.spout.retries": 10}
    found, worker = output_of(topology(**parts), "behind" if behind else "counts", options, len(rows))
    assert merged(found) == aggregated(rows)
    assert worker.report()["components"]["s"]["unsettled"] == 0


class PoisonedKey(Bolt):
    """Fails every row of one key, always."""

    outputs = RaisesOnce.outputs

    def process(self, tup):
        if tup.values.key == "a":
            self.fail(tup)
        else:
            self.emit(tup.values)


@pytest.mark.parametrize("scheduler", ["inline", "threads"])
@pytest.mark.parametrize("form", [Cut, OneByOne])
def test_a_key_that_always_fails_takes_no_other_along(form, scheduler):
    rows = [("abc"[i % 3], i) for i in range(30)]
    source = spouts_of(rows, [7, 13], form)
    counts = CombinerBolt.spec(inputs=[source], by=["key"], aggregates=AGGREGATES)
    made = topology(s=source, counts=counts, poisoned=PoisonedKey.spec(inputs=[counts]))
    options = {"topology.scheduler": scheduler, "topology.max.spout.retries": 1, "topology.dead.letter": "drop"}
    found, worker = output_of(made, "poisoned", options, len(rows))
    assert merged(found) == aggregated([row for row in rows if row[0] != "a"])
    assert worker.report()["components"]["s"]["dead_letters"] == 10


@pytest.mark.parametrize(("ticks", "partials"), [(None, [6]), (60, [2, 2, 2])])
def test_what_is_held_does_not_time_out_and_ticks_of_time_combine_it(ticks, partials):
    """The clock goes on by an hour before each batch."""
    clock = ManualClock()

    class Slow(Cut):
        rows, cuts = (("a", 1),) * 6, (2, 4)

        def next_batch(self):
            clock.advance(3600)
            return super().next_batch()

    source = Slow.spec()
    config = {} if ticks is None else {"topology.tick.tuple.freq.secs": ticks}
    counts = CombinerBolt.spec(inputs=[source], by=["key"], aggregates=AGGREGATES, config=config)
    worker = worker_of(topology(s=source, counts=counts), "counts", columns=range(6), schema=OUT, clock=clock)
    found = [row["n"] for batch in worker.run("s", "p", 0, 6) for row in batch.to_pylist()]
    worker.stop()
    assert found == partials
    assert worker.report()["components"]["s"]["retries"] == 0


def test_a_range_without_rows_emits_nothing_and_the_next_one_begins_anew():
    source = spouts_of([("a", 1), ("a", 2), ("b", 3)], [], Cut)
    counts = CombinerBolt.spec(inputs=[source], by=["key"], aggregates={"total": ("value", "sum")})
    schema = pa.schema([("key", pa.string()), ("total", pa.int64())])
    worker = worker_of(topology(s=source, counts=counts), "counts", columns=range(2), schema=schema)
    ranges = [(0, 0), (0, 2), (2, 2), (2, 3)]
    found = [[tuple(row.values()) for batch in worker.run("s", "p", *each) for row in batch.to_pylist()]
             for each in ranges]  # fmt: skip
    worker.stop()
    assert found == [[], [("a", 3)], [], [("b", 3)]]


def test_two_in_a_row_combine_again():
    source = spouts_of([("ab"[i % 2], i) for i in range(20)], [5, 10], Cut)
    first = CombinerBolt.spec(inputs=[source], by=["key"], aggregates={"n": "count"}, par=2, max_rows=3)
    second = CombinerBolt.spec(inputs=[first], by=["key"], aggregates={"n": ("n", "sum")})
    made = topology(s=source, first=first, second=second)
    assert sorted(run_topology(made).rows("second")) == [("a", 10), ("b", 10)]


def test_without_a_key_there_is_one_row():
    made = CombinerBolt.spec(inputs=[source := spouts_of([("a", 1), ("b", 2)], [], Cut)])
    assert run_topology(topology(s=source, counts=made)).rows("counts") == [(2,)]


# --- types ---


def combined(arrays, by, aggregates, types):
    """The rows that a combiner makes of columns "a", "b", … of these types."""
    names = [chr(97 + i) for i in range(len(arrays))]

    class Columns(Cut):
        outputs = [f"{name} {type}" for name, type in zip(names, types, strict=True)]
        rows = tuple(zip(*arrays, strict=True))

        def next_batch(self):
            if self.at == self.end:
                return None
            self.at = self.end
            return pa.record_batch(arrays, names=names)

    class Made(Topology):
        s = Columns.spec()
        counts = CombinerBolt.spec(inputs=[s], by=by, aggregates=aggregates)

    fields = Made.counts.streams[0]
    return run_topology(Made).rows("counts"), fields.types[len(by) :]


def test_keys_of_each_simple_type():
    for type, values in {
        "boolean": [True, False, True, None],
        "tinyint": [1, 2, 1, None],
        "double": [1.5, float("inf"), 1.5, None],
        "decimal(10,2)": [Decimal("1.50"), Decimal("2.00"), Decimal("1.50"), None],
        "date": [date(2024, 2, 29), date(1, 1, 1), date(2024, 2, 29), None],
        "timestamp": [datetime(2024, 1, 1, tzinfo=UTC)] * 2 + [None, None],
        "timestamp_ntz": [datetime(2024, 1, 1), None, datetime(2024, 1, 1), datetime(1, 1, 1)],
        "binary": [b"a", b"", b"a", None],
    }.items():
        array = pa.array(values).cast(pa.int8()) if type == "tinyint" else pa.array(values)
        found, _ = combined([array], ["a"], {"n": "count", "first": ("a", "min")}, [type])
        assert Counter({key: n for key, n, _ in found}) == Counter(array.to_pylist()), type
        assert all(key == first for key, _, first in found), type


def test_sums_have_sparks_types():
    for type, array, sum_type, total in [
        ("tinyint", pa.array([127, 127], pa.int8()), "bigint", 254),
        ("int", pa.array([2**31 - 1] * 2, pa.int32()), "bigint", 2**32 - 2),
        ("float", pa.array([0.5, 0.25], pa.float32()), "double", 0.75),
        ("decimal(5,2)", pa.array([Decimal("999.99")] * 2), "decimal(15,2)", Decimal("1999.98")),
        ("decimal(38,0)", pa.array([Decimal("9" * 37)] * 10, pa.decimal128(38, 0)), "decimal(38,0)",
         10 * int("9" * 37)),
    ]:  # fmt: skip
        rows, types = combined([array], [], {"t": ("a", "sum")}, [type])
        assert (rows, types) == ([(total,)], (sum_type,))


@pytest.mark.parametrize(
    ("type", "array"),
    [
        ("long", pa.array([2**62, 2**62])),
        ("decimal(38,0)", pa.array([10**38 - 1] * 2, pa.decimal128(38, 0))),
    ],
)
def test_a_sum_beyond_its_type_is_an_error_and_no_other_number(type, array):
    with pytest.raises(TupleFailed, match="sum 't' is beyond") as caught:
        combined([array], [], {"t": ("a", "sum")}, [type])
    assert caught.value.__cause__.code == "PYSTORM_VALUE_DOES_NOT_FIT"


def test_large_longs_whose_sum_is_one():
    rows, _ = combined([pa.array([2**62, 2**62, -(2**62)])], [], {"t": ("a", "sum")}, ["long"])
    assert rows == [(2**62,)]


def test_nan_is_the_greatest_number_as_in_spark():
    arrays = [pa.array(["x", "x", "y"]), pa.array([1.0, float("nan"), 2.0])]
    rows, _ = combined(arrays, ["a"], {"least": ("b", "min"), "most": ("b", "max")}, ["string", "double"])
    assert rows[0][:2] == ("x", 1.0)
    assert rows[0][2] != rows[0][2]
    assert rows[1] == ("y", 2.0, 2.0)


def test_names_that_pyarrow_would_mix_up():
    arrays = [pa.array(["x", "x"]), pa.array([1, 2])]

    class S(Cut):
        outputs = ["v_sum string", "v long"]

        def latest(self, partition):
            return 2

        def next_batch(self):
            if self.at == self.end:
                return None
            self.at = self.end
            return pa.record_batch(arrays, names=["v_sum", "v"])

    class Made(Topology):
        s = S.spec()
        counts = CombinerBolt.spec(inputs=[s], by=["v_sum"], aggregates={"v": ("v", "sum"), "again": ("v", "sum")})

    assert run_topology(Made).rows("counts") == [("x", 3, 3)]


# --- declarations ---

SALES = MemorySpout.spec(
    name="sales", fields=["shop string", "tags array<string>", "price double", "sold int not null"]
)


def test_the_outputs_follow_from_the_inputs():
    made = CombinerBolt.spec(
        inputs=[SALES], by=["shop"], aggregates={"n": "count", "sold": ("sold", "sum"), "top": ("sold", "max")}
    )
    assert made.streams[0].fields == ("shop", "n", "sold", "top")
    assert made.streams[0].types == ("string", "bigint", "bigint", "int not null")


def test_a_subclass_may_give_all_of_it_and_names_of_its_own():
    class Sold(CombinerBolt):
        outputs = ["place string", "pieces long"]
        by = ("key",)
        aggregates = {"value": ("value", "sum")}

    source = spouts_of([("a", 1), ("a", 2)], [], Cut)
    assert run_topology(topology(s=source, sold=Sold.spec(inputs=[source]))).rows("sold") == [("a", 3)]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"by": ["shp"]}, SchemaError, r"'CombinerBolt' needs a column that its input 'sales.default' does not "
         r"have.*did you mean 'shop'\? Given: 'shp'"),
        ({"by": ["tags"]}, SchemaError, r"does not aggregate the columns tags list.* by \['tags'\]"),
        ({"by": ["shop"], "aggregates": {"t": ("shop", "sum")}}, SchemaError, "'shop' is string, which has no sum"),
        ({"by": ["shop"], "aggregates": {"t": ("price", "mean")}}, ArgumentError, "of an average take sum and count"),
        ({"by": ["shop"], "aggregates": {"t": ("price", "smu")}}, ArgumentError, "did you mean 'sum'"),
        ({"by": ["shop"], "aggregates": {"t": "price"}}, ArgumentError, r"has for 't' \('column', 'function'\)"),
        ({"by": ["shop"], "aggregates": [("n", "count")]}, ArgumentError, "is a dict from names"),
        ({"by": "shop"}, ArgumentTypeError, r"is a list of columns, such as \['shop'\]. Given: 'shop'"),
        ({"by": ["shop"], "max_rows": 0}, ArgumentError, "`max_rows` of a CombinerBolt is an int of at least 1"),
        ({"by": ["shop"], "aggregates": {"shop": "count"}}, TopologyError, "repeated: shop"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_where_it_is_declared(given, error, message):
    with pytest.raises(error, match=message):
        CombinerBolt.spec(inputs=[SALES], **given)


def test_inputs_without_types_and_of_several_kinds_are_refused():
    untyped = MemorySpout.spec(name="untyped", fields=["shop", "n"])
    with pytest.raises(SchemaError, match="declares none of 'shop': declare one, such as 'shop string'"):
        CombinerBolt.spec(inputs=[untyped], by=["shop"])
    other = MemorySpout.spec(name="other", fields=["shop long"])
    with pytest.raises(SchemaError, match="'other.default' has others than 'sales.default'"):
        CombinerBolt.spec(inputs=[SALES, other], by=["shop"])
    with pytest.raises(TopologyError, match="one is given by its name"):
        CombinerBolt.spec(inputs=[GlobalStreamId("sales")], by=["shop"])


def test_an_input_that_a_subclass_of_the_topology_replaces_is_checked_again():
    class Sales(Topology):
        sales = MemorySpout.spec(fields=["shop string"], rows=[["a"]])
        counts = CombinerBolt.spec(inputs=[sales], by=["shop"])

    class Numbered(Sales):
        sales = MemorySpout.spec(fields=["shop long"], rows=[[1]])

    assert run_topology(Sales).rows("counts") == [("a", 1)]
    with pytest.raises(SchemaError, match="field 'shop' of 'counts' is declared as string, and the bolt emits long"):
        run_topology(Numbered)


# --- a combiner of one's own ---


class Held(ArrowBolt):
    """Keeps batches until the tick, and anchors to them."""

    outputs = ["total long"]
    auto_ack = False

    def initialize(self, conf, context):
        self.batches = []

    def process_batch(self, batch):
        self.batches.append(batch)

    def process_tick(self, tup):
        if self.batches:
            total = sum(pc.sum(batch["value"]).as_py() for batch in self.batches)
            self.emit_batch(pa.record_batch([[total]], names=["total"]), anchors=self.batches)
            for batch in self.batches:
                self.ack(batch)
            self.batches = []


@pytest.mark.parametrize("form", [Cut, OneByOne])
def test_an_emit_may_be_anchored_to_batches_that_the_bolt_has_kept(form):
    class RaisesFirst(RaisesOnce):
        outputs = ["total long"]

    source = spouts_of([("a", i) for i in range(10)], [3, 6], form)
    held = Held.spec(inputs=[source])
    result = run_topology(topology(s=source, held=held, behind=RaisesFirst.spec(inputs=[held])))
    assert sum(total for (total,) in result.rows("behind")) == 45
    assert result.unsettled["s"] == 0
    assert result.retries["s"] > 0


def test_a_batch_that_has_its_verdict_is_no_anchor():
    class Late(Held):
        def process_batch(self, batch):
            self.ack(batch)
            self.emit_batch(pa.record_batch([[1]], names=["total"]), anchors=[batch])

    source = spouts_of([("a", 1)], [], Cut)
    result = run_topology(topology(s=source, late=Late.spec(inputs=[source])), errors="collect")
    assert "after ack/fail: emit first, then ack" in str(result.errors[-1].__cause__)
