"""Frozen data that goes into every task of a query: unpickled once per process, not once per task.

Spark sends the same bytes with each task, and a Python worker runs thousands of tasks. Equal bytes give the same object
here, so its derived values (``cached_property``) are computed once as well.
"""

import functools
import pickle
from typing import Any

from pyspark import cloudpickle

MOST_KEPT = 32
"""Objects of a process. Too few: queries that take turns in one process unpickle for each task. Too many: the classes
of notebook cells that were run again stay in memory."""


def pickled(value: Any) -> bytes:
    """``value`` for ``interned``. Classes of a notebook or script go along by value. Raises the errors of pickling."""
    made: bytes = cloudpickle.dumps(value)
    return made


@functools.lru_cache(maxsize=MOST_KEPT)
def interned(made: bytes) -> Any:
    """The object that ``pickled`` was given: the same one for equal bytes. It must not be changed."""
    return pickle.loads(made)
