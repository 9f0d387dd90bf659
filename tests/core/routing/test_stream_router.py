"""Every grouping's law: which task gets what, and in which order, for every batch and queue size."""

import re
from collections import Counter, defaultdict
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cython_core.executors.executor import ComponentFailed
from cython_core.queues.queues import BatchInserter, PendingEmits, ReceiveQueue
from cython_core.routing.route import Route, hash_of
from cython_core.routing.stream_router import StreamRouter
from cython_core.tuples.tuple import TupleSource
from tests.core.wired import Collect, Keep, Numbers, Part, Wired, numbers_as
from tests.sizes import sized

SIZES = [(1, 1), (2, 1), (2, 2), (4, 3), (8, 2), (64, 100)]  # queue, producer batch
KINDS = ["shuffle", "local_or_shuffle", "fields", "all", "global", "none", "partial_key"]
KEYED = ("fields", "partial_key")


def split(grouping, total, par, producers=1, positions=(), queue=8, batch=2, quota=7):
    """What each of the bolt's tasks saw of ``producers`` spout tasks' numbers 0 … total - 1."""
    wired = Wired(
        {"s": Part(Numbers, par=producers), "b": Part(Collect, par=par, streams={})},
        [("s", "default", "b", grouping, positions)],
        queue=queue,
        batch=batch,
        quota=quota,
    )
    wired.open("s", 0, total).run()
    for executor in wired.named["b"]:
        assert executor.queue.high_mark <= executor.queue.capacity
    for executor in wired.named["s"]:
        assert executor.pending.high_mark <= par  # what one call emits, one per target, and no more
    return [instance.seen for instance in wired.instances("b")]


@pytest.mark.parametrize(("queue", "batch"), SIZES)
@pytest.mark.parametrize("producers", [1, 3])
@pytest.mark.parametrize("grouping", KINDS)
def test_nothing_is_lost_doubled_or_overtaken(grouping, producers, queue, batch):
    seen = split(grouping, 203, 3, producers, (0,) if grouping in KEYED else (), queue, batch)
    copies = 3 if grouping == "all" else 1
    got = Counter(row for task in seen for row in task)
    assert got == {(producer, (n,)): copies for producer in range(1, producers + 1) for n in range(203)}
    for task in seen:
        by_producer = defaultdict(list)
        for producer, (n,) in task:
            by_producer[producer].append(n)
        for numbers in by_producer.values():
            assert all(a < b for a, b in pairwise(numbers))


@pytest.mark.parametrize("grouping", ["shuffle", "local_or_shuffle"])
@pytest.mark.parametrize(("total", "par"), [(99, 3), (100, 3), (1000, 7), (5, 8)])
def test_shuffle_is_exactly_even_for_each_producer(grouping, total, par):
    seen = split(grouping, total, par, producers=2)
    for producer in (1, 2):
        shares = [sum(1 for task, _ in rows if task == producer) for rows in seen]
        assert max(shares) - min(shares) <= 1


def test_producers_of_a_shuffle_begin_at_different_tasks():
    seen = split("shuffle", 1, 4, producers=4)
    assert [len(rows) for rows in seen] == [1, 1, 1, 1]


def test_global_is_the_lowest_task():
    seen = split("global", 50, 4, producers=2)
    assert [len(rows) for rows in seen] == [100, 0, 0, 0]


def test_none_reaches_every_task_about_evenly_and_the_same_way_again():
    seen = split("none", 4000, 4)
    assert all(850 < len(rows) < 1150 for rows in seen)
    assert seen == split("none", 4000, 4)
    runs = [[n for _, (n,) in rows] for rows in seen]
    assert runs[0][:20] != list(range(0, 80, 4))  # no round-robin in disguise


ROWS = [
    ("storm", 1, None),
    ("storm", 2, None),
    ("spark", 1, ["x"]),
    ("spark", 1.0, ("x",)),
    (None, 3, {"a": [1]}),
    (["nested", "words"], 4, b"1"),
    (["nested", "words"], True, bytearray(b"1")),
]


