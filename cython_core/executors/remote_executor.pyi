from typing import Any, final

from cython_core.executors.bolt_executor import WaitingExecutor
from cython_core.queues.queues import BroadcastReader, PendingEmits, ReceiveQueue
from cython_core.routing.stream_router import StreamRouter
from cython_core.tuples.tuple import Tuple

@final
class RemoteExecutor(WaitingExecutor):
    away_high_mark: int
    unread_high_mark: int
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
        link: Any,
        credit: int = 1024,
        by_batch: bool = False,
    ) -> None: ...
    @property
    def link(self) -> Any: ...
    @property
    def sent(self) -> int: ...
    @property
    def settled(self) -> int: ...
    @property
    def tuples_away(self) -> int: ...
    @property
    def tuples_unread(self) -> int: ...
    @property
    def oldest_away_seconds(self) -> float: ...
    @property
    def process_busy(self) -> int: ...
    @property
    def has_started(self) -> bool: ...
    def lease(self, place: Any) -> None: ...
    def some_away(self, most: int) -> list[Tuple]: ...
    def send_waiting(self) -> bool: ...
    def whose(self, error: BaseException) -> BaseException | None: ...
