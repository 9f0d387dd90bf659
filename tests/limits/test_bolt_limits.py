"""``Bolt.spec(limits=[...])``: each call of a bolt is one call of a service."""

import asyncio

import pytest

from pystorm_source import (
    ArrowBolt,
    AsyncBatchBolt,
    AsyncBolt,
    BatchingBolt,
    Bolt,
    Grouping,
    Hopeless,
    JoinBolt,
    StatefulBolt,
    Topology,
)
from pystorm_source.errors import ArgumentTypeError, OptionError, TupleFailed
from pystorm_source.limits.breaker import LONGEST_PROBE
from pystorm_source.spouts import FilesSpout, MemorySpout
from pystorm_source.testing import ManualClock, run_topology


class Ask(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.emit([tup.values.n])


class AskLine(Bolt):
    outputs = ["line string"]

    def process(self, tup):
        self.emit([tup.values.line])


class AskAsync(AsyncBolt):
    outputs = ["n long"]

    async def process(self, tup):
        self.emit([tup.values.n])


class AskByKey(BatchingBolt):
    outputs = ["n long"]

    def group_key(self, tup):
        return tup.values.n // 2

    def process_batch(self, key, tups):
        self.emit([key])


class AskBatch(ArrowBolt):
    outputs = ["n long"]

    def process_batch(self, batch):
        self.emit_batch(batch)


class AskKept(StatefulBolt):
    outputs = ["n long"]
    state_fields = ["n long"]

    def process(self, tup):
        self.state.n = (self.state.n or 0) + 1
        self.emit([self.state.n])


class AskBoth(JoinBolt):
    outputs = ["n long"]

    def process_join(self, tups):
        self.emit([tups["numbers"].values.n])


def asks(cls, rows=21, limits=("api",), rates=None, grouping=Grouping.SHUFFLE, **more):
    numbers = MemorySpout.spec(fields=["n long"], rows=[[n] for n in range(rows)])
    inputs = {numbers: grouping}
    found = {"numbers": numbers}
    if cls is AskBoth:
        found["others"] = MemorySpout.spec(fields=["n long"], rows=[[n] for n in range(rows)])
        inputs[found["others"]] = grouping
    ask = cls.spec(inputs=inputs, limits=list(limits), **more)
    config = {"topology.rate.limit": rates or {"api": "10/s"}}
    return type("Asks", (Topology,), {"config": config, **found, "ask": ask})


@pytest.mark.parametrize(
    ("cls", "rows", "calls", "more"),
    [
        (Ask, 21, 21, {}),
        (AskAsync, 21, 21, {}),
        (AskByKey, 42, 21, {}),
        (AskKept, 21, 21, {"scope": "cluster", "tasks": 1}),
        (AskBoth, 21, 21, {"scope": "cluster", "tasks": 1}),
    ],
)
def test_each_call_takes_a_permit(cls, rows, calls, more):
    clock = ManualClock()
    grouping = Grouping.fields("n") if more else Grouping.SHUFFLE
    result = run_topology(asks(cls, rows, grouping=grouping), clock=clock, **more)
    assert len(result.rows("ask")) == calls
    assert round(clock.now) == 2  # 20 permits at ten a second


def test_a_batch_of_rows_is_one_call():
    clock = ManualClock()
    assert len(run_topology(asks(AskBatch), clock=clock).rows("ask")) == 21
    assert clock.now < 2


def test_of_several_limits_the_slowest_holds():
    clock = ManualClock()
    made = asks(Ask, limits=["api", "mail"], rates={"api": "1000/s", "mail": "5/s"})
    assert len(run_topology(made, clock=clock).rows("ask")) == 21
    assert round(clock.now) == 4


def test_a_config_of_the_component_stays():
    made = asks(Ask, config={"mine": 1})
    assert made.ask.config == {"mine": 1, "topology.bolt.limits": "api"}


def test_an_unknown_name_is_refused_with_the_one_that_is_meant():
    with pytest.raises(TupleFailed) as failed:
        run_topology(asks(Ask, limits=["apo"]))
    assert isinstance(failed.value.__cause__, OptionError)
    assert "did you mean 'api'" in str(failed.value)


def test_a_bolt_that_gets_many_tuples_in_a_call_is_refused():
    class Many(Bolt):
        outputs = ["n long"]

        def process_many(self, tups):
            self.emit_many(tups.column("n"))

    with pytest.raises(TupleFailed, match="many in a call"):
        run_topology(asks(Many))


class AskDown(AsyncBolt):
    """Of a service that is down for the first second and a half."""

    outputs = ["n long"]
    exit_on_exception = False
    config = {"topology.retry.on": {"OSError": "retry"}}
    times: list[float] = []

    async def process(self, tup):
        now = self.clock.monotonic()
        self.times.append(now)
        if now < 1.5:
            raise OSError("down")
        self.emit([tup.values.n])


def test_after_an_outage_calls_go_on_at_the_limit(monkeypatch):
    clock = ManualClock()
    monkeypatch.setattr(AskDown, "clock", clock, raising=False)
    monkeypatch.setattr(AskDown, "times", [])
    rows = 1200
    assert len(run_topology(asks(AskDown, rows, rates={"api": "100/s"}), clock=clock).rows("ask")) == rows
    behind = [at for at in AskDown.times if 1.5 <= at < 11.5]
    assert behind[0] < 1.7, "the probe after the second pause succeeds"
    assert 90 <= len(behind) / 10 <= 100


class AskSlow(AsyncBolt):
    """Of a service that hangs at first, and then closes connections."""

    outputs = ["n long"]
    exit_on_exception = False
    config = {"topology.retry.on": {"Exception": "retry"}, "topology.async.request.timeout.secs": 1}
    error: BaseException | None = None

    async def process(self, tup):
        now = self.clock.monotonic()
        if now < 2 and self.error is None:
            await asyncio.Event().wait()
        if now < 2:
            raise self.error
        self.emit([tup.values.n])


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (None, "The last error: the call took longer than topology.async.request.timeout.secs"),
        (ConnectionResetError(), "The last error: ConnectionResetError"),
        (OSError("down"), "The last error: OSError: 'down'"),
    ],
)
def test_the_log_says_why_there_are_no_calls(monkeypatch, caplog, error, said):
    clock = ManualClock()
    monkeypatch.setattr(AskSlow, "clock", clock, raising=False)
    monkeypatch.setattr(AskSlow, "error", error)
    run_topology(asks(AskSlow, 40, rates={"api": "100/s"}), {"topology.max.spout.retries": 20}, clock=clock)
    (first, *_) = (one.getMessage() for one in caplog.records if "so there are none for" in one.getMessage())
    assert first.endswith(said)


