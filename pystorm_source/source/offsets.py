"""The offset that Spark keeps for a query: JSON, opaque to Spark, compared byte for byte.

::

    {"begins":  {"lines": {"b.log": 100}},              # where a partition starts that this offset is the first to know
     "memo":    {"lines": {"newest": 17}},              # the spout's own notes
     "offsets": {"lines": {"a.log": 40, "b.log": 160}}, # spout → partition → up to here, exclusive
     "version": 1}

Keys are sorted at every level, values are ints and strings, empty sections are left out: equal positions are equal
bytes. ``begins`` makes ``ranges(start, end)`` a pure function of two offsets even for partitions that ``start`` does
not know, and for those whose first rows were lost and skipped. The offset before the first batch is ``{"version": 1}``,
without a section ``offsets``: where a query begins is written down by its first batch, so that a replay of that batch
begins there too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pystorm_source.errors import CheckpointError

VERSION = 1
MOST = 2**63
"""Offsets are below this: the core counts in 64 bits."""
REMEDY = "give this query a checkpointLocation of its own"


class Key(NamedTuple):
    """A partition of a spout."""

    component: str
    partition: str

    def __str__(self) -> str:
        return f"{self.component}/{self.partition}"


class Range(NamedTuple):
    """Offsets [start, end) of one partition."""

    key: Key
    start: int
    end: int


@dataclass(frozen=True)
class Offsets:
    """A parsed offset. ``pinned`` is false only before the first batch."""

    offsets: Mapping[Key, int] = field(default_factory=dict)
    begins: Mapping[Key, int] = field(default_factory=dict)
    memo: Mapping[str, Mapping[str, int | str]] = field(default_factory=dict)
    pinned: bool = False

    def known(self, component: str) -> dict[str, int]:
        """Partition → offset of one spout."""
        return {key.partition: offset for key, offset in self.offsets.items() if key.component == component}

    def to_json(self) -> dict[str, Any]:
        """The canonical dict: equal offsets give equal text."""
        sections: dict[str, Any] = {}
        if self.begins:
            sections["begins"] = _nested(self.begins)
        if any(self.memo.values()):
            sections["memo"] = {name: dict(sorted(notes.items())) for name, notes in sorted(self.memo.items()) if notes}
        if self.pinned or self.offsets:
            sections["offsets"] = _nested(self.offsets)
        sections["version"] = VERSION
        return sections


def parse(given: Any, components: Iterable[str]) -> Offsets:
    """Reads what Spark gives back. ``components``: the spouts of this topology.

    Raises CheckpointError where it is no offset of this source, was written by a newer version, or names other spouts.
    """
    if not isinstance(given, Mapping) or "version" not in given:
        raise CheckpointError(f"the checkpoint was written by another source: {REMEDY}. Given: {given!r}")
    if given["version"] != VERSION or isinstance(given["version"], bool):
        raise CheckpointError(
            f"the checkpoint has offsets of version {given['version']!r}, this pystorm-source reads version "
            f"{VERSION}: use the "
            f"pystorm-source that wrote it, or {REMEDY}. Given: {given!r}"
        )
    unknown = sorted(set(given) - {"version", "offsets", "begins", "memo"})
    if unknown:
        raise CheckpointError(
            f"the checkpoint has an offset with unknown sections {unknown!r}: {REMEDY}. Given: {given!r}"
        )
    parsed = Offsets(
        offsets=_section(given, "offsets"),
        begins=_section(given, "begins"),
        memo=_memo(given),
        pinned="offsets" in given,
    )
    mine = set(components)
    theirs = {key.component for section in (parsed.offsets, parsed.begins) for key in section} | set(parsed.memo)
    if not theirs <= mine:
        raise CheckpointError(
            f"the checkpoint belongs to another topology: it knows the spouts {sorted(theirs)!r}, this one has "
            f"{sorted(mine)!r}: "
            f"give the spouts their old names back, or {REMEDY}. Given: {given!r}"
        )
    return parsed


def ranges(start: Offsets, end: Offsets) -> list[Range]:
    """What lies between two offsets, non-empty ranges only, sorted. Pure.

    Raises CheckpointError where a partition would go backwards.
    """
    if start == end:  # else the `begins` of an offset would make it differ from itself
        return []
    found = []
    for key, upto in sorted(end.offsets.items()):
        since = end.begins.get(key, start.offsets.get(key, upto))
        if since > upto:
            raise CheckpointError(
                f"offsets of {key} go backwards, from {since} to {upto}: the checkpoint was changed or mixed with "
                "another; "
                f"{REMEDY}. Given: {end.to_json()!r}"
            )
        if since < upto:
            found.append(Range(key, since, upto))
    return found


def _nested(section: Mapping[Key, int]) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for key in sorted(section):
        nested.setdefault(key.component, {})[key.partition] = section[key]
    return nested


def _section(given: Mapping[str, Any], name: str) -> dict[Key, int]:
    flat = {}
    for component, partitions in _mapping(given, name).items():
        if not isinstance(partitions, Mapping):
            raise _malformed(given, f"{name}.{component}", partitions)
        for partition, offset in partitions.items():
            if isinstance(offset, bool) or not isinstance(offset, int) or not 0 <= offset < MOST:
                raise _malformed(given, f"{name}.{component}.{partition}", offset)
            flat[Key(component, partition)] = offset
    return flat


def _memo(given: Mapping[str, Any]) -> dict[str, dict[str, int | str]]:
    memo = {}
    for component, notes in _mapping(given, "memo").items():
        if not isinstance(notes, Mapping):
            raise _malformed(given, f"memo.{component}", notes)
        for name, note in notes.items():
            if isinstance(note, bool) or not isinstance(note, (int, str)):
                raise _malformed(given, f"memo.{component}.{name}", note)
        memo[component] = dict(notes)
    return memo


def _mapping(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = given.get(name, {})
    if not isinstance(section, Mapping):
        raise _malformed(given, name, section)
    return section


def _malformed(given: Mapping[str, Any], place: str, value: Any) -> CheckpointError:
    return CheckpointError(f"the checkpoint has an offset with {value!r} as {place}: {REMEDY}. Given: {given!r}")
