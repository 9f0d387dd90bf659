"""Bolts that get tuples of several spouts: a Spark task reads one range of one spout, so two spouts never meet there.

    orders ──fields──► join ◄──fields── payments      refused: equal keys are in different tasks
    orders ──shuffle─► scale ◄───ALL─── rates         refused: a task that has orders has no rates
    north ──shuffle──► parse ◄─shuffle── south        runs, with a warning of ``lint``

Tuples are followed from each spout through the bolts between. Emits of a bolt count as tuples of all spouts whose
tuples it gets.
"""

from collections.abc import Iterator
from typing import NamedTuple

from pystorm_source.api.stateful_bolt import StatefulBolt
from pystorm_source.errors import TopologyError
from pystorm_source.plan.plan import EdgePlan, Plan

KEYED = frozenset(("fields", "partial_key"))
"""Groupings that send tuples with equal keys to one task, whichever spout they come from."""
SHARED = frozenset(("all", "global"))
"""Groupings that send a task every tuple of a stream, to meet all that it has of other streams."""


class Arrival(NamedTuple):
    """Tuples of ``spout`` come to a bolt by ``edge``."""

    spout: str
    edge: EdgePlan


def check_meetings(plan: Plan) -> None:
    """Checks a topology that runs as a whole in each task. Raises TopologyError if a bolt keeps states, or if groupings
    say that a bolt needs tuples of several spouts together, unless ``topology.spouts.independent`` says that it does
    not."""
    for component in plan.components:
        if issubclass(component.cls, StatefulBolt):
            raise TopologyError(
                f"bolt {component.name!r} keeps a state for each key, which holds across the cluster alone: read it "
                "with scope='cluster'. Given: scope='task'",
                code="PYSTORM_CANNOT_BE_CUT",
            )
        meeting = _meeting(_arrivals(plan, component.name))
        if meeting and not _is_independent(plan, component.name):
            raise TopologyError(
                f"bolt {component.name!r} groups tuples of the spouts {_names(meeting)} together, but a Spark task "
                "reads one spout, so they never meet: read with scope='cluster'; or make a topology of each spout and "
                "join the DataFrames in Spark; or, if the bolt needs no tuple of one spout for those of another, set "
                f"topology.spouts.independent=true in its config. Given: {_shown(meeting)}",
                code="PYSTORM_SPOUTS_NEVER_MEET",
            )


def unions(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yields (bolt, names of spouts) for each bolt with several spouts above it, if nothing says that they must meet.

    Bolts after such a bolt that get no further spout are left out.
    """
    above = plan.spouts_above
    for component in plan.components:
        arrivals = [each for each in _arrivals(plan, component.name) if plan.component(each.spout).origin is None]
        spouts = {arrival.spout for arrival in arrivals}
        if len(spouts) < 2 or _meeting(arrivals) or _is_independent(plan, component.name):
            continue
        if not any(above[arrival.edge.producer] == spouts for arrival in arrivals):
            yield component.name, _names(arrivals)


def _arrivals(plan: Plan, bolt: str) -> list[Arrival]:
    above = plan.spouts_above
    return [
        Arrival(spout.name, edge)
        for edge in plan.edges
        if edge.consumer == bolt
        for spout in plan.spouts
        if spout.name in above[edge.producer]
    ]


def _meeting(arrivals: list[Arrival]) -> list[Arrival]:
    """Returns the arrivals that must meet; empty if they may stay apart.

    Direct and custom groupings are decided by code, which may spread tuples as shuffle does: they cannot be judged.
    """
    if len({arrival.spout for arrival in arrivals}) < 2:
        return []
    if any(arrival.edge.grouping in SHARED for arrival in arrivals):
        return arrivals
    keyed = [arrival for arrival in arrivals if arrival.edge.grouping in KEYED]
    return keyed if len({arrival.spout for arrival in keyed}) > 1 else []


def _is_independent(plan: Plan, bolt: str) -> bool:
    return plan.component(bolt).options.spouts_independent


def _names(arrivals: list[Arrival]) -> str:
    names = [repr(name) for name in dict.fromkeys(arrival.spout for arrival in arrivals)]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _shown(arrivals: list[Arrival]) -> str:
    """Each subscription once, with the spouts whose tuples come by it."""
    spouts: dict[tuple[str, str, str], list[str]] = {}
    for spout, edge in arrivals:
        spouts.setdefault((edge.producer, edge.stream, edge.grouping), []).append(spout)
    return ", ".join(
        f"{producer}.{stream} by {grouping}" + ("" if names == [producer] else f" (tuples of {', '.join(names)})")
        for (producer, stream, grouping), names in spouts.items()
    )
