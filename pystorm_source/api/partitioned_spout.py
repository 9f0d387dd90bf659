"""Spouts whose tuples have offsets, so that Spark can replay them."""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from pystorm_source.api.spout import Spout
from pystorm_source.errors import MethodMissingError, TopologyError, given


class Snapshot(NamedTuple):
    """What a partitioned spout sees of its source at one moment: the answer of ``PartitionedSpout.snapshot``.

    Args:
        heads (Mapping[str, tuple[int, int]]): partition → (earliest, latest), offsets that can be read now, latest
            exclusive.
        state (Mapping[str, int | str]): the spout's own notes. They travel inside the Spark offset and come back with
            the next ``snapshot``. Keep them small: Spark writes them with every micro-batch. Defaults to {}.
        retired (frozenset[str]): known partitions that have ended and are completely read. They leave the offset and
            are no data loss. Defaults to frozenset().

    Example:
        >>> Snapshot({"north": (0, 120), "south": (35, 90)}).heads["south"]
        (35, 90)
    """

    heads: Mapping[str, tuple[int, int]]
    state: Mapping[str, int | str] = {}
    retired: frozenset[str] = frozenset()


class PartitionedSpout(Spout):
    """A spout that Spark can replay: partitions of ordered, re-readable tuples. Trident's transactional spout.

    To implement: ``partitions`` and ``latest``, or ``snapshot``; ``open``; ``next_tuple`` or ``next_batch``. If offsets
    do not begin at 0, ``earliest``, too.

    One instance on the driver tells what there is: ``partitions``, ``earliest`` and ``latest``, or ``snapshot`` for
    all at once. Instances in the tasks read: ``open`` gives them one range after another, and ``next_tuple`` or
    ``next_batch`` reads it. ``initialize`` is called first in both places; ``context["place"]`` is "driver" or "task".

    Partitions are named by str. Offsets are ints of at least 0 and may have gaps; a range is [start, end).

    Trap: the same range must give the same tuples whenever it is read, in any process: Spark replays ranges after a
    failure. If it does, and the sink is idempotent or transactional, every row arrives exactly once.
    On the driver, no thread of the spout may run beside these calls.

    If the source is busy, raise ``RetryLater`` in any of these calls but ``initialize``, ``align`` and ``split``. The
    same call is made again later; until then, the query stays alive.

    Attributes:
        initial_rate (int): offsets per second that a partition is assumed to manage before anything is known about it,
            at least 1. Defaults to 200.
        bounded (bool | None): whether all offsets can be read from the beginning on (True), or more may come (False).
            ``pystorm-source run`` ends when it has read spouts without a further offset. Defaults to None, not known.
        poll_seconds (float): seconds, at least 0, after which a streaming query asks again what there is
            (``partitions``, ``earliest``, ``latest``, ``snapshot``); until then, it uses the last answer. 0 asks with
            each trigger, up to 100 times a second while a query is idle: for spouts that look into memory or at local
            files. Option ``spout.poll.seconds`` wins. Defaults to 1.0.

    Example:
        >>> class Squares(PartitionedSpout):
        ...     outputs = ["n long", "square long"]
        ...     def partitions(self):
        ...         return ["all"]
        ...     def latest(self, partition):
        ...         return 3
        ...     def open(self, partition, start, end):
        ...         self.offsets = iter(range(start, end))
        ...     def next_tuple(self):
        ...         for offset in self.offsets:
        ...             self.emit([offset, offset * offset], tup_id=offset)
        ...             return True
        ...         return False
        >>> from pystorm_source.testing import run_topology
        >>> class Numbers(Topology):
        ...     squares = Squares.spec()
        >>> run_topology(Numbers).rows("squares")
        [(0, 0), (1, 1), (2, 4)]
    """

    initial_rate: ClassVar[int] = 200
    """Offsets per second that a partition is assumed to manage before anything is known about it. At least 1."""
    bounded: ClassVar[bool | None] = None
    """Whether all offsets can be read from the beginning on. None: not known."""
    poll_seconds: ClassVar[float] = 1.0
    """Seconds after which a query asks again what there is. At least 0."""

    @classmethod
    def named_offsets(cls, given: Mapping[str, Any]) -> Mapping[str, int] | None:
        """Driver. Translates the spout's own form of ``startingOffsets`` or ``endingOffsets`` to partition → offset.

        Called if the option's JSON names no spout of the topology, such as Spark's ``{"topic": {"0": 23}}``, or if the
        JSON under this spout's name is not partition → offset. May raise OptionError if the spout's own form makes no
        sense.

        Args:
            given (Mapping[str, Any]): the option's JSON.

        Returns:
            Mapping[str, int] | None: partition → offset, -2 for earliest, -1 for latest; None if the form is not the
                spout's.
        """
        return None

    def partitions(self) -> list[str]:
        """Driver. The partitions that exist now. Asked every ``poll_seconds``, at most.

        Returns:
            list[str]: their names. A missing one was lost: see ``Snapshot.retired`` and ``failOnDataLoss``.
        """
        raise MethodMissingError(
            f"{type(self).__name__} must define partitions() or snapshot()", code="PYSTORM_INVALID_COMPONENT"
        )

    def earliest(self, partition: str) -> int:
        """Driver. The first offset that can still be read. 0 unless overridden.

        Args:
            partition (str): one of ``partitions``.

        Returns:
            int: the offset, at most ``latest``. Above what Spark has planned, tuples were lost: ``failOnDataLoss``.
        """
        return 0

    def latest(self, partition: str) -> int:
        """Driver. One past the last offset that can be read now.

        Args:
            partition (str): one of ``partitions``.

        Returns:
            int: the offset. It must be readable already: a task may open the range at once.
        """
        raise MethodMissingError(
            f"{type(self).__name__} must define latest(partition) or snapshot()", code="PYSTORM_INVALID_COMPONENT"
        )

    def snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str]) -> Snapshot:
        """Driver. Everything at once; override it if one request answers for all partitions.

        Trap: a snapshot may never become an offset. Notes come back from the last one that did, so compute the next
        state from ``state``, not from an attribute.

        Args:
            known (Mapping[str, int]): partition → the offset that Spark has planned up to; empty before the first one.
            state (Mapping[str, int | str]): the notes of the last snapshot that became an offset.

        Returns:
            Snapshot: what there is now.

        Raises:
            TopologyError: ``partitions`` returned one str, not a list of them.
        """
        names: Any = self.partitions()
        if isinstance(names, str):  # each of its letters would be a partition
            raise TopologyError(
                f"partitions() of {type(self).__name__} must return a list of names; write [{names!r}]. "
                f"Given: {given(names)}",
                code="PYSTORM_INVALID_COMPONENT",
            )
        return Snapshot({name: (self.earliest(name), self.latest(name)) for name in names}, state)

    def align(self, partition: str, start: int, end: int) -> int:
        """Driver. Where a micro-batch may end if admission control wants ``end``.

        For spouts that cannot be cut everywhere: a file only at the beginning of a line. Any offset unless overridden.

        Args:
            partition (str): one of ``partitions``.
            start (int): first offset of the range.
            end (int): the end that is wanted.

        Returns:
            int: the end to take, never below ``start``.
        """
        return end

    def split(self, partition: str, start: int, end: int, parts: int) -> list[int]:
        """Driver. Where a range may be cut, so that tasks read it in parallel. Even cuts unless overridden.

        Trap: it must be a pure function of its arguments, because a replay must cut alike.

        Args:
            partition (str): one of ``partitions``.
            start (int): first offset of the range.
            end (int): one past the last offset.
            parts (int): parts that are wanted, at least 1.

        Returns:
            list[int]: at most ``parts - 1`` offsets between start and end, ascending; empty to forbid cutting.
        """
        parts = max(1, min(parts, end - start))
        return [start + (end - start) * part // parts for part in range(1, parts)]

    def commit(self, offsets: Mapping[str, int]) -> None:
        """Driver. Spark has finished everything below these offsets: the source may forget it.

        Trap: it comes one micro-batch late, and never for the last one.

        Args:
            offsets (Mapping[str, int]): partition → one past the last offset that is done.
        """

    def open(self, partition: str, start: int, end: int) -> None:
        """Task. The following calls of ``next_tuple`` or ``next_batch`` read [start, end) of this partition.

        Args:
            partition (str): name of the partition. An instance may get several, one after another.
            start (int): first offset.
            end (int): one past the last offset.
        """
        raise MethodMissingError(
            f"{type(self).__name__} must define open(partition, start, end)", code="PYSTORM_INVALID_COMPONENT"
        )

    def next_tuple(self) -> Any:
        """Task. Emits with ``tup_id=offset``; must not block.

        The range is exhausted when this returns False, or when it returns without an emit after offset ``end - 1`` was
        emitted. Returning without an emit before that says that there is nothing now.

        Returns:
            Any: False at the end of the range; anything else goes on.
        """
        raise MethodMissingError(
            f"{type(self).__name__} must define next_tuple() or next_batch()", code="PYSTORM_INVALID_COMPONENT"
        )

    def next_batch(self) -> Any:
        """Task. Instead of ``next_tuple``: rows of the default stream, by column.

        Returns:
            pyarrow.RecordBatch | None: the next rows of the range; None at its end.
        """
        raise MethodMissingError(
            f"{type(self).__name__} must define next_tuple() or next_batch()", code="PYSTORM_INVALID_COMPONENT"
        )

    def close(self) -> None:
        """Task. The range is read. Trap: not called if the process is killed."""

    @classmethod
    def gives_batches(cls) -> bool:
        """Whether tasks read by ``next_batch``.

        Raises:
            TopologyError: the class defines both ``next_batch`` and ``next_tuple``, or neither.
        """
        batches = cls.next_batch is not PartitionedSpout.next_batch
        tuples = cls.next_tuple is not PartitionedSpout.next_tuple
        if batches == tuples:
            raise TopologyError(
                f"a PartitionedSpout defines exactly one of next_tuple() and next_batch(). Given: {cls.__name__} "
                f"defines {'both' if batches else 'neither'}",
                code="PYSTORM_INVALID_COMPONENT",
            )
        return batches

    # Whether a journal has its tuples: its offsets count them, and say nothing about a source.
    _pystorm_is_journal: ClassVar[bool] = False
    # Whether Trigger.AvailableNow runs: the first snapshot must have all there is.
    _pystorm_is_frozen: bool = False

    @classmethod
    def _pystorm_leader_of(cls, partition: str) -> str | None:
        """Driver. The partition that this one must not overtake, or None if it may read as far as it can."""
        return None

    def _pystorm_tasks(self, ranges: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
        """Driver. What tasks read when partitions move by these ranges, as partition, start and end. Pure."""
        return ranges

    def _pystorm_reads_batches(self, straight: bool) -> bool:
        """Whether the next range is read by ``next_batch``. ``straight``: only the output and bolts of batches take the
        rows of the default stream, and do not need their offsets."""
        return self.gives_batches()
