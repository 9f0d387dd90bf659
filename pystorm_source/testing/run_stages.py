"""Runs a topology that is cut, stage by stage: after a cut, in several workers that share nothing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cython_core.routing.route import hash_of
from pystorm_source.api.key_state import TIMER_FIELDS, Key
from pystorm_source.api.keyed_states import KeyedStates
from pystorm_source.plan import Plan
from pystorm_source.plan.key_states import TIMER_INPUT, state_shape
from pystorm_source.plan.stages import Entry, Stage, StreamOf, cut, refuse_letters
from pystorm_source.testing.input_rows import with_rows_of
from pystorm_source.testing.result import Result
from pystorm_source.worker.local_run import Counts
from pystorm_source.worker.worker import Worker

_Rows = list[tuple[Any, ...]]


def run_stages(
    plan: Plan,
    tasks: int,
    timers_after: float,
    run: Callable[[Plan, bool, Callable[[Worker], None] | None], Result],
) -> Result:
    """``run(plan, together, on_worker)`` runs a stage in one worker, or the sources in one worker for each range.
    ``timers_after``: seconds that pass after the rows of a stage.

    Raises like ``cut`` and ``run``.
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
        if kept is not None and all(result.is_whole for result in ended):
            for timers in kept.fired(stage.plan, int(timers_after * 1000)):
                ended.append(_counted_at_origins(run(timers, True, kept.bind), stage))
                if not ended[-1].is_whole:
                    break
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
            whole.states[kept.shape.bolt] = kept.states
        whole.is_whole = all(result.is_whole for result in ended)
        if not whole.is_whole:
            return whole  # Spark runs no stage after a failed one
    whole._left = {(component, stream): left for (component, stream), left in rows.items()}
    return whole


def _counted_at_origins(result: Result, stage: Stage) -> Result:
    """Counts the outcome of tuples after a cut for the component that emitted them, and the outcome of timers for the
    bolt that set them."""
    origins = {entry.name: entry.origin.component for entry in stage.entries}
    if stage.stateful is not None:
        origins[TIMER_INPUT] = stage.stateful.name
    for name, origin in origins.items():
        for counts in (result.failed, result.unsettled, result.retries, result.dead_letters, result.dropped):
            counts[origin] = counts.get(origin, 0) + counts.get(name, 0)
    return result


class _Kept:
    """The states of a stage's bolt, in a dict instead of Spark's state store."""

    def __init__(self, stage: Stage):
        bolt: Any = stage.stateful
        self.shape = state_shape(stage.plan, bolt)
        self.store: dict[Key, tuple[Any, ...]] = {}
        self._now = 0
        self._asked: dict[int, list[Key]] = {}
        self._bound: list[KeyedStates] = []

    @property
    def states(self) -> dict[Key, dict[str, Any]]:
        """Key → its fields by name, without timers."""
        return {
            key: {name: value for name, value in zip(self.shape.names, values, strict=True) if name not in TIMER_FIELDS}
            for key, values in self.store.items()
        }

    def fired(self, plan: Plan, millis: int) -> Iterator[Plan]:
        """Advances the time by ``millis``; yields a plan for each time at which timers are due. Run and flush it before
        you ask for the next."""
        end = self._now + millis
        while self._asked and (at := min(self._asked)) <= end:
            self._now = at
            rows = [(*key, at) for key in dict.fromkeys(self._asked.pop(at))]
            yield with_rows_of(plan, {spout.name: rows if spout.name == TIMER_INPUT else [] for spout in plan.spouts})

    def bind(self, worker: Worker) -> None:
        """Binds the states to the bolt's tasks in a new worker."""
        self._bound = KeyedStates.of(worker.executors, self.shape, self, self._now)

    def flush(self) -> None:
        """Called when the worker has come to its end."""
        for states in self._bound:
            states.flush()

    def get(self, key: Key) -> tuple[Any, ...] | None:
        """Like ``StateStore``."""
        return self.store.get(key)

    def put(self, key: Key, values: tuple[Any, ...]) -> None:
        """Like ``StateStore``."""
        self.store[key] = values

    def remove(self, key: Key) -> None:
        """Like ``StateStore``."""
        del self.store[key]

    def ask_at(self, millis: int, keys: list[Key]) -> None:
        """Like ``StateStore``."""
        self._asked.setdefault(millis, []).extend(keys)


def _plans(stage: Stage, rows: Mapping[StreamOf, _Rows], tasks: int) -> list[Plan]:
    """Returns a plan for each task of the stage, over the rows that left the previous stage."""
    if not stage.entries:
        return [stage.plan]
    if all(entry.placing == "global" for entry in stage.entries):
        tasks = 1
    given: list[dict[str, _Rows]] = [{entry.name: [] for entry in stage.entries} for _ in range(tasks)]
    for entry in stage.entries:
        for row in rows[entry.origin]:
            for task in _places(entry, row, tasks):
                given[task][entry.name].append(row)
    timers: dict[str, _Rows] = {spout.name: [] for spout in stage.plan.spouts if spout.name == TIMER_INPUT}
    return [with_rows_of(stage.plan, {**timers, **rows}) for rows in given]


def _places(entry: Entry, row: Sequence[Any], tasks: int) -> Sequence[int]:
    if entry.placing == "all":
        return range(tasks)
    if entry.placing == "global":
        return (0,)
    key = row if entry.placing == "row" else [row[position] for position in entry.positions]
    return (hash_of(tuple(key)) % tasks,)
