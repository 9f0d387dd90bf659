"""Cuts a plan where a grouping must hold across the cluster: between two stages lies Spark's shuffle.

::

    lines ─shuffle─► split ─fields(word)─► count ─global─► rank          one task: groupings hold inside of it

    stage 0               stage 1                stage 2
    lines ► split  ═════► split.default ► count  ═════► count.default ► rank        ═ Spark's shuffle

A component's stage is the number of cuts on the longest way to it. These edges are cut: fields, global and ALL
groupings, edges to a bolt where several spouts meet, and edges that lead from one stage to another one anyway.
Behind a cut an ``Entry``, an ``Input``, stands for the stream that comes through. A stream that a later stage takes
passes through the stages between.

A ``StatefulBolt`` has a stage to itself: its tuples are retried only there, and nothing behind it can fail them. The
edges from it are cut without a shuffle, unless a grouping asks for one.

Shuffle, local-or-shuffle, partial key, direct and custom groupings are not cut: they spread load, or choose among a
bolt's tasks, and all these are in one Spark task.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa

from pystorm_source.api.input import Input
from pystorm_source.api.stateful_bolt import StatefulBolt
from pystorm_source.api.stream import Stream
from pystorm_source.errors import OptionError, SchemaError, TopologyError
from pystorm_source.options import EngineOptions
from pystorm_source.plan.join_inputs import join_inputs, joins
from pystorm_source.plan.key_states import has_timers, refuse_without_key, types_of_key, with_timer_input
from pystorm_source.plan.plan import ComponentPlan, EdgePlan, Plan

WIDE = frozenset(("fields", "global", "all"))
"""Groupings that say which task gets a tuple, wherever it was emitted."""


class StreamOf(NamedTuple):
    """A stream of a component of the whole topology."""

    component: str
    stream: str

    def __str__(self) -> str:
        return f"{self.component}.{self.stream}"


@dataclass(frozen=True)
class Entry:
    """Where rows of ``origin`` enter a stage. ``name``: of its Input, unique in the stage. ``placing``: "fields" by the
    values at ``positions``, "global", "all", or "row": any, as long as equal rows go to the same place; if all
    entries are "row", and the streams have met before, rows stay where they are."""

    name: str
    origin: StreamOf
    placing: str
    positions: tuple[int, ...] = ()


@dataclass(frozen=True)
class Stage:
    """``plan``: what runs in a task of it. ``entries``: empty for stage 0, whose spouts read. ``carriers``: (stream
    that leaves, component and stream of ``plan`` with its rows), in the order of their numbers."""

    plan: Plan
    entries: tuple[Entry, ...]
    carriers: tuple[tuple[StreamOf, StreamOf], ...]

    @property
    def leaving(self) -> tuple[StreamOf, ...]:
        """The streams that leave, in the order of their numbers."""
        return tuple(stream for stream, _ in self.carriers)

    @property
    def stays(self) -> bool:
        """Whether rows that have met before need no other task."""
        return all(entry.placing == "row" for entry in self.entries)

    @property
    def stateful(self) -> ComponentPlan | None:
        """The bolt that keeps states; it is then the only bolt."""
        return next((each for each in self.plan.components if issubclass(each.cls, StatefulBolt)), None)

    def carrier_of(self, component: str, stream: str) -> StreamOf:
        """The component and stream of ``plan`` that have the rows of a stream that leaves. Raises KeyError."""
        return dict(self.carriers)[StreamOf(component, stream)]

    def __str__(self) -> str:
        comes = ", ".join(f"{each.origin} by {each.placing}" for each in self.entries) or "sources"
        bolts = ", ".join(each.name for each in self.plan.components if each.cls is not Input)
        return f"{comes} -> {bolts or 'nothing'} -> {', '.join(map(str, self.leaving))}"


def cut(plan: Plan, wanted: Sequence[tuple[str, str]]) -> tuple[Stage, ...]:
    """Returns the stages of a plan, one if nothing must be cut. ``wanted``: the open streams, as component and stream,
    whose rows must come out of the last stage.

    Raises TopologyError for a cycle or a direct stream across a cut, or a join of tuples in different tasks,
    SchemaError for a stream that crosses and does not declare its types.
    """
    refuse_without_key(plan)
    _refuse_maps_as_keys(plan)
    _refuse_keys_of_two_types(plan)
    level = stage_of_each(plan)
    _refuse_direct(plan, level)
    for bolt in joins(plan):
        join_inputs(plan, bolt, several_tasks=True)
    last = max(level.values())
    stages: list[Stage] = []
    for number in range(last + 1):
        leaving = tuple(_leaving(plan, level, number, [StreamOf(*each) for each in wanted]))
        _refuse_untyped(plan, leaving if number < last else ())
        stages.append(_stage(plan, level, number, stages[-1].leaving if stages else (), leaving))
    return tuple(stages)


def stage_of_each(plan: Plan) -> dict[str, int]:
    """Component → the number of its stage. Raises TopologyError for a cycle across a cut."""
    level = {name: int(_meet(plan, name, spouts)) for name, spouts in plan.spouts_above.items()}
    stateful = {each.name for each in plan.components if issubclass(each.cls, StatefulBolt)}
    # Each round raises one component at least, and without a cycle none beyond one stage for each component.
    for _ in range((len(level) + 1) ** 2):
        raised = False
        for edge in plan.edges:
            least = level[edge.producer] + (edge.grouping in WIDE or edge.producer in stateful)
            if level[edge.consumer] < least:
                level[edge.consumer], raised = least, True
        raised = raised or _leave_alone(level, stateful)
        if not raised:
            return level
    edge = next(
        edge for edge in plan.edges if (edge.grouping in WIDE or edge.producer in stateful) and _leads_back(plan, edge)
    )
    raise TopologyError(
        f"scope='cluster' cuts the topology at {edge.producer}.{edge.stream} by {edge.grouping} to {edge.consumer!r}, "
        "and that lies in a cycle, but Spark's rows cannot go back. Use another grouping in the cycle, such as "
        f"shuffle, or scope='task'. Given: topology {plan.name!r}",
        code="PYSTORM_CANNOT_BE_CUT",
    )


def _leave_alone(level: dict[str, int], stateful: set[str]) -> bool:
    """Moves a component that shares a stage with a bolt that keeps states to the next one. Whether it found one."""
    for name in level:
        if name in stateful:
            for other in level:
                if other != name and level[other] == level[name]:
                    level[other] += 1
                    return True
    return False


def _refuse_maps_as_keys(plan: Plan) -> None:
    """Raises SchemaError for a fields grouping by a map, which Spark cannot hash."""
    for edge in plan.edges:
        if edge.grouping == "fields":
            for kind in types_of_key(plan, edge):
                if "map<" in str(kind):
                    raise SchemaError(
                        f"scope='cluster' places tuples of {edge.producer}.{edge.stream} by the hash of their key, and "
                        f"Spark hashes no map: group {edge.consumer!r} by a field of another type. Given: {kind}",
                        code="PYSTORM_SCHEMA_MISMATCH",
                    )


def _refuse_keys_of_two_types(plan: Plan) -> None:
    """Raises SchemaError for a bolt whose inputs are grouped by as many fields of other types: Spark's hashes of equal
    values of two types differ, so that they would not meet."""
    for component in plan.components:
        seen: dict[int, tuple[EdgePlan, tuple[pa.DataType | None, ...]]] = {}
        for edge in plan.edges:
            if edge.consumer != component.name or edge.grouping != "fields":
                continue
            types = types_of_key(plan, edge)
            first, others = seen.setdefault(len(types), (edge, types))
            if types != others:
                raise SchemaError(
                    f"bolt {component.name!r} groups {first.producer}.{first.stream} and {edge.producer}.{edge.stream} "
                    "by fields of different types, whose equal values Spark sends to different tasks: declare them "
                    "with one type in `outputs`. Given: "
                    f"{', '.join(map(str, others))} and {', '.join(map(str, types))}",
                    code="PYSTORM_SCHEMA_MISMATCH",
                )


def _meet(plan: Plan, component: str, spouts: set[str]) -> bool:
    """Whether tuples of several spouts come together there."""
    return len(spouts) > 1 and not plan.component(component).options.spouts_independent


def _leads_back(plan: Plan, edge: EdgePlan) -> bool:
    below, grows = {edge.consumer}, True
    while grows:
        more = {other.consumer for other in plan.edges if other.producer in below} - below
        below, grows = below | more, bool(more)
    return edge.producer in below


def _refuse_direct(plan: Plan, level: dict[str, int]) -> None:
    for edge in plan.edges:
        if edge.grouping == "direct" and level[edge.producer] != level[edge.consumer]:
            raise TopologyError(
                f"{edge.producer}.{edge.stream} names the task that gets each tuple, and scope='cluster' puts "
                f"{edge.consumer!r} behind a shuffle, where it has other tasks: take a fields grouping for the direct "
                f"one, or run it with scope='task'. Given: topology {plan.name!r}",
                code="PYSTORM_CANNOT_BE_CUT",
            )


def _refuse_untyped(plan: Plan, leaving: Sequence[StreamOf]) -> None:
    for each in leaving:
        stream = plan.component(each.component).stream(each.stream)
        bare = [name for name, ddl in zip(stream.fields, stream.types, strict=True) if ddl is None]
        if bare:
            raise SchemaError(
                f"scope='cluster' sends rows of {each} through Spark's shuffle: declare their types in `outputs`, "
                f"such as '{bare[0]} string'. Given: {bare!r}",
                code="PYSTORM_INVALID_TYPE",
            )


def _leaving(plan: Plan, level: dict[str, int], number: int, wanted: Sequence[StreamOf]) -> Iterator[StreamOf]:
    """The streams of stages up to ``number`` that a later one takes, or that are wanted."""
    for component in plan.components:
        if level[component.name] > number:
            continue
        for stream in plan.streams_of(component):
            each = StreamOf(component.name, stream.name)
            taken = any((edge.producer, edge.stream) == each and level[edge.consumer] > number for edge in plan.edges)
            if taken or each in wanted:
                yield each


def _stage(
    plan: Plan, level: dict[str, int], number: int, entering: Sequence[StreamOf], leaving: Sequence[StreamOf]
) -> Stage:
    own = tuple(component for component in plan.components if level[component.name] == number)
    inner = [edge for edge in plan.edges if level[edge.producer] == level[edge.consumer] == number]
    crossing = [edge for edge in plan.edges if level[edge.producer] < level[edge.consumer] == number]
    entries: dict[tuple[StreamOf, str, tuple[int, ...]], Entry] = {}
    names = {component.name for component in own}

    def entry_of(origin: StreamOf, placing: str, positions: tuple[int, ...]) -> Entry:
        key = (origin, placing, positions)
        if key not in entries:
            entries[key] = Entry(_free_name(str(origin), names), origin, placing, positions)
            names.add(entries[key].name)
        return entries[key]

    edges = list(inner)
    for edge in crossing:
        placing = edge.grouping if edge.grouping in WIDE else "row"
        entry = entry_of(StreamOf(edge.producer, edge.stream), placing, edge.positions if placing == "fields" else ())
        edges.append(replace(edge, producer=entry.name, stream="default"))
    carriers = []
    for each in leaving:
        if each not in entering:
            carriers.append((each, each))
            continue
        # Rows that pass through go with those that a bolt here takes, unless there are several of each.
        ready = [entry for entry in entries.values() if entry.origin == each and entry.placing != "all"]
        entry = ready[0] if ready else entry_of(each, "row", ())
        carriers.append((each, StreamOf(entry.name, "default")))
    task = 1 + max(task for component in plan.components for task in component.tasks)
    inputs = tuple(_input_of(plan, entry, task + i) for i, entry in enumerate(entries.values()))
    is_last = number == max(level.values())
    own_plan = replace(
        plan,
        components=inputs + own,
        edges=tuple(edges),
        leaving=None if is_last else tuple((carrier.component, carrier.stream) for _, carrier in carriers),
    )
    stage = Stage(own_plan, tuple(entries.values()), tuple(carriers))
    if stage.stateful is not None and has_timers(stage.stateful):
        options = _agreed([each.options for each in inputs], plan.options)
        stage = replace(stage, plan=with_timer_input(own_plan, stage.stateful, task + len(inputs), options))
    return stage


def _input_of(plan: Plan, entry: Entry, task: int) -> ComponentPlan:
    stream = plan.component(entry.origin.component).stream(entry.origin.stream)
    columns = [f"{name} {ddl}" for name, ddl in zip(stream.fields, stream.types, strict=True)]
    # Retries and dead letters are as the spouts above want them.
    spouts = [plan.component(name).options for name in sorted(plan.spouts_above[entry.origin.component])]
    return ComponentPlan(
        name=entry.name,
        cls=Input,
        streams=(Stream(columns),),
        tasks=(task,),
        options=_agreed(spouts, plan.options),
        origin=(entry.origin.component, entry.origin.stream),
    )


def _agreed(options: Sequence[EngineOptions], otherwise: EngineOptions) -> EngineOptions:
    """The options that all of them have, or ``otherwise`` if they differ."""
    return options[0] if options and all(each == options[0] for each in options) else otherwise


def _free_name(wished: str, taken: set[str]) -> str:
    name, number = wished, 1
    while name in taken:
        number += 1
        name = f"{wished}#{number}"
    return name


def refuse_letters(plan: Plan, path: str = "") -> None:
    """Raises OptionError for dead letters as a stream: nothing would read it in later stages. ``path``: option
    topology.dead.letter.path."""
    for component in plan.components:
        if not path and component.is_spout and component.options.dead_letter == "stream":
            raise OptionError(
                "with scope='cluster' each stage has dead letters of its own: have them written into files by "
                "topology.dead.letter.path, or drop them. Given: topology.dead.letter='stream' of "
                f"{component.name!r}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