@pytest.mark.parametrize("positions", [(0,), (1,), (2,), (0, 1), (2, 0), (0, 1, 2)])
@pytest.mark.parametrize("producers", [1, 3])
def test_fields_sends_same_values_to_the_same_task_whoever_sends(positions, producers):
    rows = ROWS * 20
    par = 4
    wired = Wired(
        {
            "s": Part(numbers_as(*rows), par=producers, streams={"default": ("a", "b", "c")}),
            "b": Part(Collect, par=par, streams={}),
        },
        [("s", "default", "b", "fields", positions)],
    )
    wired.open("s", 0, len(rows)).run()
    task_of = {}
    for task, instance in enumerate(wired.instances("b")):
        for _, values in instance.seen:
            key = tuple(hash_of(values[position]) for position in positions)
            assert task_of.setdefault(key, task) == task
    assert sum(len(instance.seen) for instance in wired.instances("b")) == len(rows) * producers
    if len(positions) == 1:
        assert all(key[0] % par == task for key, task in task_of.items())


def test_fields_spreads_keys():
    rows = [(f"word-{n}",) for n in range(2000)]
    wired = Wired(
        {"s": Part(numbers_as(*rows)), "b": Part(Collect, par=5, streams={})}, [("s", "default", "b", "fields", (0,))]
    )
    wired.open("s", 0, len(rows)).run()
    assert all(320 < len(instance.seen) < 480 for instance in wired.instances("b"))


@settings(max_examples=sized(60), deadline=None)
@given(
    queue=st.integers(1, 9),
    batch=st.integers(1, 12),
    quota=st.integers(1, 40),
    par=st.integers(1, 4),
    producers=st.integers(1, 3),
    total=st.integers(0, 150),
    grouping=st.sampled_from(KINDS),
)
def test_any_sizes_give_the_same_rows_in_the_same_order_to_the_same_task(
    queue, batch, quota, par, producers, total, grouping
):
    """Sizes are about speed only: what a task gets from one producer, and in which order, does not depend on them."""
    positions = (0,) if grouping in KEYED else ()
    sized = split(grouping, total, par, producers, positions, queue, batch, quota)
    reference = split(grouping, total, par, producers, positions, queue=1024, batch=1, quota=1)
    for rows, expected in zip(sized, reference, strict=True):
        for producer in range(1, producers + 1):
            assert [row for row in rows if row[0] == producer] == [row for row in expected if row[0] == producer]


def test_one_stream_feeds_many_bolts_each_by_its_own_grouping():
    wired = Wired(
        {"s": Part(Numbers), **{kind: Part(Collect, par=3, streams={}) for kind in KINDS}},
        [("s", "default", kind, kind, (0,) if kind in KEYED else ()) for kind in KINDS],
        queue=2,
        batch=1,
    )
    wired.open("s", 0, 90).run()
    for kind in KINDS:
        got = [n for instance in wired.instances(kind) for (n,) in instance.values]
        assert sorted(got) == sorted(list(range(90)) * (3 if kind == "all" else 1)), kind
    router = wired.named["s"][0].routers["default"]
    assert (router.emitted, router.transferred) == (90, 90 * (len(KINDS) - 1) + 90 * 3)


def test_streams_are_kept_apart():
    class Two(Numbers):
        def next_tuple(self):
            if self.at == self.end:
                return False
            self.emit((self.at,), self.at, stream="odd" if self.at % 2 else "even")
            self.at += 1

    streams = {"odd": ("n",), "even": ("n",), "silent": ("n",)}
    wired = Wired(
        {"s": Part(Two, streams=streams), "o": Part(Keep, streams={}), "e": Part(Keep, streams={})},
        [("s", "odd", "o", "shuffle", ()), ("s", "even", "e", "shuffle", ())],
    )
    wired.open("s", 0, 10).run()
    assert [(tup.stream, tup.values[0]) for tup in wired.instances("o")[0].tuples] == [
        ("odd", n) for n in range(1, 10, 2)
    ]
    assert [(tup.stream, tup.values[0]) for tup in wired.instances("e")[0].tuples] == [
        ("even", n) for n in range(0, 10, 2)
    ]


def test_what_nobody_takes_is_counted_and_dropped():
    wired = Wired({"s": Part(Numbers)})
    wired.open("s", 0, 10).run()
    router = wired.named["s"][0].routers["default"]
    assert (router.emitted, router.transferred, len(wired.named["s"][0].pending)) == (10, 0, 0)


