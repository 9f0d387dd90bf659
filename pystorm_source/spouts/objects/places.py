"""Where the segments of a list lie in its folder: names and numbers."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

_NAME = re.compile(r"(\d{12})(?:-(\d{12})-(\d+))?\.arrow")


class Place(NamedTuple):
    """A segment in the folder. ``rows``: of a joined one."""

    first: int
    last: int
    rows: int = 0

    @classmethod
    def of_name(cls, name: str) -> "Place | None":
        found = _NAME.fullmatch(name)
        return None if found is None else cls(int(found[1]), int(found[2] or found[1]), int(found[3] or 0))

    @property
    def name(self) -> str:
        return f"{self.first:012d}{f'-{self.last:012d}-{self.rows}' if self.rows else ''}.arrow"


def places_of(names: Iterable[str]) -> list[Place]:
    """The segments among these names, in their order, without those that were joined."""
    places: list[Place] = []
    for place in sorted(filter(None, map(Place.of_name, names)), key=lambda each: (each.first, -each.last)):
        if not places or place.last > places[-1].last:
            places.append(place)
    return places


def are_all(places: Sequence[Place]) -> bool:
    """Whether none is missing before the last one."""
    return not places or (places[0].first == 0 and all(b.first == a.last + 1 for a, b in pairwise(places)))
