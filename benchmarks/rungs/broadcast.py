"""The broadcast ring between threads on two cores, against the Disruptor with its yielding wait.

    broadcast   one writer, three readers, each of which reads all: four threads on two cores
    pipeline    one writer, a reader, and a reader behind that one

Items a second at the last reader. Capacity 1024, one item claimed at a time. How it is measured: ``windows.py``.
"""

from collections.abc import Iterator

from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import Record
from benchmarks.rungs.queues import Match, run_matches

MATCHES = (
    Match("broadcast", "disruptor-broadcast", 1.0),
    Match("pipeline", "disruptor-pipeline", 1.0),
)


def run(settings: Settings) -> Iterator[Record]:
    """One record per case."""
    yield from run_matches("broadcast", MATCHES, settings)
