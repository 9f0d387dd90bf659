"""One measured case as a record: medians, ratios, what counts as reached."""

import pytest

from benchmarks.harness.record import KEYS, record, rounded, spread, table


def test_keys_and_medians():
    entry = record("core", "c", [2.2, 1.9, 2.0], "tuples/s")
    assert tuple(entry) == KEYS
    assert (entry["value"], entry["runs"], entry["spread"]) == (2.0, 3, 0.15)
    assert (entry["peer"], entry["ratio"], entry["asked"], entry["reached"]) == (None, None, None, None)


def test_runs_that_differ_by_more_than_a_quarter_are_called_unsteady():
    assert record("core", "c", [3.0, 1.0, 2.0], "tuples/s")["unsteady"]


def test_more_is_better():
    entry = record("b", "c", [200.0], "rows/s", peer="p", peer_version="1", peer_values=[50.0], asked=4.0)
    assert (entry["ratio"], entry["reached"]) == (4.0, True)
    assert record("b", "c", [199.0], "rows/s", peer="p", peer_values=[50.0], asked=4.0)["reached"] is False


def test_ratio_is_turned_round_where_less_is_better():
    entry = record("b", "c", [2.0], "s", peer="p", peer_values=[8.0], asked=4.0, less_is_better=True)
    assert (entry["ratio"], entry["reached"]) == (4.0, True)


@pytest.mark.parametrize(("value", "less", "reached"), [(9.0, False, True), (8.9, False, False), (9.1, True, False)])
def test_without_a_peer_the_value_is_what_is_asked(value, less, reached):
    assert record("b", "c", [value], "u", asked=9.0, less_is_better=less)["reached"] is reached


def test_a_peer_that_gave_nothing():
    entry = record("b", "c", [1.0], "u", peer="p", peer_version="1", asked=2.0, note="no wheel")
    assert (entry["peer_value"], entry["ratio"], entry["reached"], entry["note"]) == (None, None, None, "no wheel")


def test_nothing_measured():
    entry = record("b", "c", [], "u", asked=2.0)
    assert (entry["value"], entry["runs"], entry["spread"], entry["reached"]) == (None, 0, None, None)


def test_added_keys_follow_and_none_is_left_out():
    entry = record("b", "c", [1.0], "u", floor_ns=12.5, stretch=None)
    assert entry["floor_ns"] == 12.5
    assert "stretch" not in entry


def test_rounding():
    assert rounded(4_123_456.0) == 4_123_000
    assert rounded(0.0123456) == 0.01235
    assert rounded(None) is None
    assert rounded(0.0) == 0.0


def test_spread():
    assert spread([1.0]) is None
    assert spread([9.0, 10.0, 11.0]) == 0.2


def test_table_has_a_line_per_record():
    lines = table([record("b", "first", [1.0], "u"), record("b", "second", [2.0], "u", asked=1.0)]).splitlines()
    assert len(lines) == 4
    assert lines[3].split() == ["second", "2", "u", "1", "yes"]
