"""The entries that a state has read or written last, so that a batch need not read them again."""

from collections import OrderedDict
from collections.abc import Iterable

from pystorm_source.states.store import Entry


class EntryCache:
    """Forgets what was not used for the longest time if it holds more than ``size`` entries; 0: holds none."""

    def __init__(self, size: int):
        self.size = size
        self._entries: OrderedDict[str, Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> Entry | None:
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def put(self, entries: Iterable[tuple[str, Entry]]) -> None:
        if self.size == 0:
            return
        for key, entry in entries:
            self._entries[key] = entry
            self._entries.move_to_end(key)
        while len(self._entries) > self.size:
            self._entries.popitem(last=False)

    def discard(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._entries.pop(key, None)
