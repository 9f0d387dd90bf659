"""Whole topologies on one thread: all is drained, in order, whatever the shape, with the smallest queues."""

import os
import signal
from collections import Counter
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cython_core.executors.executor import ComponentFailed
from cython_core.routing.component_base import BoltBase
from cython_core.schedulers.schedulers import InlineScheduler
from tests.core.wired import Collect, Numbers, Part, Pass, Wired, numbers_as
from tests.sizes import sized

SMALLEST = {"queue": 1, "batch": 1}
SIZES = [
    SMALLEST,
    {"queue": 2, "batch": 1},
    {"queue": 2, "batch": 2},
    {"queue": 1, "batch": 5},
    {"queue": 64, "batch": 10},
]
SIZED = pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: f"{sizes['queue']}-{sizes['batch']}")


def edge(producer, consumer, grouping="shuffle", positions=()):
    return (producer, "default", consumer, grouping, positions)


def drained(wired):
    return all(
        len(executor.pending) == 0 and all(len(inserter) == 0 for inserter in executor.inserters)
        for executor in wired.executors
    ) and all(len(queue) == 0 for queue in wired.queues.values())


class Fan(BoltBase):
    width = 1000

    def process(self, tup):
        for i in range(self.width):
            self.emit((tup.values[0] * self.width + i,))


@SIZED
@pytest.mark.parametrize("length", [1, 2, 20])
def test_chains(length, sizes):
    names = [f"p{i}" for i in range(length)]
    wired = Wired(
        {"s": Part(Numbers), **{name: Part(Pass) for name in names}, "b": Part(Collect, streams={})},
        [edge(a, b) for a, b in zip(["s", *names], [*names, "b"], strict=True)],
        **sizes,
    )
    wired.open("s", 0, 300).run()
    assert wired.instances("b")[0].values == [(n,) for n in range(300)]
    assert drained(wired)


@SIZED
def test_a_diamond(sizes):
    class Adds(BoltBase):
        def process(self, tup):
            self.emit((tup.values[0] + 1000,))

    wired = Wired(
        {"s": Part(Numbers), "l": Part(Pass, par=2), "r": Part(Adds, par=3), "b": Part(Collect, par=2, streams={})},
        [edge("s", "l"), edge("s", "r", "fields", (0,)), edge("l", "b", "all"), edge("r", "b", "fields", (0,))],
        **sizes,
    )
    wired.open("s", 0, 200).run()
    got = Counter(row for instance in wired.instances("b") for (row,) in instance.values)
    assert got == Counter({**dict.fromkeys(range(200), 2), **{n + 1000: 1 for n in range(200)}})
    assert drained(wired)


@SIZED
def test_a_thousand_tuples_out_of_each(sizes):
    wired = Wired(
        {"s": Part(Numbers), "f": Part(Fan), "p": Part(Pass), "b": Part(Collect, streams={})},
        [edge("s", "f"), edge("f", "p"), edge("p", "b")],
        **sizes,
    )
    wired.open("s", 0, 15).run()
    assert wired.instances("b")[0].values == [(n,) for n in range(15_000)]
    assert wired.named["f"][0].pending.high_mark <= 1000
    assert wired.named["p"][0].pending.high_mark <= 1
    assert all(queue.high_mark <= queue.capacity for queue in wired.queues.values())


class CountsDown(BoltBase):
    """Emits n - 1 back into the cycle until 0, and ``copies`` of it."""

    copies = 1

    def __init__(self):
        self.seen = Counter()

    def process(self, tup):
        n = tup.values[0]
        self.seen[n] += 1
        if n > 0:
            for _ in range(self.copies):
                self.emit((n - 1,))


@SIZED
@pytest.mark.parametrize("start", [1, 7, 40])
def test_cycles_turn_on_with_full_queues(start, sizes):
    """A feeds B, B feeds A. Every number goes round until it is 0, however small the queues."""
    rows = [(start,)] * 50
    wired = Wired(
        {"s": Part(numbers_as(*rows)), "a": Part(CountsDown), "b": Part(CountsDown)},
        [edge("s", "a"), edge("a", "b"), edge("b", "a")],
        **sizes,
    )
    wired.open("s", 0, len(rows)).run()
    a, b = wired.instances("a")[0], wired.instances("b")[0]
    assert a.seen + b.seen == dict.fromkeys(range(start + 1), 50)
    assert drained(wired)


