"""``minOffsetsPerTrigger`` and ``maxTriggerDelay``: little data may wait, but not for long."""

from pystorm_source.clock import Clock


class TriggerDelay:
    """Holds a micro-batch back until ``minimum`` offsets wait or the oldest of them has waited ``delay`` seconds.

    The only thing in planning that is memory, not offset: when data was first seen waiting. A restart begins anew.
    """

    def __init__(self, delay: float, clock: Clock):
        self._delay = delay
        self._clock = clock
        self._since: float | None = None

    def holds(self, waiting: int, minimum: int | None) -> bool:
        """Whether ``waiting`` offsets must go on waiting."""
        if minimum is None or waiting == 0 or waiting >= minimum:
            self._since = None
            return False
        now = self._clock.monotonic()
        if self._since is None:
            self._since = now
        if now - self._since >= self._delay:
            self._since = None
            return False
        return True
