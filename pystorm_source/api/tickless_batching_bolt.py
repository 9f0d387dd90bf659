"""Bolts that process tuples in groups, by time."""

from cython_core.tuples.tuple import Tuple
from pystorm_source.api.batching_bolt import BatchingBolt


class TicklessBatchingBolt(BatchingBolt):
    """A ``BatchingBolt`` whose batches are processed by time; ticks do not matter. streamparse's class of that name.

    The engine's timer calls ``process_batches`` between two tuples: there is no thread, and no signal. Batches are
    also processed when the micro-batch ends.

    Attributes:
        secs_between_batches (float): seconds after which batches are processed again. Defaults to 2.

    Example:
        >>> from pystorm_source.testing import PAUSE, ScriptedSpout, run_topology
        >>> class Sizes(TicklessBatchingBolt):
        ...     outputs = ["size long"]
        ...     secs_between_batches = 5
        ...     def process_batch(self, key, tups):
        ...         self.emit([len(tups)])
        >>> class Batches(Topology):
        ...     lines = ScriptedSpout.of(["line string"], ["a"], ["b"], PAUSE(7), ["c"]).spec()
        ...     sizes = Sizes.spec(inputs=[lines])
        >>> run_topology(Batches).rows("sizes")
        [(2,), (1,)]
    """

    secs_between_batches: float = 2

    def process_tick(self, tup: Tuple) -> None:
        """Does nothing: the timer processes the batches.

        Args:
            tup (Tuple): the tick.
        """
