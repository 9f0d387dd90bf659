"""What bolts see of their caches: one call for a key, times, exceptions, negative answers, sizes, sharing."""

import asyncio
import threading

import pytest

from pystorm_source import AsyncBatchBolt, AsyncBolt, Bolt, RetryLater, Topology
from pystorm_source.clock import SystemClock
from pystorm_source.errors import ArgumentError, ArgumentTypeError, OptionError, TupleFailed
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import ManualClock, run_topology
from tests.counts.test_query_counts import SCHEDULED

pytestmark = pytest.mark.timeout(60)


class Service:
    """``calls``: the keys that it was asked for, and at what time of ``clock``."""

    def __init__(self, seconds=0.05):
        self.clock = SystemClock()
        self.calls = []
        self.seconds = seconds
        self.failures = 0
        self.lock = threading.Lock()

    def asked(self, key):
        with self.lock:
            self.calls.append((key, self.clock.monotonic()))
            if self.failures > 0:
                self.failures -= 1
                raise ConnectionError("down")
            return None if key == 13 else f"{key} at call {len(self.calls)}"


SERVICE = Service()
SETTINGS = {"ttl": 10}


@pytest.fixture(autouse=True)
def service():
    SERVICE.__init__()
    SETTINGS.clear()
    SETTINGS["ttl"] = 10
    return SERVICE


class Ask(Bolt):
    outputs = ["n long", "answer string"]

    def initialize(self, conf, context):
        self.answers = self.cache("answers", **SETTINGS)

    def fetch(self, key):
        return SERVICE.asked(key)

    def process(self, tup):
        self.emit([tup.values[0], self.answers.get(tup.values[0], self.fetch)])


class AskMany(AsyncBolt):
    outputs = ["n long", "answer string"]

    def initialize(self, conf, context):
        self.answers = self.cache("answers", **SETTINGS)

    async def fetch(self, key):
        await asyncio.sleep(SERVICE.seconds)
        return SERVICE.asked(key)

    async def process(self, tup):
        self.emit([tup.values[0], await self.answers.get(tup.values[0], self.fetch)])


class AskBatches(AsyncBatchBolt, AskMany):
    batch_rows = 10

    async def process_batch(self, tups):
        return await asyncio.gather(*[self.one(tup.values[0]) for tup in tups])

    async def one(self, key):
        return [key, await self.answers.get(key, self.fetch)]


BOLTS = pytest.mark.parametrize("bolt", [Ask, AskMany, AskBatches])


def asking(bolt, rows, par=1, **config):
    class Asking(Topology):
        s = MemorySpout.spec(fields=["n long"], rows=[[n] for n in rows])
        ask = bolt.spec(inputs=[s], par=par)

    Asking.config = config
    return Asking


def answers(bolt, rows, clock=None, scheduler="inline", par=1, **config):
    SERVICE.clock = clock or ManualClock()
    return run_topology(asking(bolt, rows, par, **config), clock=SERVICE.clock, scheduler=scheduler).rows("ask")


@SCHEDULED
@BOLTS
def test_tuples_that_want_one_key_make_one_call(bolt, scheduler):
    found = answers(bolt, [7] * 100 + [8] * 100, scheduler=scheduler)
    assert len(found) == 200
    assert sorted(key for key, _ in SERVICE.calls) == [7, 8]
    assert {len({answer for n, answer in found if n == key}) for key in (7, 8)} == {1}


@BOLTS
def test_all_tasks_of_a_process_share_a_cache(bolt):
    answers(bolt, [7] * 100, scheduler="threads", par=4, clock=SystemClock())
    assert [key for key, _ in SERVICE.calls] == [7]


class Later(AskMany):
    """Asks for a key at the second that is its tuple's value."""

    async def process(self, tup):
        await asyncio.sleep(tup.values[0])
        self.emit([tup.values[0], await self.answers.get("a", self.fetch)])


LONG = {"topology.async.request.timeout.secs": 100, "topology.message.timeout.secs": 100}


def calls_at():
    return [round(at, 2) for _, at in SERVICE.calls]


def test_a_value_is_served_until_its_time_is_over():
    answers(Later, [0, 5, 9, 11, 15, 22], **LONG)
    assert calls_at() == [0.05, 11.05, 22.05]


def test_a_stale_value_is_served_while_one_tuple_asks_again():
    SETTINGS["stale"] = "5s"
    SERVICE.seconds = 2.0
    found = answers(Later, [0, 13, 14, 16, 40], **LONG)
    assert calls_at() == [2.0, 15.0, 42.0]
    assert [(n, answer[-1]) for n, answer in sorted(found)] == [(0, "1"), (13, "2"), (14, "1"), (16, "2"), (40, "3")]


@BOLTS
def test_no_value_is_a_value_with_a_time_of_its_own(bolt):
    found = answers(bolt, [13] * 5)
    assert found == [(13, None)] * 5
    assert len(SERVICE.calls) == 1


