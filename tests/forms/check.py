"""Runs a case and compares what comes out with the model."""

import json
from collections import Counter

import pyarrow as pa

from pystorm_source.errors import TupleFailed
from pystorm_source.plan import compile_plan
from pystorm_source.worker import OutputPlan, ViewPlan, Worker
from tests.forms.columns import frozen_row, schema_of, values_of
from tests.forms.components import topology_of
from tests.forms.drawn import Case, Model

QUIET = {"pystorm.log.level": "critical"}  # what fails and is dropped is the cases' own doing
DEAD_VALUES = 5  # their place in a row of the stream __dead_letter


def worker_of(case: Case, scheduler: str) -> Worker:
    plan = compile_plan(topology_of(case), {"topology.scheduler": scheduler, **QUIET, **case.options})
    columns = schema_of(case.types)
    opened = [f"b{number}" for number in range(len(case.nodes)) if not case.readers(number)]
    views = [ViewPlan(name, "default", tuple(range(len(columns)))) for name in opened]
    if case.options["topology.dead.letter"] == "stream":
        places = [-1] * 7
        places[DEAD_VALUES] = len(columns)
        views.append(ViewPlan("s", "__dead_letter", tuple(places)))
    schema = columns.append(pa.field("dead", pa.string()))
    return Worker(plan, OutputPlan(schema, tuple(views), 1 + case.rows // 3), seed=case.seed)


def check(case: Case, scheduler: str) -> str:
    """Raises AssertionError where the run gave anything else than the model says; what it was like, in a word."""
    model = Model(case)
    worker = worker_of(case, scheduler)
    ways = case.options["topology.dead.letter"]
    try:
        found = list(worker.run("s", "p", 0, case.rows))
    except TupleFailed as error:
        if ways != "fail" or not model.dead:
            raise AssertionError("the run failed") from error
        return "failed as it should"
    finally:
        worker.stop()
    for batch in found:
        batch.validate(full=True)
        assert batch.schema.equals(found[0].schema, check_metadata=True)
    compare(case, model, worker, [tuple(row.values()) for batch in found for row in batch.to_pylist()])
    return "dead letters" if model.dead else "none failed"


def compare(case: Case, model: Model, worker: Worker, rows: list[tuple[object, ...]]) -> None:
    counts = worker.report()["components"]
    letters = [json.loads(str(row[-1]))[0] for row in rows if row[-1] is not None]
    found = Counter(frozen_row(row[:-1], case.types) for row in rows if row[-1] is None)
    ways = case.options["topology.dead.letter"]
    if ways == "stream":
        dead = set(letters)
        assert len(letters) == len(dead) == counts["s"]["dead_letters"], "a row is one dead letter"
        assert model.dead <= dead, "a row that fails is a dead letter"
    else:
        dead = {row[0] for row in model.out} - {row[0] for row in found} if ways == "drop" else set()
        dead |= model.dead
        assert ways == "drop" or not model.dead
    if case.is_exact():
        assert dead == model.dead if ways == "stream" else counts["s"]["dead_letters"] == len(model.dead)
    wanted = {(*row, *frozen_row((0, 0, *values_of(case.types, row[0])), case.types)[2:]): count
              for row, count in model.rows(dead).items()}  # fmt: skip
    assert found == Counter(wanted)
    queues = [executor.queue for executor in worker.executors if hasattr(executor, "queue")]
    assert sum(queue.held_rows + queue.held_bytes for queue in queues) == 0
    assert counts["s"]["unsettled"] == 0
    if not any(node.fails for node in case.nodes):
        compare_counts(case, model, counts)


def compare_counts(case: Case, model: Model, counts: dict[str, dict[str, int]]) -> None:
    """Without failures they are the same in all forms."""
    for number in range(len(case.nodes)):
        of_bolt = counts[f"b{number}"]
        got = (of_bolt["executed"], of_bolt["acked"], of_bolt["failed"])
        assert got == (model.executed[number], model.executed[number], 0), f"b{number}"
        sent = (of_bolt["emitted"], of_bolt["transferred"])
        assert sent == (model.emitted[number], model.transferred[number]), f"b{number}"
