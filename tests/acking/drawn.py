"""Random topologies and the random verdicts that their bolts give, as data: the real bolts and the model read the same.

A tuple is (root, path): the number of its spout tuple, and the way from there: at each bolt the number of the bolt and
of the emit. What a bolt does with a tuple depends on these alone.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

from pystorm_source import BatchingBolt, Bolt, Grouping, Stream

FIELDS = ["root long", "path string"]
ANCHORS = ["own", "own", "own", "twice", "none"]
GROUPINGS = {
    "shuffle": Grouping.SHUFFLE,
    "fields": Grouping.fields("root"),
    "partial": Grouping.partial_key("path"),
    "all": Grouping.ALL,
    "global": Grouping.GLOBAL,
}


@dataclass(frozen=True)
class Deed:
    """What a bolt does with one tuple.

    ``verdict``: ack, fail, raise, never, or one that comes ``ticks`` ticks later: hold (then ack), doom (then fail),
    reset (as hold, and its time-out is reset at each of them). ``again``: ack or fail as a second verdict, or none.
    ``anchors``: of the emits: "own", "twice" (the tuple, two times), "none".
    """

    verdict: str = "ack"
    emits: int = 1
    anchors: str = "own"
    again: str = ""
    ticks: int = 1


@dataclass(frozen=True)
class Node:
    """A bolt. ``inputs``: (producer, grouping), where producer -1 - i is spout i and i is bolt i.

    ``batching``: it gathers tuples by pairs of roots until its tick and does the deed of the first with all of them.
    ``deeds``: one is chosen by a checksum of the tuple.
    """

    par: int
    inputs: tuple[tuple[int, str], ...]
    deeds: tuple[Deed, ...]
    batching: bool = False

    def deed_of(self, number: int, root: int, path: str) -> Deed:
        return self.deeds[zlib.crc32(f"{number}/{root}/{path}".encode()) % len(self.deeds)]


T = TypeVar("T")


class Unfit(Exception):
    """No case for a test: it has too many tuples, or what comes of it is a matter of order."""


class Draws(Protocol):
    """Where random things come from: one function draws a case by it, for every caller."""

    def integer(self, low: int, high: int) -> int: ...

    def one_of(self, values: Sequence[T]) -> T: ...

    def subset(self, values: Sequence[T], most: int) -> list[T]: ...

    def several(self, fewest: int, most: int, make: Callable[..., T], *given: Any) -> list[T]: ...


class Shrinking:
    """From hypothesis, which remembers what failed and looks for the smallest of the kind."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]):
        self.draw = draw

    def integer(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def one_of(self, values: Sequence[T]) -> T:
        return self.draw(st.sampled_from(values))  # type: ignore[no-any-return]

    def subset(self, values: Sequence[T], most: int) -> list[T]:
        return list(self.draw(st.lists(st.sampled_from(values), min_size=1, max_size=most, unique=True)))

    def several(self, fewest: int, most: int, make: Callable[..., T], *given: Any) -> list[T]:
        return list(self.draw(st.lists(shrinking(make, *given), min_size=fewest, max_size=most)))


@st.composite
def shrinking(draw: Any, make: Callable[..., Any], *given: Any) -> Any:
    """What ``make(draws, *given)`` draws, as a strategy."""
    return make(Shrinking(draw), *given)


class Seeded:
    """From a seed alone, in a fraction of the time: the same seed gives the same case."""

    def __init__(self, seed: int):
        self.random = Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def one_of(self, values: Sequence[T]) -> T:
        return self.random.choice(values)

    def subset(self, values: Sequence[T], most: int) -> list[T]:
        return self.random.sample(values, self.random.randint(1, min(most, len(values))))

    def several(self, fewest: int, most: int, make: Callable[..., T], *given: Any) -> list[T]:
        return [make(self, *given) for _ in range(self.random.randint(fewest, most))]


def deed(draws: Draws, verdicts: list[str], anchors: list[str]) -> Deed:
    return Deed(
        verdict=draws.one_of(verdicts),
        emits=draws.one_of([0, 1, 1, 1, 2, 3]),
        anchors=draws.one_of(anchors),
        again=draws.one_of(["", "", "ack", "fail"]),
        ticks=draws.integer(1, 6),
    )


def nodes(
    draws: Draws, spouts: int, verdicts: list[str], most: int = 5, anchors: list[str] = ANCHORS
) -> tuple[Node, ...]:
    """A random acyclic graph of bolts behind ``spouts`` spouts; every spout has a subscriber."""
    made: list[Node] = []
    for number in range(draws.integer(1, most)):
        chosen = draws.subset(range(-spouts, number), 3) if number else list(range(-spouts, 0))
        gathers = draws.integer(0, 3) == 0
        # A bolt that gathers pairs must see both tuples of one in one task.
        names = ["all", "global"] if gathers else list(GROUPINGS)
        inputs = tuple((producer, draws.one_of(names)) for producer in chosen)
        own = draws.several(1, 4, deed, verdicts, anchors)
        made.append(Node(draws.integer(1, 3), inputs, tuple(own), gathers))
    return tuple(made)


def path_of(path: str, number: int, emit: int) -> str:
    return f"{path}/{number}.{emit}"


def bolt_of(node: Node, number: int) -> type[Bolt]:
    """The real bolt of a node."""
    return batching_bolt(node, number) if node.batching else plain_bolt(node, number)


def anchors_of(deed: Deed, tups: list[Any]) -> list[Any]:
    return {"own": tups, "twice": [*tups, *tups], "none": []}[deed.anchors]


def plain_bolt(node: Node, number: int) -> type[Bolt]:
    class Plain(Bolt):
        outputs = [Stream(FIELDS, name="default")]
        auto_ack = False
        exit_on_exception = False

        def initialize(self, conf, context):
            self.held = []

        def process(self, tup):
            root, path = tup.values
            deed = node.deed_of(number, root, path)
            for emit in range(deed.emits):
                self.emit([root, path_of(path, number, emit)], anchors=anchors_of(deed, [tup]))
            if deed.verdict == "raise":
                raise ValueError("as it was drawn")
            if deed.verdict in ("hold", "doom", "reset"):
                self.held.append([deed.ticks, deed, tup])
            elif deed.verdict != "never":
                self.settle(deed, tup)

        def settle(self, deed, tup):
            (self.fail if deed.verdict in ("fail", "doom") else self.ack)(tup)
            if deed.again:
                getattr(self, deed.again)(tup)

        def process_tick(self, tup):
            for each in self.held:
                each[0] -= 1
                if each[1].verdict == "reset":
                    self.reset_timeout(each[2])
                if each[0] == 0:
                    self.settle(each[1], each[2])
            self.held = [each for each in self.held if each[0] > 0]

    return Plain


def batching_bolt(node: Node, number: int) -> type[Bolt]:
    class Batching(BatchingBolt):
        outputs = [Stream(FIELDS, name="default")]
        exit_on_exception = False
        ticks_between_batches = 0

        def group_key(self, tup):
            return tup.values.root // 2

        def process_batch(self, key, tups):
            root, path = min(tuple(tup.values) for tup in tups)
            deed = node.deed_of(number, root, path)
            for emit in range(deed.emits):
                self.emit([root, path_of(path, number, emit)], anchors=anchors_of(deed, tups))
            if deed.verdict in ("fail", "doom"):
                for tup in tups:
                    self.fail(tup)
            elif deed.verdict == "raise":
                raise ValueError("as it was drawn")

    return Batching
