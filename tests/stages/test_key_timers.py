"""Timers of keys, without Spark."""

import dataclasses
import datetime
import time

import pyarrow as pa
import pytest

from pystorm_source import Bolt, Grouping, Input, StatefulBolt, Topology
from pystorm_source.clock import SystemClock
from pystorm_source.errors import ArgumentError, TopologyError, TupleFailed
from pystorm_source.operator.bucket_states import MOST_KEYS, BucketStates
from pystorm_source.plan import compile_plan
from pystorm_source.plan.key_states import state_shape
from pystorm_source.plan.stages import cut
from pystorm_source.testing import run_topology


class Sessions(StatefulBolt):
    """Gives how many clicks a user had when there was none for a minute."""

    outputs = ["user string", "clicks long"]
    state_fields = ["clicks long"]

    def process(self, tup):
        self.state.clicks = (self.state.clicks or 0) + 1
        self.set_timer(tup.values.seconds)

    def process_timer(self, key):
        self.emit([key.user, self.state.clicks])
        self.state.clear()


class Clicks(Topology):
    rows = Input.spec(["user string", "seconds double"])
    sessions = Sessions.spec(inputs={rows: Grouping.fields("user")}, par=3)


def run(topology=Clicks, rows=(("ann", 60.0), ("bob", 30.0), ("ann", 60.0)), after=60, **more):
    return run_topology(topology, rows=list(rows), scope="cluster", timers_after=after, **more)


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("scheduler", ["inline", "threads"])
def test_a_timer_that_is_due_calls_with_the_state_of_its_key(tasks, scheduler):
    result = run(tasks=tasks, scheduler=scheduler)
    assert sorted(result.rows("sessions")) == [("ann", 2), ("bob", 1)]
    assert result.states["sessions"] == {}


def test_a_timer_is_never_early():
    assert run(after=59.9).rows("sessions") == [("bob", 1)]
    assert run(after=0).rows("sessions") == []
    assert run(rows=[("ann", 0.001)], after=0.999).rows("sessions") == []
    assert run(rows=[("ann", 0.001)], after=1).rows("sessions") == [("ann", 1)]


@pytest.mark.parametrize("first, then", [(10.0, 60.0), (60.0, 10.0), (10.0, 10.0)])
def test_a_key_has_one_timer_which_is_the_last_one_set(first, then):
    rows = [("ann", first), ("ann", then)]
    assert run(rows=rows, after=then - 1, tasks=1).rows("sessions") == []
    assert run(rows=rows, after=100, tasks=1).rows("sessions") == [("ann", 2)]


def test_a_timer_that_was_cancelled_or_forgotten_does_not_call():
    class Ends(Sessions):
        def process(self, tup):
            super().process(tup)
            if tup.values.user == "cancelled":
                self.cancel_timer()
            if tup.values.user == "forgotten":
                self.state.clear()

    class End(Topology):
        rows = Input.spec(["user string", "seconds double"])
        ends = Ends.spec(inputs={rows: Grouping.fields("user")})

    result = run(End, [("cancelled", 5.0), ("forgotten", 5.0), ("ann", 5.0)])
    assert result.rows("ends") == [("ann", 1)]
    assert result.states["ends"] == {("cancelled",): {"clicks": 1}}


class Again(StatefulBolt):
    """Reminds three times, ten seconds after each other."""

    outputs = ["k long", "n long"]
    state_fields = ["n long"]

    def process(self, tup):
        self.set_timer(10)

    def process_timer(self, key):
        self.state.n = (self.state.n or 0) + 1
        self.emit([key.k, self.state.n])
        if self.state.n < 3:
            self.set_timer(10)


class Reminders(Topology):
    rows = Input.spec(["k long"])
    again = Again.spec(inputs={rows: Grouping.fields("k")})


@pytest.mark.parametrize("after, times", [(9, 0), (10, 1), (20, 2), (29.5, 2), (30, 3), (1000, 3)])
def test_a_timer_can_set_itself_again(after, times):
    assert run(Reminders, [[7]], after).rows("again") == [(7, n) for n in range(1, 1 + times)]


class Fails(StatefulBolt):
    """Fails when its timer is due, ``times`` times: what it has changed before that is put back."""

    outputs = ["k long", "state long"]
    state_fields = ["n long"]
    exit_on_exception = False
    times = 2

    def initialize(self, conf, context):
        self.calls = {}

    def process(self, tup):
        self.state.n = 1
        self.set_timer(5)

    def process_timer(self, key):
        self.state.n += 1
        self.set_timer(100)
        calls = self.calls[key] = self.calls.get(key, 0) + 1
        if calls <= self.times:
            raise ValueError("not yet")
        self.emit([key.k, self.state.n])


class Failing(Topology):
    config = {"topology.max.spout.retries": 3}
    rows = Input.spec(["k long"])
    fails = Fails.spec(inputs={rows: Grouping.fields("k")})


def test_a_timer_whose_call_fails_comes_again_and_leaves_no_trace():
    result = run(Failing, [[1], [2]])
    assert sorted(result._left["fails", "default"]) == [(1, 2), (2, 2)]
    assert result.states["fails"] == {(1,): {"n": 2}, (2,): {"n": 2}}
    assert len(result.errors) == 4


