"""Bolts that call a service once for many tuples, and many times at a time."""

from collections.abc import Sequence
from typing import Any

from cython_core.arrow.row_error import coded
from cython_core.routing.failure_kinds import Hopeless
from cython_core.tuples.tuple import Tuple
from pystorm_source.api.async_bolt import AsyncBolt
from pystorm_source.api.batch_call import RowBatches, call_of
from pystorm_source.errors import MethodMissingError, given


class AsyncBatchBolt(AsyncBolt):
    """An ``AsyncBolt`` for services that take many rows in one call: bulk APIs, models, ``executemany``.

    Each tuple keeps its own verdict: its own answer decides whether it is acked, retried or becomes a dead letter.
    Several calls are in flight at a time, as many as ``topology.async.max.pending`` tuples fill. A tuple's time
    (``topology.async.request.timeout.secs``) begins when its call does. ``async with self.limit("api")`` in
    ``process_batch``, or ``limits=["api"]`` in the spec, takes one permit for a call; ``self.limit("api",
    permits=len(tups))`` takes one for each tuple.

    Attributes:
        batch_rows (int): most tuples per call, up to ``topology.async.max.pending``. Defaults to 100.
        batch_seconds (float): seconds that a call waits for more tuples after its first one; the end of a micro-batch
            waits as long. Defaults to 0.05.

    Example:
        >>> import asyncio
        >>> from pystorm_source import Topology
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Ages(AsyncBatchBolt):
        ...     outputs = ["user string", "age long"]
        ...     async def process_batch(self, tups):
        ...         await asyncio.sleep(0.01)  # one request, with all names
        ...         return [[tup.values.user, 42] for tup in tups]
        >>> class Users(Topology):
        ...     users = MemorySpout.spec(fields=["user string"], rows=[["ann"], ["bob"]])
        ...     ages = Ages.spec(inputs=[users])
        >>> sorted(run_topology(Users).rows("ages"))
        [('ann', 42), ('bob', 42)]
    """

    batch_rows: int = 100
    batch_seconds: float = 0.05
    _pystorm_batches: RowBatches | None = None

    async def process_batch(self, tups: list[Tuple]) -> Sequence[Any] | None:
        """Makes one call for these tuples. Every subclass defines it. It emits nothing itself.

        If it raises, every tuple of the call gets the exception, unless ``is_refusal`` says that some are bad.

        Args:
            tups (list[Tuple]): the tuples, oldest first; never empty.

        Returns:
            Sequence[Any] | None: an answer for each tuple, in their order: a row, which ``emit_answer`` emits; None for
                a tuple that is done and emits nothing; an exception (``RetryLater``, ``Hopeless``, any other), as if
                ``process`` of that tuple had raised it. None: all are done.
        """
        raise MethodMissingError(
            f"{type(self).__name__} must define async def process_batch(tups)", code="PYSTORM_INVALID_COMPONENT"
        )

    def emit_answer(self, tup: Tuple, answer: Any) -> None:
        """Emits the answer for a tuple, anchored to it: one row. Override it if an answer can be any number of rows.

        Args:
            tup (Tuple): the tuple.
            answer (Any): of ``process_batch``; never None.

        Example:
            >>> class Words(AsyncBatchBolt):
            ...     outputs = ["word string"]
            ...     def emit_answer(self, tup, answer):
            ...         for word in answer:
            ...             self.emit([word])
        """
        self.emit(answer)

    def is_refusal(self, error: Exception) -> bool:
        """Whether the service has refused a call for several tuples because some of them are bad.

        The call is then made again for each half, until only bad tuples are left: about ``2 * log2(batch_rows)`` calls
        for one bad tuple.

        Args:
            error (Exception): what ``process_batch`` has raised.

        Returns:
            bool: by default whether it is a ``Hopeless``, or ``topology.retry.on`` says ``never``. All tuples get any
                other exception, because a service that is down must not be called more often.
        """
        rules = self._pystorm_rules
        return isinstance(error, Hopeless) or (rules is not None and rules.verdict(error) == "never")

    def emit(
        self,
        tup: Any,
        stream: str | None = None,
        anchors: Any = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> Any:
        """As ``Bolt.emit``, in ``emit_answer``: anchored to its tuple. In ``process_batch`` only with ``anchors``.

        Raises:
            RuntimeError: called in ``process_batch`` without anchors.
        """
        if anchors is None and call_of(self) is not None:
            raise coded(
                RuntimeError,
                "PYSTORM_EMIT_OUTSIDE_OF_RUN",
                f"{type(self).__name__}.emit in process_batch: no one knows to which of its tuples the row belongs. "
                f"Return an answer for each tuple, or say it: anchors=[tup]. Given: {given(tup)}",
            )
        return super().emit(tup, stream, anchors, direct_task, need_task_ids)

    async def process(self, tup: Tuple) -> None:  # type: ignore[override]
        """Puts the tuple into a call, and emits its answer. Override ``process_batch``, not this.

        Args:
            tup (Tuple): the tuple.
        """
        if self._pystorm_batches is None:
            self._pystorm_batches = RowBatches(self)
        answer = await self._pystorm_batches.answer(tup)
        if answer is not None:
            self.emit_answer(tup, answer)
