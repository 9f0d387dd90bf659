"""What one task has asked of its caches."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pystorm_source.caches.shared_cache import SharedCache


class CacheCounts(NamedTuple):
    """Since the task began. ``hits``: look-ups that made no call; ``misses``: calls for what was not there;
    ``refreshes``: calls for what was stale; ``entries``: now in the process."""

    hits: int = 0
    misses: int = 0
    refreshes: int = 0
    entries: int = 0

    @property
    def lookups(self) -> int:
        """Of all kinds; without those that waited for a call that has failed."""
        return self.hits + self.misses + self.refreshes


class Lookups:
    """Those of one task in one cache, written under the cache's lock or by the thread that makes a call."""

    __slots__ = ("cache", "hits", "misses", "refreshes")

    def __init__(self, cache: "SharedCache"):
        self.cache = cache
        self.hits = self.misses = self.refreshes = 0

    def look(self) -> CacheCounts:
        """Now, from any thread."""
        return CacheCounts(self.hits, self.misses, self.refreshes, self.cache.entries)


class TaskLookups:
    """Those of one task, by the name of a cache."""

    def __init__(self) -> None:
        self._known: dict[str, Lookups] = {}
        self._told: dict[str, CacheCounts] = {}

    def __reduce__(self) -> tuple[object, ...]:
        """A component's state may be pickled: the engine's own attributes are left out."""
        return type(None), ()

    def of(self, cache: "SharedCache") -> Lookups:
        """Those in this cache."""
        name = cache.settings.name
        return self._known.get(name) or self._known.setdefault(name, Lookups(cache))

    def tell(self, counts: Mapping[str, tuple[int, int, int, int]]) -> None:
        """What the task's child process has counted so far."""
        self._told = {name: CacheCounts(*each) for name, each in counts.items()}

    def look(self) -> dict[str, CacheCounts]:
        """Now, from any thread. Guarantee: a copy is made at once, while another thread may ask the first cache."""
        return {**self._told, **{name: each.look() for name, each in self._known.copy().items()}}
