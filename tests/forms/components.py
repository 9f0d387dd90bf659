"""The real spouts and bolts of a case: one law for a row, and a class for each form in which rows come."""

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import pyarrow as pa

from pystorm_source import ArrowBolt, AsyncBolt, BatchingBolt, Bolt, Grouping, PartitionedSpout, Stream, Topology
from tests.forms.columns import HASHED, batch_of, fields_of, values_of
from tests.forms.drawn import ARROW, ASYNC, BATCHING, MANY, ROWS, TOGETHER, Case, Node, chosen_by_custom

Row = tuple[Any, ...]


class ByNumber:
    """The custom grouping: none, one, one twice or two of the tasks."""

    def prepare(self, context: Any, stream: Any, tasks: list[int]) -> None:
        self.tasks = tasks

    def choose_tasks(self, task: int, values: Row) -> list[int]:
        return [self.tasks[place] for place in chosen_by_custom(values[1], len(self.tasks))]


def grouping_of(name: str, types: tuple[str, ...]) -> Grouping:
    """Of that name; ``value`` selects a column of the first type that has a hash."""
    hashed = [f"v{place}" for place, ddl in enumerate(types) if ddl in HASHED]
    made = {
        "shuffle": Grouping.SHUFFLE,
        "fields": Grouping.fields("n"),
        "value": Grouping.fields("root", *hashed[:1]),
        "partial": Grouping.partial_key("n"),
        "all": Grouping.ALL,
        "global": Grouping.GLOBAL,
        "none": Grouping.NONE,
        "local_or_shuffle": Grouping.LOCAL_OR_SHUFFLE,
        "custom": Grouping.custom(ByNumber()),
        "direct": Grouping.DIRECT,
    }
    return made[name]


def spout_of(case: Case) -> type[PartitionedSpout]:
    types = case.types

    class Rows(PartitionedSpout):
        outputs = fields_of(types)

        def partitions(self):
            return ["p"]

        def latest(self, partition):
            return case.rows

        def open(self, partition, start, end):
            self.at, self.end, self.sizes = start, end, cycle(case.sizes)

        def take(self, most):
            """(First, end) of the next rows; None at the end."""
            if self.at == self.end:
                return None
            start, self.at = self.at, min(self.at + most, self.end)
            return start, self.at

    class Each(Rows):
        def next_tuple(self):
            taken = self.take(1)
            if taken is None:
                return False
            self.emit(row_of(taken[0]), taken[0])

    class Many(Rows):
        def next_tuple(self):
            taken = self.take(next(self.sizes))
            if taken is None:
                return False
            self.emit_many(*zip(*map(row_of, range(*taken)), strict=True), tup_ids=range(*taken))

    class Batch(Rows):
        def next_tuple(self):
            taken = self.take(next(self.sizes))
            if taken is None:
                return False
            self.emit_batch(batch_of([*map(row_of, range(*taken))], types, case.build), tup_id=taken[1] - 1)

    class Next(Rows):
        def next_batch(self):
            taken = self.take(next(self.sizes))
            return None if taken is None else batch_of([*map(row_of, range(*taken))], types, case.build)

    def row_of(root):
        return (root, root, *values_of(types, root))

    return {"each": Each, "many": Many, "batch": Batch, "next_batch": Next}[case.spout]


def bolt_of(case: Case, number: int) -> type[Bolt]:
    node = case.nodes[number]
    readers = case.readers(number)
    direct = any(grouping == "direct" for _, grouping in readers)

    class Common(Bolt):
        outputs = [Stream(fields_of(case.types), name="default", direct=direct)]
        exit_on_exception = False
        auto_ack = not node.holds

        def initialize(self, conf, context):
            self.held = []
            self.tasks = [
                int(task) for task, name in context["task->component"].items() if direct and name == f"b{readers[0][0]}"
            ]

        def made_of(self, rows: Sequence[Row]) -> list[Row]:
            return [(row[0], n, *row[2:]) for row in rows for n in node.emits_of(number, row[1])]

        def send(self, rows: list[Row], **more: Any) -> None:
            """Emits rows in the form that was drawn; ``more``: anchors."""
            for task in sorted(self.tasks) or [None]:
                if task is not None:
                    more["direct_task"] = task
                of_task = [row for row in rows if task is None or task == self.tasks[row[1] % len(self.tasks)]]
                if of_task:
                    self.send_as(node.emits if task is None or node.emits != "many" else "each", of_task, more)

        def send_as(self, form: str, rows: list[Row], more: dict[str, Any]) -> None:
            if form == "many":
                self.emit_many(*zip(*rows, strict=True), **more)
            elif form == "each":
                for row in rows:
                    self.emit(row, **more)
            else:
                batch = batch_of(rows, case.types, node.build)
                half = len(rows) // 2 if form == "halves" else 0
                for part in (batch.slice(0, half), batch.slice(half)):  # the first one may have no rows
                    self.emit_batch(part, **more)

    return FORMS[node.form](node, number, Common)


