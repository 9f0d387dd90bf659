"""Workers kept warm between the micro-batches of one Python process.

A cache, never a promise: Spark moves partitions between processes, and ends idle ones. It keeps at most one worker per
plan and run of a query, so queries never see the state of each other's components, and few workers in total: a process
that serves many queries must not collect their topologies.
"""

import io
import pickle
import types
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from pystorm_source.plan.plan import ComponentPlan, Plan
from pystorm_source.worker.garbage import spare_modules
from pystorm_source.worker.new_worker import new_worker
from pystorm_source.worker.output import OutputPlan
from pystorm_source.worker.worker import Worker

MOST_IDLE = 4

Key = tuple[object, ...]

_idle: OrderedDict[Key, Worker] = OrderedDict()


def _key(plan: Plan, output: OutputPlan) -> Key:
    # Classes defined in a notebook arrive as new classes with every pickle, with the same name and code version. An
    # edited class cannot be distinguished from an equal one, so identity keeps them apart, and they start cold.
    return (
        plan.name,
        repr(plan.config),
        repr(plan.edges),
        repr([_values_of(component) for component in plan.components]),
        tuple(_key_of_grouping(edge.custom) for edge in plan.edges),
        tuple(component.cls for component in plan.components),
        output.views,
        output.schema.to_string(),
        output.batch_rows,
    )


def _values_of(component: ComponentPlan) -> tuple[Any, ...]:
    return tuple(getattr(component, each.name) for each in fields(component) if each.compare)


class _StatePickler(pickle.Pickler):
    """Pickles values; collects the classes and functions among them in ``code``, to distinguish them by identity."""

    def __init__(self, file: io.BytesIO):
        super().__init__(file)
        self.code: list[Any] = []

    def persistent_id(self, value: Any) -> int | None:
        if not isinstance(value, (type, types.FunctionType)):
            return None
        self.code.append(value)
        return len(self.code)


def _key_of_grouping(custom: Any) -> tuple[object, ...] | None:
    """The identity of a custom grouping: its class and its state."""
    if custom is None:
        return None
    state = io.BytesIO()
    pickler = _StatePickler(state)
    try:
        pickler.dump(custom)
    except Exception:
        # An object that plain pickle refuses equals only itself; an idle worker's plan keeps it alive.
        return (id(custom),)
    return (state.getvalue(), *pickler.code)


def take(plan: Plan, output: OutputPlan, run: str = "") -> Worker:
    """Returns this process's idle worker with an equal plan and output and the same run, or a new one."""
    key = _key_of_same(plan, output, run) or (run, *_key(plan, output))
    worker = _idle.pop(key, None)
    if worker is not None and not worker.is_alive:  # one of its processes was killed while it was idle
        worker.stop()
        worker = None
    if worker is None:
        spare_modules()
        worker = new_worker(plan, output)
        worker.warm_key = key
    return worker


@contextmanager
def borrowed(plan: Plan, output: OutputPlan, run: str = "") -> Iterator[Worker]:
    """Lends a worker, as ``take`` returns it. Takes it back at the end of the block, or stops it if an exception ends
    the block, including GeneratorExit."""
    worker = take(plan, output, run)
    clean = False
    try:
        yield worker
        clean = True
    finally:
        if clean:
            give_back(worker)
        else:
            worker.stop()


def _key_of_same(plan: Plan, output: OutputPlan, run: str) -> Key | None:
    """The key of an idle worker with these very objects: most plans exist once in a process, and making a key takes
    long."""
    for key, worker in _idle.items():
        if worker.plan is plan and worker.output is output and key[0] == run:
            return key
    return None


def give_back(worker: Worker) -> None:
    """Keeps the worker for the next range; stops it if it is broken or an equal one is already idle."""
    key = worker.warm_key
    if worker.broken or key in _idle:
        worker.stop()
        return
    _idle[key] = worker
    while len(_idle) > MOST_IDLE:
        _, oldest = _idle.popitem(last=False)
        oldest.stop()
