from typing import Protocol, final

from typing_extensions import disjoint_base

class _Idles(Protocol):
    def idle(self, idle_counter: int, /) -> int: ...

@disjoint_base
class WaitStrategy:
    def nanos_at(self, idle_counter: int) -> int: ...
    def idle(self, idle_counter: int) -> int: ...

@final
class ParkWait(WaitStrategy):
    def __init__(self, microsec: int, woken: bool = False, backs_off: bool = False) -> None: ...
    @property
    def woken(self) -> bool: ...
    @property
    def backs_off(self) -> bool: ...

@final
class ProgressiveWait(WaitStrategy):
    def __init__(
        self,
        level1_count: int,
        level2_count: int,
        level3_sleep_millis: int,
        woken: bool = False,
        backs_off: bool = False,
    ) -> None: ...
    @property
    def woken(self) -> bool: ...
    @property
    def backs_off(self) -> bool: ...

@final
class UserWait(WaitStrategy):
    def __init__(self, strategy: _Idles) -> None: ...
    @property
    def strategy(self) -> _Idles: ...
