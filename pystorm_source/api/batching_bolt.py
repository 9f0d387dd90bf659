"""Bolts that process tuples in groups."""

from collections.abc import Hashable
from typing import Any

from cython_core.executors.batching import BatchingBase
from cython_core.tuples.tuple import Tuple
from pystorm_source.api.bolt import Bolt
from pystorm_source.errors import MethodMissingError


class BatchingBolt(BatchingBase, Bolt):
    """A bolt that gathers tuples by ``group_key`` and processes each group with ``process_batch``.

    streamparse's ``BatchingBolt``. Batches are processed by ticks (``topology.tick.tuple.freq.secs``), by count, and
    always at the end of the micro-batch.

    Emits in ``process_batch`` are anchored to every tuple of the group, and then all of them are acked (``auto_ack``).
    An exception that ends the Spark task fails (``auto_fail``) every waiting tuple. With ``exit_on_exception = False``
    it fails only the tuples of its group; the other groups are processed the next time.

    Attributes:
        ticks_between_batches (int): ticks that pass without batches: batches are processed at the tick after them.
            Defaults to 1, so at every second tick.
        tuples_between_batches (int | None): as soon as this many tuples wait, in all groups together, batches are
            processed. Defaults to None: no bound.

    Example:
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Sums(BatchingBolt):
        ...     outputs = ["shop string", "sold long"]
        ...     def group_key(self, tup):
        ...         return tup.values.shop
        ...     def process_batch(self, key, tups):
        ...         self.emit([key, sum(tup.values.sold for tup in tups)])
        >>> class Sales(Topology):
        ...     sales = MemorySpout.spec(fields=["shop string", "sold long"], rows=[["a", 1], ["b", 2], ["a", 3]])
        ...     sums = Sums.spec(inputs={sales: Grouping.fields("shop")})
        >>> run_topology(Sales).rows("sums")
        [('a', 4), ('b', 2)]
    """

    ticks_between_batches: int = 1
    tuples_between_batches: int | None = None

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._reset_batches()

    def group_key(self, tup: Tuple) -> Hashable:
        """The group that a tuple belongs to. Unless overridden there is one group for all tuples.

        Args:
            tup (Tuple): the tuple.

        Returns:
            Hashable: the key of its group. An answer that is not hashable raises TypeError.
        """
        return None

    def process_batch(self, key: Hashable, tups: list[Tuple]) -> None:
        """Handles the tuples of one group. Every subclass defines it.

        Args:
            key (Hashable): what ``group_key`` returned for them.
            tups (list[Tuple]): the tuples, oldest first; never empty.
        """
        raise MethodMissingError(
            f"{type(self).__name__} must define process_batch(key, tups)", code="PYSTORM_INVALID_COMPONENT"
        )

    def emit(  # type: ignore[override]
        self,
        tup: Any,
        stream: str | None = None,
        anchors: Any = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> None:
        """As ``Bolt.emit``, anchored to every tuple of the group. Returns None, as pystorm's does.

        Args:
            need_task_ids (bool): has no effect. Defaults to False.
        """
        super().emit(tup, stream, anchors, direct_task)

    emit._pystorm_plain = emit  # type: ignore[attr-defined]  # rows in columns need not go through it
