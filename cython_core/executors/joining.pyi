from typing import Any, final

from cython_core.executors.batching import BatchingBase
from cython_core.timing.purgatory import DelayedOperation

@final
class WaitingJoin(DelayedOperation): ...

@final
class InputKey: ...

@final
class Joins:
    def __init__(
        self,
        inputs: dict[tuple[str, str], str],
        keys: list[dict[str, tuple[int, ...]]],
        timeout: float | None = None,
    ) -> None: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    def __len__(self) -> int: ...

class JoinBase(BatchingBase):
    def process(self, tup: Any) -> None: ...
    def process_tick(self, tup: Any) -> None: ...
    def process_batches(self) -> None: ...
