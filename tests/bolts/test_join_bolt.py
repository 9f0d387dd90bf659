"""JoinBolt: each tuple is in one join or expires, whatever comes first, fails or takes its time."""

import gc
import random
from collections import Counter

import pytest

from pystorm_source import Bolt, Grouping, JoinBolt, Spout, Stream, Topology
from pystorm_source.errors import TopologyError, TupleFailed
from pystorm_source.exceptions import Hopeless
from pystorm_source.plan import compile_plan
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import ABORT, EOF, ON, PAUSE, ScriptedSpout, run_topology

SIDES = [Stream(["id long", "left string"], name="left"), Stream(["id long", "right string"], name="right")]


def left(id, text):
    return ON("left", [id, text])


def right(id, text):
    return ON("right", [id, text])


class Pair(JoinBolt):
    outputs = ["left string", "right string", Stream(["side string", "text string"], name="expired")]

    def process_join(self, tups):
        self.emit([tups["sides.left"].values.left, tups["sides.right"].values.right])

    def process_expired(self, tups):
        for name, tup in tups.items():
            self.emit([name, tup.values[1]], stream="expired")


BY_ID = Grouping.fields("id")


def pairs(*script, cls=Pair, grouping=BY_ID, par=1):
    class Pairs(Topology):
        sides = ScriptedSpout.of(SIDES, *script).spec()
        pair = cls.spec(inputs={sides["left"]: grouping, sides["right"]: grouping}, par=par)

    return Pairs


@pytest.mark.parametrize("scheduler", ["inline", "threads"])
def test_what_belongs_together_is_joined_whatever_comes_first(scheduler):
    result = run_topology(
        pairs(left(1, "a"), right(2, "b"), right(1, "c"), left(3, "d"), left(2, "e"), par=2), scheduler=scheduler
    )
    assert sorted(result.rows("pair")) == [("a", "c"), ("e", "b")]
    assert result.rows("pair", "expired") == [("sides.left", "d")]


def test_of_several_with_one_key_the_first_ones_are_joined():
    result = run_topology(pairs(left(1, "a"), left(1, "b"), right(1, "c"), left(1, "d"), right(1, "e")))
    assert result.rows("pair") == [("a", "c"), ("b", "e")]
    assert result.rows("pair", "expired") == [("sides.left", "d")]


def test_nothing_waits_from_one_micro_batch_to_the_next():
    result = run_topology(pairs(left(1, "a"), EOF, right(1, "b")))
    assert result.rows("pair") == []
    assert sorted(result.rows("pair", "expired")) == [("sides.left", "a"), ("sides.right", "b")]


class Patient(Pair):
    join_timeout_secs = 10.0


@pytest.mark.parametrize("scheduler", ["inline", "threads"])
def test_what_has_waited_for_too_long_expires(scheduler):
    script = [left(1, "late"), PAUSE(6), left(2, "in time"), PAUSE(6), right(1, "alone"), right(2, "found")]
    result = run_topology(pairs(*script, cls=Patient), scheduler=scheduler)
    assert result.rows("pair") == [("in time", "found")]
    assert result.rows("pair", "expired") == [("sides.left", "late"), ("sides.right", "alone")]


def test_it_may_wait_for_longer_than_a_tree_may_take():
    script = [left(1, "a"), PAUSE(100), right(1, "b")]
    result = run_topology(pairs(*script), {"topology.message.timeout.secs": 30})
    assert result.rows("pair") == [("a", "b")]
    assert result.failed["sides"] == 0


def test_a_failure_behind_a_join_fails_all_its_tuples():
    class Behind(Bolt):
        outputs = ["left string", "right string"]
        seen = 0

        def process(self, tup):
            type(self).seen += 1
            if type(self).seen == 1:
                self.fail(tup)
            else:
                self.emit(list(tup.values))

    class Pairs(Topology):
        sides = ScriptedSpout.of(SIDES, left(1, "a"), right(1, "b"), left(2, "c"), right(2, "d")).spec()
        pair = Pair.spec(inputs={sides["left"]: Grouping.fields("id"), sides["right"]: Grouping.fields("id")})
        behind = Behind.spec(inputs=[pair])

    result = run_topology(Pairs)
    assert sorted(result.rows("behind")) == [("a", "b"), ("c", "d")]
    assert result.failed["sides"] == 2


def test_a_task_that_dies_joins_once():
    result = run_topology(pairs(left(1, "a"), ABORT, left(2, "b"), right(2, "c"), ABORT, right(1, "d")))
    assert sorted(result.rows("pair")) == [("a", "d"), ("b", "c")]
    assert result.rows("pair", "expired") == []


