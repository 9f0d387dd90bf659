"""Random topologies whose components take rows in any form, as data, and what comes out of them, by sets alone.

A row is (root, n, values): the number of its spout tuple, its own number, and values that follow from the root. What a
bolt makes of a row, and whether it fails it, follows from n alone, whatever the form is in which it comes.
"""

from collections import Counter
from dataclasses import dataclass, field, replace

from tests.acking.drawn import Draws
from tests.forms.columns import HASHED, VALUES

ROWS, MANY, TOGETHER, BATCHING, ASYNC, ARROW = "rows", "many", "together", "batching", "async", "arrow"
FORMS = [ROWS, ROWS, MANY, TOGETHER, BATCHING, ASYNC, ARROW, ARROW, ARROW, ARROW]
SPOUTS = ["each", "many", "batch", "next_batch", "next_batch"]
GROUPINGS = [
    "shuffle", "fields", "value", "partial", "all", "global", "none", "local_or_shuffle", "custom", "direct",
]  # fmt: skip
EMITS = ["each", "many", "batch", "batch", "halves"]
BUILDS = ["plain", "sliced", "other"]
FAILS = {ROWS: ["fail", "raise"], MANY: ["fail"], ASYNC: ["raise"], ARROW: ["mask", "mask", "twice", "raise"]}
LARGEST = 1_000_003


@dataclass(frozen=True)
class Node:
    """A bolt. ``inputs``: (producer, grouping), where -1 is the spout. ``children``: how many rows it emits for one,
    by the row. ``fails``: how; ``holds``: it acks, and emits, at its tick."""

    form: str
    par: int
    inputs: tuple[tuple[int, str], ...]
    children: tuple[int, ...]
    emits: str = "each"
    build: str = "plain"
    fails: str = ""
    holds: bool = False

    def emits_of(self, number: int, n: int) -> list[int]:
        """The numbers of the rows that it emits for row n."""
        count = self.children[mixed(number, n) % len(self.children)]
        return [(n * 7 + number * 3 + each + 1) % LARGEST for each in range(count)]

    def fails_row(self, number: int, n: int) -> bool:
        return self.fails != "" and mixed(number + 100, n) % 9 == 0


def mixed(number: int, n: int) -> int:
    return (n * 2654435761 + number * 40503) % (1 << 32) >> 7


def chosen_by_custom(n: int, tasks: int) -> list[int]:
    """Which of the tasks get row n by the custom grouping: none, one twice, two or one."""
    return [[], [0, 0], [0, tasks - 1], [n % tasks]][n % 4]


@dataclass(frozen=True)
class Case:
    types: tuple[str, ...]
    spout: str
    spout_par: int
    build: str
    rows: int
    sizes: tuple[int, ...]  # of the spout's batches, in turn
    nodes: tuple[Node, ...]
    options: dict[str, object] = field(default_factory=dict)
    seed: int | None = None

    @property
    def retries(self) -> int:
        return int(self.options["topology.max.spout.retries"])  # type: ignore[call-overload]

    def readers(self, producer: int) -> list[tuple[int, str]]:
        """(Bolt, grouping) of those that subscribe to a component."""
        return [
            (number, grouping)
            for number, node in enumerate(self.nodes)
            for other, grouping in node.inputs
            if other == producer
        ]

    def is_exact(self) -> bool:
        """Whether those rows alone are dead letters that a bolt fails. Rows that were emitted together fail together,
        so some may share the fate of others that the next attempts bring along again."""
        failing = [number for number, node in enumerate(self.nodes) if node.fails]
        joint = [number for number, node in enumerate(self.nodes) if node.form in (TOGETHER, BATCHING)]
        if not failing:
            return True
        gathers = any(node.form == ARROW for node in self.nodes)
        return not (self.retries == 0 and gathers) and not any(self.leads(one, two) for one in joint for two in failing)

    def leads(self, one: int, two: int) -> bool:
        """Whether what bolt ``one`` emits comes to bolt ``two``."""
        return any(number == two or self.leads(number, two) for number, _ in self.readers(one))


