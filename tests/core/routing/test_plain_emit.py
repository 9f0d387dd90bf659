"""A plain emit, ``emit(values)`` or ``emit(values, tup_id)``, does what the general one does, only sooner.

``own_emit.h`` takes the positional calls and leaves all others to the method of the base: the same emits by keyword
are the general ones. Both are run side by side, on the same drawn emits, and everything that can be seen is compared.
"""

import re

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from cython_core.executors.executor import ComponentFailed
from cython_core.executors.spout_executor import SpoutExecutor
from cython_core.routing.component_base import BoltBase, SpoutBase
from tests.core.wired import Numbers, Part, Wired

FIELDS = ("a", "b")
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])


class Pair(tuple):
    """A subclass of a tuple."""


class Row(list):
    """A subclass of a list."""


FITTING = st.tuples(st.integers(0, 3), st.sampled_from(["x", "y"]))
VALUES = st.one_of(
    FITTING,
    FITTING.map(list),
    FITTING.map(Pair),
    FITTING.map(Row),
    st.sampled_from([(), (1,), [1, "x", 2], "ab", None, {"a": 1}, ("no number", "x"), ({1}, "x")]),
)
# Two thirds of them: one consumer, of one task or of several, to which a plain emit goes by a way of its own.
EDGES = (
    st.just([("shuffle", 1)])
    | st.sampled_from(["shuffle", "fields", "partial_key", "global", "none"]).map(lambda grouping: [(grouping, 3)])
    | st.lists(st.tuples(st.sampled_from(["shuffle", "fields", "all"]), st.integers(1, 2)), max_size=2)
)


class Seen(BoltBase):
    """Keeps what it gets and fails some of it."""

    def __init__(self):
        self.seen = []

    def process(self, tup):
        self.seen.append((tup.task, type(tup.values).__name__, tuple(tup.values)))
        if tup.values[0] == 3:
            self.fail(tup)


class Emitting:
    """What spout and bolt share: emits in one of the two ways and keeps how each ended."""

    general = False

    def send(self, values, *tup_id):
        try:
            if not self.general:
                answer = self.emit(values, *tup_id)
            elif tup_id:
                answer = self.emit(tup=values, tup_id=tup_id[0])
            else:
                answer = self.emit(tup=values)
        except (TypeError, ValueError) as error:
            answer = (type(error), re.sub(r"(?<=s:1:)\d+", "N", str(error)))  # ids of tuples count on
        self.ends.append(answer)


def observed(parts, edges, output, batch, offsets, tracks):
    """Everything that a run shows."""
    outputs = {"output": SCHEMA, "views": [("e", "default")]} if output else {}
    wired = Wired(parts, edges, queue=4, batch=batch, **outputs)
    spout = wired.executors[0]
    assert isinstance(spout, SpoutExecutor)
    spout.tracks = tracks
    if offsets is None:
        spout.open_slice(1 << 40, True)
    else:
        wired.open(spout.component, *offsets)
    shown = [[component.ends, getattr(component, "verdicts", None)] for component in wired.instances("e")]
    try:
        wired.run()
    except ComponentFailed as failed:  # a tuple of a range failed, and nothing here emits it again
        shown.append((failed.component, failed.task, failed.method, failed.offset))
    for name in parts:
        for executor in wired.named[name]:
            shown.append([executor.component, executor.executed, executor.acks, executor.fails, executor.errors])
            shown += [(router.emitted, router.transferred) for router in executor.routers.values()]
            shown += [(inserter.published, inserter.flushes) for inserter in executor.inserters]
            if isinstance(executor, SpoutExecutor):
                shown.append((executor.emits, executor.rooted, executor.unsettled))
            else:
                shown.append((executor.duplicate_verdicts, executor.untracked_fails))
            shown.append(getattr(executor.instance, "seen", None))
    return [*shown, [batch.to_pylist() for batch in wired.done]]


def consumers(edges):
    parts = {f"c{i}": Part(Seen, par=par, streams={}) for i, (_, par) in enumerate(edges)}
    return parts, [("e", "default", f"c{i}", grouping, (0,)) for i, (grouping, _) in enumerate(edges)]


def feeds(count):
    """A spout of 0, 1, 2, …, two of three with an id; ``seen``: its verdicts."""

    class Feeds(SpoutBase):
        def __init__(self):
            self.left = list(range(count))
            self.seen = []

        def next_tuple(self):
            if self.left:
                n = self.left.pop(0)
                self.emit((n,), f"id {n}" if n % 3 else None)

        def ack(self, tup_id):
            self.seen.append(("ack", tup_id))

        def fail(self, tup_id):
            self.seen.append(("fail", tup_id))

    return Feeds


@given(
    emits=st.lists(st.tuples(VALUES, st.sampled_from([None, "nothing", 7, "id", 0, 1, 2, 3, 2**70])), max_size=12),
    edges=EDGES,
    output=st.booleans(),
    bounded=st.booleans(),
    tracks=st.booleans(),
    hears=st.booleans(),
    batch=st.sampled_from([1, 3]),
)
def test_of_a_spout(emits, edges, output, bounded, tracks, hears, batch):
    def spout(general):
        class Emits(Emitting, Numbers if bounded else SpoutBase):
            def __init__(self):
                self.general, self.ends, self.verdicts = general, [], []
                self.left = list(emits)

            def next_tuple(self):
                if not self.left:
                    return False if bounded else None
                values, tup_id = self.left.pop(0)
                self.send(values, *([] if tup_id == "nothing" else [tup_id]))
                return None

            if hears:

                def ack(self, tup_id):
                    self.verdicts.append(("ack", tup_id))

            def fail(self, tup_id):
                self.verdicts.append(("fail", tup_id))

        return Emits

    parts, wires = consumers(edges)
    plain, general = (
        observed({"e": Part(spout(way), streams={"default": FIELDS}), **parts}, wires, output, batch,
                 (0, 3) if bounded else None, tracks)
        for way in (False, True)
    )  # fmt: skip
    assert plain == general


@given(
    calls=st.lists(
        st.lists(st.one_of(VALUES.map(lambda values: ("emit", values)), st.sampled_from(["ack", "fail"])), max_size=4),
        max_size=6,
    ),
    edges=EDGES,
    output=st.booleans(),
    tracks=st.booleans(),
    anchors=st.booleans(),
    batch=st.sampled_from([1, 3]),
)
def test_of_a_bolt(calls, edges, output, tracks, anchors, batch):
    def bolt(general):
        class Emits(Emitting, BoltBase):
            auto_anchor = anchors

            def __init__(self):
                self.general, self.ends = general, []

            def process(self, tup):
                for call in calls[tup.values[0]]:
                    if call == "ack":
                        self.ack(tup)
                    elif call == "fail":
                        self.fail(tup)
                    else:
                        self.send(call[1])

        return Emits

    parts, wires = consumers(edges)
    plain, general = (
        observed({"s": Part(feeds(len(calls))), "e": Part(bolt(way), streams={"default": FIELDS}), **parts},
                 [("s", "default", "e", "shuffle", ()), *wires], output, batch, None, tracks)
        for way in (False, True)
    )  # fmt: skip
    assert plain == general
