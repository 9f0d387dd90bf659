from typing import Any, final

import pyarrow as pa

@final
class BatchRows:
    def __init__(self, batch: pa.RecordBatch) -> None: ...
    @property
    def batch(self) -> pa.RecordBatch: ...
    def rows(self, start: int, end: int) -> list[tuple[Any, ...]]: ...
