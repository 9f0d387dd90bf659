"""What acking costs: tuples per second at the last bolt with message ids, against the same without, in one thread.

    null, id-null, word-count    as in ``topologies``, against the same components with ``topology.acker.executors`` 0,
                                 which is how Storm's storm-perf turns acking off
    -no-ids                      against spouts that give no message ids, and so need not make them

The scheduler is ``inline``. The peer is this engine with acking off, in turn.
"""

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.harness import components as c
from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import Record, record, spread
from benchmarks.rungs.core import Case, tuples_per_second
from benchmarks.rungs.topologies import (
    CASES,
    ID_NULL,
    ID_NULL_ACKED,
    NULL,
    NULL_ACKED,
    WORD_COUNT,
    WORD_COUNT_ACKED,
)
from pystorm_source.api import Topology

ASKED = 0.8


class Match(NamedTuple):
    """A topology with acking, and the same without."""

    case: str
    acked: Case
    ackerless: Case
    without_ids: Case


def _ackerless(acked: Case, topology: type[Topology]) -> Case:
    return acked._replace(name=f"{acked.name}-off", topology=topology)


MATCHES = tuple(
    Match(name, CASES[acked][0], _ackerless(CASES[acked][0], ackerless), CASES[unacked][0])
    for name, acked, ackerless, unacked in (
        ("null", NULL_ACKED, c.ConstNullAckerless, NULL),
        ("id-null", ID_NULL_ACKED, c.ConstIdNullAckerless, ID_NULL),
        ("word-count", WORD_COUNT_ACKED, c.SplitCountAckerless, WORD_COUNT),
    )
)


def run(settings: Settings) -> Iterator[Record]:
    """Measures the three sides of each match in turn, ``runs`` times."""
    small = 40 if settings.quick else 5
    for match in MATCHES:
        names = (match.case, f"{match.case}-no-ids")
        if not any(settings.wants(name) for name in names):
            continue
        seen: list[tuple[float, ...]] = []
        sides = (match.acked, match.ackerless, match.without_ids)
        for _ in range(settings.runs_of(15)):
            seen.append(tuple(tuples_per_second(side, side.emits // small) for side in sides))
        ours, *peers = zip(*seen, strict=True)
        for name, peer, theirs in zip(names, ("topology.acker.executors: 0", "no message ids"), peers, strict=True):
            yield record(
                "acker",
                name,
                ours,
                "tuples/s",
                peer=peer,
                peer_values=theirs,
                asked=ASKED,
                peer_spread=spread(theirs),
            )
