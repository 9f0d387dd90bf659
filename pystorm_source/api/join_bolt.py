"""Bolts that join streams by keys."""

from collections.abc import Mapping
from typing import Any

from cython_core.executors.batching import JoinBase
from cython_core.tuples.tuple import Tuple
from pystorm_source.api.bolt import Bolt
from pystorm_source.errors import MethodMissingError

MOST_LATE = 0.05
"""Of ``join_timeout_secs``: how much later than that ``process_expired`` may be called. More: it is seen. Less: the
bolt looks at its clock more often."""


class JoinBolt(JoinBase, Bolt):
    """A bolt that joins its inputs: a tuple of each waits until all that belong together are there.

    Storm's join bolt (SingleJoinBolt), on Kafka's purgatory. Each tuple is in one join: of several with one key, the
    first of each input are joined, then the second ones. What waits is not acked: emits in ``process_join`` are
    anchored to all tuples of the join, which are acked behind it (``auto_ack``) and fail together.

    What has waited for ``join_timeout_secs``, or until the micro-batch ends, is given to ``process_expired``. If
    ``topology.max.spout.pending`` is reached, the oldest expires at once, for nothing that it waits for can come.
    To wait for longer than a micro-batch, keep the tuples in a ``StatefulBolt`` (docs/STAGES.md).

    Attributes:
        join_keys (dict | None): for each input what its tuples are found by: a field, or a list of fields. The names of
            inputs are those of their components; of streams other than "default", "component.stream". For joins by
            several keys, a dict from the name of the key to its field or fields. As in SQL a key that is None matches
            nothing. Defaults to None: the fields of the groupings.
        join_timeout_secs (float | None): seconds that a tuple waits, and up to 5 % more. Defaults to None: until the
            micro-batch ends.

    Example:
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Paid(JoinBolt):
        ...     outputs = ["order long", "amount double"]
        ...     join_keys = {"orders": "id", "payments": "order"}
        ...     def process_join(self, tups):
        ...         self.emit([tups["orders"].values.id, tups["payments"].values.amount])
        >>> class Shop(Topology):
        ...     orders = MemorySpout.spec(fields=["id long"], rows=[[1], [2]])
        ...     payments = MemorySpout.spec(fields=["order long", "amount double"], rows=[[2, 9.5]])
        ...     paid = Paid.spec(inputs={orders: Grouping.fields("id"), payments: Grouping.fields("order")})
        >>> run_topology(Shop, scope="cluster").rows("paid")
        [(2, 9.5)]
    """

    join_keys: Mapping[str, Any] | None = None
    join_timeout_secs: float | None = None

    _pystorm_joined: Any = None

    @property
    def secs_between_batches(self) -> float | None:
        """Seconds from one look at the clock to the next; None: it does not matter.

        Returns:
            float | None: a twentieth of ``join_timeout_secs``.
        """
        return None if self.join_timeout_secs is None else self.join_timeout_secs * MOST_LATE

    def process_join(self, tups: dict[str, Tuple]) -> None:
        """Handles tuples that belong together. Every subclass defines it.

        Args:
            tups (dict[str, Tuple]): name of the input → its tuple, of each input one.
        """
        raise MethodMissingError(
            f"{type(self).__name__} must define process_join(tups)", code="PYSTORM_INVALID_COMPONENT"
        )

    def process_expired(self, tups: dict[str, Tuple]) -> None:
        """Handles tuples whose time was over before all were there. Unless overridden nothing becomes of them, as of
        rows without a partner in an inner join.

        Args:
            tups (dict[str, Tuple]): name of the input → its tuple, of the inputs that have come.
        """
