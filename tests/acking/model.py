"""The acker in the plainest form: each tree is the set of its open tuples, time is a list of what happens when."""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain, islice

from tests.acking.drawn import Deed, Node, Unfit, path_of

EPSILON = 0.01
MOST_TUPLES = 300


@dataclass(eq=False)
class Edge:
    """A tuple on its way to one task of a bolt."""

    root: int
    path: str
    trees: frozenset[int]  # those that it is anchored to
    parent: "Edge | None" = None
    arrived: float = 0.0
    verdict: str = ""


@dataclass
class Model:
    """``emits``: (time, spout, root), in order of time. ``ticks``: seconds between the ticks of each bolt."""

    nodes: tuple[Node, ...]
    emits: list[tuple[float, int, int]]
    ticks: list[float]
    timeout: float | None

    notified: dict[int, tuple[str, float]] = field(default_factory=dict)
    second: list[tuple[int, Edge]] = field(default_factory=list)  # second verdicts: by bolt, on which tuple
    waiting: Counter[int] = field(default_factory=Counter)  # tree → its tuples that wait for a batch to be processed
    open: dict[int, set[Edge]] = field(default_factory=lambda: defaultdict(set))
    deadlines: dict[int, float] = field(default_factory=dict)
    under_way: deque[tuple[int, int, Edge]] = field(default_factory=deque)  # to (bolt, task)
    now: float = 0.0
    tuples: int = 0
    linked: dict[int, frozenset[int]] = field(default_factory=dict)  # tree → it and those of which a row stems, too
    treeless: list[Edge] = field(default_factory=list)  # those of no tree in batches
    one_order: bool = False  # it holds only if a bolt's tasks take turns, the last one first: inline

    def __post_init__(self) -> None:
        self.held: list[list[list]] = [[] for _ in self.nodes]  # [ticks left, deed, edge]
        self.gathered: list[list[dict[int, list[Edge]]]] = [[{} for _ in range(node.par)] for node in self.nodes]
        self.due = list(self.ticks)

    def run(self) -> "Model":
        """Everything until nothing waits for the clock, which is then ``now``. Raises Unfit."""
        emits = list(self.emits)
        while True:
            ticks = {number: self.next_tick(number) for number in range(len(self.nodes)) if self.waits(number)}
            deadlines = {root: time for root, time in self.deadlines.items() if not self.waiting[root]}
            events = {time for time, _, _ in emits} | set(ticks.values()) | set(deadlines.values())
            if not events:
                if any(map(self.may_be_skipped, self.treeless)):
                    raise Unfit  # it is in its batch or not
                return self
            self.now = min(events)
            ticking = [number for number, time in ticks.items() if time == self.now]
            emitting = [each for each in emits if each[0] == self.now]
            expired = [root for root, time in deadlines.items() if time == self.now]
            if bool(emitting) + len(ticking) + bool(expired) > 1:
                raise Unfit
            if any(0 < time - self.now < EPSILON for time in events):
                raise Unfit
            for root in expired:
                self.settle(root, "fail")
            for number in ticking:
                self.tick(number)
            for _, spout, root in emitting:
                emits.pop(0)
                self.emit(spout, root)

    def waits(self, number: int) -> bool:
        """Whether the bolt's next tick does anything."""
        return bool(self.held[number]) or any(self.gathered[number])

    def next_tick(self, number: int) -> float:
        while self.due[number] <= self.now:
            self.due[number] += self.ticks[number]
        return self.due[number]

    def emit(self, spout: int, root: int) -> None:
        if self.timeout is not None:
            self.deadlines[root] = self.now + self.timeout
        self.send(-1 - spout, root, "", frozenset([root]))
        if not self.open[root]:
            self.settle(root, "ack")
        self.arrive_all()

    def send(self, producer: int, root: int, path: str, trees: frozenset[int], parent: Edge | None = None) -> None:
        """To every subscriber; what comes of it comes when the producer is through."""
        before = len(self.under_way)
        for number, node in enumerate(self.nodes):
            for subscribed, grouping in node.inputs:
                if subscribed == producer:
                    tasks = range(node.par) if grouping == "all" else [0]
                    self.under_way.extend((number, task, Edge(root, path, trees, parent)) for task in tasks)
        for _, _, edge in islice(self.under_way, before, None):
            for tree in trees:
                self.open[tree].add(edge)
        self.tuples += len(self.under_way) - before
        if self.tuples > MOST_TUPLES:
            raise Unfit

    def arrive_all(self) -> None:
        while self.under_way:
            self.arrive(*self.under_way.popleft())

    def arrive(self, number: int, task: int, edge: Edge) -> None:
        node = self.nodes[number]
        edge.arrived = self.now
        self.take(edge)
        if node.batching:
            if not edge.trees and edge.parent is not None:
                self.treeless.append(edge)
            self.waiting.update(edge.trees)
            self.begin_to_wait(number)
            self.gathered[number][task].setdefault(edge.root // 2, []).append(edge)
            return
        deed = node.deed_of(number, edge.root, edge.path)
        self.emits_of(number, deed, edge.root, edge.path, edge.trees, edge)
        if deed.verdict == "raise":
            self.judge(edge, "fail")
        elif deed.verdict in ("hold", "doom", "reset"):
            self.begin_to_wait(number)
            self.held[number].append([deed.ticks, deed, edge])
        elif deed.verdict != "never":
            self.verdicts(number, deed, edge)

    def take(self, edge: Edge) -> None:
        """A bolt gets the tuple, or the batch that it is in: the time of its trees begins anew."""
        if self.timeout is not None:
            for tree in edge.trees & self.deadlines.keys():
                self.deadlines[tree] = self.now + self.timeout

    def may_be_skipped(self, edge: Edge | None) -> bool:
        """Whether its trees, or those of one that it stems from, failed when it arrived: was it taken before that?"""
        if edge is None:
            return False
        lost = edge.trees and all(
            self.has_failed(tree) and self.notified[tree][1] <= edge.arrived for tree in edge.trees
        )
        return bool(lost) or self.may_be_skipped(edge.parent)

    def duplicate_verdicts(self) -> tuple[Counter[int], Counter[int]]:
        """By bolt: fewest and most."""
        most = Counter(number for number, _ in self.second)
        return Counter(number for number, edge in self.second if not self.may_be_skipped(edge)), most

    def begin_to_wait(self, number: int) -> None:
        """For the bolt's next tick. Raises Unfit if that, or the one before, is at the same time."""
        ahead = self.next_tick(number) - self.now
        first = self.due[number] == self.ticks[number]
        if ahead < EPSILON or (ahead > self.ticks[number] - EPSILON and not first):
            raise Unfit

    def emits_of(
        self, number: int, deed: Deed, root: int, path: str, trees: frozenset[int], parent: Edge | None = None
    ) -> None:
        anchors = frozenset() if deed.anchors == "none" else trees
        if deed.emits > 0 and self.leaves(number):
            self.link(anchors)
        for emit in range(deed.emits):
            self.send(number, root, path_of(path, number, emit), anchors, parent)

    def leaves(self, number: int) -> bool:
        """Whether what the bolt emits are rows that leave."""
        return not any(producer == number for node in self.nodes for producer, _ in node.inputs)

    def link(self, trees: frozenset[int]) -> None:
        """A row of several trees: they are acked together, or all fail."""
        if any(self.has_failed(tree) for tree in trees):
            for tree in trees:
                self.settle(tree, "fail")
            return
        group = frozenset().union(trees, *(self.linked.get(tree, ()) for tree in trees))
        if len(group) > 1:
            self.linked.update(dict.fromkeys(group, group))

    def verdicts(self, number: int, deed: Deed, edge: Edge) -> None:
        self.judge(edge, "fail" if deed.verdict in ("fail", "doom") else "ack")
        if deed.again:
            self.second.append((number, edge))

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
                    self.complete(tree)

    def has_failed(self, root: int) -> bool:
        return root in self.notified and self.notified[root][0] == "fail"

    def complete(self, root: int) -> None:
        """No tuple of its tree is open."""
        group = self.linked.get(root, frozenset([root]))
        self.deadlines.pop(root, None)
        if not any(self.open[tree] for tree in group):
            for tree in group:
                self.settle(tree, "ack")

    def settle(self, root: int, verdict: str) -> None:
        for tree in self.linked.get(root, (root,)):
            self.deadlines.pop(tree, None)
            self.notified.setdefault(tree, (verdict, self.now))

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
        trees = Counter(tree for groups in self.gathered[number] for tree in trees_of(chain(*groups.values())))
        for groups in reversed(self.gathered[number]):
            fired = list(groups.values())
            groups.clear()
            for edges in fired:
                self.fire(number, edges, alone=len(fired) == 1)
        self.arrive_all()
        # Under way in two tasks and failed by what one of them did: the other leaves it out if it comes later.
        self.one_order |= any(
            tasks > 1 and self.notified.get(tree) == ("fail", self.now) for tree, tasks in trees.items()
        )

    def leave_out_lost(self, edges: list[Edge]) -> list[Edge]:
        """Those of a group whose trees have not failed; the other trees of those that are left out fail, too."""
        while lost := [edge for edge in edges if any(self.has_failed(tree) for tree in edge.trees)]:
            for tree in trees_of(lost):
                self.settle(tree, "fail")
            edges = [edge for edge in edges if edge not in lost]
        return edges

    def fire(self, number: int, edges: list[Edge], alone: bool) -> None:
        for edge in edges:
            self.waiting.subtract(edge.trees)
        edges = self.leave_out_lost(edges)
        if not edges:
            return
        for edge in edges:
            self.take(edge)
        root, path = min((edge.root, edge.path) for edge in edges)
        deed = self.nodes[number].deed_of(number, root, path)
        if deed.verdict == "raise" and not alone:
            raise Unfit  # the groups behind it wait for the next tick; which these are, is a matter of order
        self.emits_of(number, deed, root, path, trees_of(edges))
        failed = deed.verdict in ("fail", "doom", "raise")
        for edge in edges:
            self.judge(edge, "fail" if failed else "ack")
            # Failed by the bolt itself, each is acked once more by auto_ack.
            if deed.verdict in ("fail", "doom"):
                self.second.append((number, edge))


def trees_of(edges: Iterable[Edge]) -> frozenset[int]:
    return frozenset().union(*(edge.trees for edge in edges))
