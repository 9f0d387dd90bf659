"""A topology as frozen, picklable data."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pystorm_source.api.async_bolt import AsyncBolt
from pystorm_source.api.component import Component
from pystorm_source.api.limited_calls import limit_calls
from pystorm_source.api.partitioned_spout import PartitionedSpout
from pystorm_source.api.spout import Spout
from pystorm_source.api.stream import DEAD_LETTER, Stream
from pystorm_source.api.traced_calls import trace_calls
from pystorm_source.errors import OptionError, TopologyError, said
from pystorm_source.errors.redaction import RedactedRepr
from pystorm_source.options import EngineOptions, Options, declared_by, parse
from pystorm_source.options.storm_keys import check_topology_keys
from pystorm_source.options.wait_strategy import check_wait_strategies


@dataclass(frozen=True, repr=False)
class ComponentPlan(RedactedRepr):
    """One component: ``tasks`` are ids, unique in the plan, ascending. ``options``: the engine's keys as they hold for
    it, read from the topology's config with its own on top. ``config``: its own keys as sorted items. ``pars``:
    environment → number of tasks as items, if ``par`` is a dict. ``wrapper``: a spout class that is called with ``cls``
    and wraps it; the engine runs the wrapper. ``origin``: for an Input behind a cut, component and stream of the tuples
    that it repeats. ``processes``: number of processes that its tasks run in, 0 for the worker's own.
    ``takes_permits``: whether its class may take permits of rate limits other than ``topology.bolt.limits``."""

    name: str
    cls: type[Component]
    streams: tuple[Stream, ...]
    tasks: tuple[int, ...]
    options: EngineOptions = field(repr=False, compare=False)  # follows from the configs
    config: tuple[tuple[str, Any], ...] = ()
    pars: tuple[tuple[str, int], ...] = ()
    wrapper: type[PartitionedSpout] | None = None
    origin: tuple[str, str] | None = None
    processes: int = 0
    takes_permits: bool = False

    def tuples_of(self, stream: str) -> tuple[str, str]:
        """Component and stream that tuples of its stream say they come from."""
        return (self.name, stream) if self.origin is None else self.origin

    def instance(self) -> Component:
        """The object that runs. Raises the exceptions of its constructor."""
        made = self.cls() if self.wrapper is None else self.wrapper(self.cls)
        made._pystorm_options = self.options
        if self.options.bolt_limits and not self.is_spout:
            limit_calls(made)
        if self.options.trace_sample and isinstance(made, AsyncBolt):
            trace_calls(made)
        return made

    @property
    def runs_as(self) -> type[Component]:
        """The class of ``instance()``."""
        return self.cls if self.wrapper is None else self.wrapper

    @property
    def option_tables(self) -> tuple[type[Options], ...]:
        """The option table that the class declares, if any."""
        return declared_by(self.cls)

    @property
    def is_spout(self) -> bool:
        return issubclass(self.cls, Spout)

    @property
    def is_partitioned(self) -> bool:
        return issubclass(self.runs_as, PartitionedSpout)

    @property
    def has_journal(self) -> bool:
        """Whether it is a spout without offsets behind a journal."""
        return self.wrapper is not None and self.wrapper._pystorm_is_journal

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """The tasks of each of its processes; empty without processes."""
        count = min(self.processes, len(self.tasks))
        return [self.tasks[i::count] for i in range(count)]

    def busiest_process(self, seconds: Mapping[int, float]) -> float:
        """Seconds of its busiest process: the sum over its tasks. ``seconds``: of each task."""
        return max(sum(seconds.get(task, 0.0) for task in group) for group in self.groups)

    def stream(self, name: str) -> Stream:
        """The declared stream of that name, or a spout's ``__dead_letter``. Raises KeyError."""
        if name == DEAD_LETTER.name and self.is_spout:
            return DEAD_LETTER
        for stream in self.streams:
            if stream.name == name:
                return stream
        raise KeyError(name)


@dataclass(frozen=True)
class EdgePlan:
    """One subscription. ``positions``: indices of the values that a fields or partial key grouping selects. ``custom``:
    the object that chooses, for a custom grouping."""

    producer: str
    stream: str
    consumer: str
    grouping: str
    positions: tuple[int, ...] = ()
    custom: Any = field(default=None, repr=False, hash=False)

    def own_custom(self) -> Any:
        """A copy of the custom grouping for one producer task, whose state it keeps; None for other groupings.

        Raises TopologyError if it cannot be copied, hence cannot travel to a task either.
        """
        try:
            return copy.deepcopy(self.custom)
        except Exception as error:
            raise TopologyError(
                f"the custom grouping of {self.consumer!r} on stream {self.stream!r} of {self.producer!r} cannot be "
                f"copied for every producer task ({said(error)}): make such objects in prepare(). Given: "
                f"{type(self.custom).__name__}",
                code="PYSTORM_CANNOT_PICKLE",
            ) from error


