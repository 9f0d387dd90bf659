"""How a bolt fails a tuple decides what becomes of it: later, never again, or as a table of exceptions says."""

import asyncio
import pickle
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source import (
    ArrowBolt,
    AsyncBolt,
    BatchingBolt,
    Bolt,
    Hopeless,
    ReliableSpout,
    RetryLater,
)
from pystorm_source.clock import ManualClock
from pystorm_source.errors import OptionError, TupleFailed
from pystorm_source.options import EngineOptions, parse
from pystorm_source.testing import run_topology
from pystorm_source.testing.run import run_watched
from pystorm_source.worker.failure_rules import FailureRules
from tests.sizes import sized
from tests.worker.running import Batches, Numbers, above, numbers, pair, worker_of

RETRY_ON = "topology.retry.on"
STREAM = {"topology.dead.letter": "stream"}


class Five(Numbers):
    def latest(self, partition):
        return 5


class Raises(Bolt):
    """Raises for 2 what ``error`` makes, the first ``times`` times; its exceptions would end the task."""

    outputs = ["n long"]
    times = 99

    def initialize(self, conf, context):
        self.seen = []

    def error(self):
        return Hopeless("no such thing")

    def process(self, tup):
        self.seen.append(tup.values.n)
        if tup.values.n == 2 and self.seen.count(2) <= self.times:
            raise self.error()
        self.emit([tup.values.n])


class Many(Raises):
    def process_many(self, tups):
        for tup in tups:
            if tup.values.n == 2:
                self.fail(tup, error=self.error())
            else:
                self.emit([tup.values.n], anchors=[tup])


class Async(AsyncBolt):
    outputs = ["n long"]
    times, error = Raises.times, Raises.error
    initialize = Raises.initialize

    async def process(self, tup):
        await asyncio.sleep(0)
        Raises.process(self, tup)


class Groups(BatchingBolt):
    outputs = ["n long"]
    error = Raises.error

    def group_key(self, tup):
        return tup.values.n

    def process_batch(self, key, tups):
        if key == 2:
            raise self.error()
        for tup in tups:
            self.emit([tup.values.n])


class Columns(ArrowBolt):
    outputs = ["n long"]
    error = Raises.error

    def process_batch(self, batch):
        bad = [n == 2 for n in batch.column("n").to_pylist()]
        if any(bad):
            self.fail(batch, bad, error=self.error())
        self.emit_batch(batch)


def made(bolt, spout=Five):
    return pair(bolt, spout)


def dead(result):
    """(reason, attempts, values) of each dead letter."""
    return sorted((row[1], row[2], row[5]) for row in result.rows("s", "__dead_letter"))


# --- Hopeless ---


FiveAtOnce = type("FiveAtOnce", (Batches,), {"latest": Five.latest})


@pytest.mark.parametrize(
    ("bolt", "spout"),
    [(Raises, Five), (Many, Five), (Async, Five), (Groups, Five), (Columns, Five), (Columns, FiveAtOnce)],
)
def test_a_hopeless_tuple_costs_one_attempt_and_its_reason_is_the_bolts(bolt, spout):
    result = run_topology(made(bolt, spout), STREAM)
    assert set(result.rows("b")) - {(2,)} == {(0,), (1,), (3,), (4,)}  # a bolt of batches emits before the verdict
    assert dead(result) == [("no such thing", 1, "[2]")]


def test_it_is_given_once_to_the_bolt():
    seen = []

    class Noted(Raises):
        def process(self, tup):
            seen.append(tup.values.n)
            super().process(tup)

    result = run_topology(made(Noted), STREAM)
    assert seen.count(2) == 1
    assert result.retries["s"] == 0
    assert not result.errors


