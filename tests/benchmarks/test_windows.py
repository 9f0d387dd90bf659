"""Windows on two cores: which are comparable, and what is said of them."""

from benchmarks.harness.windows import Window, at_distance, summary

NEAR = Window(100.0, None, (50.0, 52.0), 0.0)
FAR = Window(30.0, None, (300.0, 310.0), 0.05)
CHANGING = Window(60.0, None, (50.0, 300.0), 0.0)


def test_distance_is_that_of_both_pings():
    assert [window.distance for window in (NEAR, FAR, CHANGING)] == ["near", "far", None]


def test_near_is_compared_with_near():
    assert at_distance([NEAR, FAR, NEAR], [FAR, NEAR]) == ("near", [NEAR, NEAR], [NEAR])
    assert at_distance([NEAR, FAR, FAR], [FAR, FAR, NEAR]) == ("far", [FAR, FAR], [FAR, FAR])


def test_nothing_is_compared_where_the_distances_differ():
    assert at_distance([NEAR], [FAR]) == ("near", [NEAR], [])
    assert at_distance([FAR, NEAR, FAR], []) == ("far", [FAR, FAR], [])


def test_summary_keeps_both_distances_apart():
    told = summary([NEAR, FAR, FAR._replace(value=32.0, others=0.07), CHANGING])
    assert told["near"] == {"value": 100, "windows": 1, "ping_ns": [50.0, 52.0], "others": 0.0}
    assert (told["far"]["value"], told["far"]["windows"], told["far"]["others"]) == (31, 2, 0.07)
    assert told["changing"]["windows"] == 1


def test_summary_of_round_trips_has_their_tail():
    assert summary([NEAR._replace(tail=180.0)])["near"]["p99"] == 180.0