@pytest.mark.parametrize(
    ("grouping", "expected"),
    [("shuffle", 1), ("all", 3), ("global", 1), ("fields", 1), ("none", 1), ("partial_key", 1)],
)
def test_task_ids_are_those_that_get_the_tuple(grouping, expected):
    class Asks(Numbers):
        def next_tuple(self):
            if self.at == self.end:
                return False
            asked.append(self.emit((self.at,), self.at, need_task_ids=True))
            self.at += 1

    asked = []
    wired = Wired(
        {"s": Part(Asks), "b": Part(Collect, par=3, streams={})},
        [("s", "default", "b", grouping, (0,) if grouping in KEYED else ())],
    )
    wired.open("s", 0, 30).run()
    for task, instance in zip(wired.tasks["b"], wired.instances("b"), strict=True):
        assert [n for (n,) in instance.values] == [n for n, ids in enumerate(asked) if task in ids]
    assert {len(ids) for ids in asked} == {expected}
    assert set().union(*asked) <= set(wired.tasks["b"])


def keys_seen(rows, par, producers=1):
    """What each of ``par`` tasks behind a partial key grouping saw of the one-column ``rows``."""
    wired = Wired(
        {"s": Part(numbers_as(*rows), par=producers), "b": Part(Collect, par=par, streams={})},
        [("s", "default", "b", "partial_key", (0,))],
    )
    wired.open("s", 0, len(rows)).run()
    return [instance.seen for instance in wired.instances("b")]


def test_partial_key_uses_two_tasks_per_key_however_hot_it_is():
    keys = ["storm", 7, None, b"x", ["nested", 1], {"a": 1}, 2.5]
    seen = keys_seen([(key,) for _ in range(100) for key in keys], par=6)
    for key in keys:
        shares = [sum(1 for _, (got,) in rows if got == key) for rows in seen]
        assert sum(shares) == 100
        assert sum(share > 0 for share in shares) <= 2, key


def test_partial_key_halves_a_single_hot_key_exactly():
    shares = sorted(len(rows) for rows in keys_seen([("hot",)] * 101, par=5))
    assert shares == [0, 0, 0, 50, 51]


@pytest.mark.parametrize("par", [2, 3, 7])
def test_partial_key_gives_every_key_two_different_tasks(par):
    for n in range(60):
        assert [len(rows) for rows in keys_seen([(f"key-{n}",)] * 2, par) if rows] == [1, 1]


