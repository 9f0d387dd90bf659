"""Runs a topology that is cut: stage by stage, each behind a cut in several workers that share nothing."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cython_core.routing.stable_hash import hash_of
from pystorm_source.api.stateful_bolt import KeyedStates
from pystorm_source.plan import Plan
from pystorm_source.plan.stages import (
    Entry,
    Stage,
    StreamOf,
    cut,
    key_positions,
    refuse_letters,
    state_stream,
    state_types,
)
from pystorm_source.testing.input_rows import with_rows_of
from pystorm_source.testing.result import Result
from pystorm_source.worker.local_run import Counts
from pystorm_source.worker.worker import Worker

_Rows = list[tuple[Any, ...]]


def run_stages(plan: Plan, tasks: int, run: Callable[[Plan, bool, Callable[[Worker], None] | None], Result]) -> Result:
    """``run(plan, together, on_worker)``: a stage in one worker, or the sources, each range of which has its own.

    Raises as ``cut`` and ``run``.
    """
    __tracebackhide__ = True
    refuse_letters(plan)
    streams = [(component.name, stream.name) for component in plan.components for stream in plan.streams_of(component)]
    whole = Result(plan, {stream: [] for stream in streams}, Counts())
    whole.attempts = 0
    rows: dict[StreamOf, _Rows] = {}
    for number, stage in enumerate(
        cut(plan, [(component.name, stream.name) for component, stream in plan.open_streams])
    ):
        kept = _Kept(stage) if stage.stateful is not None else None
        ended = []
        for each in _plans(stage, rows, tasks):
            ended.append(_counted_at_origins(run(each, number > 0, None if kept is None else kept.bind), stage))
            if kept is not None and ended[-1].is_whole:
                kept.flush()
        rows = {
            stream: [row for result in ended for row in result._left.get(carrier, ())]
            for stream, carrier in stage.carriers
        }
        for result in ended:
            whole.add(result)
        if number == 0:
            whole.micro_batches = ended[0].micro_batches
        if kept is not None:
            whole.states[kept.bolt] = {
                key: dict(zip(kept.names, values, strict=True)) for key, values in kept.store.items()
            }
        whole.is_whole = all(result.is_whole for result in ended)
        if not whole.is_whole:
            return whole  # Spark runs no stage behind one that has failed
    whole._left = {(component, stream): left for (component, stream), left in rows.items()}
    return whole


def _counted_at_origins(result: Result, stage: Stage) -> Result:
    """What became of tuples that have crossed a cut counts for the component that emitted them."""
    for entry in stage.entries:
        for counts in (result.failed, result.unsettled, result.retries, result.dead_letters, result.dropped):
            counts[entry.origin.component] = counts.get(entry.origin.component, 0) + counts.get(entry.name, 0)
    return result


class _Kept:
    """The states of a stage's bolt, in a dict, in the place of Spark's state store."""

    def __init__(self, stage: Stage):
        bolt: Any = stage.stateful
        self.bolt = bolt.name
        self.names = state_stream(bolt).fields
        self._types = state_types(bolt)
        self.store: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._positions = key_positions(stage.plan, bolt.name)
        self._states: list[KeyedStates] = []

    def bind(self, worker: Worker) -> None:
        """To the bolt's tasks in a new worker."""
        self._states = KeyedStates.of(worker.executors, self.bolt, self.names, self._types, self, self._positions)

    def flush(self) -> None:
        """The worker has come to its end."""
        for states in self._states:
            states.flush()

    def get(self, key: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """As ``StateStore``."""
        return self.store.get(key)

    def put(self, key: tuple[Any, ...], values: tuple[Any, ...]) -> None:
        """As ``StateStore``."""
        self.store[key] = values

    def remove(self, key: tuple[Any, ...]) -> None:
        """As ``StateStore``."""
        del self.store[key]


def _plans(stage: Stage, rows: Mapping[StreamOf, _Rows], tasks: int) -> list[Plan]:
    """What each task of the stage runs, over the rows that have left the stage before."""
    if not stage.entries:
        return [stage.plan]
    if all(entry.placing == "global" for entry in stage.entries):
        tasks = 1
    given: list[dict[str, _Rows]] = [{entry.name: [] for entry in stage.entries} for _ in range(tasks)]
    for entry in stage.entries:
        for row in rows[entry.origin]:
            for task in _places(entry, row, tasks):
                given[task][entry.name].append(row)
    return [with_rows_of(stage.plan, rows) for rows in given]


def _places(entry: Entry, row: Sequence[Any], tasks: int) -> Sequence[int]:
    if entry.placing == "all":
        return range(tasks)
    if entry.placing == "global":
        return (0,)
    key = row if entry.placing == "row" else [row[position] for position in entry.positions]
    return (hash_of(tuple(key)) % tasks,)
