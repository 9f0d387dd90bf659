"""``emit_many(columns)`` does what ``for row in zip(*columns): emit(list(row))`` does, only sooner.

Both are run side by side, on the same drawn rows, and everything that can be seen is compared.
"""

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cython_core.routing.component_base import BoltBase, SpoutBase
from tests.core.routing.test_plain_emit import FIELDS, consumers, feeds, observed
from tests.core.wired import Collect, Numbers, Part, Wired, slice_of


class Backwards:
    """A grouping of the user's: the last task, or all of them, or none."""

    def choose_tasks(self, task, values):
        return [[2, 3], [3], []][values[0] % 3]


GROUPINGS = ("shuffle", "fields", "partial_key", "none", "global", "all")
ROWS = st.lists(
    st.tuples(st.sampled_from([0, 1, 2, 3, Decimal(1), object(), "no number"]), st.sampled_from(["x", "y", None])),
    max_size=7,
)
# Half of them: one consumer, to which the rows go by ways of their own.
EDGES = st.lists(st.tuples(st.sampled_from(GROUPINGS), st.integers(1, 3)), min_size=1, max_size=1) | st.lists(
    st.tuples(st.sampled_from(GROUPINGS), st.integers(1, 2)), max_size=2
)


class Emitting:
    """Emits rows in one of the two ways and keeps how that ended."""

    in_columns = False

    def send(self, rows, **named):
        ids = {} if "tup_ids" not in named else named.pop("tup_ids")
        try:
            if self.in_columns:
                columns = list(zip(*rows, strict=True)) or [(), ()]
                self.emit_many(*columns, **named, **({"tup_ids": ids} if ids else {}))
            else:
                for i, row in enumerate(rows):
                    self.emit(list(row), **named, **({"tup_id": ids[i]} if ids else {}))
        except (TypeError, ValueError) as error:
            # Of one row it may show the list that was given, or the tuple that was made of it.
            said = re.sub(r"(?<=; row ).*(?=\. Given)", "R", str(error))
            self.ends.append((type(error), re.sub(r"(?<=s:1:)\d+|0x\w+", "N", said)))


@given(
    calls=st.lists(ROWS, max_size=4),
    edges=EDGES,
    ids=st.sampled_from(["none", "offsets", "too far", "some"]),
    output=st.booleans(),
    bounded=st.booleans(),
    tracks=st.booleans(),
    hears=st.booleans(),
    batch=st.sampled_from([1, 3]),
)
def test_of_a_spout(calls, edges, ids, output, bounded, tracks, hears, batch):
    count = sum(map(len, calls))

    def spout(in_columns):
        class Emits(Emitting, Numbers if bounded else SpoutBase):
            def __init__(self):
                self.in_columns, self.ends, self.verdicts = in_columns, [], []
                self.left, self.count = list(calls), 0

            def next_tuple(self):
                if not self.left:
                    return False if bounded else None
                rows = self.left.pop(0)
                numbers = range(self.count, self.count + len(rows))
                self.count += len(rows)
                given = [None if ids == "some" and n % 2 else n for n in numbers]
                self.send(rows, **({} if ids == "none" else {"tup_ids": given}))
                return None

            if hears:

                def ack(self, tup_id):
                    self.verdicts.append(("ack", tup_id))

            def fail(self, tup_id):
                self.verdicts.append(("fail", tup_id))

        return Emits

    parts, wires = consumers(edges)
    offsets = (0, count - (ids == "too far")) if bounded else None
    one_by_one, in_columns = (
        observed({"e": Part(spout(way), streams={"default": FIELDS}), **parts}, wires, output, batch, offsets, tracks)
        for way in (False, True)
    )
    assert in_columns == one_by_one


@given(
    calls=st.lists(
        st.lists(st.one_of(ROWS, st.sampled_from(["ack", "fail"])), max_size=3),
        max_size=5,
    ),
    edges=EDGES,
    anchors=st.sampled_from(["default", "none", "own", "id", "both"]),
    output=st.booleans(),
    tracks=st.booleans(),
    auto_anchor=st.booleans(),
    batch=st.sampled_from([1, 3]),
)
def test_of_a_bolt(calls, edges, anchors, output, tracks, auto_anchor, batch):
    def bolt(in_columns):
        class Emits(Emitting, BoltBase):
            auto_ack = anchors != "both"

            def __init__(self):
                self.auto_anchor, self.in_columns, self.ends, self.held = auto_anchor, in_columns, [], []

            def process(self, tup):
                self.held.append(tup)
                given = {"none": [], "own": [tup], "id": [tup.id], "both": self.held[-2:]}
                named = {} if anchors == "default" else {"anchors": given[anchors]}
                for call in calls[tup.values[0]]:
                    if call == "ack":
                        self.ack(tup)
                    elif call == "fail":
                        self.fail(tup)
                    else:
                        self.send(call, **named)

        return Emits

    parts, wires = consumers(edges)
    one_by_one, in_columns = (
        observed({"s": Part(feeds(len(calls))), "e": Part(bolt(way), streams={"default": FIELDS}), **parts},
                 [("s", "default", "e", "shuffle", ()), *wires], output, batch, None, tracks)
        for way in (False, True)
    )  # fmt: skip
    assert in_columns == one_by_one


