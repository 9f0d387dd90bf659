from typing import Any, final

from cython_core.routing.output_collector import OutputCollector

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
