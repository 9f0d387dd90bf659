"""The queues of the core under one face, for the contract that they share."""

from collections.abc import Iterable
from struct import Struct
from typing import Any, NamedTuple

from cython_core.broadcast_ring import BroadcastRing
from cython_core.mpsc_queue import MpscQueue
from cython_core.mpsc_values import MpscValues
from cython_core.receive_queue import ReceiveQueue
from cython_core.spsc_queue import SpscQueue
from cython_core.spsc_values import SpscValues
from cython_core.tuple import Tuple


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
    """The inline scheduler's queue of tuples: each object travels as the value of one."""

    def __init__(self, capacity: int) -> None:
        self._queue = ReceiveQueue(capacity)

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
        return [self.poll() for _ in range(min(limit, len(self)))]

    def __len__(self) -> int:
        return len(self._queue)


NUMBER = Struct("<q8s")  # a width that is no word's


class Numbers:
    """A queue of values: each number travels with a copy of itself behind it."""

    def __init__(self, queue: SpscValues | MpscValues) -> None:
        self._queue = queue
        assert queue.width == NUMBER.size

    @property
    def capacity(self) -> int:
        return self._queue.capacity

    def offer(self, item: int) -> bool:
        return self._queue.offer(self._packed(item))

    def offer_many(self, items: Iterable[int]) -> int:
        return self._queue.offer_many(b"".join(map(self._packed, items)))

    def poll(self, default: Any = None) -> Any:
        value = self._queue.poll()
        return default if value is None else self._unpacked(*NUMBER.unpack(value))

    def drain(self, limit: int) -> list[int]:
        return [self._unpacked(*pair) for pair in NUMBER.iter_unpack(self._queue.drain(limit))]

    def __len__(self) -> int:
        return len(self._queue)

    @staticmethod
    def _packed(item: int) -> bytes:
        return NUMBER.pack(item, item.to_bytes(8, "big", signed=True))

    @staticmethod
    def _unpacked(item: int, again: bytes) -> int:
        assert int.from_bytes(again, "big", signed=True) == item
        return item


class Kind(NamedTuple):
    """A kind of queue: ``make(capacity)``."""

    make: Any
    threads: bool
    """Whether threads of Python may share it."""
    objects: bool = True
    """Whether it carries any object, else whole numbers."""


KINDS = {
    "spsc": Kind(SpscQueue, True),
    "mpsc": Kind(MpscQueue, True),
    "broadcast": Kind(OneReader, True),
    "broadcast-pipeline": Kind(Pipeline, True),
    "receive": Kind(Received, False),
    "spsc-values": Kind(lambda capacity: Numbers(SpscValues(capacity, NUMBER.size)), True, objects=False),
    "mpsc-values": Kind(lambda capacity: Numbers(MpscValues(capacity, NUMBER.size)), True, objects=False),
}
