"""Bolts that process tuples in groups, by time."""

from cython_core.tuples.tuple import Tuple
from pystorm_source.api.batching_bolt import BatchingBolt


class TicklessBatchingBolt(BatchingBolt):
    """A ``BatchingBolt`` whose batches are processed every ``secs_between_batches`` seconds; ticks do not matter.

    The engine's timer calls ``process_batches`` between two tuples: there is no thread, and no signal.
    """

    secs_between_batches: float = 2

    def process_tick(self, tup: Tuple) -> None:
        """Does nothing: the timer processes the batches."""
