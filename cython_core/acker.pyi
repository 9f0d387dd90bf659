from collections.abc import Callable
from typing import Self, final

@final
class Acker:
    span: int
    def __new__(
        cls,
        timeout: float = 0,
        by_progress: bool = False,
        monotonic: Callable[[], float] | None = None,
        seed: int | None = None,
    ) -> Self: ...
    def expire(self) -> int: ...
    def seconds_to_wait(self) -> float: ...
    @property
    def next_expiry(self) -> float: ...
    def close(self) -> None: ...

@final
class Roots: ...
