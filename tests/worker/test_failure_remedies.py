"""What ``initialize`` lacks is said with its own remedy, not with that of a tuple."""

import importlib

import pytest

from pystorm_source import Bolt, Topology
from pystorm_source.errors import ArgumentError, TupleFailed
from pystorm_source.errors.failure_block import FailureBlock
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology


def key(conf):
    return conf["shop.url"]


def package(conf):
    importlib.import_module("no_such_package.inner")


def other(conf):
    return {}[5]


@pytest.mark.parametrize(
    ("start", "remedy"),
    [
        (key, "if 'shop.url' is a key of the configuration, give it by config={'shop.url': ...}"),
        (package, "install the package that has 'no_such_package' where driver and executors run"),
        (other, "mend it and start again"),
    ],
)
def test_a_bolt_that_cannot_start_is_told_what_it_lacks(start, remedy):
    class Shop(Bolt):
        outputs = ["n long"]

        def initialize(self, conf, context):
            start(conf)

        def process(self, tup):
            pass

    lines = MemorySpout.spec(fields=["n long"], rows=[[1]])
    with pytest.raises(TupleFailed) as raised:
        run_topology(type("Shops", (Topology,), {"lines": lines, "shop": Shop.spec(inputs=[lines])}))
    assert f"  remedy: {remedy}" in str(FailureBlock.of(raised.value))


class ConnectorError(Exception):
    """As those of an HTTP client, which are no ConnectionError."""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionRefusedError(), 'topology.retry.on={"ConnectionRefusedError": "retry"}'),
        (ConnectorError(), 'topology.retry.on={"ConnectorError": "retry"}'),
        (AttributeError("no field 'lin'"), None),
        (ArgumentError("limit('prise')"), None),
        (ValueError("no number"), "go on without such tuples"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else "",
)
def test_to_lose_tuples_is_no_remedy_for_an_outage_or_a_mistake(error, said):
    class Ask(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            raise error

    lines = MemorySpout.spec(fields=["n long"], rows=[[1]])
    with pytest.raises(TupleFailed) as raised:
        run_topology(type("Asks", (Topology,), {"lines": lines, "ask": Ask.spec(inputs=[lines])}))
    (remedy,) = [line for line in str(FailureBlock.of(raised.value)).splitlines() if "remedy:" in line]
    ways = {"retry.on": "topology.retry.on" in remedy, "loss": "go on without" in remedy}
    assert ways == {"retry.on": "retry.on" in (said or ""), "loss": "without" in (said or "")}
    assert (said or "") in remedy
