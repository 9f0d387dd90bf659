from typing import Any, Self, final

from cython_core.queues.queues import BatchInserter

def hash_of(value: Any) -> int: ...
def java_hash(value: Any) -> int: ...
def java_deep_hash(values: list[Any] | tuple[Any, ...]) -> int: ...

@final
class Route:
    def __new__(
        cls,
        grouping: str,
        inserters: tuple[BatchInserter, ...],
        positions: tuple[int, ...] = (),
        seed: int = 0,
        java: bool = False,
        custom: Any = None,
    ) -> Self: ...
    @property
    def inserters(self) -> tuple[BatchInserter, ...]: ...
    @property
    def custom(self) -> Any: ...
