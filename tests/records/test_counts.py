"""The table of counts: how counts add up, and that each has a reader."""

from typing import Annotated, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from pystorm_source.observe.metric_definitions import DEFINITIONS
from pystorm_source.records.counts import BY_STREAM, REPORTED, ROWS, SHOWN, Count, Counts, TaskCounts, rows_of
from pystorm_source.records.record import StreamCounts
from pystorm_source.types.json_values import utf8_json
from pystorm_source.worker import task_counts

numbers = st.integers(0, 2**53)
counts = st.builds(TaskCounts, **dict.fromkeys(ROWS, numbers))


@given(counts, counts)
def test_sums_add_up_and_marks_do_not(one, two):
    both = one + two
    assert both == two + one
    for name, row in ROWS.items():
        pair = getattr(one, name), getattr(two, name)
        assert getattr(both, name) == (max(pair) if row.adds == "max" else sum(pair)), name


@given(counts, counts)
def test_what_was_counted_since_is_what_was_added(earlier, since):
    found = (earlier + since) - earlier
    for name, row in ROWS.items():
        wanted = since if row.adds == "sum" else earlier + since
        assert getattr(found, name) == getattr(wanted, name), name


def test_records_add_up_alike():
    both = Counts(executed=1, errors=2) + Counts(executed=3)
    assert both == Counts(executed=4, errors=2)
    assert utf8_json(both) == b'{"executed":4,"errors":2}'


def test_every_count_is_read_out_of_an_executor():
    summed = {
        "emitted",
        "transferred",
        "tuples_published",
        "batches_published",
        "queue_population",
        "busy_seconds",
        "process_seconds",
    }
    read = {name for _, names, _ in task_counts._SLOTS for name in names}
    assert read | summed == ROWS.keys() == asdict(TaskCounts()).keys()


def test_names_on_the_wire_and_of_metrics_are_unique_and_those_that_are_shown_have_a_metric():
    wires = [row.wire for row in REPORTED.values()]
    assert len(wires) == len(set(wires))
    metrics = [row.metric for row in (*BY_STREAM.values(), *SHOWN.values())]
    assert len(metrics) == len(set(metrics))
    assert set(metrics) <= DEFINITIONS.keys()


def faults_of(table):
    """What no reader of the rows can take."""
    shown = rows_of(Counts).keys() if issubclass(table, TaskCounts) else rows_of(table).keys()
    hints, counted = get_type_hints(table), asdict(table())
    for name, row in rows_of(table).items():
        if name in shown:
            if row.adds != "sum":
                yield f"{name}: what is shown adds up, as micro-batches and tasks do; a row of TaskCounts need not"
            if not (row.wire or name in StreamCounts.__struct_fields__):
                yield f"{name}: without wire it is in no report, and StreamCounts has no such field"
            if not row.metric:
                yield f"{name}: without metric Prometheus does not have it"
        else:
            if row.wire and row.adds == "now":
                yield f"{name}: on the wire, and no reader adds up what can fall"
            if row.metric:
                yield f"{name}: no row of TaskCounts is in Prometheus"
        kind = float if row.unit == "seconds" else int
        is_named = name.endswith("_seconds") == (kind is float)
        if hints[name] is not kind or (type(counted[name]), counted[name]) != (kind, 0) or not is_named:
            yield f"{name}: a float, 0.0 at first, of the unit seconds and a name that ends so; or an int, 0 at first"


@pytest.mark.parametrize("table", [Counts, TaskCounts], ids=lambda table: table.__name__)
def test_readers_can_take_every_row(table):
    assert list(faults_of(table)) == []


class Bad(Counts, frozen=True, kw_only=True):
    """Each is refused for one reason."""

    high: Annotated[int, Count("tuples", "at most", adds="max", wire="h", metric="high")] = 0
    now: Annotated[int, Count("tuples", "now", adds="now", wire="n", metric="now")] = 0
    kept: Annotated[int, Count("tuples", "kept", metric="kept_count")] = 0
    hidden: Annotated[int, Count("tuples", "hidden", wire="hid")] = 0
    slow: Annotated[float, Count("seconds", "that it took", wire="sl", metric="slow_time")] = 0.0
    share: Annotated[float, Count("tuples", "of all", wire="sh", metric="share")] = 0.0


class BadOfTasks(TaskCounts, frozen=True, kw_only=True, rename=None):
    """Likewise."""

    told: Annotated[int, Count("tuples", "now", adds="now", wire="t")] = 0
    in_prometheus: Annotated[int, Count("tuples", "of a task", metric="of_a_task")] = 0


@pytest.mark.parametrize(
    ("table", "names"),
    [(Bad, ["high", "now", "kept", "hidden", "slow", "share"]), (BadOfTasks, ["told", "in_prometheus"])],
    ids=["shown", "of tasks"],
)
def test_a_row_that_no_reader_can_take_is_found(table, names):
    assert [fault.split(":")[0] for fault in faults_of(table)] == names
