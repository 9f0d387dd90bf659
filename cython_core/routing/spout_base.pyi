from collections.abc import Iterable, Sequence
from typing import Any, Literal, overload

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
