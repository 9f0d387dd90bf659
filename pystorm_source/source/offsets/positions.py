"""``startingOffsets`` and ``endingOffsets``: the start of a query and the end of a batch read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pystorm_source.api.partitioned_spout import PartitionedSpout
from pystorm_source.errors import OptionError
from pystorm_source.source.offsets.offsets import Key
from pystorm_source.source.offsets.partition_index import Column, PartitionIndex
from pystorm_source.types.json_values import json_of

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
    def parse(cls, key: str, text: str, default: int, spouts: Mapping[str, type[PartitionedSpout]]) -> "Positions":
        """Reads ``earliest``, ``latest``, JSON ``{"spout": {"partition": offset}}`` or a spout's own form
        (``named_offsets``); ``default`` is for partitions that it does not name. ``spouts``: the partitioned spouts of
        the topology. Raises OptionError."""
        word = _WORDS.get(text.strip().lower())
        if word is not None:
            return cls(key, word)
        form = f'option {key!r} is earliest, latest or JSON {{"spout": {{"partition": offset}}}}'
        try:
            given = json_of(text)
        except ValueError:
            raise OptionError(f"{form}. Given: {text!r}", code="PYSTORM_INVALID_OPTION") from None
        if not isinstance(given, dict):
            raise OptionError(f"{form}. Given: {text!r}", code="PYSTORM_INVALID_OPTION")
        if not given.keys() & spouts.keys():
            given = _in_own_form(form, given, spouts)
        named = {}
        for component, partitions in given.items():
            if component not in spouts:
                raise OptionError(
                    f"{form}; the spouts with offsets are {sorted(spouts)!r}. Given: {component!r}",
                    code="PYSTORM_INVALID_OPTION",
                )
            if not isinstance(partitions, Mapping):
                raise OptionError(
                    f"{form}. Given: {partitions!r} for spout {component!r}", code="PYSTORM_INVALID_OPTION"
                )
            if any(isinstance(offset, dict) for offset in partitions.values()):
                partitions = spouts[component].named_offsets(partitions) or partitions
            for partition, offset in partitions.items():
                named[Key(component, partition)] = _checked(form, partition, offset)
        return cls(key, default, named)

    @property
    def is_earliest(self) -> bool:
        """Whether every partition begins at its first offset, like partitions that appear later."""
        return self.default == EARLIEST and not self.named

    def check_partitions(self, index: PartitionIndex, latest: Column) -> None:
        """Raises OptionError if a named partition is not there or does not reach as far."""
        heads = index.section(latest) if self.named else {}
        for key, offset in sorted(self.named.items()):
            there = heads.get(key.component, {})
            if key.partition not in there:
                raise OptionError(
                    f"option {self.key!r} names a partition that spout {key.component!r} does not have now; it has "
                    f"{_shortened(sorted(there))}. Given: {key.partition!r}",
                    code="PYSTORM_INVALID_OPTION",
                )
            if offset > there[key.partition]:
                raise OptionError(
                    f"option {self.key!r} lies beyond the end of {key}, which is {there[key.partition]} now: lower it, "
                    f"or say -1 for latest. Given: {offset!r}",
                    code="PYSTORM_INVALID_OPTION",
                )

    def of(self, index: PartitionIndex, earliest: Column, latest: Column) -> Column:
        """The offsets in partitions that hold [earliest, latest). A named offset is taken as it is, even below
        earliest."""
        section: dict[str, dict[str, int]] = {}
        for key, offset in self.named.items():
            section.setdefault(key.component, {})[key.partition] = offset
        wanted = index.column(section, self.default)
        return np.where(wanted == EARLIEST, earliest, np.where(wanted == LATEST, latest, wanted))


def _in_own_form(
    form: str, given: dict[str, Any], spouts: Mapping[str, type[PartitionedSpout]]
) -> Mapping[str, Mapping[str, int]]:
    """Keyed by the name of the spout that understands the form; as given if no spout does. Raises OptionError if
    several do."""
    read = {name: spout.named_offsets(given) for name, spout in spouts.items()}
    understood = {name: offsets for name, offsets in read.items() if offsets is not None}
    if len(understood) > 1:
        raise OptionError(
            f"{form}; the spouts {sorted(understood)!r} could all be meant: put the name of one around it. "
            f"Given: {given!r}",
            code="PYSTORM_INVALID_OPTION",
        )
    return understood or given


def _checked(form: str, partition: str, offset: Any) -> int:
    if isinstance(offset, bool) or not isinstance(offset, int) or offset < EARLIEST:
        raise OptionError(
            f"{form}; an offset is an int of at least 0, or -2 for earliest, -1 for latest. Given: {offset!r} for "
            "partition "
            f"{partition!r}",
            code="PYSTORM_INVALID_OPTION",
        )
    return offset


def _shortened(names: list[str], most: int = 20) -> str:
    return repr(names) if len(names) <= most else f"{names[:most]!r} and {len(names) - most} more"
