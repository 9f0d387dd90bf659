from typing import Any, final

from cython_core.routing.bolt_base import BoltBase
from cython_core.timing.purgatory import DelayedOperation
from cython_core.tuples.tuple import Tuple

@final
class RequestLine: ...

@final
class AsyncRequest(DelayedOperation):
    @property
    def tup(self) -> Tuple: ...
    @property
    def task(self) -> Any: ...
    def __call__(self, task: Any) -> None: ...

class AsyncBase(BoltBase):
    def emit(
        self,
        tup: Any,
        stream: str | None = None,
        anchors: Any = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> Any: ...
    def emit_batch(
        self, batch: Any, stream: str | None = None, anchors: Any = None, direct_task: int | None = None
    ) -> None: ...
    def ack(self, tup: Any) -> None: ...
    def fail(self, tup: Any, *, error: BaseException | None = None, retry: bool = True) -> None: ...