class AskNever(Ask):
    """Of a service that answers each call: there is no such thing."""

    exit_on_exception = False
    config = {"topology.retry.on": {"KeyError": "never"}}

    def process(self, tup):
        raise KeyError("no such thing")


def test_what_no_retry_helps_does_not_open_the_breaker():
    clock = ManualClock()
    result = run_topology(asks(AskNever, 41), {"topology.dead.letter": "drop"}, clock=clock)
    assert result.dead_letters["numbers"] == 41
    assert round(clock.now) == 4


class AskInside(Bolt):
    """A call that makes another one of the same service before it ends."""

    outputs = ["n long"]
    exit_on_exception = False
    config = {"topology.retry.on": {"OSError": "retry"}}
    calls = 0

    def process(self, tup):
        type(self).calls += 1
        if self.calls <= 10:
            raise OSError("down")
        with self.limit("api"):
            self.emit([tup.values.n])


def test_a_call_within_the_one_that_probes_does_not_wait_for_ever(monkeypatch):
    clock = ManualClock()
    monkeypatch.setattr(AskInside, "calls", 0)
    assert len(run_topology(asks(AskInside, 5), clock=clock).rows("ask")) == 5
    assert clock.now > LONGEST_PROBE


@pytest.mark.parametrize("limits", ["api", [1], {"api": 1}])
def test_limits_are_a_list_of_names(limits):
    with pytest.raises(ArgumentTypeError, match=r"limits=\['api'\]"):
        Ask.spec(limits=limits)


