"""``process_many``: what has come, in one call; the verdict of each tuple and what emits are anchored to."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cython_core.executors.executor import ComponentFailed
from cython_core.routing.component_base import BoltBase
from tests.core.wired import Collect, Numbers, Part, Wired, slice_of

SCHEMA = pa.schema([("n", pa.int64())])


class Many(BoltBase):
    """Emits what it gets, and keeps how much came together."""

    def __init__(self):
        self.calls = []

    def process_many(self, tups):
        self.calls.append([tup.values[0] for tup in tups])
        self.emit_many([tup.values[0] for tup in tups])


def run(spout, bolt, edges=("shuffle",), last=Collect, **given):
    """``spout`` → ``bolt`` → ``last``, of as many tasks as there are edges' letters."""
    parts = {"s": Part(spout), "b": Part(bolt), "c": Part(last, streams={})}
    wires = [("s", "default", "b", "shuffle", ()), *[("b", "default", "c", how, (0,)) for how in edges]]
    wired = Wired(parts, wires, **given)
    wired.named["s"][0].open_slice(1 << 40, True)
    wired.run()
    return wired


def test_it_gets_what_has_come_in_order_and_all_of_it():
    wired = run(slice_of(*[(n,) for n in range(20)]), Many, queue=8, batch=4)
    calls = wired.instances("b")[0].calls
    assert [n for call in calls for n in call] == list(range(20))
    assert max(map(len, calls)) > 1
    assert wired.instances("c")[0].values == [(n,) for n in range(20)]
    (executor,) = wired.named["b"]
    assert (executor.executed, executor.acks, executor.fails) == (20, 20, 0)


def test_a_call_gets_no_more_than_a_turn_may():
    wired = run(slice_of(*[(n,) for n in range(20)]), Many, queue=8, batch=4, quota=3)
    assert max(map(len, wired.instances("b")[0].calls)) <= 3


