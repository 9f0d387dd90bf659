"""The input of a topology that is applied to a DataFrame."""

from typing import Any

import pyarrow as pa

from cython_core.arrow.batch_rows import BatchRows
from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.partitioned_spout import PartitionedSpout
from pystorm_source.api.stream import Stream
from pystorm_source.errors import TopologyError, given

NOTHING_NOW = pa.RecordBatch.from_arrays([], names=[])
"""A feed returns it if there is no batch yet, and more may follow."""

ROWS_OF_CALL = 256
"""Rows that one call emits. Too many: they wait beyond the bounds of queues. Too few: a call for each."""


class Input(PartitionedSpout):
    """The rows of the DataFrame that ``pystorm_source.apply`` gives to a topology; in tests, ``run_topology``'s rows.

    A topology with an ``Input`` has no other spout. If only bolts of batches (``ArrowBolt``) subscribe to it, they get
    its batches unchanged, each as one tuple tree; otherwise each row is a tree. A failed tree is sent again, as with
    other spouts; the offset in its messages is the row's number in the partition.

    Example:
        >>> from pystorm_source.testing import run_topology
        >>> class Shout(Bolt):
        ...     outputs = ["id long", "text string"]
        ...     def process(self, tup):
        ...         self.emit([tup.values.id, tup.values.text.upper()])
        >>> class Shouts(Topology):
        ...     rows = Input.spec(["id long", "text string"])
        ...     shout = Shout.spec(inputs=[rows])
        >>> run_topology(Shouts, rows=[(1, "hello")]).rows("shout")
        [(1, 'HELLO')]
    """

    bounded = True
    # The engine's: what gives the batches of a task, by take(); None outside of a run.
    _pystorm_feed: Any = None
    _batch: BatchRows | None = None  # whose rows from _at on were not emitted
    _at = 0
    _offset = 0
    # The engine reads it: whether the last batch was NOTHING_NOW.
    _pystorm_waits = False

    @classmethod
    def spec(  # type: ignore[override]  # the columns come first: there is no input without them
        cls, columns: list[str], name: str | None = None, config: dict[str, Any] | None = None
    ) -> ComponentSpec:
        """The input for a Topology.

        Args:
            columns (list[str]): names, and types as Spark writes them: ``["id long", "url string"]``. They are taken
                from the DataFrame by name, any part of its columns in any order. A name without a type takes any.
            name (str): name of the component. Defaults to its attribute's name in the Topology.
            config (dict): configuration of this component only, JSON. Defaults to the class's ``config``.

        Returns:
            ComponentSpec: what an attribute of the Topology is set to.

        Raises:
            ArgumentTypeError: an argument of another type.
            TopologyError: no columns, or a stream beside the default one.
        """
        spec = super().spec(name=name, config=config)
        spec.streams = Stream.all_of(columns, given_by=cls.__name__)
        default = spec.stream("default")
        if len(spec.streams) != 1 or default is None or not default.fields:
            raise TopologyError(
                "an Input names the columns that it takes from the DataFrame, such as Input.spec(['id long', "
                f"'url string']). Given: {given(columns)}",
                code="PYSTORM_INVALID_COMPONENT",
            )
        return spec

    def partitions(self) -> list[str]:
        raise not_a_source(type(self).__name__)

    def open(self, partition: str, start: int, end: int) -> None:
        """Task. The feed already has the rows."""
        self._batch = None
        self._offset = start
        # One at a time if trees are counted, because that is done between two calls.
        options = self._pystorm_options
        self._rows_of_call = 1 if options is not None and options.max_spout_pending else ROWS_OF_CALL

    @classmethod
    def gives_batches(cls) -> bool:
        return False

    def _pystorm_reads_batches(self, straight: bool) -> bool:
        return straight

    def next_tuple(self) -> Any:
        """Task. Emits the next rows; False at the end."""
        if self._batch is None:
            batch = self.next_batch()
            if batch is None:
                return False
            if batch.num_rows == 0:
                return None
            self._batch, self._at = BatchRows(batch), 0
        end = min(self._at + self._rows_of_call, self._batch.batch.num_rows)
        offsets = range(self._offset, self._offset + end - self._at)
        self.emit_many(*self._batch.columns(self._at, end), tup_ids=offsets)
        self._offset = offsets.stop
        self._at = end
        if end == self._batch.batch.num_rows:
            self._batch = None
        return True

    def next_batch(self) -> Any:
        """Task. Returns the next rows, an empty batch if there are no rows yet, None at the end."""
        batch = self._pystorm_feed.take()
        self._pystorm_waits = batch is NOTHING_NOW
        return batch

    def close(self) -> None:
        self._pystorm_feed = self._batch = None


def not_a_source(given_by: str) -> TopologyError:
    """The error of a topology with an Input that is read as a source."""
    return TopologyError(
        "a topology with an Input gets its rows from a DataFrame: call pystorm_source.apply(df, Topology), or in a "
        f"test run_topology(Topology, rows=[...]). To read it as a source, begin it with a spout. Given: {given_by}",
        code="PYSTORM_INVALID_TOPOLOGY",
    )
