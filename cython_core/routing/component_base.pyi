from collections.abc import Iterable, Sequence
from typing import Any, Literal, overload

from cython_core.routing.tuple_list import TupleList
from cython_core.tuples.tuple import Tuple

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
    def fail(self, tup: Tuple | Any, *, error: BaseException | None = None, retry: bool = True) -> None: ...
    def reset_timeout(self, tup: Any) -> None: ...
    def process_tick(self, tup: Tuple) -> None: ...

class ArrowBase(BoltBase):
    def fail(self, tup: Any, rows: Any = None, *, error: BaseException | None = None, retry: bool = True) -> None: ...

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
