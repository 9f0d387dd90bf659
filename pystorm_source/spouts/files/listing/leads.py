"""Sorts files that share their first kilobyte: thousands of copies need not be compared with thousands of originals.

aaa1   aaa1b   aaa2   aaa2c    sorted; those that begin with aaa2 lie side by side
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from pystorm_source.spouts.files.identity.catalog import FileEntry

# Too small: files that are equal for longer are compared one by one. Too large: so much memory for each of them.
LEAD = 1 << 14


class Leads:
    """Files by the first ``LEAD`` bytes of their texts."""

    def __init__(self) -> None:
        self._texts: list[bytes] = []
        self._files: list[FileEntry] = []

    def add(self, lead: bytes, file: FileEntry) -> None:
        at = bisect_right(self._texts, lead)
        self._texts.insert(at, lead)
        self._files.insert(at, file)

    def __len__(self) -> int:
        return len(self._files)

    def alike(self, lead: bytes) -> Iterator[FileEntry]:
        """Yields the files that begin with ``lead``, and the ones that it begins with, which may have grown since."""
        at = first = bisect_left(self._texts, lead)
        while at < len(self._texts) and self._texts[at].startswith(lead):
            yield self._files[at]
            at += 1
        at = first - 1
        while at >= 0:
            text = self._texts[at]
            if lead.startswith(text):
                yield self._files[at]
                at -= 1
            else:
                at = bisect_right(self._texts, lead[: _common(lead, text)], 0, at) - 1


def _common(one: bytes, other: bytes) -> int:
    """How many bytes they have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