@pytest.mark.parametrize("scheduler", ["inline", "threads"])
def test_a_tuple_whose_tree_fails_while_it_waits_is_joined_when_it_comes_again(scheduler):
    class Fails(Bolt):
        """Fails the first two left ones, each once; the join holds them meanwhile."""

        outputs = ["n long"]
        failed: set = set()

        def process(self, tup):
            if tup.values.id not in self.failed:
                self.failed.add(tup.values.id)
                self.fail(tup)

    class Pairs(Topology):
        sides = ScriptedSpout.of(
            SIDES, left(1, "a"), left(2, "b"), PAUSE(1), right(2, "c"), right(1, "d"), left(3, "e")
        ).spec()
        pair = Pair.spec(inputs={sides["left"]: Grouping.fields("id"), sides["right"]: Grouping.fields("id")})
        fails = Fails.spec(inputs=[sides["left"]])

    result = run_topology(Pairs, scheduler=scheduler)
    assert sorted(result.rows("pair")) == [("a", "d"), ("b", "c")]
    assert result.rows("pair", "expired") == [("sides.left", "e")]
    assert result.failed["sides"] == 3


class Raises(Pair):
    error, text = ValueError, "no"
    raised = 0

    def process_join(self, tups):
        if tups["sides.left"].values.id == 1 and type(self).raised < 1:
            type(self).raised += 1
            raise self.error(self.text)
        super().process_join(tups)


def test_an_exception_names_the_method_and_ends_the_task():
    class Raising(Raises):
        raised = 0

    with pytest.raises(TupleFailed, match=r"process_join"):
        run_topology(pairs(left(1, "a"), right(1, "b"), cls=Raising))


