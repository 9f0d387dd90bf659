"""Bolts that keep a state for each key, without Spark."""

import datetime

import pytest

from pystorm_source import Bolt, Grouping, Hopeless, Input, StatefulBolt, Topology, Tuple
from pystorm_source.errors import ArgumentError, OptionError, SchemaError, TopologyError
from pystorm_source.plan import compile_plan
from pystorm_source.plan.stages import cut
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology


class Count(StatefulBolt):
    """Counts words, as streamparse's does; every third word of a key fails at first, behind the count."""

    outputs = ["word string", "count long"]
    state_fields = ["count long", "lengths array<long>"]
    exit_on_exception = False

    def initialize(self, conf, context):
        self.failed = set()

    def process(self, tup):
        state = self.state
        state.count = (state.count or 0) + 1
        state.lengths = state.lengths or []
        state.lengths.append(tup.values.n)
        if tup.values.n % 3 == 0 and tup.values.n not in self.failed:
            self.failed.add(tup.values.n)
            if tup.values.n % 2:
                raise ValueError("not yet")
            self.fail(tup)
            return
        self.emit([tup.values.word, state.count])


class Fails(Bolt):
    """Fails each tuple once: the counts before it must not count it twice."""

    outputs = ["word string", "count long"]
    exit_on_exception = False

    def initialize(self, conf, context):
        self.seen = set()

    def process(self, tup):
        if tup.values not in self.seen:
            self.seen.add(tup.values)
            raise ValueError("not yet")
        self.emit(tup.values)


class Words(Topology):
    config = {"topology.max.spout.retries": 20}
    rows = Input.spec(["word string", "n long"])
    count = Count.spec(inputs={rows: Grouping.fields("word")}, par=3)
    fails = Fails.spec(inputs=[count])


ROWS = [(f"w{n % 4}", n) for n in range(100)]


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("scheduler", ["inline", "threads"])
def test_each_tuple_counts_once_whatever_fails(tasks, scheduler):
    result = run_topology(Words, rows=ROWS, scope="cluster", tasks=tasks, scheduler=scheduler)
    assert sorted(result._left["fails", "default"]) == sorted((f"w{k}", n) for k in range(4) for n in range(1, 26))
    states = result.states["count"]
    assert {key: state["count"] for key, state in states.items()} == {(f"w{k}",): 25 for k in range(4)}
    assert sorted(states["w1",]["lengths"]) == list(range(1, 100, 4))


def test_it_is_a_stage_of_its_own_and_what_follows_needs_no_shuffle():
    first, second, third = cut(compile_plan(Words), [("fails", "default")])
    assert [stage.stateful.name if stage.stateful else None for stage in (first, second, third)] == [
        None,
        "count",
        None,
    ]
    assert [entry.placing for entry in third.entries] == ["row"]


def test_two_of_them_over_one_stream_do_not_fail_each_others_tuples():
    class Twice(Topology):
        config = {"topology.max.spout.retries": 20}
        rows = Input.spec(["word string", "n long"])
        one = Count.spec(inputs={rows: Grouping.fields("word")})
        other = Count.spec(inputs={rows: Grouping.fields("word")})

    assert len(cut(compile_plan(Twice), [])) == 3
    states = run_topology(Twice, rows=ROWS, scope="cluster").states
    assert {state["count"] for of in ("one", "other") for state in states[of].values()} == {25}


def test_a_key_that_is_cleared_is_forgotten():
    class Forget(StatefulBolt):
        outputs = ["n long"]
        state_fields = ["n long"]

        def process(self, tup):
            self.state.n = tup.values.n
            if tup.values.n > 90:
                self.state.clear()

    class Forgets(Topology):
        rows = Input.spec(["word string", "n long"])
        forget = Forget.spec(inputs={rows: Grouping.fields("n")})

    assert sorted(key for (key,) in run_topology(Forgets, rows=ROWS, scope="cluster").states["forget"]) == [*range(91)]


class Typed(StatefulBolt):
    """Keeps what a tuple had, and says of which types it is when it comes again."""

    outputs = ["key double", "kept string"]
    state_fields = ["count long", "at timestamp", "both struct<x: long, at: timestamp>", "by map<string, long>"]

    def process(self, tup):
        state = self.state
        both = state.both and f"{state.both['x']} {state.both['at']}"
        kept = f"{state.count} {state.at} {both} {state.by}"
        state.count = (state.count or 0) + 1
        state.at = tup.values.at
        state.both = {"x": state.count, "at": tup.values.at}
        state.by = {"a": state.count}
        self.emit([tup.values.key, kept])


class TypedStates(Topology):
    rows = Input.spec(["key double", "at timestamp"])
    typed = Typed.spec(inputs={rows: Grouping.fields("key")})


