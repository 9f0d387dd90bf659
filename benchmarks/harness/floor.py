"""The cost of the bare Python calls that any engine must make: the user's methods, called from a loop in C.

Machines differ, and so do builds of Python, so our rates mean something only beside this floor from the same run. It
calls exactly the measured methods; ``emit`` is a C function that does nothing. Making tuples, queueing, routing and
counting are the engine's work, and not in the floor.
"""

import operator
from collections import deque
from collections.abc import Callable, Iterable
from itertools import repeat, starmap
from typing import Any

from pystorm_source.api import Bolt, PartitionedSpout, Spout, Tuple, TupleList
from pystorm_source.clock import SystemClock

CLOCK = SystemClock()
MANY = 256
"""Tuples in a call of ``process_many``, as in a turn."""


def spout_nanos(cls: type[Spout], calls: int) -> float:
    """Returns the nanoseconds per ``next_tuple``."""
    partitioned = issubclass(cls, PartitionedSpout)
    # Both take the arguments of `emit` (values; values and offset or id), ignore them and allocate nothing.
    spout = _started(cls, operator.is_ if partitioned or getattr(cls, "gives_ids", False) else callable)
    if partitioned:
        spout.open("0", 0, calls)
    return _nanos(starmap(spout.next_tuple, repeat((), calls)), calls)


def bolt_nanos(cls: type[Bolt], values: tuple[Any, ...], calls: int) -> float:
    """Returns the nanoseconds per tuple of these values in ``process``, or in the bolt's ``process_many``."""
    tup = Tuple(None, "spout", "default", 1, values)
    if cls.process_many is not Bolt.process_many:
        tups = TupleList([tup] * MANY)
        return _nanos(map(_started(cls, callable).process_many, repeat(tups, max(1, calls // MANY))), calls)
    return _nanos(map(_started(cls, callable).process, repeat(tup, calls)), calls)


def _started(cls: type, emit: Callable[..., Any]) -> Any:
    # A sibling, not a subclass: the engine treats a class with subclasses differently, also when it is measured next.
    body = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    instance = type(cls.__name__, cls.__bases__, {**body, "emit": emit, "emit_many": emit})()
    instance.initialize({}, {})
    return instance


def _nanos(calling: Iterable[Any], calls: int) -> float:
    began = CLOCK.monotonic()
    deque(calling, maxlen=0)
    return (CLOCK.monotonic() - began) / calls * 1e9
