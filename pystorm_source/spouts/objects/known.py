"""The set of objects that are known: 24 bytes for each, in sorted arrays of numpy."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pystorm_source.spouts.objects.segment import Found, digest_of, version_of

Digests = tuple[Any, Any, Any]

_MOST_RECENT = 50_000
"""Digests that are kept in a Python set until they are sorted in. Too few: arrays are sorted again and again. Too many:
memory."""


class KnownObjects:
    """``KnownObjects(by_version, earlier)``. ``by_version``: whether an object with another etag is another one.
    ``earlier``: a time or None, and the digests of all that is known and as new as that, as ``Segment`` has them. It is
    asked when a name is first looked for, and has what was added before. What is older is never unknown.
    """

    def __init__(self, by_version: bool, earlier: Callable[[], tuple[int | None, Iterable[Digests]]] | None = None):
        self._by_version = by_version
        self._since: int | None = None
        self._high = self._low = self._version = np.empty(0, np.uint64)
        self._recent: set[tuple[int, ...]] = set()
        self._earlier = earlier

    def __len__(self) -> int:
        return len(self._high) + len(self._recent)

    def _load(self, digests: Iterable[Digests]) -> None:
        parts = [(self._high, self._low, self._version), *digests]
        merged = [np.concatenate(each) for each in zip(*parts, strict=True)]
        order = np.argsort(merged[0], kind="stable")
        self._high, self._low, self._version = (each[order] for each in merged)

    def add(self, found: Iterable[Found]) -> None:
        """Adds objects as they were listed."""
        if self._earlier is not None:
            return
        self._recent.update(map(self._key, found))
        if len(self._recent) > _MOST_RECENT:
            rows = [(*key, 0) if len(key) == 2 else key for key in self._recent]
            self._recent = set()
            high, low, version = (np.array(column, np.uint64) for column in zip(*rows, strict=True))
            self._load([(high, low, version)])

    def unknown(self, found: Sequence[Found]) -> list[Found]:
        """Returns the objects that are not known, each once."""
        if self._earlier is not None:
            since, digests = self._earlier()
            self._load(digests)
            self._since, self._earlier = since, None
        if self._since is not None:
            found = [each for each in found if each.modified >= self._since]
        keys = list(map(self._key, found))
        fresh = [index for index, key in enumerate(keys) if key not in self._recent]
        if len(self._high) and fresh:
            wanted = np.array([keys[index][0] for index in fresh], np.uint64)
            places = np.searchsorted(self._high, wanted)
            there = self._high[np.minimum(places, len(self._high) - 1)] == wanted
            fresh = [
                index
                for index, place, is_there in zip(fresh, places.tolist(), there.tolist(), strict=True)
                if not (is_there and self._has(keys[index], place))
            ]
        first = {keys[index]: index for index in reversed(fresh)}
        return [found[index] for index in sorted(first.values())]

    def _has(self, key: tuple[int, ...], place: int) -> bool:
        """Whether it is among those with the same first half, from there on."""
        while place < len(self._high) and int(self._high[place]) == key[0]:
            if int(self._low[place]) == key[1] and (len(key) == 2 or int(self._version[place]) == key[2]):
                return True
            place += 1
        return False

    def _key(self, found: Found) -> tuple[int, ...]:
        digest = digest_of(found.path)
        return (*digest, version_of(found)) if self._by_version else digest
