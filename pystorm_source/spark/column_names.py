"""Finds columns by name like Spark: spelled exactly, otherwise in any case."""

from collections.abc import Iterable


class ColumnNames:
    """An index of names, for one look at each of thousands of columns."""

    def __init__(self, names: Iterable[str]):
        self._exact: dict[str, list[int]] = {}
        self._lowered: dict[str, list[int]] = {}
        self._names = list(names)
        for place, name in enumerate(self._names):
            self._exact.setdefault(name, []).append(place)
            self._lowered.setdefault(name.lower(), []).append(place)

    def places_of(self, name: str) -> list[int]:
        """The places of that name among them, in order; empty if it is missing."""
        return list(self._exact.get(name) or self._lowered.get(name.lower()) or [])

    def match(self, name: str) -> str:
        """The first one that is meant. Raises KeyError if there is no such column."""
        for place in self.places_of(name):
            return self._names[place]
        raise KeyError(name)

    def is_twice(self, name: str) -> bool:
        """Whether exactly that name occurs more than once."""
        return len(self._exact.get(name, ())) > 1
