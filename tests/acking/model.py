"""The acker as nobody would build it: each tree is the set of its open tuples, time is a list of what happens when."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from tests.acking.drawn import Deed, Node, path_of

EPSILON = 0.01
MOST_TUPLES = 300


class Unfit(Exception):
    """What follows is a matter of order, as of two things at the same time; or there are more tuples than it takes."""


@dataclass(eq=False)
class Edge:
    """A tuple on its way to one task of a bolt."""

    root: int
    path: str
    trees: frozenset[int]  # those that it is anchored to
    verdict: str = ""


@dataclass
class Model:
    """``emits``: (time, spout, root), in order of time. ``ticks``: seconds between the ticks of each bolt."""

    nodes: tuple[Node, ...]
    emits: list[tuple[float, int, int]]
    ticks: list[float]
    timeout: float | None
    end: float

    told: dict[int, tuple[str, float]] = field(default_factory=dict)
    second: Counter[int] = field(default_factory=Counter)
    open: dict[int, set[Edge]] = field(default_factory=lambda: defaultdict(set))
    deadlines: dict[int, float] = field(default_factory=dict)
    now: float = 0.0
    tuples: int = 0

    def __post_init__(self) -> None:
        self.held: list[list[list]] = [[] for _ in self.nodes]  # [ticks left, deed, edge]
        self.gathered: list[list[dict[int, list[Edge]]]] = [[{} for _ in range(node.par)] for node in self.nodes]

    def run(self) -> "Model":
        """Everything until ``end``. Raises Unfit."""
        emits = list(self.emits)
        due = list(self.ticks)
        while True:
            events = [time for time, _, _ in emits[:1]] + due + list(self.deadlines.values())
            self.now = min(events)
            if self.now > self.end:
                return self
            groups = {round(time, 9) for time in events if time - self.now < EPSILON}
            ticking = [number for number, time in enumerate(due) if time == self.now]
            emitting = [each for each in emits if each[0] == self.now]
            expired = [root for root, time in self.deadlines.items() if time == self.now]
            if len(groups) > 1 or (bool(emitting) + len(ticking) + bool(expired)) > 1:
                raise Unfit
            for root in expired:
                self.settle(root, "fail")
            for number in ticking:
                due[number] += self.ticks[number]
                self.tick(number)
            for _, spout, root in emitting:
                emits.pop(0)
                self.emit(spout, root)

    def emit(self, spout: int, root: int) -> None:
        if self.timeout is not None:
            self.deadlines[root] = self.now + self.timeout
        self.send(-1 - spout, root, "", frozenset([root]))
        if not self.open[root]:
            self.settle(root, "ack")

    def send(self, producer: int, root: int, path: str, trees: frozenset[int]) -> None:
        """To every subscriber; all its edges are there before the first is looked at."""
        sent = []
        for number, node in enumerate(self.nodes):
            for subscribed, grouping in node.inputs:
                if subscribed == producer:
                    tasks = range(node.par) if grouping == "all" else [0]
                    sent += [(number, task, Edge(root, path, trees)) for task in tasks]
        for _, _, edge in sent:
            for tree in trees:
                self.open[tree].add(edge)
        self.tuples += len(sent)
        if self.tuples > MOST_TUPLES:
            raise Unfit
        for number, task, edge in sent:
            self.arrive(number, task, edge)

    def arrive(self, number: int, task: int, edge: Edge) -> None:
        node = self.nodes[number]
        if node.batching:
            self.gathered[number][task].setdefault(edge.root // 2, []).append(edge)
            return
        deed = node.deed_of(number, edge.root, edge.path)
        self.emits_of(number, deed, edge.root, edge.path, edge.trees)
        if deed.verdict == "raise":
            self.judge(edge, "fail")
        elif deed.verdict in ("hold", "doom", "reset"):
            self.held[number].append([deed.ticks, deed, edge])
        elif deed.verdict != "never":
            self.verdicts(number, deed, edge)

    def emits_of(self, number: int, deed: Deed, root: int, path: str, trees: frozenset[int]) -> None:
        for emit in range(deed.emits):
            self.send(number, root, path_of(path, number, emit), frozenset() if deed.anchors == "none" else trees)

    def verdicts(self, number: int, deed: Deed, edge: Edge) -> None:
        self.judge(edge, "fail" if deed.verdict in ("fail", "doom") else "ack")
        self.second[number] += bool(deed.again)

    def judge(self, edge: Edge, verdict: str) -> None:
        if edge.verdict:
            return
        edge.verdict = verdict
        for tree in edge.trees:
            if verdict == "fail":
                self.settle(tree, "fail")
            else:
                self.open[tree].discard(edge)
                if not self.open[tree]:
                    self.settle(tree, "ack")

    def settle(self, root: int, verdict: str) -> None:
        self.deadlines.pop(root, None)
        self.told.setdefault(root, (verdict, self.now))

    def tick(self, number: int) -> None:
        for each in list(self.held[number]):
            each[0] -= 1
            deed, edge = each[1:]
            if deed.verdict == "reset" and self.timeout is not None:
                for tree in edge.trees:
                    if tree in self.deadlines:
                        self.deadlines[tree] = self.now + self.timeout
            if each[0] == 0:
                self.held[number].remove(each)
                self.verdicts(number, deed, edge)
        for groups in self.gathered[number]:
            fired = list(groups.values())
            groups.clear()
            for edges in fired:
                self.fire(number, edges, alone=len(fired) == 1)

    def fire(self, number: int, edges: list[Edge], alone: bool) -> None:
        root, path = min((edge.root, edge.path) for edge in edges)
        deed = self.nodes[number].deed_of(number, root, path)
        if deed.verdict == "raise" and not alone:
            raise Unfit  # the groups behind it wait for the next tick; which these are, is a matter of order
        self.emits_of(number, deed, root, path, frozenset().union(*(edge.trees for edge in edges)))
        failed = deed.verdict in ("fail", "doom", "raise")
        for edge in edges:
            self.judge(edge, "fail" if failed else "ack")
            # Failed by the bolt itself, each is acked once more by auto_ack.
            self.second[number] += deed.verdict in ("fail", "doom")
