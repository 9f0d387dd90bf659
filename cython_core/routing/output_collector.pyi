from collections.abc import Iterable, Sequence
from typing import Any, Literal, final, overload
from weakref import WeakKeyDictionary

from typing_extensions import disjoint_base

from cython_core.routing.stream_router import StreamRouter
from cython_core.routing.tuple_list import TupleList
from cython_core.tuples.tuple import Tuple

own_emits: WeakKeyDictionary[type[Any], int]

def has_subclass(cls: type[Any]) -> None: ...

@disjoint_base
class OutputCollector:
    def __init__(self, instance: Any, routers: dict[str, StreamRouter]) -> None: ...
    @property
    def instance(self) -> Any: ...
    @property
    def routers(self) -> dict[str, StreamRouter]: ...
    @property
    def emits(self) -> int: ...
    def detach(self) -> None: ...

@final
class SpoutOutputCollector(OutputCollector):
    @property
    def rooted(self) -> int: ...
    @property
    def untracked(self) -> int: ...

@final
class BoltOutputCollector(OutputCollector):
    auto_anchor: bool
    @property
    def failed(self) -> Any: ...
    @property
    def acks(self) -> int: ...
    @property
    def fails(self) -> int: ...
    @property
    def duplicate_verdicts(self) -> int: ...
    @property
    def late_emits(self) -> list[RuntimeError] | None: ...
    @property
    def untracked_fails(self) -> int: ...

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
        need_task_ids: Literal[True],
    ) -> list[int]: ...
    @overload
    def emit(
        self,
        tup: Sequence[Any],
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None: ...
    def emit_batch(
        self, batch: Any, tup_id: Any = None, stream: str | None = None, direct_task: int | None = None
    ) -> None: ...
    def emit_many(
        self, *columns: Iterable[Any], tup_ids: Iterable[Any] | None = None, stream: str | None = None
    ) -> None: ...
    def ack(self, tup_id: Any) -> None: ...
    def fail(self, tup_id: Any) -> None: ...

class BoltBase:
    @overload
    def emit(
        self,
        tup: Sequence[Any],
        stream: str | None = None,
        anchors: Iterable[Any] | None = None,
        direct_task: int | None = None,
        need_task_ids: Literal[False] = False,
    ) -> None: ...
    @overload
    def emit(
        self,
        tup: Sequence[Any],
        stream: str | None = None,
        anchors: Iterable[Any] | None = None,
        direct_task: int | None = None,
        *,
        need_task_ids: Literal[True],
    ) -> list[int]: ...
    @overload
    def emit(
        self,
        tup: Sequence[Any],
        stream: str | None = None,
        anchors: Iterable[Any] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None: ...
    def emit_batch(
        self,
        batch: Any,
        stream: str | None = None,
        anchors: Iterable[Any] | None = None,
        direct_task: int | None = None,
    ) -> None: ...
    def emit_many(
        self, *columns: Iterable[Any], stream: str | None = None, anchors: Iterable[Any] | None = None
    ) -> None: ...
    def process_many(self, tups: TupleList) -> None: ...
    def ack(self, tup: Tuple | Any) -> None: ...
    def fail(self, tup: Tuple | Any) -> None: ...
    def reset_timeout(self, tup: Any) -> None: ...
    def process_tick(self, tup: Tuple) -> None: ...

class ArrowBase(BoltBase):
    def fail(self, tup: Any, rows: Any = None) -> None: ...
