"""Shortens the record of a topology until it fits into Spark's progress, which is printed, stored and sent around."""

import json
from collections.abc import Callable

from msgspec import to_builtins
from msgspec.structs import replace

from pystorm_source.records.record import ComponentProgress, Latency, TopologyProgress

MOST_BYTES = 64 * 1024
"""Size of a source's report in a progress. Larger: Spark's event log and its listeners carry it for every micro-batch.
Smaller: large topologies are shortened."""
DETAILED = 20
"""Components that keep all details if not all can: the busiest ones."""


def fitting(topology: TopologyProgress, most: int = MOST_BYTES) -> TopologyProgress:
    """Returns the record, without what matters least if it is too long, in the order of ``_STEPS``; ``shortened`` names
    what was left out.

    ``most``: bytes that it may take in a progress.
    """
    for left_out, shorter in _STEPS:
        if bytes_in_progress(to_builtins(topology)) <= most:
            return topology
        topology = replace(shorter(topology), shortened=(*topology.shortened, left_out))
    while topology.components and (size := bytes_in_progress(to_builtins(topology))) > most:
        topology = _with_fewer(topology, most / size)
    return topology


def bytes_in_progress(report: object) -> int:
    """The length of a JSON value in Spark's progress, which has it as a string with JSON in it."""
    return len(json.dumps(json.dumps(report)))


def _each(change: Callable[[ComponentProgress], ComponentProgress]) -> Callable[[TopologyProgress], TopologyProgress]:
    return lambda topology: replace(topology, components=tuple(change(each) for each in topology.components))


def _unframed(component: ComponentProgress) -> ComponentProgress:
    error = component.last_error
    return component if error is None else replace(component, last_error=replace(error, frames=()))


def _without_single_stream(component: ComponentProgress) -> ComponentProgress:
    """A single stream repeats the counts of its component."""
    return replace(component, streams={}) if len(component.streams) == 1 else component


def _plain(component: ComponentProgress) -> ComponentProgress:
    return replace(
        component,
        streams={},
        execute=Latency(),
        complete=Latency(),
        stalls={},
        batch_fill=0.0,
        metrics={},
        last_error=None,
    )


def _detailed(topology: TopologyProgress) -> TopologyProgress:
    ranked = sorted(topology.components, key=lambda component: component.capacity, reverse=True)
    kept = {component.name for component in ranked[:DETAILED]}
    return _each(lambda component: component if component.name in kept else _plain(component))(topology)


def _with_fewer(topology: TopologyProgress, share: float) -> TopologyProgress:
    """The busiest components, about that share of them, and the edges between these."""
    ranked = sorted(topology.components, key=lambda component: component.capacity, reverse=True)
    kept = {component.name for component in ranked[: int(len(ranked) * share * 0.9)]}
    return replace(
        topology,
        components=tuple(component for component in topology.components if component.name in kept),
        edges=tuple(edge for edge in topology.edges if edge.source in kept and edge.target in kept | {""}),
        shortened=(*(each for each in topology.shortened if each != "components"), "components"),
    )


_STEPS: tuple[tuple[str, Callable[[TopologyProgress], TopologyProgress]], ...] = (
    ("frames", _each(_unframed)),
    ("single streams", _each(_without_single_stream)),
    ("details", _detailed),
    ("slow partitions", lambda topology: replace(topology, slow_partitions=topology.slow_partitions[:3])),
    ("metrics", _each(lambda component: replace(component, metrics={}))),
    ("plain", _each(_plain)),
)
