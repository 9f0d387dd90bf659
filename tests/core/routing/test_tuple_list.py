"""``TupleList``: what process_many is given, by tuple and by column."""

import pytest

from cython_core.routing.component_base import BoltBase
from cython_core.routing.tuple_list import TupleList
from cython_core.tuples.tuple import Tuple
from tests.core.wired import Part, Wired, slice_of

FIELDS = ("word", "count")
WORDS = [("cow", 1), ("dog", 2), ("cow", 3), ("cat", 4), ("dog", 5), ("cow", 6), ("owl", 7)]


class Sends(BoltBase):
    """All rows in one emit of columns."""

    def process(self, tup):
        words, counts = zip(*WORDS, strict=True)
        self.emit_many(words, counts)


def given(process_many, auto_ack=True, quota=256):
    """What the calls of ``process_many`` return, and what ran."""
    answers = []

    class Gets(BoltBase):
        def process_many(self, tups):
            answers.append(process_many(self, tups))

    Gets.auto_ack = auto_ack
    parts = {"s": Part(slice_of((0,), ids="a")), "b": Part(Sends, streams={"default": FIELDS})}
    parts["c"] = Part(Gets, streams={})
    wires = [("s", "default", "b", "shuffle", ()), ("b", "default", "c", "shuffle", ())]
    wired = Wired(parts, wires, quota=quota)
    wired.named["s"][0].open_slice(1 << 40, True)
    wired.run()
    return answers, wired


def test_it_is_a_sequence_of_tuples():
    def look(bolt, tups):
        first, *others = tups
        assert first == tups[0] and first in tups
        assert [each.values for each in reversed(tups)] == [each.values for each in [first, *others]][::-1]
        assert [each.values.word for each in tups[1:3]] == ["dog", "cow"]
        assert first.values._fields == FIELDS and first.component == "b"
        assert "cow" in repr(tups)
        return len(tups), [tuple(each.values) for each in tups]

    answers, wired = given(look)
    assert answers == [(7, WORDS)]
    (executor,) = wired.named["c"]
    assert (executor.executed, executor.acks) == (7, 7)
    assert wired.instances("s")[0].told == [("ack", "a")]


@pytest.mark.parametrize("looks", ["before", "after", "never"])
def test_columns_are_the_values_of_its_tuples(looks):
    def read(bolt, tups):
        if looks == "before":
            list(tups)
        columns = tups.column("word"), tups.column(1), len(tups)
        if looks == "after":
            assert [tuple(each.values) for each in tups] == list(zip(*columns[:2], strict=True))
        tups.column("word").clear()  # the caller's own
        assert tups.column(0) == columns[0]
        return columns

    answers, wired = given(read)
    assert answers == [(*(list(column) for column in zip(*WORDS, strict=True)), 7)]
    (executor,) = wired.named["c"]
    assert (executor.executed, executor.acks, executor.fails) == (7, 7, 0)
    assert wired.instances("s")[0].told == [("ack", "a")]


@pytest.mark.parametrize("how", ["fields", "shuffle", "partial_key", "global", "none"])
def test_each_task_gets_the_rows_that_it_would_get_one_by_one(how):
    class OneByOne(Sends):
        def process(self, tup):
            for row in WORDS:
                self.emit(row)

    def by_task(bolt):
        got = {}

        class Gets(BoltBase):
            def process_many(self, tups):
                got.setdefault(id(self), []).extend(zip(tups.column(0), tups.column(1), strict=True))

        parts = {"s": Part(slice_of((0,))), "b": Part(bolt, streams={"default": FIELDS})}
        parts["c"] = Part(Gets, par=3, streams={})
        wired = Wired(parts, [("s", "default", "b", "shuffle", ()), ("b", "default", "c", how, (0,))])
        wired.named["s"][0].open_slice(1 << 40, True)
        wired.run()
        return [got.get(id(each), []) for each in wired.instances("c")]

    assert by_task(Sends) == by_task(OneByOne)


def test_a_call_gets_as_many_rows_as_a_turn_may():
    answers, wired = given(lambda bolt, tups: tups.column("count"), quota=3)
    assert [len(each) for each in answers] == [3, 3, 1]
    assert [n for each in answers for n in each] == [count for _, count in WORDS]
    assert wired.instances("s")[0].told == [("ack", "a")]


def test_what_a_bolt_keeps_stays_as_it_was():
    answers, wired = given(lambda bolt, tups: tups, quota=4)
    assert [len(tups) for tups in answers] == [4, 3]
    assert answers[0].column("word") == [word for word, _ in WORDS[:4]]
    assert [tuple(each.values) for each in answers[1]] == WORDS[4:]
    assert wired.instances("s")[0].told == [("ack", "a")]
    assert wired.named["s"][0].unsettled == 0


def test_without_auto_ack_each_tuple_has_a_verdict_of_its_own():
    def ack(bolt, tups):
        for tup in tups:
            bolt.ack(tup)

    _, wired = given(ack, auto_ack=False)
    (executor,) = wired.named["c"]
    assert executor.acks == 7
    assert wired.instances("s")[0].told == [("ack", "a")]
    _, wired = given(lambda bolt, tups: [bolt.ack(tup) for tup in tups[1:]] and None, auto_ack=False)
    assert wired.instances("s")[0].told == []
    assert wired.named["s"][0].unsettled == 1


def test_one_that_fails_fails_its_tree_and_is_counted_alone():
    _, wired = given(lambda bolt, tups: bolt.fail(tups[2]))
    (executor,) = wired.named["c"]
    assert (executor.executed, executor.acks, executor.fails) == (7, 6, 1)
    assert wired.instances("s")[0].told == [("fail", "a")]


@pytest.mark.parametrize("field", ["werd", 2, -1, None])
def test_a_field_that_a_stream_does_not_have(field):
    def read(bolt, tups):
        with pytest.raises(
            ValueError, match=r"'default' of 'b' have the fields \['word', 'count'\].*Given: "
        ) as caught:
            tups.column(field)
        return caught.value.code

    assert given(read)[0] == ["PYSTORM_UNKNOWN_FIELD"]


def test_by_hand_for_unit_tests_of_bolts():
    tups = TupleList(Tuple(n, "words", values=row) for n, row in enumerate(WORDS))
    assert (len(tups), tups.column(0)[:2], tups[1].id) == (7, ["cow", "dog"], 1)
    assert not len(TupleList())
    with pytest.raises(ValueError, match="Given: 'word'"):
        tups.column("word")
    with pytest.raises(TypeError, match="Given: 'cow'"):
        TupleList(["cow"])
