from collections.abc import Callable
from typing import Any

import pyarrow as pa

class Misfit(Exception):
    value: Any
    type: pa.DataType | None
    reason: str
    path: str
    def __init__(self, value: Any, type: pa.DataType | None, reason: str) -> None: ...

def scalar_converter(type: pa.DataType) -> Callable[[Any], Any]: ...
def converter(type: pa.DataType, nullable: bool = True, strict: bool = False) -> Callable[[Any], Any]: ...
