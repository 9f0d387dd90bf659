"""AsyncBatchBolt: one call of a service for many tuples, and a verdict for each of them."""

import asyncio
import gc

import pytest

from pystorm_source import AsyncBatchBolt, Hopeless, RetryLater, Topology
from pystorm_source.clock import SystemClock
from pystorm_source.errors import ArgumentError, OptionError, TopologyError, TupleFailed
from pystorm_source.plan import compile_plan
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import ManualClock, run_topology
from tests.both_schedulers import SCHEDULERS

DROP = {"topology.dead.letter": "drop"}
SCHEDULED = pytest.mark.parametrize("scheduler", SCHEDULERS)


class Service(AsyncBatchBolt):
    """Answers n for n after 10 ms; ``calls`` has the numbers of each call."""

    outputs = ["n long"]
    batch_rows = 10
    calls: list[list[int]]

    async def process_batch(self, tups):
        numbers = [tup.values.n for tup in tups]
        self.calls.append(numbers)
        await asyncio.sleep(0.01)
        return self.answer(numbers)

    def answer(self, numbers):
        return [[n] for n in numbers]


def service(**body):
    return type("Asks", (Service,), {"calls": [], **body})


def asks(bolt, count=35, config=None, **spec):
    numbers = MemorySpout.spec(fields=["n long"], rows=[[n] for n in range(count)])
    return type(
        "Made", (Topology,), {"config": config or {}, "numbers": numbers, "asks": bolt.spec(inputs=[numbers], **spec)}
    )


def values(result):
    return sorted(n for (n,) in result.rows("asks"))


@SCHEDULED
def test_calls_are_full_or_leave_when_their_time_is_over(scheduler):
    clock, bolt = ManualClock(), service()
    result = run_topology(asks(bolt), clock=clock, scheduler=scheduler)
    assert values(result) == list(range(35))
    assert [len(call) for call in bolt.calls] == [10, 10, 10, 5]
    assert clock.now == pytest.approx(0.06, abs=0.01)
    assert result.metrics["asks"]["batch.rows"]["sum"] == 35


@SCHEDULED
def test_on_the_machines_clock_too(scheduler):
    bolt = service()
    assert values(run_topology(asks(bolt, 1000), clock=SystemClock(), scheduler=scheduler)) == list(range(1000))
    assert len(bolt.calls) <= 110


@SCHEDULED
def test_each_tuple_has_a_verdict_of_its_own(scheduler):
    seen = []

    def answer(self, numbers):
        again = [n for n in numbers if n == 5 and n not in seen]
        seen.extend(numbers)
        return [RetryLater(3) if n in again else Hopeless(f"{n} is odd to us") if n == 7 else [n] for n in numbers]

    bolt = service(answer=answer, exit_on_exception=False)
    clock = ManualClock()
    result = run_topology(asks(bolt, 20, DROP), clock=clock, scheduler=scheduler)
    assert values(result) == [n for n in range(20) if n != 7]
    assert [call for call in bolt.calls if 5 in call][1:] == [[5]], "it came again, alone"
    assert clock.now >= 3
    assert result.failed["asks"] == 2


def test_none_is_done_and_emits_nothing():
    bolt = service(answer=lambda self, numbers: [None if n % 2 else [n] for n in numbers])
    result = run_topology(asks(bolt, 20))
    assert values(result) == list(range(0, 20, 2))
    assert result.acked["numbers"] == 20
    nothing = service(answer=lambda self, numbers: None)
    assert run_topology(asks(nothing, 20)).acked["numbers"] == 20


def test_an_answer_may_be_many_rows():
    def emit_answer(self, tup, answer):
        for n in answer:
            self.emit([n])

    bolt = service(answer=lambda self, numbers: [[n, n] for n in numbers], emit_answer=emit_answer)
    assert values(run_topology(asks(bolt, 20))) == sorted([*range(20), *range(20)])


