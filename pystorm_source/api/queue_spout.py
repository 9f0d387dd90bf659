"""Spouts that take messages of a queue, and acknowledge them once they are safe."""

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from pystorm_source.api.polled_rows import PolledRows
from pystorm_source.api.seen_keys import SeenKeys, digest_of
from pystorm_source.api.spout import Spout
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import MethodMissingError, TopologyError, given

RENEWALS = 3
"""How often a lease is renewed before it ends. Too small: a slow call lets it end, and messages come twice. Too large:
the queue is asked without need."""


class QueueSpout(Spout):
    """A queue that delivers a message again until it is acknowledged: SQS, Pub/Sub, AMQP, a consumer group of Redis.

    To implement: ``receive`` and ``acknowledge``. ``extend`` and ``release``, if the queue has such calls.
    One Spark task calls them.

    It needs a journal (option ``journal.path``). Messages are acknowledged as soon as their rows are in it. The journal
    also remembers their keys. If the process dies in between and a message is delivered again, it is acknowledged and
    makes no second row: every message gives its row exactly once.

    If the queue is busy, raise ``RetryLater`` in any of these methods, or let ``topology.retry.on`` name the exception:
    the call is made again. What a ``receive`` that raised has taken comes again when its lease expires.

    Attributes:
        receive_count (int): the ``count`` of ``receive``: messages that are wanted at once, at least 1. Defaults to 10.
        poll_seconds (float): seconds, at least 0, until an empty queue is asked again. Option ``spout.poll.seconds``
            wins. Defaults to 1.0.
        lease_seconds (float | None): seconds for which a received message is kept from others. ``extend`` is called
            before they are over. Defaults to None: no limit.
        remembered (int): messages that are known by ``message_key``, at least 0. The more, the later a repeated message
            is still recognized. Each takes 11 bytes in every micro-batch's manifest. Defaults to 10000.

    Example:
        >>> class Orders(QueueSpout):
        ...     outputs = ["item string"]
        ...     waiting = {"m1": "tea", "m2": "cup"}
        ...     taken = set()
        ...     def receive(self, count):
        ...         ids = [id for id in self.waiting if id not in self.taken][:count]
        ...         self.taken.update(ids)
        ...         return [(id, [self.waiting[id]]) for id in ids]
        ...     def acknowledge(self, ids):
        ...         for id in ids:
        ...             del self.waiting[id]
        >>> from pystorm_source.testing import run_topology
        >>> class Shop(Topology):
        ...     orders = Orders.spec()
        >>> run_topology(Shop).rows("orders")
        [('tea',), ('cup',)]
    """

    receive_count: ClassVar[int] = 10
    """Messages that are wanted at once."""
    poll_seconds: ClassVar[float] = 1.0
    """Seconds until an empty queue is asked again."""
    lease_seconds: float | None = None
    """Seconds for which a received message is kept from others."""
    remembered: int = 10_000
    """Messages that are known by their keys."""
    clock: Clock = SystemClock()

    _pystorm_has_notes = True
    # From the first call on. Not made by the constructor, which a subclass may not call.
    _pystorm_messages: "_Messages | None" = None

    def receive(self, count: int) -> Iterable[tuple[Any, Any]]:
        """Returns messages that are there now; none if the queue is empty. To implement.

        Must not block for long: bolts and ticks get no turn until it returns.

        Args:
            count (int): messages that are wanted, ``receive_count``. It may return fewer or more.

        Returns:
            Iterable[tuple[Any, Any]]: the id of each message, which the other methods get, and its row: a sequence of
                the values of ``outputs``, or a mapping of fields to values; missing fields are None.
        """
        raise MethodMissingError(f"{type(self).__name__} must define receive(count)", code="PYSTORM_INVALID_COMPONENT")

    def acknowledge(self, ids: Sequence[Any]) -> None:
        """Tells the queue that these messages are done. To implement.

        Args:
            ids (Sequence[Any]): ids of ``receive``, at least one. The same ids come again if this call is repeated; the
                queue may have deleted some of them.
        """
        raise MethodMissingError(
            f"{type(self).__name__} must define acknowledge(ids)", code="PYSTORM_INVALID_COMPONENT"
        )

    def extend(self, ids: Sequence[Any]) -> None:
        """Keeps messages from others for ``lease_seconds`` more. Does nothing unless overridden.

        Args:
            ids (Sequence[Any]): ids of messages that are not acknowledged yet. They come again if this is repeated.
        """

    def release(self, ids: Sequence[Any]) -> None:
        """Gives messages back because their rows do not count. Does nothing unless overridden: they come again when
        their lease expires.

        Args:
            ids (Sequence[Any]): ids of messages that were received. The same ids come again if this call is repeated.
        """

    def message_key(self, id: Any) -> Any:
        """Returns what stays the same when a message is delivered again. The id unless overridden.

        Args:
            id (Any): an id of ``receive``.

        Returns:
            Any: a value, or values, of Python's own types, such as the first part of (message id, receipt handle).
        """
        return id

    def next_tuple(self) -> Any:
        """Emits messages, if there are some.

        Returns:
            Any: False if the micro-batch has rows, and the queue is empty, so they need not wait for its end.

        Raises:
            TopologyError: ``receive`` has returned what it may not.
        """
        return self._pystorm_all_messages().next()

    def _pystorm_all_messages(self) -> "_Messages":
        if self._pystorm_messages is None:
            self._pystorm_messages = _Messages(self)
        return self._pystorm_messages

    def _pystorm_is_new(self, key: Any) -> None:
        """A ready-made spout calls it in ``receive``: the message with this key is a new one."""
        self._pystorm_all_messages().forget_key(key)

    def _pystorm_forgets(self) -> bool:
        """A ready-made spout calls it in ``receive`` if the queue starts its identifiers over. False: the micro-batch
        must end first, to clear the old ones from the journal; ``receive`` returns nothing."""
        return self._pystorm_all_messages().forget_all()

    def _pystorm_receive_failed(self) -> None:
        """What ``receive`` had taken when it raised must come again. A ready-made spout without leases defines it."""

    def _pystorm_notes(self) -> str:
        return self._pystorm_all_messages().notes()

    def _pystorm_resume(self, notes: str | None) -> None:
        self._pystorm_all_messages().resume(notes)

    def _pystorm_batch_ended(self, is_journaled: bool) -> None:
        self._pystorm_all_messages().settled(is_journaled)


