"""What ``initialize`` lacks is said with its own remedy, not with that of a tuple."""

import importlib
from urllib.error import URLError

import pytest

from pystorm_source import Bolt, PartitionedSpout, Topology
from pystorm_source.errors import ArgumentError, TupleFailed
from pystorm_source.errors.failure_block import FailureBlock
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology
from pystorm_source.worker.failure import driver_call


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
        (other, "correct the component and restart the query"),
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


class Numbers(PartitionedSpout):
    outputs = ["n long"]

    def partitions(self):
        return ["a"]

    def latest(self, partition):
        return 1

    def open(self, partition, start, end):
        pass

    def next_tuple(self):
        return False


@pytest.mark.parametrize("method", ["latest", "next_tuple"])
@pytest.mark.parametrize(
    ("error", "is_down"),
    [
        (URLError(ConnectionRefusedError(111, "Connection refused")), True),
        (TimeoutError("no answer"), True),
        (ConnectorError(), True),
        (FileNotFoundError(2, "No such file or directory"), False),
        (ValueError("no number"), False),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else "",
)
def test_a_spout_whose_source_is_down_is_told_how_to_wait_for_it(method, error, is_down):
    def fails(self, *args):
        raise error

    spout = type("Failing", (Numbers,), {method: fails})
    with pytest.raises(TupleFailed) as raised:
        run_topology(type("Reads", (Topology,), {"numbers": spout.spec()}))
    (remedy,) = [line for line in str(FailureBlock.of(raised.value)).splitlines() if "remedy:" in line]
    assert "correct the component" in remedy
    assert ("raise RetryLater(seconds)" in remedy) == is_down


def test_a_path_that_the_driver_misses_is_said_as_an_option():
    with pytest.raises(TupleFailed) as raised, driver_call("lines", "initialize"):
        raise KeyError("path")
    assert "read_stream(..., path=...)" in str(FailureBlock.of(raised.value))