@dataclass(frozen=True, repr=False)
class Plan(RedactedRepr):
    """Components (upstream before downstream, except in cycles), subscriptions and configuration.
    ``options``: the engine's keys of the configuration, read once: a task reads none.

    ``of``: in the plan of a child process, the topology's plan. ``leaving``: in a stage that ends at a cut, the streams
    that cross it, as component and stream; None: the open streams can leave. Equal plans run alike; a plan pickles by
    reference to the component classes, or with them if they are defined in a notebook or script.
    """

    name: str
    components: tuple[ComponentPlan, ...]
    edges: tuple[EdgePlan, ...]
    options: EngineOptions = field(repr=False, compare=False)  # follows from the config
    config: tuple[tuple[str, Any], ...] = ()
    leaving: tuple[tuple[str, str], ...] | None = None
    of: "Plan | None" = field(default=None, repr=False, compare=False)

    def component(self, name: str) -> ComponentPlan:
        """The component of that name. Raises KeyError."""
        for component in self.components:
            if component.name == name:
                return component
        raise KeyError(name)

    @property
    def spouts(self) -> tuple[ComponentPlan, ...]:
        return tuple(component for component in self.components if component.is_spout)

    @property
    def spouts_above(self) -> dict[str, set[str]]:
        """Component → the spouts whose tuples come to it, directly or through bolts; a spout → itself."""
        above = {component.name: {component.name} if component.is_spout else set() for component in self.components}
        grows = True
        while grows:  # one pass if there is no cycle, because components come upstream first
            grows = False
            for edge in self.edges:
                if not above[edge.producer] <= above[edge.consumer]:
                    above[edge.consumer] |= above[edge.producer]
                    grows = True
        return above

    def streams_of(self, component: ComponentPlan) -> tuple[Stream, ...]:
        """The streams that a component has under this configuration: the declared ones and, for a spout with
        ``topology.dead.letter=stream``, its dead letters."""
        if component.is_spout and component.options.dead_letter == "stream":
            return (*component.streams, DEAD_LETTER)
        return component.streams

    def counted_streams(self) -> "list[tuple[ComponentPlan, Stream]]":
        """All streams, in the order of a report's counts. Order: dead letters last. Options decide whether a plan has
        them, and a reader of the report may not know these options: this way no other stream changes its place."""
        streams = [(component, stream) for component in self.components for stream in self.streams_of(component)]
        return sorted(streams, key=lambda each: each[1] is DEAD_LETTER)

    @property
    def queue_capacity(self) -> int:
        """Capacity of its bolts' receive queues, rounded up like a ring's; 0 if it has no bolt."""
        if all(component.is_spout for component in self.components):
            return 0
        return 1 << max(0, self.options.receive_buffer_size - 1).bit_length()

    def check_dead_letters(self) -> None:
        """Raises OptionError if a bolt subscribes to dead letters that no spout gives."""
        for edge in self.edges:
            spout = self.component(edge.producer)
            if edge.stream == DEAD_LETTER.name and DEAD_LETTER not in self.streams_of(spout):
                raise OptionError(
                    f"{edge.consumer!r} subscribes to the stream {DEAD_LETTER.name!r} of {spout.name!r}, which is "
                    f"there with topology.dead.letter=stream only: set it, or take that input out. "
                    f"Given: {spout.options.dead_letter!r}",
                    code="PYSTORM_OPTIONS_CONFLICT",
                )

    @property
    def open_streams(self) -> tuple[tuple[ComponentPlan, Stream], ...]:
        """Streams that no bolt subscribes to: they can leave the topology as rows."""
        taken = {(edge.producer, edge.stream) for edge in self.edges}
        return tuple(
            (component, stream)
            for component in self.components
            for stream in self.streams_of(component)
            if stream.fields and (component.name, stream.name) not in taken
        )

    def configured(self, config: Mapping[str, Any]) -> "Plan":
        """Returns this plan with another ``config``, JSON values; components keep theirs on top.

        Raises OptionError for a wrong or misspelt engine key.
        """
        options = engine_options(config)
        check_topology_keys(config, self.option_tables)
        components = tuple(
            replace(component, options=own_options(component.name, dict(component.config), config, options))
            for component in self.components
        )
        return replace(
            self,
            name=options.name or self.name,
            components=components,
            options=options,
            config=tuple(sorted(config.items())),
        )

    def check_keys(self) -> None:
        """Raises OptionError for a key ``topology.*`` in a configuration that looks misspelt."""
        check_topology_keys(dict(self.config), self.option_tables)
        for component in self.components:
            try:
                check_topology_keys(dict(component.config), self.option_tables)
            except OptionError as error:
                raise OptionError(f"config of component {component.name!r}: {error.message}", code=error.code) from None

    @property
    def option_tables(self) -> tuple[type[Options], ...]:
        """The option tables that its components declare."""
        return tuple(dict.fromkeys(table for component in self.components for table in component.option_tables))

    def in_environment(self, environment: str) -> "Plan":
        """This plan with the number of tasks that ``par`` gives for an environment, if it is a dict of environments.

        Raises OptionError if a ``par`` does not have it.
        """
        if not any(component.pars for component in self.components):
            return self
        tasks: dict[str, tuple[int, ...]] = {}
        first = 1
        for component in sorted(self.components, key=lambda component: component.tasks):
            count = _par_in(component, environment) if component.pars else len(component.tasks)
            tasks[component.name] = tuple(range(first, first + count))
            first += count
        return replace(
            self, components=tuple(replace(component, tasks=tasks[component.name]) for component in self.components)
        )

    def storm_grouping(self, edge: EdgePlan) -> dict[str, Any]:
        """The grouping of a subscription as in Storm's contexts: ``type``, and ``fields`` if it has them.

        Like in Storm, a global grouping is one by no fields.
        """
        kind = {"global": "fields", "custom": "custom_object"}.get(edge.grouping, edge.grouping)
        shape: dict[str, Any] = {"type": kind.upper()}
        if kind in ("fields", "partial_key"):
            fields = self.component(edge.producer).stream(edge.stream).fields
            shape["fields"] = [fields[position] for position in edge.positions]
        return shape

    def context_of(self, component: str, task: int, place: str) -> dict[str, Any]:
        """The ``context`` that ``initialize`` gets: the keys of Storm's multilang handshake, and ``place``, which is
        "driver" or "task"."""
        declared = self.streams_of(self.component(component))
        to: dict[str, dict[str, Any]] = {}
        by: dict[str, dict[str, Any]] = {}
        fields: dict[str, dict[str, list[str]]] = {}
        for edge in self.edges:
            if edge.producer == component:
                to.setdefault(edge.stream, {})[edge.consumer] = self.storm_grouping(edge)
            if edge.consumer == component:
                source = self.component(edge.producer)
                producer, name = source.tuples_of(edge.stream)
                by.setdefault(producer, {})[name] = self.storm_grouping(edge)
                fields.setdefault(producer, {})[name] = list(source.stream(edge.stream).fields)
        return {
            "place": place,
            "taskid": task,
            "componentid": component,
            "task->component": {str(id): entry.name for entry in self.components for id in entry.tasks},
            "streams": [stream.name for stream in declared],
            "stream->outputfields": {stream.name: list(stream.fields) for stream in declared},
            "stream->target->grouping": to,
            "source->stream->grouping": by,
            "source->stream->fields": fields,
        }

    def conf_of(self, component: ComponentPlan) -> dict[str, Any]:
        """The configuration that ``initialize`` gets, a copy: the topology's, then the component's own on top."""
        return copy.deepcopy({**dict(self.config), "topology.name": self.name, **dict(component.config)})

    def __str__(self) -> str:
        lines = [f"topology {self.name}"]
        for component in self.components:
            kind = "spout" if component.is_spout else "bolt"
            lines.append(f"  {kind} {component.name} ({component.cls.__name__}) tasks {list(component.tasks)}")
            for edge in self.edges:
                if edge.consumer == component.name:
                    lines.append(f"    <- {edge.producer}.{edge.stream} by {edge.grouping}")
            for owner, stream in self.open_streams:
                if owner is component:
                    fields = ", ".join(f"{n} {t}" if t else n for n, t in zip(stream.fields, stream.types, strict=True))
                    lines.append(f"    -> open {stream.name}: {fields}")
        return "\n".join(lines)


def engine_options(config: Mapping[str, Any]) -> EngineOptions:
    """The engine's keys of a configuration. Raises OptionError for a wrong one."""
    options = parse(EngineOptions, config)
    check_wait_strategies(options)
    return options


def own_options(
    component: str, own: Mapping[str, Any], config: Mapping[str, Any], options: EngineOptions
) -> EngineOptions:
    """Returns a component's options: ``options``, which were read from ``config``, with its ``own`` config on top.

    Raises OptionError for a wrong one.
    """
    if not own:
        return options
    try:
        found = engine_options({**config, **own})
    except OptionError as error:
        raise OptionError(f"config of component {component!r}: {error.message}", code=error.code) from None
    return options if found == options else found  # the same object travels to tasks once


def _par_in(component: ComponentPlan, environment: str) -> int:
    pars = dict(component.pars)
    if environment in pars:
        return pars[environment]
    known = ", ".join(repr(name) for name in pars)
    remedy = "add this one, or choose one of them" if environment else "choose one"
    raise OptionError(
        f"`par` of {component.name!r} is given for the environments {known}: {remedy} with option "
        f"'topology.environment'. Given: {repr(environment) if environment else 'none'}",
        code="PYSTORM_INVALID_OPTION",
    )
