from typing import Any, final

import pyarrow as pa

from cython_core.executors.bolt_executor import BoltExecutor
from cython_core.queues.queues import BroadcastReader, PendingEmits, ReceiveQueue
from cython_core.routing.stream_router import StreamRouter

@final
class ArrowExecutor(BoltExecutor):
    def __init__(
        self,
        component: str,
        task: int,
        instance: Any,
        pending: PendingEmits,
        routers: dict[str, StreamRouter],
        queue: ReceiveQueue,
        tick_frequency: Any = None,
        readers: tuple[BroadcastReader, ...] = (),
        *,
        schemas: dict[tuple[str, str], pa.Schema | None],
    ) -> None: ...
