"""A topology as frozen, picklable data."""

from dataclasses import dataclass
from typing import Any

from pystorm_source.api.component import Component
from pystorm_source.api.partitioned_spout import PartitionedSpout
from pystorm_source.api.spout import Spout
from pystorm_source.api.stream import Stream


@dataclass(frozen=True)
class ComponentPlan:
    """One component: ``tasks`` are ids, unique in the plan, ascending. ``config``: its own keys as sorted items."""

    name: str
    cls: type[Component]
    streams: tuple[Stream, ...]
    tasks: tuple[int, ...]
    config: tuple[tuple[str, Any], ...] = ()

    @property
    def is_spout(self) -> bool:
        return issubclass(self.cls, Spout)

    @property
    def is_partitioned(self) -> bool:
        return issubclass(self.cls, PartitionedSpout)

    def stream(self, name: str) -> Stream:
        """The declared stream of that name. Raises KeyError."""
        for stream in self.streams:
            if stream.name == name:
                return stream
        raise KeyError(name)


@dataclass(frozen=True)
class EdgePlan:
    """One subscription. ``positions``: indices of the values that a fields or partial key grouping selects. ``custom``:
    the object that chooses where the grouping is custom."""

    producer: str
    stream: str
    consumer: str
    grouping: str
    positions: tuple[int, ...] = ()
    custom: Any = None


@dataclass(frozen=True)
class Plan:
    """Components (upstream before downstream, as far as there is no cycle), subscriptions and configuration.

    Equal plans run alike; a plan pickles by reference to the component classes, or with them where they are defined
    in a notebook or script.
    """

    name: str
    components: tuple[ComponentPlan, ...]
    edges: tuple[EdgePlan, ...]
    config: tuple[tuple[str, Any], ...] = ()

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
    def open_streams(self) -> tuple[tuple[ComponentPlan, Stream], ...]:
        """Streams that no bolt subscribes to: what can leave the topology as rows."""
        taken = {(edge.producer, edge.stream) for edge in self.edges}
        return tuple(
            (component, stream)
            for component in self.components
            for stream in component.streams
            if stream.fields and (component.name, stream.name) not in taken
        )

    def storm_grouping(self, edge: EdgePlan) -> dict[str, Any]:
        """The grouping of a subscription as it stands in Storm's contexts: ``type``, and ``fields`` where it has them.

        A global grouping is one by no fields, as Storm has it.
        """
        kind = {"global": "fields", "custom": "custom_object"}.get(edge.grouping, edge.grouping)
        shape: dict[str, Any] = {"type": kind.upper()}
        if kind in ("fields", "partial_key"):
            fields = self.component(edge.producer).stream(edge.stream).fields
            shape["fields"] = [fields[position] for position in edge.positions]
        return shape

    def conf_of(self, component: ComponentPlan) -> dict[str, Any]:
        """The merged configuration that ``initialize`` gets: the topology's, then the component's own on top."""
        return {**dict(self.config), "topology.name": self.name, **dict(component.config)}

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
