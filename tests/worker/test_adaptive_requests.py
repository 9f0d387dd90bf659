"""How many requests of an async bolt are under way if the number adapts to a service."""

import asyncio

import pytest

from pystorm_source import AsyncBolt
from pystorm_source.clock import ManualClock
from pystorm_source.errors import OptionError, TupleFailed
from pystorm_source.plan import compile_plan
from tests.worker.async_bolts import DROPPED, ORDERED, Waits, keys, line
from tests.worker.running import Numbers, numbers, worker_of


class Served(AsyncBolt):
    """Of a service with ten places that refuses what comes beyond them."""

    outputs = ["n long"]
    under_way = 0

    async def initialize(self, conf, context):
        type(self).under_way, type(self).refused, type(self).most = 0, 0, 0

    async def process(self, tup):
        cls = type(self)
        if cls.under_way >= 10:
            cls.refused += 1
            raise ConnectionRefusedError("no place free")
        cls.under_way += 1
        cls.most = max(cls.most, cls.under_way)
        await asyncio.sleep(0.02)
        cls.under_way -= 1
        self.emit([tup.values.n])


class Unmoved(Served):
    """Refuses all its input."""

    async def process(self, tup):
        raise ValueError("bad input")

    def is_overload(self, error):
        return not isinstance(error, ValueError)


class Wrong(Served):
    def is_overload(self, error):
        raise KeyError("of is_overload")


ADAPTIVE = keys(max_pending="adaptive") | {"topology.max.spout.retries": 1000}


def served(cls, requests=2000, **options):
    """The bolt, the rows of its requests, and the limit that was found."""
    cls = type(cls.__name__, (cls,), {"exit_on_exception": False})
    worker = worker_of(line(cls, spout=Numbers), "b0", overrides=ADAPTIVE | options, clock=ManualClock())
    worker.start()
    try:
        found = numbers(worker.run("s", "0", 0, requests))
        return cls, found, worker.report()["components"]["b0"]["request_limit"]
    finally:
        worker.stop()


@ORDERED
def test_an_adaptive_limit_finds_the_places_of_a_service(ordered):
    cls, found, limit = served(Served, **keys(ordered=ordered))
    assert sorted(found) == list(range(2000))
    assert cls.most == 10
    assert 0 < cls.refused < 200
    assert 4 <= limit <= 16


def test_exceptions_that_are_no_overload_do_not_lower_it():
    _, _, limit = served(Unmoved, 40, **DROPPED)
    assert limit >= 4


def test_what_is_overload_raises_is_an_exception_of_the_bolt():
    with pytest.raises(TupleFailed, match="of is_overload"):
        served(Wrong, **{"topology.max.spout.retries": 0})


def test_requests_that_run_out_of_time_lower_an_adaptive_limit():
    class Never(Served):
        async def process(self, tup):
            await asyncio.sleep(60)

    _, _, limit = served(Never, 40, **keys(request_timeout_secs=0.1), **DROPPED)
    assert limit == 1


def test_a_wrong_number_of_requests_names_what_is_taken():
    with pytest.raises(OptionError, match="a whole number or 'adaptive'.*Given: 'many'"):
        compile_plan(line(Waits), keys(max_pending="many"))
