"""The tests that a typed user writes for that topology; `mypy --strict` must find nothing in them either."""

from collections import Counter
from typing import Any, assert_type

from pystorm_source.testing import EOF, FAIL, ManualClock, Result, ScriptedSpout, run_topology
from tests.typed.order_alerts import OrderAlerts


class Scripted(OrderAlerts):
    """The same bolts over orders of the test's own."""

    orders = ScriptedSpout.of(
        ["shop string", "number long", "price long"], ("west", 0, 201), EOF, ("west", 1, 7), FAIL, ("east", 2, 300)
    ).spec()


def test_alerts_are_above_the_limit() -> None:
    result = run_topology(OrderAlerts, config={"orders.total": 4})
    assert_type(result, Result)
    rows = assert_type(result.rows("alerts"), list[tuple[Any, ...]])
    assert sorted(rows) == [("north", 250), ("north", 900), ("south", 250), ("south", 900)]
    assert sorted(result.rows(OrderAlerts.turnover)) == [("north", 1200), ("south", 1200)]
    assert result.errors == []


def test_a_failed_order_comes_again() -> None:
    clock = ManualClock(now=100)
    result = run_topology(Scripted, config={"alerts.limit": 250}, clock=clock, seed=3)
    assert result.rows("alerts") == [("east", 300)]
    assert (result.failed["orders"], result.acked["orders"], result.micro_batches) == (1, 3, 2)
    turnover: Counter[str] = Counter()
    for shop, sold in result.rows("turnover"):
        turnover[shop] += sold
    assert turnover == {"west": 201 + 7 + 7, "east": 300}


def test_a_broken_order_is_an_error() -> None:
    broken = ScriptedSpout.of(["shop string", "number long", "price long"], ("west", 0, -1)).spec()
    made: type[OrderAlerts] = type("Broken", (OrderAlerts,), {"orders": broken})
    result = run_topology(made, config={"topology.dead.letter": "drop"})
    assert len(result.rows("alerts", "errors")) == 4  # at first, and the three times that the spout tries again
    assert ("beats.beats", 1) in result.rows("quiet")
    assert result.metrics["corrections"]["corrected"]["count"] == 2
