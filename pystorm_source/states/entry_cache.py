"""The entries that a state has last read or written, so that a batch need not read them again."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from pystorm_source.states.store import Entry


class EntryCache:
    """Keeps up to ``size`` entries and forgets the least recently used ones; 0: keeps nothing."""

    def __init__(self, size: int):
        self.size = size
        self._entries: OrderedDict[str, Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def multi_get(self, keys: Sequence[str]) -> list[Entry | None]:
        if not self._entries:
            return [None] * len(keys)
        found = list(map(self._entries.get, keys))
        for key, entry in zip(keys, found, strict=True):
            if entry is not None:
                self._entries.move_to_end(key)
        return found

    def put(self, entries: Iterable[tuple[str, Entry]]) -> None:
        if self.size == 0:
            return
        for key, entry in entries:
            self._entries[key] = entry  # a known entry keeps its place: the same batch read it
        while len(self._entries) > self.size:
            self._entries.popitem(last=False)

    def discard(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._entries.pop(key, None)
