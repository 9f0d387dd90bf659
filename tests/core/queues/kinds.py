"""The queues of the core under one face, for the contract that they share."""

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

from cython_core.queues.queues import BroadcastRing, ReceiveQueue
from cython_core.tuples.tuple import Tuple


class OneReader:
    """A broadcast ring with one reader is a queue."""

    def __init__(self, capacity: int) -> None:
        self._ring = BroadcastRing(capacity, {"reader": ()})
        (reader,) = self._ring.readers
        self.offer, self.offer_many = self._ring.offer, self._ring.offer_many
        self.poll, self.drain = reader.poll, reader.drain

    @property
    def capacity(self) -> int:
        return self._ring.capacity

    def __len__(self) -> int:
        return len(self._ring)


class Pipeline(OneReader):
    """The last of three readers in a row; the others read whatever there is before it does."""

    def __init__(self, capacity: int) -> None:
        self._ring = BroadcastRing(capacity, {"first": (), "second": ("first",), "third": ("second",)})
        self._first, self._second, self._third = self._ring.readers
        self.offer, self.offer_many = self._ring.offer, self._ring.offer_many

    def _upstream(self) -> None:
        assert self._first.drain(1 << 20) == self._second.drain(1 << 20)

    def poll(self, default: Any = None) -> Any:
        self._upstream()
        return self._third.poll(default)

    def drain(self, limit: int) -> list[Any]:
        self._upstream()
        return self._third.drain(limit)


class Received:
    """A bolt's queue of tuples: each object travels as the value of one. ``producers``: threads that offer."""

    def __init__(self, capacity: int, producers: int = 0) -> None:
        self._queue = ReceiveQueue(capacity, producers)

    @property
    def capacity(self) -> int:
        return self._queue.capacity

    def offer(self, item: Any) -> bool:
        return self._queue.put(Tuple(values=(item,)))

    def offer_many(self, items: Iterable[Any]) -> int:
        ready = list(items)
        return next((n for n, item in enumerate(ready) if not self.offer(item)), len(ready))

    def poll(self, default: Any = None) -> Any:
        tup = self._queue.poll()
        return default if tup is None else tup.values[0]

    def drain(self, limit: int) -> list[Any]:
        taken = [self._queue.poll() for _ in range(min(limit, len(self)))]
        return [tup.values[0] for tup in taken if tup is not None]

    def __len__(self) -> int:
        return len(self._queue)


class Kind(NamedTuple):
    """A kind of queue: ``make(capacity)``."""

    make: Any
    threads: bool
    """Whether threads of Python may share it."""


KINDS = {
    "receive-one": Kind(partial(Received, producers=1), True),
    "receive-several": Kind(partial(Received, producers=2), True),
    "broadcast": Kind(OneReader, True),
    "broadcast-pipeline": Kind(Pipeline, True),
    "receive": Kind(Received, False),
}
