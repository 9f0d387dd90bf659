"""Tuples per second at the last bolt of Storm's three topologies, components compiled by Cython, one thread.

    null, id-null, word-count    as in ``topologies``, word count by index
    null-acked, id-null-acked, word-count-acked    the same with message ids
    null-batches, …, word-count-acked-batches      the same in batches of 1,000 rows; each batch is one tuple tree

The peer is Storm on all cores at its best, as in ``topologies``. ``rows``: the same components in Python, in the same
run; ``over_rows``: the ratio to them.
"""

import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.harness import components as c
from benchmarks.harness.ladder import Settings
from benchmarks.harness.peers import STORM
from benchmarks.harness.record import Record, record, rounded, spread
from benchmarks.rungs import topologies
from benchmarks.rungs.core import Case, send, tuples_per_second
from pystorm_source.api import Grouping, Topology
from testbed.compiled_module import compiled

SOURCE = Path(c.__file__).with_name("compiled_components.pyx")
ASKED = 3.0
ROWS = {
    "null": (topologies.NULL, c.ConstNull, 16_000_000),
    "id-null": (topologies.ID_NULL, c.ConstIdNull, 8_000_000),
    "word-count": (topologies.WORD_COUNT, c.SplitCount, 2_000_000),
    "null-acked": (topologies.NULL_ACKED, c.ConstNullAcked, 10_000_000),
    "id-null-acked": (topologies.ID_NULL_ACKED, c.ConstIdNullAcked, 6_000_000),
    "word-count-acked": (topologies.WORD_COUNT_ACKED, c.SplitCountAcked, 2_000_000),
}
"""Name → Storm's equivalent topology, ours in Python, emits of the spout in one run."""


BATCHES = "-batches"
TIMES_IN_BATCHES = 8
"""Factor for the emits of a run in batches, which are faster: runs should take equally long."""


def cases() -> dict[str, tuple[Case, Case]]:
    """Name → the case with compiled components, and the one with Python components."""
    mine: Any = compiled(SOURCE)
    made = {}
    for name, (_, in_python, emits) in ROWS.items():
        for ending, times in (("", 1), (BATCHES, TIMES_IN_BATCHES)):
            topology = _topology(mine, name, in_python, batches=ending == BATCHES)
            made[name + ending] = (
                Case(name + ending, topology, emits * times, None, lambda calls: 0.0),
                Case(name, in_python, emits, None, lambda calls: 0.0),
            )
    return made


def _topology(mine: Any, name: str, in_python: type[Topology], batches: bool) -> type[Topology]:
    """Builds the topology of that case from compiled components."""
    spout, bolt = ("Batches", "OfBatches") if batches else ("Spout", "Bolt")
    emits = "Sentence" if "word" in name else "Const"
    first = getattr(mine, emits + spout + ("Acked" if name.endswith("-acked") else "")).spec()
    body: dict[str, Any] = {"config": in_python.config, "spout": first}
    if name.startswith("null"):
        body["last"] = getattr(mine, "Null" + bolt).spec(inputs=[first])
    elif name.startswith("id-null"):
        body["id"] = getattr(mine, "Id" + bolt).spec(inputs=[first])
        body["last"] = getattr(mine, "Null" + bolt).spec(inputs=[body["id"]])
    else:
        body["split"] = getattr(mine, "Split" + bolt).spec(inputs=[first])
        body["last"] = getattr(mine, "Count" + bolt).spec(inputs={body["split"]: Grouping.fields("word")})
    return type(f"Compiled{in_python.__name__}{spout}", (Topology,), body)


def run(settings: Settings) -> Iterator[Record]:
    """Measures the cases in turn with Storm's equivalent topology."""
    for name, (ours, rows) in cases().items():
        if settings.wants(name):
            yield measure(name, ours, rows, settings)


def measure(name: str, ours: Case, rows: Case, settings: Settings) -> Record:
    """Measures one topology, ``runs`` times for each start of Storm."""
    seen: dict[str, list[float]] = defaultdict(list)
    starts: list[list[float]] = []
    emits = ours.emits // (200 if settings.quick else 1)
    missing: str | None = None
    for _ in range(topologies.STARTS if settings.peers and not settings.quick else 1):
        storm, missing = topologies.started(ROWS[name.removesuffix(BATCHES)][0], settings)
        theirs = []
        try:
            for _ in range(settings.runs_of(3)):
                seen["ours"].append(tuples_per_second(ours, emits))
                seen["rows"].append(tuples_per_second(rows, rows.emits // (800 if settings.quick else 4)))
                if storm is not None:
                    theirs.append(storm.tuples_per_second())
        finally:
            if storm is not None:
                storm.end()
        starts.append(theirs)
    best = max(starts, key=lambda found: statistics.median(found) if found else 0.0)
    in_python = statistics.median(seen["rows"])
    return record(
        "compiled",
        name,
        seen["ours"],
        "tuples/s",
        peer=topologies.PEER,
        peer_version=STORM.version,
        peer_values=best,
        asked=ASKED,
        peer_spread=spread(best),
        rows=rounded(in_python),
        over_rows=round(statistics.median(seen["ours"]) / in_python, 2),
        note=missing,
    )


if __name__ == "__main__":  # for callgrind, like ``instructions``: case, emits, and "rows" for Python components
    send(cases()[sys.argv[1]]["rows" in sys.argv[3:]], int(sys.argv[2]))
