"""Spouts that emit a tuple again when it has failed."""

from collections import Counter
from typing import Any

from pystorm_source.api.spout import Spout
from pystorm_source.errors import given


class ReliableSpout(Spout):
    """A spout in streamparse's shape that keeps each tuple until it is acked, and emits it again on a fail.

    ``max_fails``: how often a tuple is emitted again; the next fail makes it a dead letter (``topology.dead.letter``:
    the task fails, unless that is ``stream`` or ``drop``), and then as if it were acked, with a line in the log.
    ``unacked_tuples``: message id → (values, stream, direct_task, need_task_ids); ``failed_tuples``: message id → fails
    so far. Like any ``Spout`` it has no offsets: its tuples are lost with the process.
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
        """As ``Spout.emit``. Raises ValueError without ``tup_id``."""
        if tup_id is None:
            raise ValueError(
                f"You must provide a tuple ID when emitting with a ReliableSpout: {type(self).__name__}.emit(values, "
                f"tup_id=...). Given: {given(tup_id)}"
            )
        # Order: kept before the emit, which acks at once if the stream has no subscriber.
        kept = self.unacked_tuples.get(tup_id)
        self.unacked_tuples[tup_id] = (tup, stream, direct_task, need_task_ids)
        try:
            return super().emit(tup, tup_id, stream, direct_task, need_task_ids)
        except BaseException:
            if kept is None:
                del self.unacked_tuples[tup_id]
            else:
                self.unacked_tuples[tup_id] = kept
            raise

    def ack(self, tup_id: Any) -> None:
        """The tuple tree of ``tup_id`` is done, or given up."""
        self.failed_tuples.pop(tup_id, None)
        if self.unacked_tuples.pop(tup_id, None) is None:
            self._any_logger().error("Received ack for unknown tuple ID: %r", tup_id)

    def fail(self, tup_id: Any) -> None:
        """Emits the tuple again, at most ``max_fails`` times; then it is a dead letter."""
        kept = self.unacked_tuples.get(tup_id)
        if kept is None:
            self._any_logger().error("Received fail for unknown tuple ID: %r", tup_id)
            return
        if self.failed_tuples[tup_id] < self.max_fails:
            tup, stream, direct_task, need_task_ids = kept
            self.emit(tup, tup_id=tup_id, stream=stream, direct_task=direct_task, need_task_ids=need_task_ids)
            self.failed_tuples[tup_id] += 1
            if self._pystorm_retries is not None:
                self._pystorm_retries.retries += 1
            return
        if self._pystorm_retries is not None:
            self._pystorm_retries.give_up_own(kept[0], kept[1], self.max_fails + 1, f"max_fails={self.max_fails}")
        self._any_logger().info(
            "Acking tuple ID %r, which has failed %d times: max_fails is %d", tup_id, self.max_fails + 1, self.max_fails
        )
        self.ack(tup_id)