@pytest.mark.parametrize("error", [None, ValueError("why")])
def test_a_fail_without_a_retry(error):
    class Fails(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            if tup.values.n == 2:
                self.fail(tup, error=error, retry=False)

    assert dead(run_topology(made(Fails), STREAM)) == [("ValueError: why" if error else "failed", 1, "[2]")]


@pytest.mark.parametrize("wrong", [{"retry": 2.0}, {"error": "late"}])
def test_a_fail_with_something_else_is_refused(wrong):
    class Fails(Bolt):
        def process(self, tup):
            self.fail(tup, **wrong)

    with pytest.raises(TupleFailed, match="fail\\(tup, (retry|error)=...\\) takes"):
        run_topology(made(Fails))


def test_where_dead_letters_fail_the_task_the_error_says_why():
    with pytest.raises(TupleFailed, match="Hopeless: no such thing; .*; 1 attempt; no retry helps, as the bolt says"):
        run_topology(made(Raises))


def test_the_rows_of_a_batch_may_fail_for_different_causes():
    class Sorts(ArrowBolt):
        outputs = ["n long"]

        def process_batch(self, batch):
            values = batch.column("n").to_pylist()
            self.fail(batch, [n == 1 for n in values], retry=False)
            if 3 in values:
                self.fail(batch, [n == 3 for n in values], error=ValueError("three"))
            self.emit_batch(batch)

    result = run_topology(made(Sorts, FiveAtOnce), {**STREAM, "topology.max.spout.retries": 1})
    assert ("failed", 1, "[1]") in dead(result)
    assert ("ValueError: three", 2, "[3]") in dead(result)


# --- RetryLater ---


@pytest.mark.parametrize("bolt", [Raises, Async])
def test_it_comes_back_not_before_its_time_and_holds_no_thread(bolt):
    clock, times, threads = ManualClock(), [], set()

    class Busy(bolt):
        def error(self):
            threads.add(threading.active_count())
            times.append(clock.monotonic())
            return RetryLater(0.2)

    Busy.times = 2
    run = worker_of(made(Busy), "b", clock=clock)
    began = clock.monotonic()
    assert sorted(numbers(run.run("s", "p", 0, 5))) == [0, 1, 2, 3, 4]
    assert 0.4 <= clock.monotonic() - began < 0.5
    first, second = times
    assert 0.2 <= second - first <= 0.2 * 1.2 + 0.002
    assert len(threads) == 1
    run.stop()


def test_it_is_an_attempt():
    class Busy(Raises):
        def error(self):
            return RetryLater(5, "too many requests")

    result = run_topology(made(Busy), {**STREAM, "topology.max.spout.retries": 2})
    assert dead(result) == [("RetryLater: again after 5 s: too many requests", 3, "[2]")]
    assert result.retries["s"] == 2


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "3", None, True, 86_401])
def test_a_time_that_is_none(seconds):
    with pytest.raises(ValueError, match=r"RetryLater\(seconds\) takes a number from 0 to 86400, a day"):
        RetryLater(seconds)


def test_in_a_tick_it_is_an_exception_as_any_other():
    class Ticks(Bolt):
        def process(self, tup):
            pass

        def process_tick(self, tup):
            raise RetryLater(1)

    with pytest.raises(TupleFailed, match=r"process_tick\(\) raised RetryLater"):
        run_topology(made(Ticks))


# --- topology.retry.on ---


class Late(TimeoutError):
    pass


def raising(error):
    return type("B", (Raises,), {"error": lambda self: error})


@pytest.mark.parametrize("key", ["ValueError", "Exception", "builtins.ValueError"])
def test_never_is_one_attempt(key):
    result = run_topology(made(raising(ValueError("odd"))), {**STREAM, RETRY_ON: {key: "never"}})
    assert dead(result) == [("ValueError: odd", 1, "[2]")]


def test_retry_is_as_often_as_there_are_retries_whatever_exit_on_exception_says():
    result = run_topology(made(raising(Late("slow"))), {**STREAM, RETRY_ON: {"TimeoutError": "retry"}})
    assert dead(result) == [("Late: slow", 4, "[2]")]


