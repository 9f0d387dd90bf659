"""``startingOffsets`` and ``endingOffsets``: where a query begins and a batch read ends."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pystorm_source.errors import OptionError
from pystorm_source.source.offsets import Key

EARLIEST = -2
LATEST = -1
_WORDS = {"earliest": EARLIEST, "latest": LATEST}


@dataclass(frozen=True)
class Positions:
    """A place in every partition: ``named`` ones as they say, ``default`` for the rest. -2 is earliest, -1 latest."""

    key: str
    default: int
    named: Mapping[Key, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, key: str, text: str, default: int, components: Iterable[str]) -> "Positions":
        """Reads ``earliest``, ``latest`` or JSON ``{"spout": {"partition": offset}}``; ``default`` is for partitions
        that it does not name. ``components``: the partitioned spouts of the topology. Raises OptionError."""
        word = _WORDS.get(text.strip().lower())
        if word is not None:
            return cls(key, word)
        form = f'option {key!r} is earliest, latest or JSON {{"spout": {{"partition": offset}}}}'
        try:
            given = json.loads(text)
        except ValueError:
            raise OptionError(f"{form}. Given: {text!r}") from None
        if not isinstance(given, dict):
            raise OptionError(f"{form}. Given: {text!r}")
        spouts = sorted(components)
        named = {}
        for component, partitions in given.items():
            if component not in spouts:
                raise OptionError(f"{form}; the spouts with offsets are {spouts!r}. Given: {component!r}")
            if not isinstance(partitions, dict):
                raise OptionError(f"{form}. Given: {partitions!r} for spout {component!r}")
            for partition, offset in partitions.items():
                named[Key(component, partition)] = _checked(form, partition, offset)
        return cls(key, default, named)

    @property
    def is_earliest(self) -> bool:
        """Whether every partition is meant to its first offset, as it is for those that appear later."""
        return self.default == EARLIEST and not self.named

    def check_world(self, heads: Mapping[Key, tuple[int, int]]) -> None:
        """Raises OptionError where a named partition is not there or does not reach as far."""
        for key, offset in sorted(self.named.items()):
            if key not in heads:
                there = sorted(other.partition for other in heads if other.component == key.component)
                raise OptionError(
                    f"option {self.key!r} names a partition that spout {key.component!r} does not have now; it has "
                    f"{_shortened(there)}. Given: {key.partition!r}"
                )
            if offset > heads[key][1]:
                raise OptionError(
                    f"option {self.key!r} lies beyond the end of {key}, which is {heads[key][1]} now: lower it, or "
                    "say -1 for "
                    f"latest. Given: {offset!r}"
                )

    def of(self, key: Key, earliest: int, latest: int) -> int:
        """The offset in a partition that holds [earliest, latest). A named offset is taken as it is, even below
        earliest."""
        wanted = self.named.get(key, self.default)
        return earliest if wanted == EARLIEST else latest if wanted == LATEST else wanted


def _checked(form: str, partition: str, offset: Any) -> int:
    if isinstance(offset, bool) or not isinstance(offset, int) or offset < EARLIEST:
        raise OptionError(
            f"{form}; an offset is an int of at least 0, or -2 for earliest, -1 for latest. Given: {offset!r} for "
            "partition "
            f"{partition!r}"
        )
    return offset


def _shortened(names: list[str], most: int = 20) -> str:
    return repr(names) if len(names) <= most else f"{names[:most]!r} and {len(names) - most} more"