def test_a_timer_that_is_given_up_can_be_set_again():
    class Never(Fails):
        times = 100

        def process(self, tup):
            self.state.n = (self.state.n or 0) + 1
            self.set_timer(5 if tup.values.k == 1 else 50)

    class Given(Topology):
        config = {"topology.max.spout.retries": 1, "topology.dead.letter": "drop"}
        rows = Input.spec(["k long"])
        never = Never.spec(inputs={rows: Grouping.fields("k")})

    result = run(Given, [[1], [1], [2]], after=200)
    assert result.states["never"] == {(1,): {"n": 2}, (2,): {"n": 1}}
    assert result.dropped["never"] == 2


def test_a_timer_whose_call_always_fails_ends_the_run():
    class Ends(Fails):
        exit_on_exception = True

    class End(Topology):
        rows = Input.spec(["k long"])
        ends = Ends.spec(inputs={rows: Grouping.fields("k")})

    with pytest.raises(TupleFailed, match="not yet"):
        run(End, [[1]])


def test_keys_of_several_fields_and_types_have_the_names_of_the_first_input():
    class Keys(StatefulBolt):
        outputs = ["seen string"]
        state_fields = ["n long"]

        def process(self, tup):
            self.set_timer(1)

        def process_timer(self, key):
            self.emit([f"{key.at:%H:%M}{key.x}{key[1]}"])

    class Two(Topology):
        rows = Input.spec(["n long", "x double", "at timestamp"])
        other = None
        keys = Keys.spec(inputs={rows: Grouping.fields("x", "at")}, par=2)

    at = datetime.datetime(2024, 7, 1, 3, 0, tzinfo=datetime.UTC)
    rows = [(1, 0.0, at), (2, -0.0, at), (3, 2.5, at)]
    assert sorted(row for (row,) in run(Two, rows, tasks=2).rows("keys")) == [
        "03:000.02024-07-01 03:00:00+00:00",
        "03:002.52024-07-01 03:00:00+00:00",
    ]


def test_rows_of_timers_go_to_the_bolts_behind():
    class Shout(Bolt):
        outputs = ["text string"]

        def process(self, tup):
            self.emit([f"{tup.component}: {tup.values.user}"])

    class Behind(Topology):
        rows = Input.spec(["user string", "seconds double"])
        sessions = Sessions.spec(inputs={rows: Grouping.fields("user")})
        shout = Shout.spec(inputs={sessions: Grouping.GLOBAL})

    assert sorted(run(Behind).rows("shout")) == [("sessions: ann",), ("sessions: bob",)]


def test_only_a_stage_with_timers_has_an_input_of_them():
    for topology, spouts in ((Clicks, ["__timer", "rows.default"]), (Plain, ["rows.default"])):
        stage = cut(compile_plan(topology), [])[1]
        assert sorted(spout.name for spout in stage.plan.spouts) == spouts


class Count(StatefulBolt):
    outputs = ["user string"]
    state_fields = ["n long"]

    def process(self, tup):
        self.set_timer(1)


class Plain(Topology):
    rows = Input.spec(["user string"])
    count = Count.spec(inputs={rows: Grouping.fields("user")})


def test_what_is_wrong_is_said():
    with pytest.raises(TupleFailed) as failed:
        run(Plain, [["ann"]])
    assert "define process_timer(key)" in str(failed.value.__cause__)
    for seconds in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(TupleFailed) as failed:
            run(rows=[("ann", seconds)])
        assert "set_timer takes seconds" in str(failed.value.__cause__)
    bolt = Sessions()
    with pytest.raises(ArgumentError, match=r"set_timer\(\) in process"):
        bolt.set_timer(1)
    with pytest.raises(ArgumentError, match="timers_after"):
        run_topology(Clicks, rows=[], timers_after=3)
    with pytest.raises(ArgumentError, match="timers_after"):
        run(after=-1)


def test_a_field_that_timers_have_is_refused():
    class Hides(Sessions):
        state_fields = ["__timer long"]

    class Hidden(Topology):
        rows = Input.spec(["user string", "seconds double"])
        hides = Hides.spec(inputs={rows: Grouping.fields("user")})

    with pytest.raises(TopologyError, match="__timer"):
        compile_plan(Hidden)


def test_retries_and_dead_letters_of_the_input_hold_for_timers():
    class Never(Fails):
        times = 100

    class Given(Topology):
        rows = Input.spec(["k long"], config={"topology.max.spout.retries": 1, "topology.dead.letter": "drop"})
        never = Never.spec(inputs={rows: Grouping.fields("k")})

    result = run(Given, [[1]])
    assert (result.dropped["never"], result.retries["never"]) == (1, 1)