@SCHEDULED
@pytest.mark.parametrize("how", ["Hopeless", "never"])
def test_a_call_that_is_refused_is_halved_until_the_bad_tuple_is_alone(scheduler, how, caplog):
    def answer(self, numbers):
        if 13 in numbers:
            raise Hopeless("13") if how == "Hopeless" else KeyError("13")
        return [[n] for n in numbers]

    bolt = service(answer=answer, exit_on_exception=False, batch_rows=16)
    config = DROP | {"topology.retry.on": {"KeyError": "never"}}
    result = run_topology(asks(bolt, 32, config), scheduler=scheduler, seed=1)
    assert values(result) == [n for n in range(32) if n != 13]
    refused = [call for call in bolt.calls if 13 in call]
    assert [len(call) for call in refused] == [16, 8, 4, 2, 1]
    assert len(bolt.calls) == 2 + 2 * 4
    assert result.failed["asks"] == 1
    gc.collect()
    assert not [each.getMessage() for each in caplog.records if each.name == "asyncio"], "tasks outlive the run"


@SCHEDULED
@pytest.mark.parametrize("limited", [False, True], ids=["slow-service", "few-permits"])
def test_a_row_does_not_time_out_while_other_halves_are_called(scheduler, limited):
    async def process_batch(self, tups):
        numbers = [tup.values.n for tup in tups]
        self.calls.append(numbers)
        if limited:
            async with self.limit("service"):
                await asyncio.sleep(0.01)
        else:
            await asyncio.sleep(8)
        if {3, 9} & set(numbers):
            raise Hopeless("bad")
        return [[n] for n in numbers]

    bolt = service(process_batch=process_batch, batch_rows=16)
    config = DROP | {"topology.rate.limit": {"service": "6/m"}}
    result = run_topology(asks(bolt, 16, config), scheduler=scheduler)
    assert values(result) == [n for n in range(16) if n not in {3, 9}]
    assert result.failed["asks"] == 2
    assert len(bolt.calls) == 1 + 2 + 4 + 4 + 4


def test_any_other_exception_is_that_of_all_tuples_and_costs_no_calls():
    def answer(self, numbers):
        raise ConnectionError("down")

    bolt = service(answer=answer, exit_on_exception=False)
    result = run_topology(asks(bolt, 20, DROP | {"topology.max.spout.retries": 0}))
    assert (len(bolt.calls), values(result), len(result.errors)) == (2, [], 20)
    bolt = service(answer=answer)
    with pytest.raises(TupleFailed, match="down"):
        run_topology(asks(bolt, 20))


@pytest.mark.parametrize("answers", [[[1]], "ten letters", b"ten  bytes", 7, {1: 2}])
def test_answers_of_another_shape_say_what_is_expected(answers):
    bolt = service(answer=lambda self, numbers: answers)
    with pytest.raises(TupleFailed, match="one answer for each, in their order") as raised:
        run_topology(asks(bolt, 10))
    assert raised.value.__cause__.code == "PYSTORM_INVALID_RETURN_VALUE"


def test_it_emits_nothing_itself():
    class Emits(Service):
        calls = []

        async def process_batch(self, tups):
            self.emit([1])

    with pytest.raises(TupleFailed, match="emit"):
        run_topology(asks(Emits, 10))


@SCHEDULED
def test_a_call_that_takes_too_long_is_cancelled_and_its_place_is_free(scheduler):
    cancelled = []

    class Hangs(Service):
        calls = []
        exit_on_exception = False

        async def process_batch(self, tups):
            if any(tup.values.n == 3 for tup in tups):
                try:
                    await asyncio.sleep(1e6)
                except asyncio.CancelledError:
                    cancelled.append(len(tups))
                    raise
            return await super().process_batch(tups)

    config = DROP | {"topology.async.request.timeout.secs": 2, "topology.async.max.pending": 10}
    config["topology.max.spout.retries"] = 0
    clock = ManualClock()
    result = run_topology(asks(Hangs, 40, config), clock=clock, scheduler=scheduler)
    assert cancelled == [10]
    assert values(result) == list(range(10, 40))
    assert [type(error.__cause__) for error in result.errors] == [TimeoutError] * 10
    assert 2 <= clock.now < 10  # under threads more of it passes