class _Messages(PolledRows):
    """The messages of a ``QueueSpout`` that were received and are not settled."""

    def __init__(self, spout: QueueSpout):
        super().__init__(spout)
        self._seen = SeenKeys()
        self._held: dict[bytes, Any] = {}  # digest of a key → id, of this micro-batch
        self._done: list[Any] = []  # to be acknowledged
        self._undone: list[Any] = []  # to be released
        self._due = self._extended = self._now()
        self._is_empty = self._has_rows = False
        self._is_journaled = self._ends = False

    def resume(self, text: str | None) -> None:
        """Knows the messages that ``notes`` has written."""
        self._is_journaled, self._ends = True, False
        self._seen = SeenKeys() if text is None else SeenKeys.of(json.loads(text)["seen"])

    def notes(self) -> str:
        """As JSON text. A new micro-batch begins."""
        # A queue may give nothing until received messages are acknowledged: a window that is full, a FIFO group.
        is_over = self._is_empty and not self._held and not self._ends
        self._has_rows = self._ends = False
        self._seen.forget(max(self._spout.remembered, len(self._held)))
        return json.dumps({"over": is_over, "seen": self._seen.text()}, separators=(",", ":"))

    def forget_key(self, key: Any) -> None:
        """From now on, a message with this key is a new one."""
        digest = digest_of(key)
        self._seen.discard(digest)
        if digest in self._held:
            self._held[os.urandom(len(digest))] = self._held.pop(digest)

    def forget_all(self) -> bool:
        """Forgets all keys. False if messages must wait for the next micro-batch, whose notes have no old ones."""
        self._ends = self._is_journaled and len(self._seen) > 0
        self._seen = SeenKeys()
        return not self._ends

    def settled(self, is_journaled: bool) -> None:
        """The messages of this micro-batch are safe, or do not count."""
        ids = list(self._held.values())
        self._held = {}
        if is_journaled:
            self._done += ids
        else:
            self._undone += ids
            self._has_rows = False
        self._settle()

    def next(self) -> bool | None:
        """Emits what the queue gives, if it is time to ask. False if it is not time, and there are rows."""
        now = self._now()
        self._settle()
        self._extend(now)
        if now >= self._due and not self._ends:
            self._receive()
            return False if self._ends else None
        if self._ends:
            return False
        if not (self._has_rows and self._is_empty):
            return None
        self._has_rows = False  # once: the next call waits for more
        return False

    def _settle(self) -> None:
        """Acknowledges and releases. The next call tries again what a busy queue has refused."""
        while self._done:
            ids = self._done[:]
            with self._spout._pystorm_repeatable():
                self._spout.acknowledge(ids)
            del self._done[: len(ids)]
        while self._undone:
            ids = self._undone[:]
            with self._spout._pystorm_repeatable():
                self._spout.release(ids)
            del self._undone[: len(ids)]

    def _extend(self, now: float) -> None:
        seconds = self._spout.lease_seconds
        if seconds is None or now < self._extended + seconds / RENEWALS:
            return
        if self._held:
            with self._spout._pystorm_repeatable():
                self._spout.extend(list(self._held.values()))
        self._extended = now

    def _receive(self) -> None:
        spout = self._spout
        if not self._held:
            self._extended = self._now()  # the leases that begin now are the oldest
        # A call counts whole or not at all: what a generator raises comes before the first emit.
        try:
            with spout._pystorm_repeatable():
                answer: Any = spout.receive(spout.receive_count)
                messages = list(answer) if isinstance(answer, Iterable) else [answer]
            found = self._checked(messages)
            digests = [digest_of(spout.message_key(id)) for id, _ in found]  # all of them before one counts as received
        except Exception as error:
            spout._pystorm_receive_failed()
            if not (spout.exit_on_exception or spout._pystorm_is_busy(error)):  # it is asked again, and not at once
                self._due = self._now() + self._poll_seconds
            raise
        self._is_empty = not found
        if self._is_empty and not self._ends:
            self._due = self._now() + self._poll_seconds
        rows = []
        for (id, row), digest in zip(found, digests, strict=True):
            if digest in self._held:
                self._held[digest] = id  # delivered again: from now on this one counts
            elif self._seen.add(digest):
                self._held[digest] = id
                rows.append(row)
            else:
                self._done.append(id)
        self._has_rows = self._has_rows or bool(rows)
        self._emit(rows)
        self._settle()

    def _checked(self, messages: list[Any]) -> list[tuple[Any, Any]]:
        for each in messages:
            if not isinstance(each, tuple) or len(each) != 2:
                raise TopologyError(
                    f"{type(self._spout).__name__}: receive() returns a list of messages, each a tuple of an id and a "
                    f"row; an empty list if there are none. Given: {given(each)}",
                    code="PYSTORM_INVALID_COMPONENT",
                )
        return messages