def test_a_failure_names_the_key_and_the_method_of_timers():
    class Ends(Fails):
        exit_on_exception = True

    class End(Topology):
        rows = Input.spec(["k long"])
        ends = Ends.spec(inputs={rows: Grouping.fields("k")})

    with pytest.raises(TupleFailed, match=r"process_timer\(\) raised ValueError: not yet; timer of key \(1,\)"):
        run(End, [[1]])

    class Given(Topology):
        config = {"topology.max.spout.retries": 0}
        rows = Input.spec(["k long"])
        fails = Fails.spec(inputs={rows: Grouping.fields("k")})

    with pytest.raises(TupleFailed, match=r"process_timer\(\) raised ValueError: not yet; timer of key \(1,\)"):
        run(Given, [[1]])


def test_a_timer_that_the_state_would_not_live_to_see_is_refused():
    class Short(Sessions):
        state_ttl_secs = 60

    class Shorts(Topology):
        rows = Input.spec(["user string", "seconds double"])
        short = Short.spec(inputs={rows: Grouping.fields("user")})

    with pytest.raises(TupleFailed) as failed:
        run(Shorts, [("ann", 60.0)])
    assert "state_ttl_secs=60 of 'short' forgets the key" in str(failed.value.__cause__)
    assert run(Shorts, [("ann", 59.0)]).rows("short") == [("ann", 1)]


def test_a_key_with_the_field_of_timers_is_refused():
    class Named(Sessions):
        def process(self, tup):
            self.set_timer(1)

    class Names(Topology):
        rows = Input.spec(["__timer string"])
        named = Named.spec(inputs={rows: Grouping.fields("__timer")})

    with pytest.raises(TopologyError, match="'named' has timers.*'__timer'"):
        cut(compile_plan(Names), [])


class Slow(StatefulBolt):
    """Its first call for a key takes longer than its tuple may."""

    outputs = ["k long", "n long"]
    state_fields = ["n long"]

    def initialize(self, conf, context):
        self.seen = set()

    def counts(self, key):
        self.state.n = (self.state.n or 0) + 1
        if key not in self.seen:
            self.seen.add(key)
            time.sleep(1.5)
        self.emit([key, self.state.n])

    def process(self, tup):
        self.counts(tup.values.k)


@pytest.mark.timeout(60)
def test_a_call_that_ends_after_its_tuple_has_timed_out_leaves_no_trace():
    class Slows(Topology):
        config = {"topology.message.timeout.secs": 1}
        rows = Input.spec(["k long"])
        slow = Slow.spec(inputs={rows: Grouping.fields("k")})

    result = run(Slows, [[1]], scheduler="threads", clock=SystemClock())
    assert result._left["slow", "default"] == [(1, 1)]
    assert result.states["slow"] == {(1,): {"n": 1}}
    assert result.retries["slow"] + result.retries["rows"] == 1


class Store:
    """As Spark's MapState. ``written``: how many keys were, in all."""

    def __init__(self):
        self.kept, self.written = {}, 0

    def getValue(self, key):
        return self.kept.get(key)

    def updateValue(self, key, value):
        self.kept[key] = value
        self.written += len(value[1] or ())

    def removeKey(self, key):
        del self.kept[key]


class Handle:
    def __init__(self):
        self.timers = []

    def registerTimer(self, millis):
        assert millis not in self.timers, "Spark warns of a timer that is there"
        self.timers.append(millis)

    def listTimers(self):
        return iter(self.timers)


def test_keys_that_many_micro_batches_ask_for_at_one_time_are_written_once():
    store, handle = Store(), Handle()
    kept = BucketStates(None, store, None, handle, None)
    for batch in range(100):
        kept.ask_at(5000, [(batch, n) for n in range(10)])
        kept.ask_at(1000 * (10 + batch), [(batch,)])
    assert store.written == 100 * 11
    assert kept.asked_until(5000, 9999) == [((batch, n), 5000) for batch in range(100) for n in range(10)]
    assert kept.asked_until(5000, 9999) == []


def test_a_query_that_starts_after_a_long_stop_runs_once_for_many_times():
    store, handle = Store(), Handle()
    kept = BucketStates(None, store, None, handle, None)
    for second in range(1, 100):
        kept.ask_at(1000 * second, [(second,)])
    assert kept.asked_until(1000, 50_500) == [((second,), 1000 * second) for second in range(1, 51)]
    assert [kept.asked_until(1000 * second, 50_500) for second in range(2, 51)] == [[]] * 49
    assert kept.asked_until(51_000, 51_000) == [((51,), 51_000)]
    kept.ask_at(60_000, [(n,) for n in range(MOST_KEYS)])
    assert len(kept.asked_until(52_000, 200_000)) == 9 + MOST_KEYS
    assert kept.asked_until(61_000, 61_000) == [((61,), 61_000)]


def test_a_stored_key_is_found_again_by_a_dict():
    shape = state_shape(
        next(stage.plan for stage in cut(compile_plan(Clicks), []) if stage.stateful),
        next(stage.stateful for stage in cut(compile_plan(Clicks), []) if stage.stateful),
    )
    shape = dataclasses.replace(shape, key_types=(pa.float64(), pa.float64()))
    keys = [shape.key_of([float("nan"), zero]) for zero in (0.0, -0.0)]
    assert len(set(keys)) == 1
