"""Spouts whose calls take permits of a rate limit that bolts take, too: on the driver, in tasks, in the kit."""

import asyncio

import pytest

from pystorm_source import Bolt, PartitionedSpout, Topology
from pystorm_source.errors import ArgumentError, TopologyTimeoutError
from pystorm_source.testing import ManualClock, run_topology, verify_spout
from tests.source.feed import CheckedPages, CheckedPosts, CheckedReplays, LimitedPosts, PostSpout, feed
from tests.source.queries import Query


@pytest.fixture
def service():
    with feed() as server:
        yield server


@pytest.mark.spark
@pytest.mark.timeout(240)
@pytest.mark.parametrize("topology", ["CheckedPosts", "CheckedPages", "CheckedReplays"])
def test_all_calls_of_a_query_keep_one_limit(spark, service, tmp_path, topology):
    service.head = 60
    options = {"topology": f"tests.source.feed:{topology}", "path": service.url}
    if topology == "CheckedPages":
        options["journal.path"] = str(tmp_path / "journal")
    query = Query(tmp_path)
    query.run(spark.readStream.format("pystorm").options(**options).load())
    assert query.rows == [(n,) for n in range(60)]
    assert service.count("/check") == 60
    assert len(service.asked) > 62
    assert service.most_in_a_second() <= 20 + 2  # two may come late, on a busy machine


@pytest.mark.parametrize("topology", [CheckedPosts, CheckedPages, CheckedReplays])
def test_the_kit_gives_permits_to_spouts(service, topology):
    service.head = 60
    clock = ManualClock()
    rows = run_topology(topology, {"path": service.url}, clock=clock).rows("check")
    assert sorted(rows) == [(n,) for n in range(60)]
    calls = len(service.asked) - service.count("/done") * (topology is not CheckedPosts)
    assert calls > 62
    assert clock.now >= (calls - 20) / 20 - 1.0  # a second's permits may be there at once


def test_the_contract_gives_permits_to_spouts(service):
    service.head = 25
    config = {"topology.rate.limit": {"feed": "1000/s"}, "path": service.url}
    verify_spout(LimitedPosts.spec(), config)


@pytest.mark.spark
def test_a_fixed_share_has_none_for_calls_on_the_driver(spark, service, tmp_path):
    options = {
        "topology": "tests.source.feed:CheckedPosts",
        "path": service.url,
        "config": '{"topology.rate.limit.tasks": 2}',
    }
    running = Query(tmp_path).start(spark.readStream.format("pystorm").options(**options).load(), availableNow=True)
    with pytest.raises(Exception, match="leaves none to a spout's calls on the driver"):
        running.awaitTermination(90)
    assert service.asked == []


class Unknown(PartitionedSpout):
    outputs = ["n long"]

    def partitions(self):
        return ["p"]

    def latest(self, partition):
        with self.limit("fed"):
            return 1

    def next_tuple(self):
        return False


class Takes(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.emit(tup.values)


def test_an_unknown_limit_names_the_spout_and_what_there_is():
    class Asks(Topology):
        config = {"topology.rate.limit": {"feed": "20/s"}}
        s = Unknown.spec()
        b = Takes.spec(inputs=[s])

    with pytest.raises(ArgumentError, match="topology.rate.limit names 'feed'") as raised:
        run_topology(Asks)
    assert "latest() of spout 's', on the driver" in raised.value.__notes__[0]


class AsksTogether(LimitedPosts):
    """Its calls are coroutines of its own."""

    def get(self, path):
        async def call():
            async with self.limit("feed"):
                return PostSpout.get(self, path)

        return asyncio.run(call())


def test_a_coroutine_of_a_spout_takes_permits(service):
    class Asks(Topology):
        config = {"topology.rate.limit": {"feed": "100/s"}}
        posts = AsksTogether.spec()
        take = Takes.spec(inputs=[posts])

    service.head = 30
    assert run_topology(Asks, {"path": service.url}).rows("take") == [(n,) for n in range(30)]


def test_a_run_without_time_left_says_so():
    with pytest.raises(TopologyTimeoutError, match="did not end in time"):
        run_topology(CheckedPosts, {"path": "http://127.0.0.1:9"}, timeout=1e-9)