def test_by_a_grouping_of_the_users():
    def run(in_columns):
        class Emits(SpoutBase):
            left = [[(n, "x") for n in range(9)]]

            def next_tuple(self):
                rows, self.left = self.left, []
                for each in rows:
                    if in_columns:
                        self.emit_many(*zip(*each, strict=True))
                    else:
                        for row in each:
                            self.emit(row)

        parts = {"e": Part(Emits, streams={"default": FIELDS}), "c": Part(Collect, par=2, streams={})}
        wired = Wired(parts, [("e", "default", "c", Backwards, ())])
        wired.named["e"][0].open_slice(1 << 40, True)
        wired.run()
        return [each.seen for each in wired.instances("c")]

    assert run(in_columns=True) == run(in_columns=False)


def emitting(emit):
    """What one call of a spout's comes to: its error, and what arrived."""

    class Emits(SpoutBase):
        error = None
        done = False

        def next_tuple(self):
            if not self.done:
                self.done = True
                try:
                    emit(self)
                except (TypeError, ValueError) as error:
                    self.error = error

    streams = {"default": FIELDS, "empty": (), "one": ("n",)}
    parts = {"e": Part(Emits, streams=streams), "c": Part(Collect, streams={})}
    wired = Wired(parts, [("e", name, "c", "shuffle", ()) for name in streams])
    wired.named["e"][0].open_slice(1 << 40, True)
    wired.run()
    return wired.instances("e")[0].error, wired.instances("c")[0].values


def test_columns_are_anything_that_a_tuple_can_be_made_of():
    values = {"a": 1, "b": 2}
    assert emitting(lambda spout: spout.emit_many(range(2), values)) == (None, [(0, "a"), (1, "b")])
    assert emitting(lambda spout: spout.emit_many(iter([1]), (n for n in "x"))) == (None, [(1, "x")])


def test_a_stream_is_named():
    assert emitting(lambda spout: spout.emit_many([1, 2], stream="one")) == (None, [(1,), (2,)])


def test_no_rows_are_no_emits():
    assert emitting(lambda spout: spout.emit_many([], [])) == (None, [])
    assert emitting(lambda spout: spout.emit_many(stream="empty")) == (None, [])


@pytest.mark.parametrize(
    ("emit", "code", "text"),
    [
        (lambda e: e.emit_many([1], [2, 3]), "PYSTORM_WRONG_NUMBER_OF_FIELDS", r"\[1, 2\] values"),
        (lambda e: e.emit_many([1], [2], tup_ids=[]), "PYSTORM_WRONG_NUMBER_OF_FIELDS", "0 tup_ids"),
        (lambda e: e.emit_many([1]), "PYSTORM_WRONG_NUMBER_OF_FIELDS", "Given: 1 columns"),
        (lambda e: e.emit_many([1], "x"), "PYSTORM_EMIT_NOT_A_LIST", r"emit_many\(\['x'\]\) emits one row"),
        (lambda e: e.emit_many([1], 2), "PYSTORM_EMIT_NOT_A_LIST", "Given: 2"),
        (lambda e: e.emit_many([1], stream="other"), "PYSTORM_UNKNOWN_STREAM", "other"),
    ],
)
def test_what_is_no_set_of_columns_is_refused_and_nothing_is_sent(emit, code, text):
    error, arrived = emitting(emit)
    assert error.code == code
    assert re.search(text, str(error))
    assert arrived == []


def test_an_emit_of_the_components_own_sees_every_row():
    class Doubles(slice_of()):
        done = False

        def emit(self, tup, *given, **named):
            super().emit((tup[0] * 2,), *given, **named)

        def next_tuple(self):
            if not self.done:
                self.done = True
                self.emit_many([1, 2])
                self.emit_many([3], tup_ids=["three"])

    wired = Wired({"e": Part(Doubles), "c": Part(Collect, streams={})}, [("e", "default", "c", "shuffle", ())])
    wired.named["e"][0].open_slice(1 << 40, True)
    wired.run()
    assert wired.instances("c")[0].values == [(2,), (4,), (6,)]
    assert wired.instances("e")[0].told == [("ack", "three")]