def test_a_worker_that_failed_is_let_go_with_what_waited():
    class Ends(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            raise ValueError("the end")

    class Waits(Pair):
        pass

    class Pairs(Topology):
        sides = ScriptedSpout.of(SIDES, *(left(n, "a") for n in range(1000)), right(2000, "b")).spec()
        pair = Waits.spec(inputs={sides["left"]: Grouping.fields("id"), sides["right"]: Grouping.fields("id")})
        ends = Ends.spec(inputs=[sides["right"]])

    with pytest.raises(TupleFailed):
        run_topology(Pairs)
    gc.collect()
    assert [each for each in gc.get_objects() if isinstance(each, Waits)] == []


def test_an_exception_that_does_not_end_it_fails_the_join_alone():
    class Surviving(Raises):
        raised = 0
        exit_on_exception = False

    script = [left(1, "a"), left(2, "c"), right(1, "b"), right(2, "d")]
    result = run_topology(pairs(*script, cls=Surviving))
    assert sorted(result.rows("pair")) == [("a", "b"), ("c", "d")]
    assert result.failed["sides"] == 2
    assert len(result.errors) == 1 and "process_join" in str(result.errors[0])


def test_a_hopeless_join_goes_to_the_dead_letters():
    class Giving(Raises):
        raised = 0
        error = Hopeless

    script = [left(1, "a"), right(1, "b"), left(2, "c"), right(2, "d")]
    result = run_topology(pairs(*script, cls=Giving), {"topology.dead.letter": "drop"})
    assert result.rows("pair") == [("c", "d")]


def test_an_exception_in_process_expired_is_tried_again():
    class Expiring(Pair):
        exit_on_exception = False
        raised = 0

        def process_expired(self, tups):
            type(self).raised += 1
            if type(self).raised == 1:
                raise ValueError("once")
            super().process_expired(tups)

    result = run_topology(pairs(left(1, "a"), left(2, "b"), cls=Expiring))
    assert sorted(result.rows("pair", "expired")) == [("sides.left", "a"), ("sides.left", "b")]


def test_what_expires_at_one_time_expires_though_the_first_one_raises():
    class Expiring(Patient):
        exit_on_exception = False
        raised = 0

        def process_expired(self, tups):
            type(self).raised += 1
            if type(self).raised == 1:
                raise ValueError("once")
            super().process_expired(tups)

    result = run_topology(pairs(*(left(n, str(n)) for n in range(5)), PAUSE(20), cls=Expiring))
    assert sorted(result.rows("pair", "expired")) == [("sides.left", str(n)) for n in range(5)]
    assert sum(result.unsettled.values()) == 0


def test_where_a_spout_waits_for_what_waits_the_oldest_expires():
    script = [*(left(id, f"l{id}") for id in range(4)), *(right(id, f"r{id}") for id in range(1, 4))]
    result = run_topology(pairs(*script), {"topology.max.spout.pending": 4})
    assert result.rows("pair") == [(f"l{id}", f"r{id}") for id in range(1, 4)]
    assert result.rows("pair", "expired") == [("sides.left", "l0")]


def test_none_matches_nothing_and_nan_itself():
    sides = [Stream(["key double", "left string"], name="left"), Stream(["key double", "right string"], name="right")]
    nan = float("nan")

    class ByFloat(Pair):
        join_keys = {"sides.left": "key", "sides.right": "key"}

    class Pairs(Topology):
        sides_ = ScriptedSpout.of(
            sides,
            ON("left", [None, "a"]),
            ON("left", [nan, "b"]),
            ON("left", [0.0, "c"]),
            ON("right", [None, "d"]),
            ON("right", [float("nan"), "e"]),
            ON("right", [-0.0, "f"]),
        ).spec(name="sides")
        pair = ByFloat.spec(inputs=[sides_["left"], sides_["right"]])

    result = run_topology(Pairs)
    assert sorted(result.rows("pair")) == [("b", "e"), ("c", "f")]
    assert sorted(result.rows("pair", "expired")) == [("sides.left", "a"), ("sides.right", "d")]


ORDERS = [
    Stream(["id long", "payment long"], name="orders"),
    Stream(["payment long", "amount double"], name="payments"),
    Stream(["order long", "carrier string"], name="shipments"),
    Stream(["order long", "note string"], name="notes"),
]


class Shipped(JoinBolt):
    outputs = ["order long", "amount double", "carrier string", "note string", Stream(["names string"], name="expired")]
    join_keys = {
        "shop.orders": {"payment": "payment", "order": "id"},
        "shop.payments": {"payment": "payment"},
        "shop.shipments": {"order": "order"},
        "shop.notes": {"order": ["order"]},
    }

    def process_join(self, tups):
        self.emit(
            [
                tups["shop.orders"].values.id,
                tups["shop.payments"].values.amount,
                tups["shop.shipments"].values.carrier,
                tups["shop.notes"].values.note,
            ]
        )

    def process_expired(self, tups):
        self.emit([" ".join(sorted(tups))], stream="expired")


@pytest.mark.parametrize("seed", range(20))
def test_by_several_keys_in_any_order(seed):
    chance = random.Random(seed)
    events = []
    for id in range(30):
        events += [
            ON("orders", [id, 100 + id]),
            ON("payments", [100 + id, id / 2]),
            ON("shipments", [id, f"c{id}"]),
            ON("notes", [id, f"n{id}"]),
        ]
    chance.shuffle(events)
    left_out = [events.pop() for _ in range(5)]
    incomplete = {event.values[0] - 100 if event.stream == "payments" else event.values[0] for event in left_out}

    class Shop(Topology):
        shop = ScriptedSpout.of(ORDERS, *events).spec()
        shipped = Shipped.spec(inputs=[shop["orders"], shop["payments"], shop["shipments"], shop["notes"]])

    result = run_topology(Shop, seed=seed)
    whole = [(id, id / 2, f"c{id}", f"n{id}") for id in range(30) if id not in incomplete]
    assert sorted(result.rows("shipped")) == whole
    names = sum(len(names.split()) for (names,) in result.rows("shipped", "expired"))
    assert names == len(events) - 4 * len(whole)  # each of them once


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("seed", range(5))
def test_two_spouts_meet_across_the_cluster(tasks, seed):
    chance = random.Random(seed)
    sold = [[chance.randrange(20), f"s{n}"] for n in range(200)]
    paid = [[chance.randrange(20), f"p{n}"] for n in range(200)]

    class Join(JoinBolt):
        outputs = ["key long", "sold string", "paid string", Stream(["text string"], name="expired")]
        join_keys = {"sold": "key", "paid": "order"}

        def process_join(self, tups):
            self.emit([tups["sold"].values.key, tups["sold"].values.text, tups["paid"].values.text])

        def process_expired(self, tups):
            for tup in tups.values():
                self.emit([tup.values.text], stream="expired")

    class Shop(Topology):
        sold_ = MemorySpout.spec(fields=["key long", "text string"], rows=sold, name="sold")
        paid_ = MemorySpout.spec(fields=["order long", "text string"], rows=paid, name="paid")
        join = Join.spec(inputs={sold_: Grouping.fields("key"), paid_: Grouping.fields("order")}, par=2)

    result = run_topology(Shop, scope="cluster", tasks=tasks, seed=seed)
    joined = result.rows("join")
    keys = Counter(key for key, _, _ in joined)
    mine, theirs = Counter(key for key, _ in sold), Counter(key for key, _ in paid)
    assert keys == {key: min(mine[key], theirs[key]) for key in mine if theirs[key]}
    given = [text for _, one, other in joined for text in (one, other)]
    given += [text for (text,) in result.rows("join", "expired")]
    assert sorted(given) == sorted(text for _, text in sold + paid)  # each of them once


@pytest.mark.timeout(60)  # ten times as much as it needs; were a key walked along, it would take an hour
def test_a_key_that_a_hundred_thousand_tuples_have_costs_what_any_other_does():
    class Hot(Spout):
        outputs = [Stream(["key long"], name="left"), Stream(["key long"], name="right")]

        def initialize(self, conf, context):
            self.sent = 0

        def next_tuple(self):
            if self.sent < 100_000:
                self.emit([1], stream="left" if self.sent < 50_000 else "right")
                self.sent += 1

    class Count(JoinBolt):
        outputs = ["n long"]

        def initialize(self, conf, context):
            self.n = 0

        def process_join(self, tups):
            self.n += 1

        def process_tick(self, tup):
            self.emit([self.n])

    class Counts(Topology):
        hot = Hot.spec()
        count = Count.spec(inputs={hot["left"]: Grouping.fields("key"), hot["right"]: Grouping.fields("key")})

    assert run_topology(Counts).rows("count")[-1] == (50_000,)


# --- what is refused -------------------------------------------------------------------------------------------------


def wrong(keys, match, inputs=None, *, par=1, cut=False):
    class Odd(Pair):
        join_keys = keys

    class Pairs(Topology):
        sides = ScriptedSpout.of([*SIDES, Stream(["id string"], name="text")]).spec()
        other = MemorySpout.spec(fields=["id long", "n long"], rows=[])
        pair = Odd.spec(
            inputs={
                sides["left"]: Grouping.fields("id"),
                sides["right"]: Grouping.fields("id"),
                **({sides[inputs]: Grouping.fields("id")} if inputs else {}),
            },
            par=par,
        )

    with pytest.raises(TopologyError, match=match) as caught:
        compile_plan(Pairs)
    assert "[PYSTORM_INVALID_TOPOLOGY]" in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "inputs", "match"),
    [
        ({"sides.left": "id"}, None, "no key for its input 'sides.right'"),
        ({"sides.left": "id", "sides.rihgt": "id"}, None, "did you mean 'sides.right'"),
        ({"sides.left": "id", "sides.right": "ids"}, None, "did you mean 'id'"),
        ({"sides.left": "id", "sides.right": 1}, None, "no field and no list"),
        ({"sides.left": "id", "sides.right": ["id", "right"]}, None, "of 1 fields in 'sides.left' and of 2"),
        ({"sides.left": "id", "sides.right": "right"}, None, "never equal"),
        (["id"], None, "no dict"),
        ({"sides.left": {"a": "id"}, "sides.right": {"b": "id"}}, None, "only one input has"),
        ({"sides.left": {"a": "id", "b": "left"}, "sides.right": {"a": "id", "b": "right"}}, None, "more than one way"),
        (
            {"sides.left": {"a": "id"}, "sides.right": {"a": "id"}, "sides.text": {"b": "id"}},
            "text",
            "only one input has",
        ),
    ],
)
def test_wrong_keys_are_refused(keys, inputs, match):
    wrong(keys, match, inputs)


