"""How much of a component's calls is waiting: their duration against the time that their thread computed.

Two readings of the thread's clock take longer than a fast component's call, so only one call in several is timed.
"""

import functools
import time
import types
from typing import Any

from pystorm_source.api import AsyncBolt
from pystorm_source.api.component import Component
from pystorm_source.worker.thread_delay import main_delay

METHODS = ("process", "process_many", "process_batch", "next_tuple", "next_batch")
EVERY = 8
"""One call in so many is timed. Less: fast components become slow. More: few calls of slow ones are seen."""

SHORT = 50e-6
"""Seconds. A shorter call is hardly ever interrupted, and checking would take as long."""


class CallTimes:
    """``wall``: seconds that the timed calls took; ``cpu``: seconds that their thread computed; ``delayed``: seconds it
    waited for a processor held by other processes."""

    def __init__(self) -> None:
        self.calls = 0
        self.wall = 0.0
        self.cpu = 0.0
        self.delayed = 0.0

    @property
    def share(self) -> float:
        """Share of the calls' duration, without delays by other processes, that they computed."""
        alone = self.wall - self.delayed
        return min(1.0, self.cpu / alone) if alone > 0 else 1.0


def timed(cls: type[Component], times: CallTimes) -> type[Component]:
    """Returns the class with some of its calls timed; an AsyncBolt unchanged, because its calls never wait."""
    names = [name for name in METHODS if _has(cls, name) and not issubclass(cls, AsyncBolt)]
    own = {name: _timed(cls, name, times) for name in names if name != "process" or "process_many" not in names}
    body = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, **own}
    return types.new_class(cls.__name__, (cls,), exec_body=lambda made: made.update(body))


def _has(cls: type[Component], name: str) -> bool:
    """Whether the user's class defines the method, rather than a base of this package."""
    return any(
        name in vars(each) and not each.__module__.startswith(("pystorm_source.api", "cython_core"))
        for each in cls.__mro__
    )


def _timed(cls: type[Component], name: str, times: CallTimes) -> Any:
    method = getattr(cls, name)

    @functools.wraps(method)
    def call(self: Any, *arguments: Any) -> Any:
        times.calls += 1
        if times.calls % EVERY != 1:
            return method(self, *arguments)
        # Order: the readings themselves count as computing, not as waiting, so short calls do not seem to wait.
        delayed, cpu, wall = main_delay(), time.thread_time(), time.perf_counter()
        try:
            return method(self, *arguments)
        finally:
            took = time.perf_counter() - wall
            times.wall += took
            times.cpu += time.thread_time() - cpu
            if took > SHORT:
                times.delayed += min(took, main_delay() - delayed)

    return call