def test_partial_key_spreads_skewed_keys_more_evenly_than_fields():
    rows = [(f"word-{i}",) for i in range(60) for _ in range(600 // (i + 1))]
    partial = [len(task) for task in keys_seen(rows, par=4)]
    wired = Wired(
        {"s": Part(numbers_as(*rows)), "b": Part(Collect, par=4, streams={})}, [("s", "default", "b", "fields", (0,))]
    )
    wired.open("s", 0, len(rows)).run()
    fields = [len(instance.seen) for instance in wired.instances("b")]
    assert max(partial) < max(fields)
    assert max(partial) - min(partial) < len(rows) // 10


def test_partial_key_counts_for_each_producer_alone():
    """What one producer sent does not sway another: both split the key the same way."""
    seen = keys_seen([("hot",)] * 10, par=3, producers=2)
    for producer in (1, 2):
        assert sorted(sum(1 for task, _ in rows if task == producer) for rows in seen) == [0, 5, 5]


def test_partial_key_with_one_task_is_that_task():
    assert [len(rows) for rows in keys_seen([("a",), ("b",)], par=1)] == [2]


def direct_pair(par=3, fields=("n",), view=False):
    """A spout task with a direct stream towards ``par`` tasks of a bolt, ids 2 …, and its router."""
    wired = Wired(
        {"s": Part(Numbers, streams={"default": fields}, direct=("default",)), "b": Part(Collect, par=par, streams={})},
        [("s", "default", "b", "direct", ())],
    )
    return wired, wired.named["s"][0].routers["default"]


def test_a_direct_emit_reaches_the_task_that_it_names_and_no_other():
    class Names(Numbers):
        def next_tuple(self):
            if self.at == self.end:
                return False
            sent.append(wired.named["s"][0].routers["default"].route_direct([self.at], self.at, 2 + self.at % 3))
            self.at += 1

    sent = []
    wired = Wired(
        {"s": Part(Names, direct=("default",)), "b": Part(Collect, par=3, streams={})},
        [("s", "default", "b", "direct", ())],
        queue=2,
        batch=1,
    )
    wired.open("s", 0, 90).run()
    for task, instance in enumerate(wired.instances("b")):
        assert instance.values == [(n,) for n in range(task, 90, 3)]
    assert sent == [1] * 90
    router = wired.named["s"][0].routers["default"]
    assert (router.direct, router.emitted, router.transferred) == (True, 90, 90)


@pytest.mark.parametrize("task", [1, 5, -1, 0, 2**40])
def test_a_direct_emit_to_a_task_that_does_not_subscribe_sends_nothing(task):
    _, router = direct_pair()
    assert router.route_direct((1,), -1, task) == 0
    assert (router.emitted, router.transferred) == (1, 0)


@pytest.mark.parametrize("task", ["2", 2.0, None, True])
def test_a_direct_task_is_an_int(task):
    _, router = direct_pair()
    with pytest.raises(TypeError, match=rf"a task id, an int, as in .*task->component.*; Given: {task!r}"):
        router.route_direct((1,), -1, task)
    assert router.emitted == 0


@pytest.mark.parametrize("par", [1, 3])
def test_a_plain_emit_on_a_direct_stream_is_an_error(par):
    wired, _ = direct_pair(par)
    wired.open("s", 0, 1)
    with pytest.raises(ComponentFailed) as failed:
        wired.run()
    assert isinstance(failed.value.__cause__, ValueError)
    assert str(failed.value.__cause__).startswith("stream 'default' of 's' is direct: name a task")


def test_a_direct_emit_on_a_stream_that_is_not_direct_is_an_error():
    wired = Wired({"s": Part(Numbers), "b": Part(Collect, par=3, streams={})}, [("s", "default", "b", "shuffle", ())])
    router = wired.named["s"][0].routers["default"]
    with pytest.raises(ValueError, match=r"stream 'default' of 's' is not direct: declare it.*Given: 2"):
        router.route_direct((1,), -1, 2)
    assert router.emitted == 0


def test_one_direct_stream_feeds_several_bolts_each_by_its_own_tasks():
    wired = Wired(
        {
            "s": Part(Numbers, direct=("default",)),
            "a": Part(Collect, par=2, streams={}),
            "b": Part(Collect, par=2, streams={}),
        },
        [("s", "default", "a", "direct", ()), ("s", "default", "b", "direct", ())],
    )
    router = wired.named["s"][0].routers["default"]
    assert [router.route_direct((task,), -1, task) for task in (2, 3, 4, 5)] == [1, 1, 1, 1]
    wired.named["s"][0].pending.clear()
    wired.open("s", 0, 0).run()
    assert [instance.values for name in "ab" for instance in wired.instances(name)] == [[(2,)], [(3,)], [(4,)], [(5,)]]


def test_rows_of_a_direct_stream_that_is_the_output_are_its_direct_emits():
    class Names(Numbers):
        def next_tuple(self):
            if self.at == self.end:
                return False
            wired.named["s"][0].routers["default"].route_direct((self.at,), self.at, 99)
            self.at += 1

    wired = Wired(
        {"s": Part(Names, direct=("default",))}, output=pa.schema([("n", pa.int64())]), views=[("s", "default")]
    )
    wired.open("s", 0, 5).run()
    assert [row for batch in wired.done for row in batch.to_pylist()] == [{"n": n} for n in range(5)]


class Threes:
    """Answers by the number: none, one, or several tasks."""

    def choose_tasks(self, task, values):
        assert task == 1
        (n,) = values
        return [[], [3], [2, 4], (4, 4)][n % 4]


def test_a_custom_grouping_sends_to_exactly_the_tasks_that_it_answers():
    class Asks(Numbers):
        def next_tuple(self):
            if self.at == self.end:
                return False
            asked.append(self.emit((self.at,), self.at, need_task_ids=True))
            self.at += 1

    asked = []
    wired = Wired(
        {"s": Part(Asks), "b": Part(Collect, par=3, streams={})}, [("s", "default", "b", Threes, ())], queue=2, batch=1
    )
    wired.open("s", 0, 40).run()
    seen = [[n for (n,) in instance.values] for instance in wired.instances("b")]
    assert seen[0] == [n for n in range(40) if n % 4 == 2]
    assert seen[1] == [n for n in range(40) if n % 4 == 1]
    assert seen[2] == [n for n in range(40) for _ in range([0, 0, 1, 2][n % 4])]
    assert asked == [[], [3], [2, 4], [4, 4]] * 10
    router = wired.named["s"][0].routers["default"]
    assert (router.emitted, router.transferred) == (40, 50)


class Never:
    def choose_tasks(self, task, values):
        return []


def test_a_custom_grouping_is_asked_even_where_there_is_one_task():
    wired = Wired({"s": Part(Numbers), "b": Part(Collect, streams={})}, [("s", "default", "b", Never, ())])
    wired.open("s", 0, 10).run()
    assert wired.instances("b")[0].seen == []


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (None, TypeError, "must answer a list of task ids; Given: None"),
        (3, TypeError, "must answer a list of task ids; Given: 3"),
        ("3", TypeError, "must answer a list of task ids; Given: '3'"),
        ([2, 9], ValueError, r"must answer some of the task ids \[2, 3\]; Given: \[2, 9\]"),
        (["2"], ValueError, r"must answer some of the task ids \[2, 3\]; Given: \['2'\]"),
        ([[2]], ValueError, r"must answer some of the task ids \[2, 3\]; Given: \[\[2\]\]"),
    ],
)
def test_a_wrong_answer_of_a_custom_grouping_names_it_and_sends_nothing(answer, error, says):
    class Odd:
        def choose_tasks(self, task, values):
            return answer

    wired = Wired({"s": Part(Numbers), "b": Part(Collect, par=2, streams={})}, [("s", "default", "b", Odd, ())])
    wired.open("s", 0, 1)
    with pytest.raises(ComponentFailed) as failed:
        wired.run()
    cause = failed.value.__cause__
    assert type(cause) is error
    assert re.fullmatch(rf"Odd\.choose_tasks, the grouping of stream 'default' of 's', {says}", str(cause))
    assert wired.named["s"][0].routers["default"].transferred == 0