def test_one_input_is_no_join():
    class Pairs(Topology):
        sides = ScriptedSpout.of(SIDES).spec()
        pair = Pair.spec(inputs={sides["left"]: Grouping.fields("id")})

    with pytest.raises(TopologyError, match="two streams or more"):
        compile_plan(Pairs)


def test_without_keys_the_groupings_name_them():
    with pytest.raises(TopologyError, match="by shuffle, which names no key"):
        compile_plan(pairs(grouping=Grouping.SHUFFLE))


class ByText(Pair):
    join_keys = {"sides.left": "id", "sides.right": "id"}


@pytest.mark.parametrize("grouping", [Grouping.SHUFFLE, Grouping.ALL])
def test_what_belongs_together_must_meet(grouping):
    topology = pairs(left(1, "a"), right(1, "b"), cls=ByText, grouping=grouping)
    assert run_topology(topology).rows("pair") == [("a", "b")]  # one task gets all
    for run in (
        lambda: run_topology(pairs(left(1, "a"), cls=ByText, grouping=grouping, par=2)),
        lambda: run_topology(topology, scope="cluster"),
    ):
        with pytest.raises(TopologyError, match="in different tasks"):
            run()


def test_it_has_a_method_to_join():
    class Nothing(JoinBolt):
        outputs = ["n long"]

    class Pairs(Topology):
        sides = ScriptedSpout.of(SIDES).spec()
        pair = Nothing.spec(inputs={sides["left"]: Grouping.fields("id"), sides["right"]: Grouping.fields("id")})

    with pytest.raises(TopologyError, match=r"must define process_join\(tups\)"):
        compile_plan(Pairs)


def test_alone_it_says_where_it_joins():
    from pystorm_source import Tuple

    bolt = Pair()
    with pytest.raises(RuntimeError, match=r"run_topology"):
        bolt.process(Tuple(1, "sides", "left", 1, [1, "a"]))