def test_no_value_may_be_kept_for_a_shorter_time():
    class Missing(Later):
        async def fetch(self, key):
            return await super().fetch(13)

    SETTINGS["missing_ttl"] = 2
    answers(Missing, [0, 1, 3, 4, 6], **LONG)
    assert calls_at() == [0.05, 3.05, 6.05]


@BOLTS
def test_without_a_time_no_value_is_not_kept(bolt):
    SETTINGS["missing_ttl"] = 0
    answers(bolt, [13] * 3, **{"topology.max.spout.pending": 1})
    assert len(SERVICE.calls) == 3


@pytest.mark.parametrize("bolt", [Ask, AskMany])
def test_a_declared_exception_says_that_there_is_no_value(bolt):
    SETTINGS["missing"] = ConnectionError
    SERVICE.failures = 1
    assert sorted(answers(bolt, [7, 7, 8]), key=str) == [(7, None), (7, None), (8, "8 at call 2")]


def test_an_exception_reaches_all_that_wait_and_is_not_kept():
    class Counted(AskMany):
        seen = []

        async def process(self, tup):
            try:
                await super().process(tup)
            except ConnectionError as error:
                self.seen.append(error)
                raise

    SERVICE.failures = 1
    config = {"topology.max.spout.retries": 3, "topology.spout.retry.backoff.millis": 1}
    found = answers(Counted, [7] * 10, **config, **{"topology.retry.on": {"ConnectionError": "retry"}})
    assert found == [(7, "7 at call 2")] * 10
    assert len(Counted.seen) == 10
    assert len(SERVICE.calls) == 2


def test_retry_later_is_of_all_that_wait():
    class Busy(AskMany):
        async def fetch(self, key):
            await asyncio.sleep(0.01)
            SERVICE.calls.append((key, SERVICE.clock.monotonic()))
            if len(SERVICE.calls) == 1:
                raise RetryLater(5)
            return "free"

    assert answers(Busy, [7] * 10) == [(7, "free")] * 10
    assert [round(at) for _, at in SERVICE.calls] == [0, 5]


@SCHEDULED
def test_a_call_that_runs_out_of_time_is_made_by_another_tuple_that_waits(scheduler):
    class Slow(AskMany):
        async def fetch(self, key):
            SERVICE.calls.append((key, SERVICE.clock.monotonic()))
            await asyncio.sleep(8 if self.component_name == "hasty" else 1)
            return self.component_name

    class Patient(Slow):
        async def process(self, tup):
            await asyncio.sleep(0.01)
            await super().process(tup)

    class Both(Topology):
        config = {"topology.dead.letter": "stream", "topology.max.spout.retries": 0}
        s = MemorySpout.spec(fields=["n long"], rows=[[7], [7], [7]])
        t = MemorySpout.spec(fields=["n long"], rows=[[7], [7], [7]])
        hasty = Slow.spec(inputs=[s], config={"topology.async.request.timeout.secs": 5})
        patient = Patient.spec(inputs=[t])

    SERVICE.clock = ManualClock()
    result = run_topology(Both, clock=SERVICE.clock, scheduler=scheduler, together=True)
    assert len(result.rows("s", "__dead_letter")) == 3
    assert [answer for _, answer in result.rows("patient")] == ["patient"] * 3
    (_, first), (_, second) = SERVICE.calls
    assert first < 0.1 and 5 <= second <= 7  # another thread may move the clock before the call is cancelled


@SCHEDULED
def test_those_that_wait_have_time_while_the_call_waits_for_a_permit(scheduler):
    class Limited(AskMany):
        async def fetch(self, key):
            async with self.limit("api"):
                return SERVICE.asked(key)

    SETTINGS["ttl"] = 1000
    config = {"topology.rate.limit": {"api": "6/m"}, "topology.async.request.timeout.secs": 5}
    found = answers(Limited, [1, 1, 2, 2, 3, 3, 4, 4], scheduler=scheduler, **config)
    assert len(found) == 8
    assert [key for key, _ in SERVICE.calls] == [1, 2, 3, 4]
    assert SERVICE.calls[-1][1] >= 30


@SCHEDULED
def test_a_limit_and_a_cache_of_a_bolt_that_blocks(scheduler):
    class Limited(Ask):
        def fetch(self, key):
            with self.limit("api"):
                return SERVICE.asked(key)

    SETTINGS["ttl"] = 1000
    config = {"topology.rate.limit": {"api": "6/m"}}
    found = answers(Limited, [1, 1, 2, 2, 1], scheduler=scheduler, par=2, **config)
    assert len(found) == 5
    assert sorted(key for key, _ in SERVICE.calls) == [1, 2]


def test_the_least_recently_used_entries_leave():
    SETTINGS["size"] = 2
    answers(Ask, [1, 2, 1, 3, 1, 2])
    assert [key for key, _ in SERVICE.calls] == [1, 2, 3, 2]