def test_what_is_not_named_ends_the_task_as_without_a_table():
    with pytest.raises(TupleFailed, match=r"process\(\) raised KeyError: 'k'"):
        run_topology(made(raising(KeyError("k"))), {**STREAM, RETRY_ON: {"ValueError": "never"}})


def test_in_the_config_of_one_bolt():
    assert dead(
        run_topology(pair(raising(ValueError("odd")), Five, config={RETRY_ON: {"ValueError": "never"}}), STREAM)
    ) == [("ValueError: odd", 1, "[2]")]


@pytest.mark.parametrize(
    ("table", "verdict"),
    [
        ({"TimeoutError": "retry", "Exception": "never"}, "retry"),
        ({"Late": "never", "TimeoutError": "retry"}, "never"),
        ({"OSError": "never"}, "never"),
        ({"asyncio.TimeoutError": "retry"}, "retry"),
        ({f"{__name__}.Late": "never", "Late": "retry"}, "never"),
        ({"elsewhere.Late": "never"}, None),
        ({"tests.Late": "never"}, "never"),
        ({"Lat": "never"}, None),
    ],
)
def test_which_class_decides(table, verdict):
    assert FailureRules(table).verdict(Late()) == verdict


@pytest.mark.parametrize("given", [{"ValueError": "nver"}, '{"ValueError": "nver"}'])
def test_a_misspelt_verdict_is_refused(given):
    with pytest.raises(
        OptionError, match="'topology.retry.on' says 'nver' of 'ValueError'.* did you mean 'never'.*Give"
    ):
        parse(EngineOptions, {RETRY_ON: given})


@pytest.mark.parametrize(
    "given", ["{", "[]", "[" * 100_000, {"no class": "never"}, 3], ids=lambda given: str(given)[:9]
)
def test_what_is_no_table_is_refused(given):
    with pytest.raises(OptionError, match="topology.retry.on"):
        parse(EngineOptions, {RETRY_ON: given})


ERRORS = [ValueError("v"), Late("t"), KeyError("k"), Hopeless("h"), RetryLater(1)]


@pytest.mark.inline
@settings(max_examples=sized(40), deadline=None)
@given(
    kinds=st.lists(st.sampled_from([None, *ERRORS]), min_size=1, max_size=8),
    table=st.dictionaries(
        st.sampled_from(["ValueError", "OSError", "Late", "LookupError"]), st.sampled_from(["retry", "never"])
    ),
)
def test_nothing_is_retried_that_the_table_or_the_bolt_says_not_to(kinds, table):
    class Any(Bolt):
        outputs = ["n long"]
        exit_on_exception = False

        def process(self, tup):
            if kinds[tup.values.n] is not None:
                raise kinds[tup.values.n]

    spout = type("S", (Numbers,), {"latest": lambda self, partition: len(kinds)})
    result = run_topology(made(Any, spout), {**STREAM, "topology.max.spout.retries": 2, RETRY_ON: table})
    never = {n for n, kind in enumerate(kinds) if isinstance(kind, Hopeless)}
    never |= {n for n, kind in enumerate(kinds) if FailureRules(table).verdict(kind) == "never"}
    expected = [(n, 1 if n in never else 3) for n, kind in enumerate(kinds) if kind is not None]
    assert sorted((row[4], row[2]) for row in result.rows("s", "__dead_letter")) == expected


# --- spouts that are told of fails ---


class Words(ReliableSpout):
    outputs = ["n long"]
    sent = 0

    def next_tuple(self):
        if self.sent < 3:
            self.sent += 1
            self.emit([self.sent], tup_id=self.sent)


@pytest.mark.parametrize(("error", "attempts"), [(Hopeless("no"), 1), (RetryLater(1), 4), (ValueError("v"), 1)])
def test_a_reliable_spout_gives_up_at_once_what_is_hopeless(error, attempts):
    result = run_topology(made(raising(error), Words), {**STREAM, RETRY_ON: {"ValueError": "never"}})
    assert [row[2] for row in result.rows("s", "__dead_letter")] == [attempts]
    assert result.retries["s"] == attempts - 1


