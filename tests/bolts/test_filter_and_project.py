"""FilterBolt and ProjectBolt: Spark's filter and select, by expressions of pyarrow."""

import pickle

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pystorm_source import Bolt, Topology
from pystorm_source.bolts import CombinerBolt, FilterBolt, ProjectBolt
from pystorm_source.errors import ArgumentTypeError, SchemaError
from pystorm_source.plan import compile_plan
from pystorm_source.spark.interned import pickled
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology

SALES = MemorySpout.spec(
    name="sales",
    fields=["shop string", "price double", "sold int not null"],
    rows=[["a", 9.5, 1], ["b", 12.0, 3], [None, None, 2], ["a", 20.0, 0]],
)
SCHEDULERS = pytest.mark.parametrize("scheduler", ["inline", "threads"])


def rows_of(bolt, scheduler=None):
    made = type("Made", (Topology,), {"sales": SALES, "bolt": bolt})
    return run_topology(made, scheduler=scheduler).rows("bolt")


@SCHEDULERS
def test_a_filter_keeps_rows_and_columns(scheduler):
    bolt = FilterBolt.spec(inputs=[SALES], condition=(pc.field("price") > 10) | (pc.field("sold") == 1), par=2)
    assert bolt.streams == SALES.streams
    assert sorted(rows_of(bolt, scheduler)) == [("a", 9.5, 1), ("a", 20.0, 0), ("b", 12.0, 3)]


def test_a_null_is_not_true():
    assert len(rows_of(FilterBolt.spec(inputs=[SALES], condition=pc.field("price") > 0))) == 3
    assert rows_of(FilterBolt.spec(inputs=[SALES], condition=pc.field("price").is_null())) == [(None, None, 2)]
    assert rows_of(FilterBolt.spec(inputs=[SALES], condition=pc.field("price") > 1000)) == []


@SCHEDULERS
def test_a_projection_chooses_renames_and_computes(scheduler):
    columns = {
        "place": "shop",
        "total": pc.field("price") * pc.field("sold"),
        "many": pc.field("sold") > 1,
        "one": pc.scalar(1),
    }
    bolt = ProjectBolt.spec(inputs=[SALES], columns=columns)
    assert bolt.streams[0].fields == ("place", "total", "many", "one")
    assert bolt.streams[0].types == ("string", "double", "boolean", "bigint")
    found = rows_of(bolt, scheduler)
    assert sorted(found, key=str) == [("a", 0.0, False, 1), ("a", 9.5, False, 1), ("b", 36.0, True, 1),
                                      (None, None, True, 1)]  # fmt: skip


def test_a_projection_of_names_keeps_their_types():
    bolt = ProjectBolt.spec(inputs=[SALES], columns=["sold", "shop"])
    assert bolt.streams[0].types == ("int not null", "string")
    assert rows_of(bolt)[0] == (1, "a")


def test_large_batches_keep_their_order():
    rows = [[i] for i in range(100_000)]

    class Numbers(Topology):
        numbers = MemorySpout.spec(fields=["n long"], rows=rows)
        even = FilterBolt.spec(inputs=[numbers], condition=pc.equal(pc.bit_wise_and(pc.field("n"), 1), 0))
        twice = ProjectBolt.spec(inputs=[even], columns={"n": pc.field("n") * 2})

    assert run_topology(Numbers).rows("twice") == [(i * 2,) for i in range(0, 100_000, 2)]


def test_conditions_and_columns_of_a_class():
    class Dear(FilterBolt):
        condition = pc.field("price") > 10

    class Shops(ProjectBolt):
        outputs = ["place string"]
        columns = ("shop",)

    class Made(Topology):
        sales = SALES
        dear = Dear.spec(inputs=[sales])
        shops = Shops.spec(inputs=[dear])

    assert run_topology(Made).rows("shops") == [("b",), ("a",)]


class Line(Topology):
    sales = SALES
    dear = FilterBolt.spec(inputs=[sales], condition=pc.field("price") > 10)
    totals = ProjectBolt.spec(inputs=[dear], columns={"shop": "shop", "total": pc.field("price") * 2})
    counts = CombinerBolt.spec(inputs=[totals], by=["shop"], aggregates={"total": ("total", "sum")})


def test_expressions_travel_to_tasks():
    plan = pickle.loads(pickled(compile_plan(Line)))
    dear, totals = plan.component("dear").cls, plan.component("totals").cls
    assert dear.condition.equals(pc.field("price") > 10)
    assert issubclass(dear, FilterBolt)
    assert dict(totals.columns)["total"].equals(pc.field("price") * 2)
    assert sorted(run_topology(Line).rows("counts")) == [("a", 40.0), ("b", 24.0)]


def test_bolts_of_rows_come_before_and_behind():
    class Double(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            self.emit([tup.values.n * 2])

    class Rows(Topology):
        numbers = MemorySpout.spec(fields=["n long"], rows=[[i] for i in range(10)])
        twice = Double.spec(inputs=[numbers])
        some = FilterBolt.spec(inputs=[twice], condition=pc.field("n") > 10)
        again = Double.spec(inputs=[some])

    assert run_topology(Rows).rows("again") == [(24,), (28,), (32,), (36,)]


@pytest.mark.parametrize(
    ("condition", "error", "message"),
    [
        (pc.field("prise") > 1, SchemaError, r"the condition of FilterBolt cannot be computed of the columns shop "
         r"string, price double, sold int32 \(ArrowInvalid: No match for FieldRef.Name\(prise\).*Given: .*prise > 1"),
        (pc.field("price") > "x", SchemaError, "no kernel matching input types"),
        (pc.field("price") + 1, SchemaError, "must evaluate to bool"),
        ("price > 10", ArgumentTypeError, r"`condition` of a FilterBolt is an expression.* Given: 'price > 10'"),
        (None, ArgumentTypeError, "Given: None"),
    ],
)  # fmt: skip
def test_a_condition_that_cannot_be_is_refused_where_it_is_declared(condition, error, message):
    with pytest.raises(error, match=message):
        FilterBolt.spec(inputs=[SALES], condition=condition)


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        (["shop", "prise"], SchemaError, r"needs a column that its input 'sales.default' does not have.*'price'\?"),
        ({"shop": "shop", "x": pc.field("prise")}, SchemaError, "column 'x' of ProjectBolt cannot be computed"),
        ({"x": pc.utf8_length(pc.field("sold"))}, SchemaError, "no kernel matching input types"),
        ({"x": pc.field("sold").cast(pa.uint64())}, SchemaError, "'x' becomes uint64, which Spark has no type for"),
        ("shop", ArgumentTypeError, "are a list of names, or a dict"),
        ({}, ArgumentTypeError, "Given: {}"),
        ({"x": 1}, ArgumentTypeError, "Given: {'x': 1}"),
        (None, ArgumentTypeError, "Given: None"),
    ],
)
def test_columns_that_cannot_be_are_refused_where_they_are_declared(columns, error, message):
    with pytest.raises(error, match=message):
        ProjectBolt.spec(inputs=[SALES], columns=columns)


def test_declared_outputs_that_differ_are_refused():
    class Dear(FilterBolt):
        outputs = ["shop string", "price string", "sold int"]
        condition = pc.field("price") > 10

    with pytest.raises(SchemaError, match="field 'price' of 'Dear' is declared as string, and the bolt emits double"):
        Dear.spec(inputs=[SALES])

    class Shops(ProjectBolt):
        outputs = ["place string", "more string"]
        columns = ("shop",)

    with pytest.raises(SchemaError, match=r"`outputs` of 'Shops' has a field for each column.*\['shop string'\]"):
        Shops.spec(inputs=[SALES])