AT = datetime.datetime(2024, 7, 1, 3, 0, tzinfo=datetime.UTC)


def test_floats_that_spark_takes_for_one_key_are_one_key():
    rows = [(0.0, AT), (-0.0, AT), (float("nan"), AT), (float("nan"), AT), (float("-nan"), AT)]
    states = run_topology(TypedStates, rows=rows, scope="cluster", tasks=3).states["typed"]
    assert sorted(state["count"] for state in states.values()) == [2, 3]
    assert all(state["at"] == AT and state["both"]["at"] == AT for state in states.values())


def test_keys_that_do_not_meet_are_refused():
    class Apart(Topology):
        ints = MemorySpout.spec(fields=["k int"], rows=[[1]])
        longs = MemorySpout.spec(fields=["k long"], rows=[[1]])
        join = Fails.spec(inputs={ints: Grouping.fields("k"), longs: Grouping.fields("k")})

    with pytest.raises(SchemaError, match="fields of different types.*int32 and int64"):
        run_topology(Apart, scope="cluster")

    class Listed(Topology):
        rows = Input.spec(["word array<string>", "n long"])
        count = Count.spec(inputs={rows: Grouping.fields("word")})

    with pytest.raises(TopologyError, match="a key is made of plain values"):
        run_topology(Listed, rows=[[["a"], 1]], scope="cluster")


def test_dead_letters_as_a_stream_are_refused_as_on_spark_and_others_count_for_their_component():
    class Letters(Topology):
        words = MemorySpout.spec(fields=["word string", "n long"], rows=ROWS, config={"topology.dead.letter": "stream"})
        count = Count.spec(inputs={words: Grouping.fields("word")})

    with pytest.raises(OptionError, match=r"topology\.dead\.letter\.path"):
        run_topology(Letters, scope="cluster")

    class Never(Bolt):
        outputs = []
        exit_on_exception = False

        def process(self, tup):
            raise Hopeless("never")

    class Dropped(Topology):
        words = MemorySpout.spec(fields=["word string", "n long"], rows=ROWS, config={"topology.dead.letter": "drop"})
        never = Never.spec(inputs={words: Grouping.fields("word")})

    result = run_topology(Dropped, scope="cluster")
    assert result.dead_letters["words"] == result.dropped["words"] == 100


def with_bolt(cls, grouping):
    class Made(Topology):
        rows = Input.spec(["word string", "n long"])
        bolt = cls.spec(inputs={rows: grouping})

    return Made


def test_what_cannot_hold_is_refused():
    with pytest.raises(TopologyError, match="read it with scope='cluster'"):
        run_topology(Words, rows=ROWS)
    with pytest.raises(TopologyError, match="subscribe it to each of its inputs by Grouping.fields"):
        run_topology(with_bolt(Count, Grouping.SHUFFLE), rows=ROWS, scope="cluster")

    class Bare(Count):
        state_fields = []

    class Untyped(Count):
        state_fields = ["count"]

    class Mistyped(Count):
        state_fields = ["count lang"]

    class Kept(Count):
        auto_ack = False

    for cls, error, said in (
        (Bare, TopologyError, "declare its fields"),
        (Untyped, TopologyError, "declare its fields"),
        (Mistyped, SchemaError, "count"),
        (Kept, TopologyError, "auto_ack"),
    ):
        with pytest.raises(error, match=said):
            compile_plan(with_bolt(cls, Grouping.fields("word")))


def test_the_state_is_that_of_a_tuple():
    with pytest.raises(ArgumentError, match="in a run alone"):
        _ = Count().state

    class Ticked(Count):
        config = {"topology.tick.tuple.freq.secs": 1}
        exit_on_exception = True

        def process_tick(self, tup):
            self.state.count = 0

        def process(self, tup):
            self.state.cuont = 1

    with pytest.raises(Exception, match="declares count, lengths: did you mean 'count'"):
        run_topology(with_bolt(Ticked, Grouping.fields("word")), rows=ROWS, scope="cluster")


class Bare(Count):
    """Hands itself a tuple that has no key."""

    exit_on_exception = True

    def process_tick(self, tup):
        self.process(Tuple(None, "rows", "default", 1, ()))


class Early(Count):
    exit_on_exception = True

    def process_tick(self, tup):
        self.set_timer(5)

    def process_timer(self, key):
        pass


@pytest.mark.parametrize(("bolt", "error"), [(Bare, IndexError), (Early, ArgumentError)])
def test_a_key_that_is_not_there_is_an_error_of_python(bolt, error):
    with pytest.raises(Exception, match=f"{error.__name__}") as raised:
        run_topology(with_bolt(bolt, Grouping.fields("word")), rows=[["cow", 1]], scope="cluster")
    assert isinstance(raised.value.__cause__, error)
