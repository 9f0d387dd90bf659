"""What a bolt reads again of the values that it puts into a state: exactly what it was, of the declared type."""

import copy
import datetime
import enum
import re
import traceback
from decimal import Decimal
from random import Random

import numpy
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cython_core.arrow.row_error import RowError
from cython_core.arrow.value_converter import Misfit, converter
from pystorm_source import Grouping, Input, StatefulBolt, Topology
from pystorm_source.api.key_state import StateShape
from pystorm_source.api.keyed_states import KeyedStates
from pystorm_source.api.state_values import values_of
from pystorm_source.errors import SchemaError, TupleFailed
from pystorm_source.testing import run_topology
from pystorm_source.types.arrow import field_type
from tests.sizes import sized
from tests.stages.random_states import ODD, TYPES, exact_value, same

UTC = datetime.UTC


class Color(enum.Enum):
    RED = 3


SET = [
    ("double", 7, 7.0),
    ("double", True, 1.0),
    ("double", Decimal("0.5"), 0.5),
    ("float", 0.1, 0.10000000149011612),
    ("long", 7.0, 7),
    ("long", True, 1),
    ("long", numpy.int64(5), 5),
    ("int", Color.RED, 3),
    ("string", 5, "5"),
    ("string", "€", "€"),
    ("binary", bytearray(b"a"), b"a"),
    ("decimal(10,2)", 7, Decimal("7.00")),
    ("decimal(10,2)", Decimal("1.005"), Decimal("1.00")),
    ("decimal(10,2)", Decimal("-0.00"), Decimal("0.00")),
    ("date", datetime.datetime(2024, 1, 2), datetime.date(2024, 1, 2)),
    ("timestamp", datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2))), None),
    ("array<double>", [1, 2], [1.0, 2.0]),
    ("array<double>", (1, None), [1.0, None]),
    ("array<array<int>>", [[1.0], None], [[1], None]),
    ("map<string, double>", {1: 2}, {"1": 2.0}),
    ("struct<x: long, y: double>", {"y": 2}, {"x": None, "y": 2.0}),
    ("struct<x: long, y: double>", (1, 2), {"x": 1, "y": 2.0}),
    ("array<struct<x: double>>", [{"x": 1}], [{"x": 1.0}]),
]

MISFITS = [
    ("long", "5", "it takes whole numbers"),
    ("long", 2**63, "it takes whole numbers from"),
    ("int", 2**40, "from -2147483648 to 2147483647"),
    ("short", 70000, "from -32768 to 32767"),
    ("tinyint", 128, "from -128 to 127"),
    ("long", 1.5, "it takes whole numbers"),
    ("boolean", 1, "it takes True and False"),
    ("double", "7", "it takes numbers"),
    ("double", 2**53 + 1, "holds exactly"),
    ("float", 1e300, "largest 32-bit float"),
    ("string", "\ud800", "lone surrogate"),
    ("binary", "a", "encode text first"),
    ("decimal(5,2)", Decimal(1000), "3 digits before the point"),
    ("decimal(5,2)", 0.5, "emit Decimal"),
    ("date", "2024-01-01", "it takes datetime.date"),
    ("date", datetime.date(1582, 10, 10), "are other days in Spark's state store"),
    ("date", 10**7, "from the year 1 to the year 9999"),
    ("timestamp", datetime.datetime(1582, 10, 10, tzinfo=UTC), "are other days"),
    ("timestamp", datetime.datetime(1, 1, 1, tzinfo=UTC), "it takes times from 0001-01-04"),
    ("timestamp_ntz", datetime.datetime(2024, 1, 1, tzinfo=UTC), "without a time zone"),
    ("array<long>", [1, "2"], r"'it\[1\]'"),
    ("array<long>", "12", "it takes lists"),
    ("map<string, int>", {"a": 2**31}, r"'it\['a'\]'"),
    ("decimal(5, 2)", Decimal("NaN"), "it has no NaN"),
    ("array<decimal(5, 2)>", [Decimal("NaN")], r"'it\[0\]'.*it has no NaN"),
    ("map<string, int>", {1: 1, "1": 2}, "two of its keys are one string"),
    ("struct<x: long, yy: double>", {"x": 1, "y": 2.0}, "it has the fields x, yy, and no 'y'"),
    ("struct<x: long not null>", {}, r"'it\.x'.*may not be null"),
    ("array<struct<x: struct<b: binary>>>", [{"x": {"b": 1}}], r"'it\[0\]\.x\.b'"),
]


class Nothing:
    """A store without states."""

    def get(self, key):
        return None


class Given:
    """A tuple of the key 1."""

    component, stream, id = "rows", "default", "1"

    def __init__(self, n):
        self.values = type("Values", (tuple,), {"n": n})((1, n))


