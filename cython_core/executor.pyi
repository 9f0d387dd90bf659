from typing import Any, final

from typing_extensions import disjoint_base

from cython_core.batch_inserter import BatchInserter, PendingEmits
from cython_core.receive_queue import ReceiveQueue
from cython_core.stream_router import StreamRouter
from cython_core.tuple import Tuple

class ComponentFailed(Exception):
    component: str
    task: int
    method: str
    tuple: Tuple | None
    offset: int
    def __init__(self, component: str, task: int, method: str, tup: Tuple | None, offset: int) -> None: ...

@disjoint_base
class Executor:
    def __init__(
        self, component: str, task: int, instance: Any, pending: PendingEmits, routers: dict[str, StreamRouter]
    ) -> None: ...
    @property
    def component(self) -> str: ...
    @property
    def task(self) -> int: ...
    @property
    def instance(self) -> Any: ...
    @property
    def pending(self) -> PendingEmits: ...
    @property
    def routers(self) -> dict[str, StreamRouter]: ...
    @property
    def inserters(self) -> tuple[BatchInserter, ...]: ...
    @property
    def executed(self) -> int: ...
    @property
    def stalls(self) -> int: ...
    def take_turn(self, quota: int = 256) -> int: ...
    def discard(self) -> None: ...

@final
class SpoutExecutor(Executor):
    @property
    def exhausted(self) -> bool: ...
    def open_range(self, start: int, end: int, batched: bool) -> None: ...
    def open_slice(self, permits: int) -> None: ...
    def close(self) -> None: ...

@final
class BoltExecutor(Executor):
    def __init__(
        self,
        component: str,
        task: int,
        instance: Any,
        pending: PendingEmits,
        routers: dict[str, StreamRouter],
        queue: ReceiveQueue,
    ) -> None: ...
    @property
    def queue(self) -> ReceiveQueue: ...