def test_a_call_that_emits_more_than_there_is_room_for_makes_the_next_one_smaller():
    class Fourfold(Many):
        def process_many(self, tups):
            super().process_many([tup for tup in tups for _ in range(4)])

    wired = run(slice_of(*[(n,) for n in range(400)]), Fourfold, queue=64, batch=4)
    sizes = [len(call) // 4 for call in wired.instances("b")[0].calls]
    assert sum(sizes) == 400
    assert max(sizes) == 32
    assert max(sizes[2:]) <= 20


@given(
    rows=st.integers(1, 12),
    fails=st.sets(st.integers(0, 11)),
    ids=st.booleans(),
    many=st.booleans(),
    batch=st.sampled_from([1, 3]),
    quota=st.sampled_from([1, 2, 256]),
)
def test_of_tuples_that_it_fails_itself_the_spout_is_told_and_of_no_others(rows, fails, ids, many, batch, quota):
    class Fails(Many):
        def process_many(self, tups):
            for tup in tups:
                if tup.values[0] in fails:
                    self.fail(tup)
                elif many:
                    self.emit_many([tup.values[0]], anchors=[tup])
                else:
                    self.emit((tup.values[0],), anchors=[tup])

    numbers = [f"id {n}" if ids else None for n in range(rows)]
    wired = run(slice_of(*[(n,) for n in range(rows)], ids=numbers), Fails, batch=batch, quota=quota)
    kept = [n for n in range(rows) if n not in fails]
    assert wired.instances("c")[0].values == [(n,) for n in kept]
    expected = {("ack" if n in kept else "fail", f"id {n}") for n in range(rows)} if ids else set()
    assert set(wired.instances("s")[0].told) == expected
    assert wired.named["s"][0].unsettled == 0


class FailsSome(Collect):
    def process(self, tup):
        super().process(tup)
        if tup.values[0] == 1:
            self.fail(tup)


@pytest.mark.parametrize("edges", [("shuffle",), ("fields",), ("all", "shuffle"), ("partial_key",)])
@pytest.mark.parametrize("columns", [True, False])
def test_an_emit_without_anchors_belongs_to_all_tuples_of_the_call(edges, columns):
    class Whole(Many):
        def process_many(self, tups):
            if columns:
                super().process_many(tups)
            else:
                for tup in tups:
                    self.emit((tup.values[0],))

    wired = run(slice_of(*[(n,) for n in range(3)], ids="abc"), Whole, edges, last=FailsSome, batch=3)
    assert sorted(wired.instances("s")[0].told) == [("fail", "a"), ("fail", "b"), ("fail", "c")]
    wired = run(slice_of(*[(n + 5,) for n in range(3)], ids="abc"), Whole, edges, last=FailsSome, batch=3)
    assert sorted(wired.instances("s")[0].told) == [("ack", "a"), ("ack", "b"), ("ack", "c")]
    assert wired.named["s"][0].unsettled == 0


def test_a_bolt_behind_acks_by_the_call_too():
    class Last(Collect):
        def process_many(self, tups):
            for tup in tups:
                self.seen.append((tup.task, tuple(tup.values)))

    wired = run(slice_of(*[(n,) for n in range(9)], ids="abcdefghi"), Many, last=Last, batch=3)
    assert [verdict for verdict, _ in wired.instances("s")[0].told] == ["ack"] * 9
    assert wired.named["s"][0].unsettled == 0


def test_if_it_raises_all_of_them_fail_and_the_task_with_them():
    class Raises(Many):
        def process_many(self, tups):
            raise ValueError("no")

    with pytest.raises(ComponentFailed) as caught:
        run(slice_of(*[(n,) for n in range(3)], ids="abc"), Raises, batch=3)
    assert (caught.value.method, caught.value.tuple.values[0]) == ("process_many", 0)
    assert isinstance(caught.value.__cause__, ValueError)


def test_if_the_bolt_goes_on_after_it_raised_the_spout_is_told():
    class Raises(Many):
        exit_on_exception = False

        def process_many(self, tups):
            if any(tup.values[0] == 1 for tup in tups):
                raise ValueError("no")
            super().process_many(tups)

    wired = run(slice_of(*[(n,) for n in range(6)], ids="abcdef"), Raises, batch=3, quota=3)
    assert sorted(wired.instances("s")[0].told) == [(v, i) for v, i in zip(
        ["ack"] * 3 + ["fail"] * 3, "defabc", strict=True
    )]  # fmt: skip
    assert (wired.named["b"][0].errors, wired.named["b"][0].fails) == (1, 3)


def test_a_tuple_that_it_keeps_stays_what_it_is():
    class Keeps(Many):
        auto_ack = False

        def __init__(self):
            super().__init__()
            self.kept = []

        def process_many(self, tups):
            self.kept.append(tups)
            self.emit_many([tup.values[0] for tup in tups])

        def process_tick(self, tup):
            for tups in self.kept:
                for each in tups:
                    self.ack(each)

    wired = run(slice_of(*[(n,) for n in range(9)], ids="abcdefghi"), Keeps, batch=3)
    assert [tup.values[0] for tups in wired.instances("b")[0].kept for tup in tups] == list(range(9))
    assert [verdict for verdict, _ in wired.instances("s")[0].told] == ["ack"] * 9


def test_what_it_does_to_its_list_changes_no_verdict():
    class Clears(Many):
        def process_many(self, tups):
            tups[:].clear()
            with pytest.raises(TypeError):
                del tups[0]

    wired = run(slice_of(*[(n,) for n in range(9)], ids="abcdefghi"), Clears, batch=3)
    assert [verdict for verdict, _ in wired.instances("s")[0].told] == ["ack"] * 9


def test_rows_of_an_output_of_several_trees_are_all_there_or_none():
    parts = {"s": Part(Numbers), "b": Part(Many)}
    wired = Wired(parts, [("s", "default", "b", "shuffle", ())], batch=3, output=SCHEMA, views=[("b", "default")])
    wired.open("s", 0, 10).run()
    assert [row["n"] for batch in wired.done for row in batch.to_pylist()] == list(range(10))


def test_a_process_many_replaces_the_process_of_a_base():
    class Both(Collect):
        def process_many(self, tups):
            self.seen.append(len(tups))

    wired = run(slice_of((1,), (2,)), Many, last=Both)
    assert sum(wired.instances("c")[0].seen) == 2