def state_shape_of(bolt):
    names, types = zip(*((f.split()[0], field_type(f.split(" ", 1)[1], "it")) for f in bolt.state_fields), strict=True)
    return StateShape(bolt.__name__.lower(), names, types, ("key",), (pa.int64(),), {("rows", "default"): (0,)}, None)


def runs(ddl, process, numbers=(1,), letters="fail", **attributes):
    """A topology whose bolt has the one field ``it``, of this type, and gets these numbers under the key 1."""
    cls = type(
        "Keep", (StatefulBolt,), {"process": process, "state_fields": [f"it {ddl}"], "outputs": [], **attributes}
    )

    class Kept(Topology):
        config = {"topology.max.spout.retries": 3, "topology.dead.letter": letters}
        rows = Input.spec(["key long", "n long"])
        keep = cls.spec(inputs={rows: Grouping.fields("key")})

    return run_topology(Kept, rows=[[1, n] for n in numbers], scope="cluster")


@pytest.mark.parametrize(("ddl", "value", "read"), SET)
def test_a_value_has_its_declared_type_as_soon_as_it_is_set(ddl, value, read):
    read = value.astimezone(UTC) if read is None else read
    seen = []

    def process(self, tup):
        self.state.it = value
        seen.append(self.state.it)

    result = runs(ddl, process)
    assert same(seen[0], read), seen
    assert same(result.states["keep"][1,]["it"], read)


@pytest.mark.parametrize(("ddl", "value", "said"), MISFITS)
def test_a_value_that_does_not_fit_is_an_error_where_it_is_set(ddl, value, said):
    def process(self, tup):
        self.state.it = value

    with pytest.raises(TupleFailed, match=said) as raised:
        runs(ddl, process)
    assert re.search(r"field 'it.* of the state of 'keep', key 1, can not hold .*Given: ", str(raised.value))
    assert "self.state.it = value" in "".join(traceback.format_exception(raised.value)), "the line of the user"


CHANGES = [
    ("array<double>", [1.0], lambda it: it.append(7), [1.0, 7.0]),
    ("array<array<double>>", [[1.0]], lambda it: it[0].append(7), [[1.0, 7.0]]),
    ("map<string, double>", {}, lambda it: it.update({5: 7}), {"5": 7.0}),
    ("struct<x: double>", {"x": 1.0}, lambda it: it.update(x=7), {"x": 7.0}),
    ("array<double>", [1.0], lambda it: it.append("7"), r"'it\[1\]' \(double\).*it takes numbers"),
    ("struct<x: double>", {"x": 1.0}, lambda it: it.update(xx=7), "and no 'xx'"),
    ("map<string, int>", {}, lambda it: it.update(a=2**40), r"'it\['a'\]' \(int32\)"),
]


@pytest.mark.parametrize(("ddl", "before", "change", "after"), CHANGES)
def test_what_changes_in_place_is_checked_when_the_tuple_is_processed(ddl, before, change, after):
    seen = []

    def process(self, tup):
        if tup.values.n == 1:
            self.state.it = before
            change(self.state.it)
        else:
            seen.append(self.state.it)

    if isinstance(after, str):
        with pytest.raises(TupleFailed, match=f"(?s)of the state of 'keep', key 1, can not hold.*{after}|{after}"):
            runs(ddl, process, [1, 2])
        return
    result = runs(ddl, process, [1, 2])
    assert same(seen, [after])
    assert same(result.states["keep"][1,]["it"], after)


def test_a_tuple_whose_change_does_not_fit_fails_and_leaves_no_trace():
    def process(self, tup):
        self.state.it = self.state.it or []
        self.state.it.append(tup.values.n)
        if tup.values.n == 2:
            self.state.it.append("wrong")

    result = runs("array<long>", process, [1, 2, 3], letters="drop", exit_on_exception=False)
    assert result.states["keep"][1,]["it"] == [1, 3]
    assert sum(result.dropped.values()) == 1


def test_a_list_that_the_bolt_keeps_is_still_the_state():
    """``seen = self.state.it = []`` and then ``seen.append``: it is one list, with values that fit or not yet."""

    def process(self, tup):
        seen = self.state.it = self.state.it or [0]
        seen.append(tup.values.n)

    assert same(runs("array<double>", process, [1, 2]).states["keep"][1,]["it"], [0.0, 1.0, 2.0])


