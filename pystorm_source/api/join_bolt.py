"""Bolts that join streams by keys."""

from collections.abc import Mapping
from typing import Any

from cython_core.executors.batching import JoinBase
from cython_core.tuples.tuple import Tuple
from pystorm_source.api.bolt import Bolt
from pystorm_source.errors import MethodMissingError

MOST_LATE = 0.05
"""How late ``process_expired`` may be called: a share of ``join_timeout_secs``. More: users notice. Less: the bolt
looks at its clock more often."""


class JoinBolt(JoinBase, Bolt):
    """A bolt that joins its inputs: a tuple waits until the other inputs have the tuples that belong to it.

    Storm's join bolt (SingleJoinBolt), on Kafka's purgatory. Each tuple joins once: if a key has several tuples per
    input, they pair up in order of arrival. Waiting tuples are not acked. Emits in ``process_join`` are anchored to all
    tuples of the join, which are acked after it (``auto_ack``) and fail together.

    Tuples that have waited for ``join_timeout_secs``, or until the micro-batch ends, go to ``process_expired``. If
    ``topology.max.spout.pending`` is reached, the oldest expires at once, because its partners cannot arrive any more.
    To wait for longer than a micro-batch, keep the tuples in a ``StatefulBolt`` (docs/STAGES.md).

    Attributes:
        join_keys (dict | None): for each input, the field, or list of fields, to join by. An input is named after its
            component; if its stream is not "default", it is "component.stream". To join by several keys, give a dict
            from the name of the key to its field or fields. As in SQL, a key that is None matches nothing. Defaults to
            None: the fields of the groupings.
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
            tups (dict[str, Tuple]): name of the input → its tuple, one for each input.
        """
        raise MethodMissingError(
            f"{type(self).__name__} must define process_join(tups)", code="PYSTORM_INVALID_COMPONENT"
        )

    def process_expired(self, tups: dict[str, Tuple]) -> None:
        """Handles tuples whose time was over before their partners arrived. Unless overridden, they are dropped, like
        rows without a partner in an inner join.

        Args:
            tups (dict[str, Tuple]): name of the input → its tuple, if it has arrived.
        """
