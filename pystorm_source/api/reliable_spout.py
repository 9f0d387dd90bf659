"""Spouts that emit a tuple again when it has failed."""

from collections import Counter
from contextlib import suppress
from typing import Any

import pyarrow as pa

from cython_core.arrow.frame_batches import batches_of, is_frame
from cython_core.arrow.row_error import coded
from pystorm_source.api.spout import Spout
from pystorm_source.errors import given


class ReliableSpout(Spout):
    """A spout that keeps what it has emitted until it is acked, and emits it again on a fail. streamparse's class.

    A tuple that fails after ``max_fails`` retries is a dead letter: ``topology.dead.letter`` fails the task, emits a
    row or drops it. Then it counts as acked, with a line in the log.

    Trap: like any ``Spout``, it has no offsets. The tuples that it keeps are lost with its process.

    Attributes:
        max_fails (int): how often a tuple is emitted again. Defaults to 3.
        unacked_tuples (dict): message id → (values, stream, direct_task, need_task_ids).
        failed_tuples (Counter): message id → fails so far.

    Example:
        >>> class Orders(ReliableSpout):
        ...     outputs = ["id long"]
        ...     sent = 0
        ...     def next_tuple(self):
        ...         if self.sent < 2:
        ...             self.sent += 1
        ...             self.emit([self.sent], tup_id=self.sent)
        >>> class FailsOnce(Bolt):
        ...     auto_ack = False
        ...     failed = False
        ...     def process(self, tup):
        ...         self.ack(tup) if self.failed else self.fail(tup)
        ...         self.failed = True
        >>> from pystorm_source.testing import run_topology
        >>> class Retried(Topology):
        ...     orders = Orders.spec()
        ...     checks = FailsOnce.spec(inputs=[orders])
        >>> result = run_topology(Retried)
        >>> result.executed["checks"], result.retries["orders"], result.acked["orders"]
        (3, 1, 2)
    """

    max_fails: int = 3

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.failed_tuples: Counter[Any] = Counter()
        self.unacked_tuples: dict[Any, tuple[Any, str | None, int | None, bool]] = {}

    def emit(  # type: ignore[override]
        self,
        tup: Any,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """As ``Spout.emit``, and keeps the tuple until it is acked.

        Args:
            tup_id (Any): the message id, hashable; required. Defaults to None.

        Returns:
            list[int] | None: the task ids that got it, with ``need_task_ids``.

        Raises:
            ValueError: no ``tup_id``, and what ``Spout.emit`` raises.
        """
        if tup_id is None:
            raise self._no_id("emit(values", tup_id)
        # Order: kept before the emit, which acks at once if the stream has no subscriber.
        kept = self.unacked_tuples.get(tup_id)
        self.unacked_tuples[tup_id] = (tup, stream, direct_task, need_task_ids)
        try:
            return super().emit(tup, tup_id, stream, direct_task, need_task_ids)
        except BaseException:
            self._keep_again(tup_id, kept)
            raise

    def emit_batch(
        self, batch: Any, tup_id: Any = None, stream: str | None = None, direct_task: int | None = None
    ) -> None:
        """As ``Spout.emit_batch``, and keeps the batch until it is acked. If it is given up, each row is a dead letter.

        Args:
            batch (pyarrow.RecordBatch): the rows, or a data frame, as in ``Spout.emit_batch``.
            tup_id (Any): the message id of all its rows, hashable; required. Defaults to None.
            stream (str): the stream. Defaults to "default".
            direct_task (int): on a direct stream, the id of the task that gets it. Defaults to None.

        Raises:
            ValueError: no ``tup_id``, and what ``Spout.emit_batch`` raises.
        """
        if tup_id is None:
            raise self._no_id("emit_batch(batch", tup_id)
        if not isinstance(batch, pa.RecordBatch) and is_frame(batch):
            with suppress(TypeError, ValueError):  # the emit says it
                (batch,) = batches_of(batch)  # it may be readable only once
        kept = self.unacked_tuples.get(tup_id)
        self.unacked_tuples[tup_id] = (batch, stream, direct_task, False)
        try:
            super().emit_batch(batch, tup_id, stream, direct_task)
        except BaseException:
            self._keep_again(tup_id, kept)
            raise

    def _no_id(self, call: str, tup_id: Any) -> Exception:
        return coded(
            ValueError,
            "PYSTORM_MESSAGE_ID_MISSING",
            f"You must provide a tuple ID when emitting with a ReliableSpout: {type(self).__name__}.{call}, "
            f"tup_id=...). Given: {given(tup_id)}",
        )

    def _keep_again(self, tup_id: Any, kept: Any) -> None:
        """Restores what was kept before an emit that has raised."""
        if kept is None:
            del self.unacked_tuples[tup_id]
        else:
            self.unacked_tuples[tup_id] = kept

    def ack(self, tup_id: Any) -> None:
        """Forgets the tuple: its tree is done, or was given up.

        Args:
            tup_id (Any): the message id.
        """
        self.failed_tuples.pop(tup_id, None)
        if self.unacked_tuples.pop(tup_id, None) is None:
            self._any_logger().error("Received ack for unknown tuple ID: %r", tup_id)

    def fail(self, tup_id: Any) -> None:
        """Emits the tuple again, at most ``max_fails`` times; then it is a dead letter.

        Args:
            tup_id (Any): the message id.
        """
        kept = self.unacked_tuples.get(tup_id)
        if kept is None:
            self._any_logger().error("Received fail for unknown tuple ID: %r", tup_id)
            return
        retries = self._pystorm_retries
        if self.failed_tuples[tup_id] < self.max_fails and not (retries is not None and retries.own_is_hopeless()):
            tup, stream, direct_task, need_task_ids = kept
            if isinstance(tup, pa.RecordBatch):
                self.emit_batch(tup, tup_id=tup_id, stream=stream, direct_task=direct_task)
            else:
                self.emit(tup, tup_id=tup_id, stream=stream, direct_task=direct_task, need_task_ids=need_task_ids)
            self.failed_tuples[tup_id] += 1
            if self._pystorm_retries is not None:
                self._pystorm_retries.retries += 1
            return
        if self._pystorm_retries is not None:
            of_batch = isinstance(kept[0], pa.RecordBatch)
            for values in zip(*map(pa.Array.to_pylist, kept[0].columns), strict=True) if of_batch else [kept[0]]:
                self._pystorm_retries.give_up_own(
                    tup_id, values, kept[1], self.failed_tuples[tup_id] + 1, f"max_fails={self.max_fails}"
                )
        self._any_logger().info(
            "Acking tuple ID %r, which has failed %d times: max_fails is %d",
            tup_id,
            self.failed_tuples[tup_id] + 1,
            self.max_fails,
        )
        self.ack(tup_id)