def test_what_a_custom_grouping_raises_fails_the_producer():
    class Raises:
        def choose_tasks(self, task, values):
            raise LookupError("no such key")

    wired = Wired({"s": Part(Numbers), "b": Part(Collect, par=2, streams={})}, [("s", "default", "b", Raises, ())])
    wired.open("s", 0, 1)
    with pytest.raises(ComponentFailed) as failed:
        wired.run()
    assert isinstance(failed.value.__cause__, LookupError)


def inserters(n, batch=1):
    return tuple(BatchInserter(ReceiveQueue(4), task, batch) for task in range(n))


def test_routes_refuse_what_would_lead_nowhere():
    with pytest.raises(ValueError, match="none, direct, partial_key, custom; Given: 'random'"):
        Route("random", inserters(1))
    with pytest.raises(ValueError, match="has an object that chooses; Given: None"):
        Route("custom", inserters(1))
    with pytest.raises(ValueError, match="has an object that chooses; Given: 'x'"):
        Route("fields", inserters(1), (0,), custom="x")
    with pytest.raises(ValueError, match=r"at least one BatchInserter; Given: \(\)"):
        Route("shuffle", ())
    with pytest.raises(ValueError, match="Given: "):
        Route("shuffle", ("x",))
    with pytest.raises(ValueError, match=r"index, 0 or more; Given: \(-1,\)"):
        Route("fields", inserters(2), (-1,))


def test_routers_refuse_routes_that_do_not_fit_the_stream():
    source = TupleSource("c", "default", 1, ("a", "b"))
    with pytest.raises(ValueError, match=r"selects value 2; Given: \('a', 'b'\)"):
        StreamRouter(source, PendingEmits(), (Route("fields", inserters(2), (0, 2)),))
    with pytest.raises(TypeError, match="Given: 'x'"):
        StreamRouter(source, PendingEmits(), ("x",))
    with pytest.raises(TypeError):
        StreamRouter(None, PendingEmits())
    with pytest.raises(ValueError, match=r"declared with direct=True.*Given: c.default\[1\] with direct=False"):
        StreamRouter(source, PendingEmits(), (Route("direct", inserters(2)),))
    with pytest.raises(ValueError, match=r"declared with direct=True.*Given: c.default\[1\] with direct=True"):
        StreamRouter(source, PendingEmits(), (Route("shuffle", inserters(2)),), direct=True)
    StreamRouter(source, PendingEmits(), (Route("fields", inserters(2), (1, 0)),))


@pytest.mark.parametrize("seed", [-5, -1, 0, 1, 2**31 - 1])
def test_any_task_id_is_a_seed(seed):
    route = Route("shuffle", inserters(3), (), seed)
    assert len(route.inserters) == 3


@pytest.mark.parametrize("size", [0, -3])
def test_a_batch_holds_at_least_one(size):
    with pytest.raises(ValueError, match=f"at least one tuple; Given: {size}"):
        BatchInserter(ReceiveQueue(1), 1, size)
