"""Spouts whose tuples have offsets, so that Spark can replay them."""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from pystorm_source.api.spout import Spout
from pystorm_source.errors import TopologyError


class Snapshot(NamedTuple):
    """The state of a partitioned spout's source at one moment.

    ``heads``: partition → (earliest, latest), both offsets that exist now, latest exclusive. ``state``: the spout's own
    small notes (str → int or str) that travel inside the Spark offset and come back with the next ``snapshot``.
    ``retired``: known partitions that are over and wholly read; they leave the offset and are no data loss.
    """

    heads: Mapping[str, tuple[int, int]]
    state: Mapping[str, int | str] = {}
    retired: frozenset[str] = frozenset()


class PartitionedSpout(Spout):
    """A spout over partitions of ordered, re-readable tuples; Trident's transactional spout.

    Partitions are named by str. Offsets are ints of at least 0; a range is [start, end). A tuple's id is its offset.
    An instance on the driver answers ``partitions``, ``earliest``, ``latest`` (or ``snapshot``, all at once); instances
    in the tasks are given one range after another by ``open``. ``initialize`` is called first in both places
    (``context["place"]`` is ``"driver"`` or ``"task"``). On the driver nothing may run beside these calls.

    The same range must give the same tuples whenever it is read: Spark replays ranges after a failure.
    """

    initial_rate: ClassVar[int] = 200
    """Offsets per second that a partition is taken to manage before anything is known of it. At least 1."""

    @classmethod
    def named_offsets(cls, given: Mapping[str, Any]) -> Mapping[str, int] | None:
        """Driver. ``startingOffsets`` or ``endingOffsets`` in a form of the spout's own, as partition → offset.

        Called if the option's JSON names no spout of the topology, such as Spark's ``{"topic": {"0": 23}}``, and if the
        value under this spout's name is not partition → offset. -2 is earliest, -1 latest. None: the spout does not
        know this form. May raise OptionError for a known form with wrong content.
        """
        return None

    def partitions(self) -> list[str]:
        """Driver. Names of the partitions that exist now."""
        raise NotImplementedError(f"{type(self).__name__} must define partitions() or snapshot()")

    def earliest(self, partition: str) -> int:
        """Driver. The first offset that can still be read."""
        return 0

    def latest(self, partition: str) -> int:
        """Driver. One past the last offset that can be read now."""
        raise NotImplementedError(f"{type(self).__name__} must define latest(partition) or snapshot()")

    def snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str]) -> Snapshot:
        """Driver. Everything at once; override it if one request answers for all partitions.

        ``known``: partition → offset up to which Spark has planned; empty before the first batch. ``state``: the notes
        of the last snapshot that made it into an offset.
        """
        return Snapshot({name: (self.earliest(name), self.latest(name)) for name in self.partitions()}, state)

    def align(self, partition: str, start: int, end: int) -> int:
        """Driver. Admission wants to cut at ``end``; the cut that it may take instead. Never below ``start``."""
        return end

    def split(self, partition: str, start: int, end: int, parts: int) -> list[int]:
        """Driver. At most ``parts - 1`` inner cut points, ascending, to read [start, end) in parallel.

        A pure function: a replay must cut alike. Even cuts unless overridden; an empty list forbids cutting.
        """
        parts = max(1, min(parts, end - start))
        return [start + (end - start) * part // parts for part in range(1, parts)]

    def commit(self, offsets: Mapping[str, int]) -> None:
        """Driver. Spark has finished everything below these offsets. Comes one batch late and never for the last."""

    def open(self, partition: str, start: int, end: int) -> None:
        """Task. The following calls read [start, end) of this partition."""
        raise NotImplementedError(f"{type(self).__name__} must define open(partition, start, end)")

    def next_tuple(self) -> Any:
        """Task. Emits with ``tup_id=offset``.

        The range is exhausted when this returns False, or when it returns without an emit after offset ``end - 1`` was
        emitted. Returning without an emit before that says that there is nothing now.
        """
        raise NotImplementedError(f"{type(self).__name__} must define next_tuple() or next_batch()")

    def next_batch(self) -> Any:
        """Task. Instead of ``next_tuple``: rows of the default stream as a pyarrow RecordBatch; None at the end."""
        raise NotImplementedError(f"{type(self).__name__} must define next_tuple() or next_batch()")

    def close(self) -> None:
        """Task. The range is read; not called if the process is killed."""

    @classmethod
    def gives_batches(cls) -> bool:
        """Whether tasks read by ``next_batch``. Raises TopologyError if a class defines both or neither."""
        batches = cls.next_batch is not PartitionedSpout.next_batch
        tuples = cls.next_tuple is not PartitionedSpout.next_tuple
        if batches == tuples:
            raise TopologyError(
                f"a PartitionedSpout defines exactly one of next_tuple() and next_batch(). Given: {cls.__name__} "
                f"defines {'both' if batches else 'neither'}"
            )
        return batches
