"""How often bolts of rows are called when rows of a spout's batches fail."""

import asyncio
from collections import Counter

import pytest

from pystorm_source import AsyncBolt, Bolt
from tests.worker.running import Batches, Pass, numbers, topology, worker_of

SCHEDULED = pytest.mark.parametrize("scheduler", ["inline", "threads"])
RETRIES = {"topology.max.spout.retries": 2, "topology.message.timeout.secs": None}


def fails(n, call):
    """One row in a hundred does at first."""
    return n % 100 == 7 and call == 1


class Asks(AsyncBolt):
    outputs = ["n long"]
    calls: Counter

    async def process(self, tup):
        (n,) = tup.values
        self.calls[n] += 1
        await asyncio.sleep(0)
        if fails(n, self.calls[n]):
            self.fail(tup)
        else:
            self.emit(tup.values)


class Takes(Bolt):
    outputs = ["n long"]
    calls: Counter
    auto_ack = False

    def process(self, tup):
        (n,) = tup.values
        self.calls[n] += 1
        if fails(n, self.calls[n]):
            self.fail(tup)
        else:
            self.emit(tup.values)
            self.ack(tup)


class Many(Batches):
    def latest(self, partition):
        return 20_000


def calls_for(bolt, rows, scheduler, between):
    """Row → calls, for so many rows."""
    counted = type(bolt.__name__, (bolt,), {"calls": Counter()})
    body = {"s": Many.spec()}
    for place, each in enumerate((*between, counted)):
        body[f"b{place}"] = each.spec(inputs=[list(body.values())[-1]])
    worker = worker_of(topology(**body), f"b{len(between)}", overrides={**RETRIES, "topology.scheduler": scheduler})
    try:
        assert sorted(numbers(worker.run("s", "p", 0, rows))) == list(range(rows))
    finally:
        worker.stop()
    return counted.calls


@SCHEDULED
@pytest.mark.parametrize("between", [(), (Pass,)])
def test_no_request_is_made_again_for_another_row(between, scheduler):
    calls = calls_for(Asks, 1000, scheduler, between)
    assert {n for n, count in calls.items() if count > 1} == {n for n in range(1000) if fails(n, 1)}
    assert calls.total() == 1010


@SCHEDULED
@pytest.mark.parametrize("between", [(), (Pass,)])
def test_after_a_failure_few_rows_share_a_tree(between, scheduler):
    calls = calls_for(Takes, 20_000, scheduler, between)
    assert set(calls.values()) <= {1, 2, 3}
    assert calls.total() <= 20_000 + 200 + 1024, "more than the rows that were under way at the first failure"