@pytest.mark.parametrize("scope", ["task", "cluster"])
def test_the_limit_is_that_of_all_workers_of_a_run(tmp_path, scope):
    """One for each file, and behind a cut one for each task: they run in turn."""
    for number in range(20):
        (tmp_path / f"{number}.txt").write_text(f"{number}\n")

    class Files(Topology):
        config = {"topology.rate.limit": {"api": "10/s"}}
        lines = FilesSpout.spec(path=str(tmp_path))
        ask = AskLine.spec(inputs={lines: Grouping.fields("line")}, limits=["api"])

    clock = ManualClock()
    assert len(run_topology(Files, clock=clock, scope=scope).rows("ask")) == 20
    assert round(clock.now) == 2


def test_one_object_is_for_one_call_at_a_time():
    class Keeps(AskAsync):
        def initialize(self, conf, context):
            self.kept = self.limit("api")

        async def process(self, tup):
            async with self.kept:
                await asyncio.sleep(0.5)
            self.emit([tup.values.n])

    def asks(rows):
        numbers = MemorySpout.spec(fields=["n long"], rows=[[n] for n in range(rows)])
        config = {"topology.rate.limit": {"api": "10/s"}, "topology.async.max.pending": rows}
        return type("Made", (Topology,), {"config": config, "numbers": numbers, "asks": Keeps.spec(inputs=[numbers])})

    with pytest.raises(TupleFailed, match=r"Keeps.limit is for one call at a time.*write self.limit\('api'\) in each"):
        run_topology(asks(2))
    assert run_topology(asks(1)).rows("asks") == [(0,)]


class FansOut(AsyncBolt):
    outputs = ["n long"]

    def initialize(self, conf, context):
        self.answers = self.cache("answers", ttl="1h")

    async def ask(self, key):
        async with self.limit("api"):
            await asyncio.sleep(0.1)

    async def process(self, tup):
        await asyncio.gather(*(self.ask(key) for key in range(50)))
        self.emit([tup.values.n])


class FansOutByKey(FansOut):
    async def process(self, tup):
        await asyncio.gather(*(self.answers.get(key, self.ask) for key in range(50)))
        self.emit([tup.values.n])


class FansOutOfBatch(AsyncBatchBolt):
    outputs = ["n long"]

    async def process_batch(self, tups):
        await asyncio.gather(*(FansOut.ask(self, key) for key in range(50)))
        return [[tup.values.n] for tup in tups]


@pytest.mark.parametrize("bolt", [FansOut, FansOutByKey, FansOutOfBatch])
def test_no_time_runs_while_a_part_of_a_call_waits_for_its_permit(bolt):
    class Asks(Topology):
        config = {"topology.rate.limit": {"api": "1/s"}}
        numbers = MemorySpout.spec(fields=["n long"], rows=[[n] for n in range(2)])
        asks = bolt.spec(inputs=[numbers])

    result = run_topology(Asks)
    assert sorted(result.rows("asks")) == [(0,), (1,)]
    assert result.failed["asks"] == 0


def test_the_time_runs_again_once_all_parts_have_their_permits():
    class Hangs(FansOut):
        exit_on_exception = False

        async def process(self, tup):
            await asyncio.gather(*(self.ask(key) for key in range(5)))
            await asyncio.sleep(1000)

    class Asks(Topology):
        config = {
            "topology.rate.limit": {"api": "1/s"},
            "topology.dead.letter": "drop",
            "topology.max.spout.retries": 0,
        }
        numbers = MemorySpout.spec(fields=["n long"], rows=[[1]])
        asks = Hangs.spec(inputs=[numbers])

    clock = ManualClock()
    assert run_topology(Asks, clock=clock).failed["asks"] == 1
    assert 30 < clock.now < 40


def test_the_time_of_a_batch_runs_again_though_a_part_that_it_did_not_await_still_waits():
    class Leaves(FansOutOfBatch):
        exit_on_exception = False

        async def process_batch(self, tups):
            asks = [asyncio.ensure_future(FansOut.ask(self, key)) for key in range(50)]
            await asyncio.wait(asks, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(8)  # all halves together take longer than a request may
            if len(tups) > 1:
                raise Hopeless("one by one")
            return [[tup.values.n] for tup in tups]

    class Asks(Topology):
        config = {"topology.rate.limit": {"api": "1/s"}}
        numbers = MemorySpout.spec(fields=["n long"], rows=[[n] for n in range(16)])
        asks = Leaves.spec(inputs=[numbers])

    assert sorted(run_topology(Asks).rows("asks")) == [(n,) for n in range(16)]
