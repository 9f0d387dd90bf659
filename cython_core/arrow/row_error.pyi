from typing import Any, TypeVar

import pyarrow as pa

_E = TypeVar("_E", bound=BaseException)

class RowError(ValueError):
    code: str
    field: str | None
    value: Any
    row: Any
    def __init__(self, message: str, field: str | None = None, value: Any = None, row: Any = None) -> None: ...

def row_error(
    field: pa.Field,
    path: str,
    type: pa.DataType,
    value: Any,
    label: str,
    reason: str,
    row: Any = None,
    offset: int = -1,
) -> RowError: ...
def coded(kind: type[_E], code: str, message: str) -> _E: ...
def shown(value: Any, length: int = 500) -> str: ...