@SCHEDULED
def test_a_call_takes_one_permit_and_no_time_runs_while_it_waits(scheduler):
    class Limited(Service):
        calls = []

        async def process_batch(self, tups):
            async with self.limit("api"):
                return await super().process_batch(tups)

    config = {"topology.rate.limit": {"api": "1/s"}, "topology.async.request.timeout.secs": 1}
    clock = ManualClock()
    result = run_topology(asks(Limited, 80, config), clock=clock, scheduler=scheduler)
    assert values(result) == list(range(80))
    assert result.errors == []
    assert 6.5 < clock.now < 9


def test_a_limit_of_the_spec_is_one_permit_for_a_call():
    bolt, clock = service(), ManualClock()
    config = {"topology.rate.limit": {"api": "1/s"}}
    assert values(run_topology(asks(bolt, 80, config, limits=["api"]), clock=clock)) == list(range(80))
    assert clock.now == pytest.approx(7, rel=0.1)


def test_permits_for_each_tuple():
    class Limited(Service):
        calls = []

        async def process_batch(self, tups):
            async with self.limit("api", permits=len(tups)):
                return await super().process_batch(tups)

    clock = ManualClock()
    result = run_topology(asks(Limited, 80, {"topology.rate.limit": {"api": "10/s"}}), clock=clock)
    assert values(result) == list(range(80))
    assert clock.now == pytest.approx(8, rel=0.1)


def test_a_call_with_many_permits_tries_a_service_again_with_one():
    """Behind an outage there is one permit, that of the probe: a call that waits for ten would wait for ever."""

    class Fails(Service):
        calls = []
        exit_on_exception = False

        async def process_batch(self, tups):
            async with self.limit("api", permits=len(tups)):
                if len(self.calls) < 40:
                    self.calls.append([])
                    raise ConnectionError("down")
                return await super().process_batch(tups)

    config = {"topology.rate.limit": {"api": "1000/s"}, "topology.retry.on": {"ConnectionError": "retry"}}
    config["topology.max.spout.retries"] = 1000
    result = run_topology(asks(Fails, 20, config), clock=ManualClock())
    assert values(result) == list(range(20))


@pytest.mark.parametrize("permits", [0, -1, "two", 1.5])
def test_permits_that_make_no_sense(permits):
    class Limited(Service):
        calls = []

        async def process_batch(self, tups):
            async with self.limit("api", permits=permits):
                return

    with pytest.raises(TupleFailed) as raised:
        run_topology(asks(Limited, 1, {"topology.rate.limit": {"api": "10/s"}}))
    assert isinstance(raised.value.__cause__, ArgumentError)


def test_results_leave_in_order_if_they_are_to():
    class Slower(Service):
        calls = []

        async def process_batch(self, tups):
            await asyncio.sleep(1 if tups[0].values.n < 10 else 0)
            return await super().process_batch(tups)

    result = run_topology(asks(Slower, 40, {"topology.async.ordered": True}), clock=ManualClock())
    assert [n for (n,) in result.rows("asks")] == list(range(40))


@pytest.mark.parametrize("clock", [ManualClock, SystemClock])
def test_in_processes_of_its_own(clock):
    result = run_topology(asks(service(), 300, par=2, processes=2), clock=clock())
    assert values(result) == list(range(300))


async def _process(self, tup):
    """A user's own."""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"process": _process}, r"gathers tuples for process_batch\(tups\)"),
        ({"process_batch": lambda self, tups: None}, r"process_batch\(\) of 'asks' of Made must be async def"),
        ({"batch_rows": 0}, "batch_rows of 'asks' of Made must be a number of at least 1"),
        ({"batch_seconds": -1}, "batch_seconds of 'asks' of Made must be a number of at least 0"),
        ({"batch_rows": 2000}, "is more than topology.async.max.pending"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_compiled(body, said):
    with pytest.raises((OptionError, TopologyError), match=said):
        compile_plan(asks(service(**body)))


def test_it_needs_a_method():
    bolt = type("Asks", (AsyncBatchBolt,), {"outputs": ["n long"]})
    with pytest.raises(TopologyError, match=r"must define async def process_batch\(tups\)"):
        compile_plan(asks(bolt))