def case_of(draws: Draws) -> Case:
    types = tuple(draws.several(0, 3, lambda each: each.one_of(list(VALUES))))
    made: list[Node] = []
    for number in range(draws.integer(1, 5)):
        producers = draws.subset(range(-1, number), 2) if number else [-1]
        made.append(node_of(draws, tuple(producers), types))
    nodes = without_wrong_directs(made)
    some_fail = any(node.fails for node in nodes)
    rows = draws.one_of([0, 1, 7, 30, 30, 80] if some_fail else [0, 1, 7, 30, 80, 300])
    queue = draws.one_of([2, 4, 1024])
    options = {
        "topology.executor.receive.buffer.size": queue,
        "topology.executor.receive.buffer.bytes": draws.one_of([1, 200, 1 << 20]),
        "topology.producer.batch.size": draws.one_of([1, queue // 2]),
        "topology.max.spout.retries": draws.integer(0, 3),
        "topology.dead.letter": draws.one_of(["stream", "stream", "drop", "fail"]),
        "topology.acker.executors": 1 if some_fail or draws.integer(0, 4) else 0,
        "topology.testing.always.try.serialize": draws.integer(0, 9) == 0,
    }
    if draws.integer(0, 3) == 0:
        options["topology.max.spout.pending"] = draws.integer(1, 5)
    return Case(
        types,
        draws.one_of(SPOUTS),
        draws.integer(1, 2),
        draws.one_of(BUILDS),
        rows,
        tuple(draws.several(1, 3, lambda each: each.one_of([1, 2, 5, 17, 300, 10_000]))),
        nodes,
        options,
        draws.one_of([None, None, 1, 2]),
    )


def node_of(draws: Draws, producers: tuple[int, ...], types: tuple[str, ...]) -> Node:
    form = draws.one_of(FORMS)
    groupings = [each for each in GROUPINGS if each != "value" or any(ddl in HASHED for ddl in types)]
    fails = draws.one_of(["", "", *FAILS.get(form, [""])])
    holds = form in (ROWS, ARROW) and not fails and draws.integer(0, 4) == 0
    return Node(
        form,
        draws.integer(1, 3),
        tuple((producer, draws.one_of(groupings)) for producer in producers),
        tuple(draws.several(1, 3, lambda each: each.one_of([0, 1, 1, 1, 2]))),
        draws.one_of(EMITS),
        draws.one_of(BUILDS),
        fails,
        holds,
    )


def without_wrong_directs(nodes: list[Node]) -> tuple[Node, ...]:
    """A direct stream has direct subscribers only, and here but one; the spout's is none."""
    subscribers = Counter(producer for node in nodes for producer, _ in node.inputs)
    made = []
    for node in nodes:
        inputs = [
            (producer, "shuffle" if grouping == "direct" and (producer < 0 or subscribers[producer] > 1) else grouping)
            for producer, grouping in node.inputs
        ]
        made.append(replace(node, inputs=tuple(inputs)))
    return tuple(made)


class Model:
    """What becomes of a case. ``dead``: roots that a bolt fails; ``rows``: (root, n) of those that leave, if these are
    the dead ones; ``executed``, ``emitted``, ``transferred``: of each bolt, if none fails."""

    def __init__(self, case: Case):
        self.case = case
        self.dead: set[int] = set()
        self.out: Counter[tuple[int, int]] = Counter()
        self.got: list[Counter[tuple[int, int]]] = [Counter() for _ in case.nodes]
        self.executed, self.emitted, self.transferred = ([0] * len(case.nodes) for _ in range(3))
        self._send(-1, Counter({(root, root): 1 for root in range(case.rows)}))
        for number in range(len(case.nodes)):
            self._run(number)

    def _run(self, number: int) -> None:
        node = self.case.nodes[number]
        made: Counter[tuple[int, int]] = Counter()
        for (root, n), count in self.got[number].items():
            if node.fails_row(number, n):
                self.dead.add(root)
            for child in node.emits_of(number, n):
                made[root, child] += count
        self.executed[number] = self.got[number].total()
        self.emitted[number] = made.total()
        self.transferred[number] = self._send(number, made)

    def _send(self, producer: int, rows: Counter[tuple[int, int]]) -> int:
        readers = self.case.readers(producer)
        if not readers:
            self.out += rows
        sent = 0
        for number, grouping in readers:
            tasks = self.case.nodes[number].par
            for row, count in rows.items():
                copies = {"all": tasks, "custom": len(chosen_by_custom(row[1], tasks))}.get(grouping, 1)
                if copies > 0:
                    self.got[number][row] += count * copies
                    sent += count * copies
        return sent

    def rows(self, dead: set[int]) -> Counter[tuple[int, int]]:
        return Counter({row: count for row, count in self.out.items() if row[0] not in dead})
