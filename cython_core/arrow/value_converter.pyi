from collections.abc import Callable
from typing import Any

import pyarrow as pa

from cython_core.arrow.scalar_converter import Misfit as Misfit

def converter(type: pa.DataType, nullable: bool = True, strict: bool = False) -> Callable[[Any], Any]: ...
