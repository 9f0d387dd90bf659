"""What acking costs: tuples per second at the last bolt with message ids, against the same without, in one thread.

    null, id-null, word-count    as in ``topologies``

The scheduler is ``inline``. The peer is our own engine with acking off, in turn: spouts that give no message ids.
"""

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.core import Case, tuples_per_second
from benchmarks.ladder import Settings
from benchmarks.record import Record, record, spread
from benchmarks.topologies import (
    CASES,
    ID_NULL,
    ID_NULL_ACKED,
    NULL,
    NULL_ACKED,
    WORD_COUNT,
    WORD_COUNT_ACKED,
)

ASKED = 0.8


class Match(NamedTuple):
    """A topology with acking, and the same without."""

    case: str
    acked: Case
    unacked: Case


MATCHES = (
    Match("null", CASES[NULL_ACKED][0], CASES[NULL][0]),
    Match("id-null", CASES[ID_NULL_ACKED][0], CASES[ID_NULL][0]),
    Match("word-count", CASES[WORD_COUNT_ACKED][0], CASES[WORD_COUNT][0]),
)


def run(settings: Settings) -> Iterator[Record]:
    """Both sides of each match in turn, ``runs`` times over."""
    small = 40 if settings.quick else 4
    for match in MATCHES:
        if not settings.wants(match.case):
            continue
        ours, theirs = [], []
        for _ in range(settings.runs_of(15)):
            ours.append(tuples_per_second(match.acked, match.acked.emits // small))
            theirs.append(tuples_per_second(match.unacked, match.unacked.emits // small))
        yield record(
            "acker",
            match.case,
            ours,
            "tuples/s",
            peer="acking off",
            peer_values=theirs,
            asked=ASKED,
            peer_spread=spread(theirs),
        )
