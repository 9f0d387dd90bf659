"""How long calls of one task wait for the permits of a limit.

Time counts once while at least one call waits, no matter how many wait: then only a higher limit makes calls more
frequent.

Threading law: any thread calls it.
"""

from threading import Lock
from time import perf_counter_ns
from typing import NamedTuple, Protocol

from pystorm_source.limits.permits import Permits


class PermitTimes(NamedTuple):
    """Since the task began: ``calls`` made; nanoseconds ``waited`` for a permit, or ``paused`` by an open breaker."""

    calls: int = 0
    waited: int = 0
    paused: int = 0


class Waits(Protocol):
    """The waits of one task for one limit, as others see them. ``waiting``: calls that wait now."""

    @property
    def waiting(self) -> int: ...

    @property
    def is_paused(self) -> bool:
        """Whether the service is not called because its calls failed."""

    def look(self) -> PermitTimes:
        """Waits that go on count up to now."""


class PermitWaits:
    """The waits for one limit, where its calls are made. ``waiting``: as ``Waits``."""

    def __init__(self, permits: Permits):
        self.permits = permits
        self.waiting = 0
        self._calls = self._waited = self._paused = self._since = 0
        self._was_open = False
        self._lock = Lock()

    @property
    def is_paused(self) -> bool:
        """As ``Waits``."""
        return self.permits.is_paused

    def begin(self) -> None:
        """A call begins to wait."""
        with self._lock:
            self._pass()
            self.waiting += 1
            self._changed()

    def end(self, is_made: bool) -> None:
        """A call no longer waits. ``is_made``: it has its permit."""
        with self._lock:
            self._pass()
            self.waiting -= 1
            self._calls += is_made
            self._changed()

    def look(self) -> PermitTimes:
        """As ``Waits``."""
        with self._lock:
            self._pass()
            self._changed()
            return PermitTimes(self._calls, self._waited, self._paused)

    def _pass(self) -> None:
        """Counts the time since the last look for what was waited for. The caller has the lock."""
        now, is_open = perf_counter_ns(), self.permits.is_paused
        if self.waiting and (is_open or self._was_open):
            self._paused += now - self._since
        elif self.waiting:
            self._waited += now - self._since
        self._since, self._was_open = now, is_open

    def _changed(self) -> None:
        """Called after each change. The caller has the lock."""


class TaskWaits:
    """The waits of one task for the limits that its calls have taken permits of."""

    def __init__(self) -> None:
        self._known: dict[str, PermitWaits] = {}

    def __reduce__(self) -> tuple[object, ...]:
        """A component's state may be pickled: the engine's own attributes are left out."""
        return type(None), ()

    def of(self, permits: Permits) -> PermitWaits:
        """The waits for the limit of these permits."""
        name = permits.limit.name
        return self._known.get(name) or self._known.setdefault(name, self._new(permits))

    def _new(self, permits: Permits) -> PermitWaits:
        return PermitWaits(permits)

    def used(self) -> dict[str, Waits]:
        """The waits by the name of their limit. Guarantee: the copy is atomic, even while a call in another thread
        takes the first permit of a limit."""
        return {**self._known}