@SIZED
def test_a_cycle_that_multiplies_and_a_bolt_that_feeds_itself(sizes):
    class Doubles(CountsDown):
        copies = 2

    wired = Wired(
        {"s": Part(numbers_as(*[(6,)] * 4)), "a": Part(Doubles, par=2), "b": Part(Doubles), "me": Part(CountsDown)},
        [edge("s", "a"), edge("a", "b", "fields", (0,)), edge("b", "a"), edge("b", "me"), edge("me", "me")],
        **sizes,
    )
    wired.open("s", 0, 4).run()
    cycle = sum((instance.seen for name in ("a", "b") for instance in wired.instances(name)), Counter())
    assert cycle == {n: 4 * 2 ** (6 - n) for n in range(7)}
    # b sees odd numbers (a starts with 6) and sends what it emits, the evens below, to `me`, where each counts down.
    sent = {n: 4 * 2 ** (6 - n) for n in range(0, 6, 2)}
    assert wired.instances("me")[0].seen == {n: sum(count for m, count in sent.items() if m >= n) for n in range(5)}
    assert drained(wired)


@SIZED
def test_what_a_bolt_sends_itself_keeps_its_order(sizes):
    """Where a full cycle is fed beyond its pending emits, what is emitted then may not overtake them."""

    class Loops(BoltBase):
        def __init__(self):
            self.sent = 0
            self.got = []

        def process(self, tup):
            depth, number = tup.values
            if tup.component == "me":
                self.got.append(number)
            for _ in range(3 if depth else 0):
                self.emit((depth - 1, self.sent))
                self.sent += 1

    fields = {"default": ("depth", "number")}
    wired = Wired(
        {"s": Part(numbers_as(*[(4, -1)] * 5), streams=fields), "me": Part(Loops, streams=fields)},
        [edge("s", "me"), edge("me", "me")],
        **sizes,
    )
    wired.open("s", 0, 5).run()
    me = wired.instances("me")[0]
    assert me.sent == 5 * (3 + 9 + 27 + 81)
    assert me.got == list(range(me.sent))


def test_fifty_executors():
    names = [f"p{i}" for i in range(12)]
    parts = {"s": Part(Numbers, par=2), **{name: Part(Pass, par=4) for name in names}, "b": Part(Collect, streams={})}
    chain = ["s", *names, "b"]
    wired = Wired(parts, [edge(a, b, "fields", (0,)) for a, b in pairwise(chain)], queue=2, batch=1)
    assert len(wired.executors) >= 50
    wired.open("s", 0, 100).run()
    assert Counter(wired.instances("b")[0].values) == {(n,): 2 for n in range(100)}


shapes = st.integers(1, 5).flatmap(
    lambda bolts: st.fixed_dictionaries(
        {
            # bolt i is fed by one or more of: the spout (-1) and earlier bolts
            "inputs": st.tuples(*[st.sets(st.integers(-1, i - 1), min_size=1, max_size=3) for i in range(bolts)]),
            "pars": st.tuples(*[st.integers(1, 3)] * bolts),
            "groupings": st.tuples(*[st.sampled_from(["shuffle", "fields", "all", "global", "none"])] * bolts),
            "widths": st.tuples(*[st.integers(0, 3)] * bolts),
            "queue": st.integers(1, 5),
            "batch": st.integers(1, 5),
            "quota": st.integers(1, 9),
            "total": st.integers(0, 30),
        }
    )
)


@settings(max_examples=sized(150), deadline=None)
@given(shapes)
def test_any_acyclic_topology_gives_what_arithmetic_says(shape):
    """Each bolt emits every tuple ``width`` times; how many arrive where follows by multiplication."""

    def widens(by):
        class Widens(BoltBase):
            def __init__(self):
                self.seen = []

            def process(self, tup):
                self.seen.append(tup.values[0])
                for _ in range(by):
                    self.emit(tup.values)

        return Widens

    bolts = len(shape["inputs"])
    parts = {"s": Part(Numbers)}
    parts |= {f"b{i}": Part(widens(shape["widths"][i]), par=shape["pars"][i]) for i in range(bolts)}
    edges = []
    for i, inputs in enumerate(shape["inputs"]):
        kind = shape["groupings"][i]
        edges += [
            edge("s" if j < 0 else f"b{j}", f"b{i}", kind, (0,) if kind == "fields" else ()) for j in sorted(inputs)
        ]
    wired = Wired(parts, edges, queue=shape["queue"], batch=shape["batch"], quota=shape["quota"])
    wired.open("s", 0, shape["total"]).run()
    assert drained(wired)
    emitted = {-1: 1}
    for i, inputs in enumerate(shape["inputs"]):
        arriving = sum(emitted[j] for j in inputs) * (shape["pars"][i] if shape["groupings"][i] == "all" else 1)
        emitted[i] = arriving * shape["widths"][i]
        got = Counter(n for instance in wired.instances(f"b{i}") for n in instance.seen)
        assert got == (dict.fromkeys(range(shape["total"]), arriving) if arriving else {})


