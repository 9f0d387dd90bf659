"""Bolts that process batches of rows, by column."""

from collections.abc import Iterable

import pyarrow as pa

from cython_core.routing.component_base import ArrowBase
from pystorm_source.api.bolt import Bolt
from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.stream import Stream
from pystorm_source.errors import MethodMissingError


class ArrowBolt(ArrowBase, Bolt):
    """A bolt that gets Arrow batches: ``process_batch`` is called once for many rows, no matter how they were emitted.

    A batch that another component emitted (``emit_batch``, ``next_batch``) arrives unchanged, or the part of it that
    the grouping gives to this task; tuples that were emitted one by one are gathered, as many as wait. A batch has rows
    of one stream, and its columns have the declared names and types; without a declared type, the values decide. Rows
    may be cut into batches differently each time, so the result must not depend on it.

    Emits in ``process_batch``, by ``emit_batch`` or ``emit``, are anchored to all rows of the batch. They are acked
    when it returns (``auto_ack``) and fail when it raises (``auto_fail``); ``fail(batch, rows=mask)`` fails some.

    Example:
        >>> import pyarrow.compute as pc
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Dear(ArrowBolt):
        ...     outputs = ["shop string", "price double"]
        ...     def process_batch(self, batch):
        ...         self.emit_batch(batch.filter(pc.field("price") > 10))
        >>> class Sales(Topology):
        ...     sales = MemorySpout.spec(fields=["shop string", "price double"], rows=[["a", 9.5], ["b", 12.0]])
        ...     dear = Dear.spec(inputs=[sales])
        >>> run_topology(Sales).rows("dear")
        [('b', 12.0)]
    """

    @classmethod
    def check_inputs(cls, spec: ComponentSpec, inputs: Iterable[tuple[str, Stream]]) -> None:
        """Called once for each component when the topology is compiled: refuses inputs that the bolt cannot work on.

        Does nothing unless overridden.

        Args:
            spec (ComponentSpec): this component.
            inputs (Iterable[tuple[str, Stream]]): the streams that it subscribes to, with a name for messages.

        Raises:
            SchemaError: by an override, columns that the bolt cannot work on.
        """

    def process_batch(self, batch: pa.RecordBatch) -> None:
        """Handles one batch. Every subclass defines it.

        Args:
            batch (pyarrow.RecordBatch): at least one row. Other bolts may share its memory: never write to it.
        """
        raise MethodMissingError(
            f"{type(self).__name__} must define process_batch(batch)", code="PYSTORM_INVALID_COMPONENT"
        )
