from typing import Any

from cython_core.acking.acker import Acker
from cython_core.executors.bolt_many import BoltMany
from cython_core.queues.batch_inserter import PendingEmits
from cython_core.queues.broadcast_ring import BroadcastReader
from cython_core.queues.receive_queue import ReceiveQueue
from cython_core.routing.stream_router import StreamRouter
from cython_core.tuples.tuple import Tuple

class BoltExecutor(BoltMany):
    def __init__(
        self,
        component: str,
        task: int,
        instance: Any,
        pending: PendingEmits,
        routers: dict[str, StreamRouter],
        queue: ReceiveQueue,
        tick_frequency: float | None = None,
        readers: tuple[BroadcastReader, ...] = (),
    ) -> None: ...
    @property
    def acks(self) -> int: ...
    @property
    def fails(self) -> int: ...
    @property
    def duplicate_verdicts(self) -> int: ...
    @property
    def untracked_fails(self) -> int: ...
    @property
    def at_work(self) -> tuple[Tuple | None, int]: ...
    def share_acker(self, acker: Acker) -> None: ...
