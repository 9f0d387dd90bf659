from collections.abc import Callable
from typing import Any, final

from cython_core.executors.bolt_executor import BoltExecutor
from cython_core.queues.batch_inserter import PendingEmits
from cython_core.queues.broadcast_ring import BroadcastReader
from cython_core.queues.receive_queue import ReceiveQueue
from cython_core.routing.stream_router import StreamRouter

@final
class AsyncExecutor(BoltExecutor):
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
        *,
        loop: Any,
        monotonic: Callable[[], float],
        max_pending: int | None = 1000,
        request_timeout: float | None = None,
        ordered: bool = False,
    ) -> None: ...
    @property
    def loop(self) -> Any: ...
    @property
    def max_pending(self) -> int: ...
    @property
    def request_timeout(self) -> float | None: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def ended_requests(self) -> int: ...
    @property
    def request_seconds(self) -> float: ...
    pending_high_mark: int
    @property
    def timed_out(self) -> int: ...
    @property
    def cancelled(self) -> int: ...
    def whose(self, error: BaseException) -> BaseException | None: ...
    def start(self, conf: dict[str, Any], context: dict[str, Any]) -> None: ...
    def clean_up(self) -> None: ...
