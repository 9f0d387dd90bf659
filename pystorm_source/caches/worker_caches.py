"""The caches of one process of a Spark task, by name: of its worker, or of all tasks in one child process."""

from threading import Lock

from pystorm_source.caches.settings import CacheSettings
from pystorm_source.caches.shared_cache import SharedCache
from pystorm_source.clock import Clock
from pystorm_source.errors import ArgumentError


class WorkerCaches:
    """Made when a bolt first names them; they last as long as the worker, from micro-batch to micro-batch."""

    def __init__(self, clock: Clock):
        self._clock = clock
        self._caches: dict[str, SharedCache] = {}
        self._lock = Lock()

    def __reduce__(self) -> tuple[object, ...]:
        """A component's state may be pickled: the engine's own attributes are left out."""
        return type(None), ()

    def of(self, settings: CacheSettings) -> SharedCache:
        """The cache of that name. Raises ArgumentError if it has other settings, OptionError if it needs a package that
        is missing."""
        with self._lock:
            found = self._caches.get(settings.name)
            if found is None:
                found = self._caches[settings.name] = SharedCache(settings, self._clock)
        if found.settings != settings:
            raise ArgumentError(
                f"the tasks of a topology share a cache by its name, and one has asked for {found.settings!r}: give "
                f"both the same settings, or another name. Given: {settings!r}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        return found
