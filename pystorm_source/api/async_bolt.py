"""Bolts that wait for external systems, for many tuples at a time."""

from cython_core.async_request import AsyncBase
from cython_core.tuple import Tuple
from pystorm_source.api.bolt import Bolt


class AsyncBolt(AsyncBase, Bolt):
    """A bolt whose ``process`` is ``async def``: up to ``topology.async.max.pending`` calls of each task are under way.

    Emits of ``process`` are anchored to its own tuple, which is acked when the coroutine returns (``auto_ack``) and
    failed when it raises (``auto_fail``), by the rules of ``Bolt``. A call that takes longer than
    ``topology.async.request.timeout.secs`` fails its tuple and is cancelled. ``topology.async.ordered`` has results
    leave in the order of the tuples.

    ``initialize``, ``cleanup`` and ``process_tick`` may be ``async def`` as well, to open and close a session. All of
    it runs in the task's one thread: between two ``await`` no other coroutine runs.
    """

    async def process(self, tup: Tuple) -> None:  # type: ignore[override]
        """Handles one tuple. An exception that fails the Spark task names component, task, values and offset."""
        raise NotImplementedError(f"{type(self).__name__} must define async def process(tup)")
