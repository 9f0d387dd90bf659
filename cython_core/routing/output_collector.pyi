from collections.abc import Callable
from typing import Any, final
from weakref import WeakKeyDictionary

from typing_extensions import disjoint_base

from cython_core.routing.stream_router import StreamRouter

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
    sends_away: bool
    new_strategy: Callable[[], Any] | None  # makes a WaitStrategy
    @property
    def thread_waits(self) -> int: ...
    @property
    def late_emits(self) -> list[RuntimeError] | None: ...
    def detach(self) -> None: ...

@final
class BoltOutputCollector(OutputCollector):
    auto_anchor: bool
    has_tasks: bool
    @property
    def failed(self) -> Any: ...
    @property
    def acks(self) -> int: ...
    @property
    def fails(self) -> int: ...
    @property
    def duplicate_verdicts(self) -> int: ...
    @property
    def untracked_fails(self) -> int: ...

@final
class SpoutOutputCollector(OutputCollector):
    @property
    def rooted(self) -> int: ...
    @property
    def untracked(self) -> int: ...
