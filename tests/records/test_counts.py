"""The table of counts: how counts add up, and that each has a reader."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from pystorm_source.observe.metric_definitions import DEFINITIONS
from pystorm_source.records.counts import BY_STREAM, REPORTED, ROWS, SHOWN, Counts, TaskCounts
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
    summed = {"emitted", "transferred", "tuples_published", "batches_published", "queue_population", "busy_seconds"}
    read = {name for _, names, _ in task_counts._SLOTS for name in names}
    assert read | summed == ROWS.keys() == asdict(TaskCounts()).keys()


def test_names_on_the_wire_and_of_metrics_are_unique_and_those_that_are_shown_have_a_metric():
    wires = [row.wire for row in REPORTED.values()]
    assert len(wires) == len(set(wires))
    metrics = [row.metric for row in (*BY_STREAM.values(), *SHOWN.values())]
    assert len(metrics) == len(set(metrics))
    assert set(metrics) <= DEFINITIONS.keys()


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.unit == "seconds"])
def test_durations_are_seconds_by_name(name):
    assert name.endswith("_seconds")
