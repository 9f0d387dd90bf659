"""What is drawn, out of the records of a run."""

import msgspec
import pytest

from pystorm_source.observe.page.view import CAPACITY_POINTS, MOST_POINTS, View, thinned
from pystorm_source.records.record import PystormProgress
from tests.observe.page.runs import MARKUP, orders, renamed
from tests.records.samples import progress


def test_without_records_it_is_empty_and_says_whose_it_is():
    view = View.of([], title="Orders", run="17", state="running")
    assert (view.title, view.run, view.state, view.last) == ("Orders", "17", "running", None)


def test_each_micro_batch_is_a_point():
    view = View.of([orders(batch) for batch in range(5)])
    assert view.series.batch == (0, 1, 2, 3, 4)
    assert view.series.seconds[3] == orders(3).seconds and view.series.reason[3] == "none"
    assert view.title == "Orders" and view.last == orders(4)


def test_a_long_run_keeps_its_slowest_micro_batches_and_the_last():
    records = [PystormProgress(batch_id=i, seconds=9.0 if i == 777 else 1.0) for i in range(5000)]
    kept = thinned(records, MOST_POINTS)
    assert len(kept) <= MOST_POINTS and kept[-1].batch_id == 4999
    assert 777 in {record.batch_id for record in kept}
    assert [record.batch_id for record in kept] == sorted({record.batch_id for record in kept})


@pytest.mark.parametrize("many", [0, 1, 2, MOST_POINTS, MOST_POINTS + 1, 2 * MOST_POINTS - 1, 10_007])
def test_thinned_records_are_never_more_than_asked_for(many):
    records = [PystormProgress(batch_id=i) for i in range(many)]
    assert len(thinned(records, MOST_POINTS)) == min(many, len(thinned(records, MOST_POINTS)), MOST_POINTS)


def test_times_grow_even_if_records_have_none():
    view = View.of([PystormProgress(timestamp=text) for text in ("", "nonsense", "2026-01-01T00:00:00Z", "")])
    assert list(view.series.at) == sorted(set(view.series.at))


def test_counts_of_the_micro_batch_before_are_divided_by_its_duration():
    before, last = orders(3), msgspec.structs.replace(orders(4), counts_of_batch_before=True)
    assert View.of([before, last]).counted_seconds == before.seconds
    assert View.of([before, orders(4)]).counted_seconds == orders(4).seconds
    assert View.of([last]).counted_seconds == last.seconds


def test_the_last_error_of_each_component_outlives_its_micro_batch():
    failed, quiet = orders(119), orders(10)
    view = View.of([failed, quiet])
    assert view.errors["price"].text.startswith("TimeoutError")


def test_a_record_without_counts_shows_those_before_it():
    view = View.of([orders(1), PystormProgress(batch_id=2, rows=5)])
    assert view.last is not None and view.last.rows == 5 and view.last.topology == orders(1).topology


def test_capacity_is_kept_of_the_last_micro_batches():
    view = View.of([progress(batch) for batch in range(CAPACITY_POINTS + 30)])
    assert {len(shares) for shares in view.capacity.values()} == {CAPACITY_POINTS}


def test_json_has_no_character_that_means_something_in_html():
    text = View.of([renamed(orders(119), MARKUP)]).to_json().decode()
    assert not set("<>&\u2028\u2029") & set(text)
    assert msgspec.json.decode(text, type=View).title == MARKUP[0]


def test_a_record_of_50_components_and_1000_partitions_is_small():
    many = [progress(batch, components=50, partitions=1000) for batch in range(MOST_POINTS)]
    assert len(View.of(many).to_json()) < 100_000


def test_the_chart_of_the_backlog_has_a_gap_where_a_record_has_none():
    again = PystormProgress(batch_id=1, admitted=False)
    operator = PystormProgress(batch_id=2, door="operator")
    view = View.of([PystormProgress(batch_id=0, backlog=7), again, operator, PystormProgress(batch_id=3)])
    assert view.series.backlog == (7, None, None, 0)