def test_a_list_that_is_changed_between_tuples_is_checked_before_it_is_stored():
    def process(self, tup):
        if tup.values.n == 1:
            self.kept = self.state.it = [1]

    def process_tick(self, tup):
        self.kept.append("wrong")

    bolt = type("Late", (StatefulBolt,), {"process": process, "state_fields": ["it array<long>"], "outputs": []})
    states = KeyedStates(state_shape_of(bolt), Nothing(), 0)
    instance = bolt()
    instance._pystorm_states = states
    instance.process(Given(1))
    process_tick(instance, None)
    with pytest.raises(RowError, match=r"'it\[1\]' \(int64\) of the state of 'late', key 1, .*Given: 'wrong'"):
        states.flush()


@given(number=st.integers(min_value=0), name=st.sampled_from(sorted(TYPES)))
@settings(max_examples=sized(600))
def test_exact_values_are_read_as_they_are(number, name):
    value = exact_value(Random(number), TYPES[name])
    if value is not None:
        assert same(values_of(TYPES[name]).of(copy.deepcopy(value)), value)
        assert same(values_of(TYPES[name]).read(converter(TYPES[name])(value)), value)


@pytest.mark.parametrize(
    ("given", "read"), [("-9.00E-10", "-9E-10"), ("-9E-10", "-9E-10"), ("7", "7.0000000000"), ("-0E-12", "0E-10")]
)
def test_a_decimal_of_the_store_has_the_scale_of_its_type(given, read):
    """Spark's is close to zero with two digits more."""
    assert same(values_of(field_type("decimal(38,10)", "it")).read(Decimal(given)), Decimal(read))


@given(value=st.sampled_from(ODD), name=st.sampled_from(sorted(TYPES)))
@settings(max_examples=sized(1000))
def test_a_value_is_an_error_or_what_a_column_of_its_type_has(value, name):
    kind = TYPES[name]
    try:
        column = pa.array([converter(kind)(value)], kind)
    except Misfit:
        column = None
    try:
        found = None if value is None else values_of(kind).of(copy.deepcopy(value))
    except Misfit:
        return  # in a column, the one or the other is null without an error
    assert column is not None
    kept = column.to_pylist()[0]
    assert same(found, None if kept is None else values_of(kind).read(kept))
    assert found is None or same(values_of(kind).of(copy.deepcopy(found)), found)


@pytest.mark.parametrize(
    "ddl",
    ["interval day to second", "time", "map<int, string>", "array<struct<x: map<date, long>>>", "map<string, time>"],
)
def test_types_that_sparks_state_store_does_not_take_are_refused_before_anything_runs(ddl):
    with pytest.raises(SchemaError, match="Spark's state store has no values of the type of field 'it' of the state"):
        runs(ddl, lambda self, tup: None)


def test_so_are_keys_of_such_types():
    class Keep(StatefulBolt):
        outputs = []
        state_fields = ["n long"]

        def process(self, tup):
            raise AssertionError

    class Kept(Topology):
        rows = Input.spec(["key interval day to second"])
        keep = Keep.spec(inputs={rows: Grouping.fields("key")})

    with pytest.raises(SchemaError, match="of the type of the key of bolt 'keep': keep a long of microseconds"):
        run_topology(Kept, rows=[[datetime.timedelta(1)]], scope="cluster")


def test_a_key_with_a_timer_is_none_that_spark_gives_back_as_another():
    class Late(StatefulBolt):
        outputs = []
        state_fields = ["n long"]

        def process(self, tup):
            self.state.n = 1
            self.set_timer(5)

        def process_timer(self, key):
            self.state.clear()

    class Days(Topology):
        rows = Input.spec(["day date"])
        late = Late.spec(inputs={rows: Grouping.fields("day")})

    assert (
        run_topology(Days, rows=[[datetime.date(1582, 10, 15)]], scope="cluster", timers_after=9).states["late"] == {}
    )
    with pytest.raises(TupleFailed, match="field 'day' .*are other days in Spark's state store"):
        run_topology(Days, rows=[[datetime.date(1582, 10, 14)]], scope="cluster")


def test_process_may_come_from_a_mixin_or_a_base():
    class Mixin:
        def process(self, tup):
            self.state.n = (self.state.n or 0) + 1

    class Base(StatefulBolt):
        outputs = []
        state_fields = ["n long"]

        def process(self, tup):
            super().process(tup)
            self.state.n += 10

    class First(Mixin, StatefulBolt):
        outputs = []
        state_fields = ["n long"]

    class Second(First):
        pass

    class Third(Base, First):
        pass

    for cls, step in ((First, 1), (Second, 1), (Third, 11)):

        class Counted(Topology):
            rows = Input.spec(["key long"])
            keep = cls.spec(inputs={rows: Grouping.fields("key")})

        states = run_topology(Counted, rows=[[1], [1], [2]], scope="cluster").states["keep"]
        assert states == {(1,): {"n": 2 * step}, (2,): {"n": step}}