def test_a_bolt_that_blocks_does_not_wait_for_a_call_in_its_own_thread():
    class Both(Topology):
        s = MemorySpout.spec(fields=["n long"], rows=[[7]] * 5)
        many = AskMany.spec(inputs=[s])
        ask = Ask.spec(inputs=[s])

    result = run_topology(Both, clock=ManualClock(), scheduler="inline")
    assert len(result.rows("ask")) == len(result.rows("many")) == 5
    assert len(SERVICE.calls) <= 2


def test_a_call_that_asks_for_its_own_key_is_an_error():
    class Round(AskMany):
        async def fetch(self, key):
            return await self.answers.get(1 - key, self.fetch)

    with pytest.raises(TupleFailed, match=r"(?s)the fetch of a key asks for the same key.*Given: 0") as error:
        answers(Round, [0])
    assert isinstance(error.value.__cause__, RuntimeError)


@pytest.mark.parametrize("processes", [1, 2])
def test_each_process_has_its_own(processes):
    class Named(AskMany):
        outputs = ["process long"]

        async def fetch(self, key):
            return self.pid

        async def process(self, tup):
            self.emit([await self.answers.get(tup.values[0], self.fetch)])

    class Placed(Topology):
        s = MemorySpout.spec(fields=["n long"], rows=[[7]] * 50)
        ask = Named.spec(inputs=[s], processes=processes)

    found = run_topology(Placed, clock=SystemClock()).rows("ask")
    assert len(found) == 50
    assert len(set(found)) == processes


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"ttl": 0}, "ttl must be longer than 0.*Given: 0"),
        ({"ttl": "0s"}, "ttl must be longer than 0"),
        ({"ttl": -1}, "ttl is a number of seconds.*Given: -1"),
        ({"ttl": "soon"}, "ttl is a number of seconds, or a text with ms, s, m, h or d.*Given: 'soon'"),
        ({"ttl": float("inf")}, "ttl is a number"),
        ({"ttl": True}, "ttl is a number"),
        ({"ttl": 1, "size": 0}, "size must be an int of at least 1 entry. Given: 0"),
        ({"ttl": 1, "size": 1.5}, "size must be an int"),
        ({"ttl": 1, "missing_ttl": -1}, "missing_ttl is a number"),
        ({"ttl": 1, "stale": "long"}, "stale is a number"),
        ({"ttl": 1, "missing": None}, "missing must be an exception class"),
        ({"ttl": 1, "missing": BaseException}, "missing must be an exception class"),
        ({"ttl": 1, "redis": "redis://h", "size": 5}, "size is of a cache in the process"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, said):
    SETTINGS.clear()
    SETTINGS.update(settings)
    with pytest.raises(TupleFailed) as error:
        answers(Ask, [1])
    with pytest.raises(ArgumentError, match=rf"cache\('answers'\): {said}"):
        raise error.value.__cause__


def refusal(made):
    with pytest.raises(TupleFailed) as error:
        run_topology(made)
    return error.value.__cause__


def test_an_address_that_is_no_redis_is_refused_without_its_password():
    SETTINGS["redis"] = "http://:hunter2@host"
    error = refusal(asking(Ask, [1]))
    assert isinstance(error, OptionError)
    assert "redis of cache('answers')" in str(error) and "hunter2" not in str(error)


def test_a_name_is_a_text():
    class Unnamed(Ask):
        def initialize(self, conf, context):
            self.cache("", ttl=1)

    assert isinstance(refusal(asking(Unnamed, [1])), ArgumentTypeError)


def test_one_name_has_the_same_settings_in_a_topology():
    class Other(Ask):
        def initialize(self, conf, context):
            self.cache("answers", ttl="11s")

    class Both(Topology):
        s = MemorySpout.spec(fields=["n long"], rows=[[1]])
        a = Ask.spec(inputs=[s])
        b = Other.spec(inputs=[s])

    error = refusal(Both)
    assert isinstance(error, ArgumentError)
    assert "ttl=10" in str(error) and "ttl=11" in str(error)


def test_outside_of_a_topology_there_is_none():
    with pytest.raises(RuntimeError, match="the bolt is in no running topology"):
        Ask().cache("answers", ttl=1)


@pytest.mark.parametrize(
    ("bolt", "fetch", "said"),
    [(Ask, AskMany.fetch, "calls a function that is not async"), (AskMany, Ask.fetch, "awaits what it calls")],
)
def test_a_function_of_the_other_kind_is_refused(bolt, fetch, said):
    mixed = type("Mixed", (bolt,), {"fetch": fetch})
    with pytest.raises(ArgumentTypeError, match=said):
        raise refusal(asking(mixed, [1]))


@pytest.mark.parametrize("bolt", [Ask, AskMany])
def test_a_key_is_hashable(bolt):
    keyed = type("Keyed", (bolt,), {"initialize": lambda self, *_: setattr(self, "answers", Listed(self))})
    with pytest.raises(ArgumentTypeError, match=r"a key must be hashable.*Given: \[1\]"):
        raise refusal(asking(keyed, [1]))


class Listed:
    """A cache that is asked for lists."""

    def __init__(self, bolt):
        self.cache = bolt.cache("answers", ttl=1)

    def get(self, key, fetch):
        return self.cache.get([key], fetch)
