"""Workers kept warm between the micro-batches of one Python process.

A cache, never a promise: Spark moves partitions between processes, and ends idle ones. Holds at most one worker per
plan and run of a query, so that no query sees the state of another query's components, and few in all: a process that
serves many queries must not collect their topologies.
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
    # Classes defined in a notebook arrive as new classes with every pickle; they have the same name and code version,
    # but an edited class cannot be distinguished from an equal one: identity keeps them apart, so they start cold.
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
    """Pickles values; the classes and functions among them are collected in ``code``, to be distinguished by
    identity."""

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
        # An object that plain pickle cannot carry equals only itself; an idle worker's plan keeps it alive.
        return (id(custom),)
    return (state.getvalue(), *pickler.code)


def take(plan: Plan, output: OutputPlan, run: str = "") -> Worker:
    """A worker of an equal plan and output and the same run that is idle in this process, else a new one."""
    key = _key_of_same(plan, output, run) or (run, *_key(plan, output))
    worker = _idle.pop(key, None)
    if worker is not None and not worker.is_alive:  # a process of it was killed while it was idle
        worker.stop()
        worker = None
    if worker is None:
        spare_modules()
        worker = new_worker(plan, output)
        worker.warm_key = key
    return worker


@contextmanager
def borrowed(plan: Plan, output: OutputPlan, run: str = "") -> Iterator[Worker]:
    """A worker as ``take`` gives it. It is given back at the end of the block, and stopped if that is left by an
    exception, GeneratorExit included."""
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
    """That of an idle worker of these very objects: a process has most plans once, and a key takes long to make."""
    for key, worker in _idle.items():
        if worker.plan is plan and worker.output is output and key[0] == run:
            return key
    return None


def give_back(worker: Worker) -> None:
    """Keeps the worker for the next range; stops it if it is broken or another one is already idle."""
    key = worker.warm_key
    if worker.broken or key in _idle:
        worker.stop()
        return
    _idle[key] = worker
    while len(_idle) > MOST_IDLE:
        _, oldest = _idle.popitem(last=False)
        oldest.stop()
