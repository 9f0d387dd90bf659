"""Shortens the record of a topology until its JSON fits into a progress, which Spark prints and stores."""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from pystorm_source.records.record import ComponentProgress, TopologyProgress

MOST_BYTES = 48 * 1024
"""Of the section ``topology``; with the rest of a source's progress at most 64 KiB. Larger: Spark's event log and its
listeners carry it for every micro-batch. Smaller: large topologies are shortened."""

_encoder = msgspec.json.Encoder()


def fitting(topology: TopologyProgress, most: int = MOST_BYTES) -> TopologyProgress:
    """The record, or without what matters least, in the order of ``_STEPS``; ``shortened`` names what was left out."""
    for left_out, shorter in _STEPS:
        if len(_encoder.encode(topology)) <= most:
            return topology
        topology = replace(shorter(topology), shortened=(*topology.shortened, left_out))
    while len(_encoder.encode(topology)) > most and topology.components:
        topology = _with_fewer(topology)
    return topology


def _each(change: Callable[[ComponentProgress], ComponentProgress]) -> Callable[[TopologyProgress], TopologyProgress]:
    return lambda topology: replace(topology, components=tuple(change(each) for each in topology.components))


def _unframed(component: ComponentProgress) -> ComponentProgress:
    error = component.last_error
    return component if error is None else replace(component, last_error=replace(error, frames=()))


def _without_single_stream(component: ComponentProgress) -> ComponentProgress:
    return replace(component, streams={}) if len(component.streams) == 1 else component


def _with_fewer(topology: TopologyProgress) -> TopologyProgress:
    """The busier half of the components, and the edges between them."""
    ranked = sorted(topology.components, key=lambda component: component.capacity, reverse=True)
    kept = {component.name for component in ranked[: len(ranked) // 2]}
    return replace(
        topology,
        components=tuple(component for component in topology.components if component.name in kept),
        edges=tuple(edge for edge in topology.edges if edge.source in kept and edge.target in kept | {""}),
        shortened=(*(each for each in topology.shortened if each != "components"), "components"),
    )


_STEPS: tuple[tuple[str, Callable[[TopologyProgress], TopologyProgress]], ...] = (
    ("single streams", _each(_without_single_stream)),
    ("frames", _each(_unframed)),
    ("metrics", _each(lambda component: replace(component, metrics={}))),
    ("slow partitions", lambda topology: replace(topology, slow_partitions=topology.slow_partitions[:3])),
    ("errors", _each(lambda component: replace(component, last_error=None))),
    ("stalls", _each(lambda component: replace(component, stalls={}))),
    ("streams", _each(lambda component: replace(component, streams={}))),
)
