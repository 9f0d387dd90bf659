"""The only module that reads time. Other code takes a clock as an argument; tests pass one that they advance."""

import time
from typing import Protocol

from pystorm_source.errors import given


class Clock(Protocol):
    """Seconds: ``monotonic`` for durations, ``wall`` (since 1970, UTC) for display and for comparison with external
    times.

    ``sleep`` lets at least that many of them pass.
    """

    def monotonic(self) -> float: ...

    def wall(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's clock."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class ManualClock:
    """Stands still until advanced; a sleep by it advances it."""

    def __init__(self, now: float = 0.0):
        self.now = now

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Raises ValueError for a negative step: clocks do not run backwards."""
        if seconds < 0:
            raise ValueError(f"a clock does not run backwards. Given: {given(seconds)}")
        self.now += seconds