def test_exceptions_travel():
    later = pickle.loads(pickle.dumps(RetryLater(2.5, "busy")))
    assert (later.seconds, later.reason, str(later)) == (2.5, "busy", "again after 2.5 s: busy")
    assert pickle.loads(pickle.dumps(Hopeless("x"))).reason == "x"


@pytest.mark.parametrize(("error", "refused"), [(Hopeless("no"), 1), (KeyError("no"), 1), (OSError("down"), 0)])
def test_what_no_retry_helps_is_counted_apart(error, refused):
    """Whoever said so works: admission must not read less for it."""

    class Refuses(Raises):
        exit_on_exception = False
        config = {RETRY_ON: {"KeyError": "never", "OSError": "retry"}}

        def error(self):
            return error

    workers = []
    run_watched(made(Refuses), STREAM, on_worker=workers.append)
    assert sum(worker.report()["components"]["s"]["refused"] for worker in workers) == refused


class Refused(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        if tup.values.n > 0:
            raise ConnectionRefusedError("refused")
        self.emit(tup.values)


class RefusedAsync(AsyncBolt):
    outputs = ["n long"]

    async def process(self, tup):
        await asyncio.sleep(0)
        Refused.process(self, tup)


class RefusedBatch(ArrowBolt):
    outputs = ["n long"]

    def process_batch(self, batch):
        raise ConnectionRefusedError("refused")


RETRIED = {RETRY_ON: {"ConnectionError": "retry"}, "topology.max.spout.retries": 4}


@pytest.mark.parametrize("exits", [True, False])
@pytest.mark.parametrize("cls", [Refused, RefusedAsync, RefusedBatch])
def test_attempts_that_are_retried_are_a_line_in_the_log_and_the_last_one_is_whole(cls, exits, caplog):
    options = {**RETRIED, "topology.dead.letter": "drop"}
    worker = above(type(cls.__name__, (cls,), {"exit_on_exception": exits}), overrides=options, clock=ManualClock())
    list(worker.run("s", "p", 0, 5))
    worker.stop()
    assert {each.levelname for each in caplog.records} == {"WARNING"}
    whole = [message for message in caplog.messages if "\n" in message]
    assert len(whole) == 1
    assert "no retry is left (topology.max.spout.retries=4): component 'b', task 2: process" in whole[0]
    assert whole[0].endswith("ConnectionRefusedError: refused") and "Traceback" in whole[0]
    (first,) = [each for each in caplog.messages if each.startswith("topology.retry.on retries ConnectionRefusedError")]
    assert first.endswith("further ones are counted")
    assert len(caplog.messages) <= 4  # with their number, and that tuples are dropped


def test_if_no_retry_is_left_and_the_task_fails_its_error_has_the_traceback(caplog):
    worker = above(Refused, overrides=RETRIED, clock=ManualClock())
    with pytest.raises(TupleFailed, match="no retry is left") as caught:
        list(worker.run("s", "p", 0, 5))
    worker.stop()
    assert isinstance(caught.value.__cause__, ConnectionRefusedError) and caught.value.__cause__.__traceback__
    assert not [message for message in caplog.messages if "\n" in message]


def test_what_a_bolt_reports_itself_is_logged_whole_whatever_is_retried(caplog):
    class Reports(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            try:
                Refused.process(self, tup)
            except ConnectionError as error:
                self.raise_exception(error, tup)

    worker = above(Reports, overrides=RETRIED, clock=ManualClock())
    list(worker.run("s", "p", 0, 3))
    worker.stop()
    assert [each.levelname for each in caplog.records] == ["ERROR", "ERROR"]
    assert all("Traceback" in message for message in caplog.messages)
