"""Bolts that process tuples in groups."""

from collections.abc import Hashable
from typing import Any

from cython_core.batching import BatchingBase
from cython_core.tuple import Tuple
from pystorm_source.api.bolt import Bolt


class BatchingBolt(BatchingBase, Bolt):
    """A bolt in streamparse's shape that gathers tuples by ``group_key`` and processes them with ``process_batch``.

    The batches are processed at a tick (``topology.tick.tuple.freq.secs``) once more than ``ticks_between_batches``
    ticks were counted since the last time, so by default at every second one; as soon as ``tuples_between_batches``
    tuples are held, if that is set; and when the micro-batch ends, whatever was counted.

    Emits in ``process_batch`` are anchored to every tuple of the group; afterwards all of them are acked
    (``auto_ack``). An exception fails (``auto_fail``) every held tuple if it ends the task, and those of its own group
    if ``exit_on_exception`` is False; the other groups are then processed the next time.
    """

    ticks_between_batches: int = 1
    tuples_between_batches: int | None = None

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._reset_batches()

    def group_key(self, tup: Tuple) -> Hashable:
        """The group that a tuple belongs to; None, one group for all, unless overridden."""
        return None

    def process_batch(self, key: Hashable, tups: list[Tuple]) -> None:
        """Handles the tuples of one group, oldest first; never an empty list."""
        raise NotImplementedError(f"{type(self).__name__} must define process_batch(key, tups)")

    def emit(  # type: ignore[override]
        self,
        tup: Any,
        stream: str | None = None,
        anchors: Any = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> None:
        """As ``Bolt.emit``; always returns None, as pystorm's does: ``need_task_ids`` has no effect."""
        super().emit(tup, stream, anchors, direct_task)
