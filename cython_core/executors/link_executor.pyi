from typing import Any, final

from cython_core.executors.bolt_executor import BoltExecutor

@final
class LinkExecutor(BoltExecutor):
    def attach(self, outbox: Any) -> None: ...