def test_two_spouts():
    wired = Wired(
        {"s": Part(Numbers), "t": Part(Numbers, par=2), "b": Part(Collect, streams={})},
        [edge("s", "b"), edge("t", "b")],
        **SMALLEST,
    )
    wired.open("s", 0, 20)
    wired.open("t", 100, 110)
    wired.run()
    assert Counter(wired.instances("b")[0].values) == {
        **{(n,): 1 for n in range(20)},
        **{(n,): 2 for n in range(100, 110)},
    }
    # Only one of them has a range: the other is not asked.
    wired.open("s", 20, 25)
    wired.run()
    assert wired.instances("b")[0].values[-5:] == [(n,) for n in range(20, 25)]


def test_nothing_to_do_is_over_at_once():
    wired = Wired({"s": Part(Numbers), "b": Part(Collect, streams={})}, [edge("s", "b")])
    assert wired.scheduler.run() is False
    assert InlineScheduler(()).run() is False


def test_a_run_stops_where_finished_batches_wait():
    schema = pa.schema([("n", pa.int64())])
    wired = Wired(
        {"s": Part(Numbers), "p": Part(Pass)}, [edge("s", "p")], output=schema, views={("p", "default")}, quota=10
    )
    wired.open("s", 0, 25_000)
    sizes = []
    while wired.scheduler.run():
        sizes += [batch.num_rows for batch in wired.builder.done]
        assert len(wired.builder.done) == 1
        wired.builder.done = []
        # What was read does not run ahead of what left the task by more than the queues and turns hold.
        assert wired.named["s"][0].executed - sum(sizes) < 100
    wired.builder.seal()
    sizes += [batch.num_rows for batch in wired.builder.done]
    assert sizes == [10_000, 10_000, 5_000]


def test_a_deadline_ends_the_asking_but_drains():
    now = [0.0]

    class Ticks(Numbers):
        at = 0

        def next_tuple(self):
            now[0] += 1
            self.emit((self.at,))
            self.at += 1

    wired = Wired(
        {"s": Part(Ticks), "p": Part(Pass), "b": Part(Collect, streams={})}, [edge("s", "p"), edge("p", "b")], quota=4
    )
    scheduler = InlineScheduler(tuple(reversed(wired.executors)), None, lambda: now[0], quota=4)
    wired.named["s"][0].open_slice(10**9)
    assert scheduler.run(deadline=50.0) is False
    got = wired.instances("b")[0].values
    assert got == [(n,) for n in range(len(got))]
    assert 50 <= len(got) <= 54
    assert drained(wired)


def test_an_interrupt_gets_through_while_spouts_wait():
    class Waits(Numbers):
        def next_tuple(self):
            if wired.scheduler.idle_passes == 3:
                os.kill(os.getpid(), signal.SIGINT)

    wired = Wired({"s": Part(Waits)}).open("s", 0, 10)
    with pytest.raises(KeyboardInterrupt):
        wired.run()


def test_a_failure_leaves_nothing_running():
    class Fails(BoltBase):
        def process(self, tup):
            if tup.values[0] == 50:
                raise ValueError("fifty")

    wired = Wired({"s": Part(Numbers), "f": Part(Fails, par=2, streams={})}, [edge("s", "f", "all")], queue=4)
    with pytest.raises(ComponentFailed):
        wired.open("s", 0, 100).run()
    for executor in wired.executors:
        executor.discard()
    assert drained(wired)


def test_by_hand_only_fitting_parts():
    with pytest.raises(ValueError, match="at least one call; Given: 0"):
        InlineScheduler((), quota=0)
    with pytest.raises(TypeError, match="Given: \\('x',\\)"):
        InlineScheduler(("x",))
    with pytest.raises(TypeError):
        InlineScheduler(None)
