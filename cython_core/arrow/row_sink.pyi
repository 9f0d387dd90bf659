from collections.abc import Mapping, Sequence
from typing import Any, Self, final

import pyarrow as pa

from cython_core.arrow.row_batch import RowBatchBuilder

@final
class RowSink:
    def __new__(
        cls,
        builder: RowBatchBuilder,
        columns: Sequence[int],
        constants: Mapping[int, Any] | None = None,
        offset_column: int = -1,
        partition_column: int = -1,
        label: str = "",
        of_one_tree: bool = False,
    ) -> Self: ...
    @property
    def builder(self) -> RowBatchBuilder: ...
    @property
    def columns(self) -> list[int]: ...
    @property
    def label(self) -> str: ...
    def append_row(self, values: tuple[Any, ...] | list[Any], offset: int = -1) -> None: ...
    def repeat_row(self, values: tuple[Any, ...] | list[Any], times: int, offset: int = -1) -> None: ...
    def set_partition(self, partition: str | None) -> int: ...
    def add_batch(self, record_batch: pa.RecordBatch, attempt: int = ..., offset: int = -1) -> int: ...
