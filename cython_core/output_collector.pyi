from collections.abc import Sequence
from typing import Any, Literal, final, overload

from typing_extensions import disjoint_base

from cython_core.stream_router import StreamRouter
from cython_core.tuple import Tuple

@disjoint_base
class OutputCollector:
    def __init__(self, instance: Any, routers: dict[str, StreamRouter]) -> None: ...
    @property
    def instance(self) -> Any: ...
    @property
    def routers(self) -> dict[str, StreamRouter]: ...
    @property
    def failed(self) -> Any: ...
    @property
    def emits(self) -> int: ...

@final
class SpoutOutputCollector(OutputCollector): ...

@final
class BoltOutputCollector(OutputCollector):
    @property
    def acks(self) -> int: ...

class SpoutBase:
    @overload
    def emit(
        self,
        tup: Sequence[Any],
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: Literal[False] = False,
    ) -> None: ...
    @overload
    def emit(
        self,
        tup: Sequence[Any],
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        *,
        need_task_ids: bool,
    ) -> list[int] | None: ...

class BoltBase:
    @overload
    def emit(
        self,
        tup: Sequence[Any],
        stream: str | None = None,
        anchors: Sequence[Any] | None = None,
        direct_task: int | None = None,
        need_task_ids: Literal[False] = False,
    ) -> None: ...
    @overload
    def emit(
        self,
        tup: Sequence[Any],
        stream: str | None = None,
        anchors: Sequence[Any] | None = None,
        direct_task: int | None = None,
        *,
        need_task_ids: bool,
    ) -> list[int] | None: ...
    def ack(self, tup: Tuple) -> None: ...
    def fail(self, tup: Tuple) -> None: ...
