"""Workers kept warm between the micro-batches of one Python process.

A cache, never a promise: Spark moves partitions between processes, and ends idle ones. Holds at most one worker per
plan, and few plans: a process that serves many queries must not collect their topologies.
"""

from collections import OrderedDict

from pystorm_source.plan.plan import Plan
from pystorm_source.worker.output import OutputPlan
from pystorm_source.worker.worker import Worker

MOST_IDLE = 4

_idle: "OrderedDict[tuple[object, ...], Worker]" = OrderedDict()


def _key(plan: Plan, output: OutputPlan) -> tuple[object, ...]:
    # Classes defined in a notebook arrive as new classes with every pickle; by name and version of their code they are
    # the same, but nothing tells an edited class from an equal one: identity keeps them apart, so they start cold.
    return (
        repr(plan),
        tuple(component.cls for component in plan.components),
        output.views,
        output.schema.to_string(),
        output.batch_rows,
    )


def take(plan: Plan, output: OutputPlan) -> Worker:
    """A worker of an equal plan and output that is idle in this process, else a new one."""
    worker = _idle.pop(_key(plan, output), None)
    return worker if worker is not None else Worker(plan, output)


def give_back(worker: Worker) -> None:
    """Keeps the worker for the next range; stops it where it is broken or another is idle already."""
    key = _key(worker.plan, worker.output)
    if worker.broken or key in _idle:
        worker.stop()
        return
    _idle[key] = worker
    while len(_idle) > MOST_IDLE:
        _, oldest = _idle.popitem(last=False)
        oldest.stop()
