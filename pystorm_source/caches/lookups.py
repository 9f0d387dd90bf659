"""The look-ups of one task in its caches."""

from collections.abc import Callable, Mapping
from typing import NamedTuple


class CacheCounts(NamedTuple):
    """Counts since the task began. ``hits``: look-ups that made no call; ``misses``: calls for missing values;
    ``refreshes``: calls for stale ones; ``entries``: now in the process."""

    hits: int = 0
    misses: int = 0
    refreshes: int = 0
    entries: int = 0

    @property
    def lookups(self) -> int:
        """Look-ups of all kinds, except those that waited for a call that failed."""
        return self.hits + self.misses + self.refreshes


class Lookups:
    """The look-ups of one task in one cache, written under the cache's lock or by the thread that makes a call.
    ``entries``: how many the cache has in this process."""

    __slots__ = ("entries", "hits", "misses", "refreshes")

    def __init__(self, entries: Callable[[], int]):
        self.entries = entries
        self.hits = self.misses = self.refreshes = 0

    def look(self) -> CacheCounts:
        """The counts now. Any thread may call it."""
        return CacheCounts(self.hits, self.misses, self.refreshes, self.entries())


class TaskLookups:
    """The look-ups of one task, by the name of a cache."""

    def __init__(self) -> None:
        self._known: dict[str, Lookups] = {}
        self._reported: dict[str, CacheCounts] = {}

    def __reduce__(self) -> tuple[object, ...]:
        """A component's state may be pickled: the engine's own attributes are left out."""
        return type(None), ()

    def of(self, name: str, entries: Callable[[], int]) -> Lookups:
        """The look-ups in the cache of that name. ``entries``: as in ``Lookups``."""
        return self._known.get(name) or self._known.setdefault(name, Lookups(entries))

    def report(self, counts: Mapping[str, tuple[int, int, int, int]]) -> None:
        """Takes the counts that the task's child process has so far."""
        self._reported = {name: CacheCounts(*each) for name, each in counts.items()}

    def look(self) -> dict[str, CacheCounts]:
        """The counts now. Any thread may call it: the copy is atomic, even while another thread asks a new cache."""
        return {**self._reported, **{name: each.look() for name, each in self._known.copy().items()}}
