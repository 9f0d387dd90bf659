"""The HTTP example against a real server: many requests at a time, failures and time-outs fail their own tuples."""

import pytest

from pystorm_source import Spout
from pystorm_source.testing import run_topology
from tests.examples.http_enrichment import HttpEnrichment, PriceBolt
from tests.examples.price_server import PRICES, price_server


@pytest.fixture
def server():
    with price_server() as started:
        yield started


@pytest.mark.parametrize("scheduler", ["inline", "threads"])
def test_every_order_gets_its_price_or_is_told_to_be_unknown(server, scheduler):
    result = run_topology(HttpEnrichment, {"prices.url": server.url}, scheduler=scheduler)
    items = ("apple", "pear", "dragon")
    assert sorted(result.rows("prices")) == [(n, n * PRICES[items[n % 3]]) for n in range(300) if n % 3 < 2]
    assert sorted(result.rows("prices", "unknown")) == [(n, "dragon") for n in range(2, 300, 3)]
    assert result.errors == []
    assert server.asked == dict.fromkeys(items, 100)
    assert 50 < server.most <= 200


class Orders(Spout):
    """Once, with ids; writes down what it is told."""

    outputs = ["order long", "item string", "number long"]
    left = ()

    def initialize(self, conf, context):
        self.left = [(n, item, 2) for n, item in enumerate(["apple", "pear", "dragon", "apple"])]
        type(self).verdicts = {}

    def next_tuple(self):
        if self.left:
            order = self.left.pop(0)
            self.emit(list(order), tup_id=order[0])

    def ack(self, tup_id):
        self.verdicts[tup_id] = "ack"

    def fail(self, tup_id):
        self.verdicts[tup_id] = "fail"


class Forgiving(PriceBolt):
    exit_on_exception = False


class FewOrders(HttpEnrichment):
    orders = Orders.spec()
    prices = Forgiving.spec(inputs=[orders])


def test_what_the_server_fails_fails_its_tuple(server):
    server.failing = {"pear"}
    result = run_topology(FewOrders, {"prices.url": server.url})
    assert Orders.verdicts == {0: "ack", 1: "fail", 2: "ack", 3: "ack"}
    assert sorted(result.rows("prices")) == [(0, 1.0), (3, 1.0)]
    (error,) = result.errors
    assert "process() raised ClientResponseError: 503" in str(error)


def test_what_is_not_answered_in_time_fails_its_tuple(server):
    server.silent = {"apple"}
    options = {"prices.url": server.url, "topology.async.request.timeout.secs": 0.3}
    result = run_topology(FewOrders, options)
    assert Orders.verdicts == {0: "fail", 1: "ack", 2: "ack", 3: "fail"}
    assert sorted(result.rows("prices")) == [(1, 1.5)]
    assert {type(error.__cause__) for error in result.errors} == {TimeoutError}
