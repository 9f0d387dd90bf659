"""How long calls of one task wait for the permits of a limit.

Time counts once while at least one call waits, no matter how many wait: then only a higher limit makes calls more
frequent.

Threading law: any thread calls it.
"""

from threading import Lock
from time import perf_counter_ns
from typing import NamedTuple

from pystorm_source.limits.permits import Permits


class PermitTimes(NamedTuple):
    """Since the task began. ``calls``: made; nanoseconds: ``waited`` for a permit, ``paused`` by an open breaker."""

    calls: int = 0
    waited: int = 0
    paused: int = 0


class PermitWaits:
    """The waits for one limit. ``waiting``: calls that wait now."""

    def __init__(self, permits: Permits):
        self.permits = permits
        self.waiting = 0
        self._calls = self._waited = self._paused = self._since = 0
        self._was_open = False
        self._lock = Lock()

    def __reduce__(self) -> tuple[object, ...]:
        """A component's state may be pickled: the engine's own attributes are left out."""
        return type(None), ()

    def begin(self) -> None:
        """A call begins to wait."""
        with self._lock:
            self._pass()
            self.waiting += 1

    def end(self, is_made: bool) -> None:
        """A call no longer waits. ``is_made``: it has its permit."""
        with self._lock:
            self._pass()
            self.waiting -= 1
            self._calls += is_made

    def look(self) -> PermitTimes:
        """Waits that go on count up to now."""
        with self._lock:
            self._pass()
            return PermitTimes(self._calls, self._waited, self._paused)

    def _pass(self) -> None:
        """With the lock held: the time since the last look counts for what was waited for."""
        now, is_open = perf_counter_ns(), self.permits.is_paused
        if self.waiting and (is_open or self._was_open):
            self._paused += now - self._since
        elif self.waiting:
            self._waited += now - self._since
        self._since, self._was_open = now, is_open
