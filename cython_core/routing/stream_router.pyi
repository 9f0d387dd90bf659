from typing import Any, final

from cython_core.arrow.row_batch import RowSink
from cython_core.queues.queues import PendingEmits
from cython_core.routing.route import Route
from cython_core.tuples.tuple import TupleSource

@final
class StreamRouter:
    def __init__(
        self,
        source: TupleSource,
        pending: PendingEmits,
        routes: tuple[Route, ...] = (),
        row_sink: RowSink | None = None,
        direct: bool = False,
        copies: bool = False,
    ) -> None: ...
    def route_direct(self, values: tuple[Any, ...] | list[Any], offset: int, task: int) -> int: ...
    @property
    def source(self) -> TupleSource: ...
    @property
    def arity(self) -> int: ...
    @property
    def pending(self) -> PendingEmits: ...
    @property
    def routes(self) -> tuple[Route, ...]: ...
    @property
    def row_sink(self) -> RowSink | None: ...
    captured: list[tuple[Any, ...]] | None
    @property
    def copies(self) -> bool: ...
    @property
    def direct(self) -> bool: ...
    @property
    def emitted(self) -> int: ...
    @property
    def transferred(self) -> int: ...
