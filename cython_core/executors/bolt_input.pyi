from typing_extensions import disjoint_base

from cython_core.executors.bolt_failures import BoltFailures
from cython_core.queues.broadcast_ring import BroadcastReader
from cython_core.queues.receive_queue import ReceiveQueue

@disjoint_base
class BoltInput(BoltFailures):
    @property
    def queue(self) -> ReceiveQueue: ...
    @property
    def readers(self) -> tuple[BroadcastReader, ...] | None: ...
    @property
    def skipped(self) -> int: ...