def rows_bolt(node: Node, number: int, common: Any) -> type[Bolt]:
    class Rows(common):
        def process(self, tup):
            if node.holds:
                self.held.append(tup)
            elif not node.fails_row(number, tup.values[1]):
                self.send(self.made_of([tup.values]))
            elif node.fails == "raise":
                raise ValueError("as it was drawn")
            else:
                self.fail(tup)

        def process_tick(self, tup):
            for held in self.held:
                self.send(self.made_of([held.values]), anchors=[held])
                self.ack(held)
            self.held = []

    return Rows


def many_bolt(node: Node, number: int, common: Any) -> type[Bolt]:
    class Many(common):
        def process_many(self, tups):
            for tup in tups:
                if node.fails_row(number, tup.values[1]):
                    self.fail(tup)
                else:
                    self.send(self.made_of([tup.values]), anchors=[tup])

    return Many


def together_bolt(node: Node, number: int, common: Any) -> type[Bolt]:
    class Together(common):
        def process_many(self, tups):
            self.send(self.made_of([tup.values for tup in tups]))

    return Together


def batching_bolt(node: Node, number: int, common: Any) -> type[Bolt]:
    class Batching(common, BatchingBolt):
        ticks_between_batches = 0

        def group_key(self, tup):
            return tup.values[1] % 3

        def process_batch(self, key, tups):
            self.send(self.made_of([tup.values for tup in tups]))

    return Batching


def async_bolt(node: Node, number: int, common: Any) -> type[Bolt]:
    class Async(common, AsyncBolt):
        async def process(self, tup):
            if node.fails_row(number, tup.values[1]):
                raise ValueError("as it was drawn")
            self.send(self.made_of([tup.values]))

    return Async


def arrow_bolt(node: Node, number: int, common: Any) -> type[Bolt]:
    class Arrow(ArrowBolt, common):
        def process_batch(self, batch):
            assert batch.num_rows > 0
            numbers = batch.column(1).to_pylist()
            wrong = [node.fails_row(number, n) for n in numbers]
            if node.holds:
                self.held.append(batch)
                return
            if any(wrong) and node.fails == "raise":
                raise ValueError("as it was drawn")
            if node.fails == "mask":
                self.fail(batch, rows=pa.array(wrong))
            elif node.fails == "twice":
                self.fail(batch, rows=[each and n % 2 == 0 for each, n in zip(wrong, numbers, strict=True)])
                self.fail(batch, rows=[each and n % 2 == 1 for each, n in zip(wrong, numbers, strict=True)])
            self.pass_on(batch, [place for place, each in enumerate(wrong) if not each])

        def pass_on(self, batch, places, **more):
            """By column, unless rows leave one by one."""
            made = [(place, n) for place in places for n in node.emits_of(number, batch.column(1)[place].as_py())]
            if not made or self.tasks or node.emits in ("each", "many") or node.build != "plain":
                rows = list(zip(*map(pa.Array.to_pylist, batch.columns), strict=True))
                self.send(self.made_of([rows[place] for place in places]), **more)
                return
            taken = batch.take(pa.array([place for place, _ in made], pa.int32()))
            ours = taken.set_column(1, "n", pa.array([n for _, n in made], pa.int64()))
            half = len(made) // 2 if node.emits == "halves" else 0
            for part in (ours.slice(0, half), ours.slice(half)):
                self.emit_batch(part, **more)

        def process_tick(self, tup):
            for held in self.held:
                self.pass_on(held, range(held.num_rows), anchors=[held])
                self.ack(held)
            self.held = []

    return Arrow


FORMS = {
    ROWS: rows_bolt, MANY: many_bolt, TOGETHER: together_bolt, BATCHING: batching_bolt, ASYNC: async_bolt,
    ARROW: arrow_bolt,
}  # fmt: skip


def topology_of(case: Case) -> type[Topology]:
    """Components ``s`` and ``b0``, ``b1``, …"""
    specs: dict[int, Any] = {-1: spout_of(case).spec(par=case.spout_par)}
    for number, node in enumerate(case.nodes):
        inputs = {specs[producer]: grouping_of(name, case.types) for producer, name in node.inputs}
        specs[number] = bolt_of(case, number).spec(inputs=inputs, par=node.par)
    body = {"s" if number < 0 else f"b{number}": spec for number, spec in specs.items()}
    return type("Drawn", (Topology,), body)
