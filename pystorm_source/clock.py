"""The only module that reads time. Other code takes a clock as an argument; tests pass one that they advance."""

import time
from typing import Protocol

from pystorm_source.errors import ArgumentError, given


class Clock(Protocol):
    """Seconds: ``monotonic`` for durations, ``wall`` (since 1970, UTC) for display and for comparison with external
    times.

    ``sleep`` lets at least that many of them pass.
    """

    def monotonic(self) -> float: ...

    def wall(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's clock.

    Example:
        >>> from pystorm_source.testing import SystemClock
        >>> clock = SystemClock()
        >>> clock.monotonic() <= clock.monotonic()
        True
    """

    def monotonic(self) -> float:
        """For durations.

        Returns:
            float: seconds since a moment that does not matter.
        """
        return time.monotonic()

    def wall(self) -> float:
        """For times that are shown or compared with external ones.

        Returns:
            float: seconds since 1970, UTC.
        """
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Waits.

        Args:
            seconds (float): at least that long.
        """
        time.sleep(seconds)


def processor_seconds() -> float:
    """How long the calling thread has run on a processor, without the time that it waited for one."""
    return time.thread_time()


class ManualClock:
    """A clock for tests: it moves only when it is advanced. A sleep advances it.

    Args:
        now (float): what it shows, in seconds. Defaults to 0.0.

    Example:
        >>> from pystorm_source.testing import ManualClock
        >>> clock = ManualClock(now=100)
        >>> clock.advance(2.5)
        >>> clock.wall()
        102.5
    """

    def __init__(self, now: float = 0.0):
        self.now = now

    def monotonic(self) -> float:
        """What it shows.

        Returns:
            float: seconds.
        """
        return self.now

    def wall(self) -> float:
        """What it shows.

        Returns:
            float: seconds.
        """
        return self.now

    def sleep(self, seconds: float) -> None:
        """Advances the clock; does not wait.

        Args:
            seconds (float): by that much.
        """
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Advances the clock.

        Args:
            seconds (float): by that much, at least 0.

        Raises:
            ArgumentError: a negative step: clocks do not run backwards.
        """
        if seconds < 0:
            raise ArgumentError(
                f"a clock does not run backwards. Given: {given(seconds)}", code="PYSTORM_INVALID_ARGUMENT"
            )
        self.now += seconds
