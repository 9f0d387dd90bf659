"""Caches in a real Redis: shared by all, with plain values, by the time of the clock; one that is away costs calls."""

import asyncio
import logging
import math

import pytest
from redis import Redis

from pystorm_source import AsyncBolt, Bolt, Topology
from pystorm_source.clock import SystemClock
from pystorm_source.errors import ArgumentTypeError, TupleFailed
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import ManualClock, run_topology
from tests.caches.test_bolt_cache import refusal
from tests.counts.test_query_counts import SCHEDULED
from tests.states.redis_process import redis_process

pytestmark = pytest.mark.timeout(60)

CALLS = []
SETTINGS = {}


@pytest.fixture(autouse=True)
def nothing_asked():
    CALLS.clear()
    SETTINGS.clear()
    SETTINGS["ttl"] = 1000


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with redis_process(tmp_path_factory.mktemp("redis")) as redis:
        yield redis


@pytest.fixture
def redis(server):
    SETTINGS["redis"] = server.url
    with Redis.from_url(server.url) as client:
        client.flushall()
        yield client


class Ask(Bolt):
    outputs = ["n long", "answer string"]

    def initialize(self, conf, context):
        self.answers = self.cache("answers", **SETTINGS)

    def fetch(self, key):
        CALLS.append(key)
        return None if key == 13 else {"answer": (key, "yes")}

    def process(self, tup):
        self.emit([tup.values[0], repr(self.answers.get(tup.values[0], self.fetch))])


class AskMany(Ask, AsyncBolt):
    cache = AsyncBolt.cache

    async def fetch(self, key):
        await asyncio.sleep(0.01)
        return super().fetch(key)

    async def process(self, tup):
        self.emit([tup.values[0], repr(await self.answers.get(tup.values[0], self.fetch))])


BOLTS = pytest.mark.parametrize("bolt", [Ask, AskMany])


def answers(bolt, rows, clock=None, **kit):
    class Asking(Topology):
        s = MemorySpout.spec(fields=["n long"], rows=[[n] for n in rows])
        ask = bolt.spec(inputs=[s])

    return sorted(run_topology(Asking, clock=clock or SystemClock(), **kit).rows("ask"))


@SCHEDULED
@BOLTS
def test_what_one_run_has_asked_for_another_one_finds(redis, bolt, scheduler):
    first = answers(bolt, [1, 2] * 20, scheduler=scheduler)
    assert sorted(CALLS) == [1, 2]
    assert first == answers(bolt, [1, 2] * 20, scheduler=scheduler)
    assert sorted(CALLS) == [1, 2]
    assert first[0] == (1, "{'answer': [1, 'yes']}")  # as others read it
    keys = sorted(key.decode() for key in redis.scan_iter())
    assert keys == ["pystorm:cache:{answers}:1", "pystorm:cache:{answers}:2"]
    assert 0 < redis.pttl(keys[0]) <= 1_000_000


def test_each_key_has_an_entry_of_its_own(redis):
    keys = [None, math.nan, math.inf, -math.inf, "null", "NaN", 1, 1.5, (1,), "é", "\ud800", 2**70]

    class Each(Ask):
        outputs = ["key string", "answer string"]

        def fetch(self, key):
            return repr(key)

        def process(self, tup):
            key = keys[tup.values[0]]
            self.emit([repr(key), self.answers.get(key, self.fetch)])

    for _ in range(2):
        assert answers(Each, range(len(keys))) == sorted((repr(key), repr(key)) for key in keys)
    assert len(list(redis.scan_iter())) == len(keys)


@BOLTS
def test_no_value_is_kept_too(redis, bolt):
    assert answers(bolt, [13, 13]) == answers(bolt, [13, 13]) == [(13, "None")] * 2
    assert CALLS == [13]


def test_the_time_is_that_of_the_clock(redis):
    clock = ManualClock(now=100)
    answers(Ask, [1], clock)
    clock.advance(999)
    answers(Ask, [1], clock)
    assert CALLS == [1]
    clock.advance(2)
    answers(Ask, [1], clock)
    assert CALLS == [1, 1]


def test_a_stale_entry_is_served_by_all_but_the_one_that_asks_again(redis):
    SETTINGS["stale"] = 50
    clock = ManualClock(now=100)
    answers(Ask, [1], clock)
    clock.advance(1001)

    class Slow(AskMany):
        async def fetch(self, key):
            await super().fetch(key)
            return "new"

    found = answers(Slow, [1] * 20, clock)
    assert CALLS == [1, 1]
    assert [answer for _, answer in found].count("'new'") == 1
    assert answers(Ask, [1], clock) == [(1, "'new'")]
    assert CALLS == [1, 1]


@BOLTS
def test_what_lies_there_from_others_is_no_entry(redis, bolt):
    redis.set("pystorm:cache:{answers}:1", b"something else")
    assert len(answers(bolt, [1, 1])) == 2
    assert CALLS == [1]


class Unusual(Ask):
    def fetch(self, key):
        return object()


def asking(bolt):
    class Asking(Topology):
        s = MemorySpout.spec(fields=["n long"], rows=[[1]])
        ask = bolt.spec(inputs=[s])

    return Asking


def test_values_and_keys_are_plain(redis):
    with pytest.raises(ArgumentTypeError, match="keeps values in Redis, so they must be plain data"):
        raise refusal(asking(Unusual))
    keyed = type("Keyed", (Ask,), {"process": lambda self, tup: self.answers.get(b"1", self.fetch)})
    with pytest.raises(ArgumentTypeError, match=r"a key must be a str, int.*Given: b'1'"):
        raise refusal(asking(keyed))


@BOLTS
def test_a_redis_that_is_killed_costs_calls_and_no_tuple(tmp_path, bolt, caplog):
    with redis_process(tmp_path) as mortal:
        SETTINGS["redis"] = mortal.url
        assert len(answers(bolt, [1])) == 1
        mortal.kill()
        with caplog.at_level(logging.WARNING, "pystorm.worker"):
            assert len(answers(bolt, [1, 2, 3])) == 3
    assert sorted(CALLS) == [1, 1, 2, 3]
    (said,) = [record.getMessage() for record in caplog.records if "cache 'answers'" in record.getMessage()]
    assert "does not answer, so each look-up is a call until it does" in said


def test_the_exception_of_a_call_ends_no_look_up_of_others(redis):
    class Fails(AskMany):
        async def fetch(self, key):
            await super().fetch(key)
            raise ConnectionError("down")

    with pytest.raises(TupleFailed, match="down"):
        answers(Fails, [1])
    assert len(answers(AskMany, [1])) == 1
    assert CALLS == [1, 1]
