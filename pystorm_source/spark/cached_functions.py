"""Functions of ``functools.lru_cache`` in a notebook or script: they travel with the classes that call them."""

import functools
from collections.abc import Callable
from typing import Any

from pyspark import cloudpickle


def travel_by_value() -> None:
    """From now on Spark's pickler takes such functions along, without what they have cached.

    Workaround: cloudpickle (3.1) pickles the object that lru_cache makes by its name in ``__main__``, which no process
    of an executor has: ``Can't get attribute`` there. Plain pickle, which others use, stays as it is.
    """
    cloudpickle.CloudPickler.dispatch_table[functools._lru_cache_wrapper] = _reduced


def _reduced(function: Any) -> str | tuple[Any, ...]:
    if function.__module__ == "__main__" or "<locals>" in function.__qualname__:
        return _cached, (function.__wrapped__, function.cache_parameters())
    name: str = function.__qualname__
    return name  # by reference, as without this


def _cached(function: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)
