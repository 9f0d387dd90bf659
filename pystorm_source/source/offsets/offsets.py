"""The offset that Spark keeps for a query: JSON, opaque to Spark, compared byte for byte.

::

    {"admission": {"lines": {"common": 9500}},            # the controller's state, for a restart
     "begins":    {"lines": {"b.log": 100}},              # the start of partitions that are new in this offset
     "crc":       3569320619,                             # CRC-32 of everything else
     "offsets":   {"lines": {"a.log": 40, "b.log": 160}}, # spout → partition → end, exclusive
     "state":     {"lines": {"newest": 17}},              # the spout's own notes
     "version":   1}

Keys are sorted at every level, values are ints and strings, empty sections are left out: equal positions are equal
bytes. ``begins`` makes ``ranges(start, end)`` a pure function of two offsets even for partitions that ``start`` does
not know, and for those whose first rows were lost and skipped; ``admission`` has no part in it. The offset before the
first batch has a version and no section ``offsets``: the first batch writes the start of the query, so that a replay of
that batch begins there too.

Every offset carries a checksum, because one that was damaged or edited may still look like an offset: a digit more
skips rows, a digit less reads them twice, unnoticed. ``sealed`` makes it, ``parse`` refuses an offset that does not fit
its checksum. ``startingOffsets`` and ``endingOffsets`` are options, not offsets of a checkpoint, and need no checksum.
"""

import json
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import compress, repeat
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from pystorm_source.errors import CheckpointError
from pystorm_source.errors import given as brief

VERSION = 1
MOST = 2**63
"""Offsets are below this: the core counts in 64 bits."""
ADMISSION_DEPTH = 3
"""Levels of the section ``admission``: spout → note → partition → int."""
REMEDY = "give this query a checkpointLocation of its own"

Section: TypeAlias = Mapping[str, Mapping[str, int]]
"""Spout → partition → offset."""


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
class Ranges:
    """Ranges [start, end) of partitions, sorted by spout and partition, as columns of one length."""

    components: list[str]
    partitions: list[str]
    starts: list[int]
    ends: list[int]

    @classmethod
    def of(cls, rows: Iterable[Range]) -> "Ranges":
        """The columns of rows."""
        rows = list(rows)
        return cls(
            [row.key.component for row in rows],
            [row.key.partition for row in rows],
            [row.start for row in rows],
            [row.end for row in rows],
        )

    def __len__(self) -> int:
        return len(self.components)

    def __iter__(self) -> Iterator[Range]:
        keys = map(Key, self.components, self.partitions)
        return map(Range, keys, self.starts, self.ends)


@dataclass(frozen=True)
class Offsets:
    """A parsed offset. ``pinned`` is false only before the first batch. No spout of a section is empty."""

    offsets: Section = field(default_factory=dict)
    begins: Section = field(default_factory=dict)
    state: Mapping[str, Mapping[str, int | str]] = field(default_factory=dict)
    pinned: bool = False
    admission: Mapping[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> tuple[Any, ...]:
        """The sections that determine ``ranges``."""
        return self.offsets, self.begins, self.state, self.pinned

    def known(self, component: str) -> Mapping[str, int]:
        """Partition → offset of one spout."""
        return self.offsets.get(component, {})

    def to_json(self) -> dict[str, Any]:
        """The canonical dict: equal offsets give equal text. Not to be changed."""
        sections: dict[str, Any] = {}
        if self.admission:
            sections["admission"] = _canonical(self.admission)
        if self.begins:
            sections["begins"] = _canonical(self.begins)
        if self.pinned or self.offsets:
            sections["offsets"] = _canonical(self.offsets)
        if any(self.state.values()):
            sections["state"] = _canonical({name: notes for name, notes in self.state.items() if notes})
        sections["version"] = VERSION
        return _with_checksum(sections)


def sealed(sections: Mapping[str, Any]) -> dict[str, Any]:
    """The canonical offset of these sections, with the checksum that belongs to them; an old one is replaced.

    For an offset that was edited by hand (docs/TROUBLESHOOTING.md). ``parse`` checks the sections, not this function.
    Raises CheckpointError for something nested too deeply to be an offset.
    """
    try:
        return _with_checksum(_canonical({name: value for name, value in sections.items() if name != "crc"}))
    except RecursionError:
        raise CheckpointError(
            "no offset is nested so deeply: take the sections of one (docs/TROUBLESHOOTING.md). "
            f"Given: {brief(sections)}",
            code="PYSTORM_CHECKPOINT_DAMAGED",
        ) from None


def parse(given: Any, components: Iterable[str]) -> Offsets:
    """Reads an offset from Spark. ``components``: the spouts of this topology.

    Raises CheckpointError if it is no offset of this source, was written by another version, was changed since it was
    written, or names other spouts.
    """
    components = sorted(components)
    if not isinstance(given, Mapping) or "version" not in given:
        raise CheckpointError(
            f"the checkpoint was written by another source: {REMEDY}. Given: {_shown(given)}",
            code="PYSTORM_CHECKPOINT_OF_ANOTHER_TOPOLOGY",
        )
    if given["version"] != VERSION or isinstance(given["version"], bool):
        raise CheckpointError(
            f"the checkpoint has offsets of version {brief(given['version'])}, this pystorm-source reads version "
            f"{VERSION}: use the "
            f"pystorm-source that wrote it, or {REMEDY}. Given: {_shown(given)}",
            code="PYSTORM_CHECKPOINT_OF_ANOTHER_TOPOLOGY",
        )
    _check_checksum(given, components)
    unknown = sorted(set(given) - {"version", "crc", "offsets", "begins", "state", "admission"})
    if unknown:
        raise CheckpointError(
            f"the checkpoint has an offset with unknown sections {brief(unknown)}: {REMEDY}. Given: {_shown(given)}",
            code="PYSTORM_CHECKPOINT_DAMAGED",
        )
    parsed = Offsets(
        offsets=_section(given, "offsets"),
        begins=_section(given, "begins"),
        state=_state(given),
        pinned="offsets" in given,
        admission=_admission(given, "admission", _mapping(given, "admission"), ADMISSION_DEPTH),
    )
    mine = set(components)
    theirs = {*parsed.offsets, *parsed.begins, *parsed.state}
    if not theirs <= mine:
        raise CheckpointError(
            f"the checkpoint belongs to another topology: it knows the spouts {brief(sorted(theirs))}, this one has "
            f"{sorted(mine)!r}: "
            f"give the spouts their old names back, or {REMEDY}. Given: {_shown(given)}",
            code="PYSTORM_CHECKPOINT_OF_ANOTHER_TOPOLOGY",
        )
    return parsed


def ranges(start: Offsets, end: Offsets) -> Ranges:
    """The non-empty ranges between two offsets, sorted. Pure.

    Raises CheckpointError if a partition would go backwards.
    """
    found = Ranges([], [], [], [])
    if start.place == end.place:  # otherwise the `begins` of an offset would make it differ from itself
        return found
    for component, upto in sorted(end.offsets.items()):
        names = tuple(sorted(upto))
        last = list(offsets_of(names, upto, repeat(0)))
        first = offsets_of(names, start.known(component), last)
        if component in end.begins:
            first = offsets_of(names, end.begins[component], first)
        starts, ends = (np.fromiter(offsets, np.int64, len(names)) for offsets in (first, last))
        moving = starts < ends
        for row in np.flatnonzero(starts > ends).tolist():
            raise CheckpointError(
                f"offsets of {Key(component, names[row])} go backwards, from {starts[row]} to {ends[row]}: the "
                f"checkpoint was changed or mixed with another; {REMEDY}. Given: {end.to_json()!r}",
                code="PYSTORM_CHECKPOINT_DAMAGED",
            )
        found.partitions.extend(compress(names, moving.tolist()))
        found.starts.extend(starts[moving].tolist())
        found.ends.extend(ends[moving].tolist())
        found.components.extend([component] * (len(found.partitions) - len(found.components)))
    return found


def offsets_of(names: tuple[str, ...], found: Mapping[str, int], otherwise: Iterable[int]) -> Iterable[int]:
    """The offset of each partition, the next of ``otherwise`` for one that is not found.

    Names in the same order, the usual case between two micro-batches, are not looked up: it takes a third of the time.
    """
    return found.values() if tuple(found) == names else map(found.get, names, otherwise)


def _canonical(section: Any) -> Any:
    """With sorted keys at every level."""
    if not isinstance(section, Mapping):
        return section
    names = sorted(section)
    if not set(map(type, section.values())) <= {int, str}:
        return {name: _canonical(section[name]) for name in names}
    return section if list(section) == names else {name: section[name] for name in names}


def _with_checksum(sections: dict[str, Any]) -> dict[str, Any]:
    """``sections``, which are in canonical order, with ``crc`` at its place among them."""
    return dict(sorted([*sections.items(), ("crc", _checksum(sections))]))


def _check_checksum(given: Mapping[str, Any], components: Collection[str]) -> None:
    crc = given.get("crc")
    sections = {name: value for name, value in given.items() if name != "crc"}
    # The given order first: it is usually sorted already, and sorting 100,000 partitions takes 14 ms.
    if type(crc) is int and (crc == _checksum(sections) or crc == _checksum(sections, is_sorted=False)):
        return
    what = "has no checksum" if crc is None else "does not fit its checksum"
    raise CheckpointError(
        f"an offset of the query with the spouts {list(components)!r} {what}: a file in the folder offsets of its "
        "checkpointLocation was damaged or edited, so the query could lose rows or read them twice. Restore the file "
        'from a copy, give it a new checksum if you edited it (docs/TROUBLESHOOTING.md, "An offset that was '
        f'edited"), or {REMEDY}. Given: {_shown(given)}',
        code="PYSTORM_CHECKPOINT_DAMAGED",
    )


def _shown(given: Any) -> str:
    """Any value, for messages."""
    try:
        return repr(given)
    except RecursionError:
        return "JSON that is nested too deeply to be shown"


def _checksum(sections: Mapping[str, Any], is_sorted: bool = True) -> int | None:
    """CRC-32 of the canonical text: keys sorted at every level, no blanks."""
    with suppress(UnicodeEncodeError, OverflowError, RecursionError):
        return zlib.crc32(msgspec.json.encode(sections, order=None if is_sorted else "sorted"))
    # msgspec does not encode: lone surrogates (odd file names), ints beyond 64 bits.
    with suppress(RecursionError):
        return zlib.crc32(json.dumps(sections, sort_keys=True, separators=(",", ":")).encode())
    return None  # nested so deeply that it is no offset of ours


def _section(given: Mapping[str, Any], name: str) -> dict[str, Mapping[str, int]]:
    section = {}
    for component, partitions in _mapping(given, name).items():
        if not isinstance(partitions, Mapping):
            raise _malformed(given, f"{name}.{component}", partitions)
        if not _are_offsets(partitions.values()):
            for partition, offset in partitions.items():
                if not _are_offsets([offset]):
                    raise _malformed(given, f"{name}.{component}.{partition}", offset)
        if partitions:
            section[component] = partitions
    return section


def _are_offsets(values: Collection[Any]) -> bool:
    """Whether all are ints from 0 to below 2**63; True is no int."""
    return not values or (set(map(type, values)) == {int} and min(values) >= 0 and max(values) < MOST)


def _admission(given: Mapping[str, Any], place: str, section: Mapping[str, Any], depth: int) -> Mapping[str, Any]:
    for name, value in section.items():
        inner = f"{place}.{name}"
        if isinstance(value, Mapping) and depth > 1:
            _admission(given, inner, value, depth - 1)
        elif not _are_offsets([value]):
            raise _malformed(given, inner, value)
    return section


def _state(given: Mapping[str, Any]) -> dict[str, dict[str, int | str]]:
    state = {}
    for component, notes in _mapping(given, "state").items():
        if not isinstance(notes, Mapping):
            raise _malformed(given, f"state.{component}", notes)
        for name, note in notes.items():
            if isinstance(note, bool) or not isinstance(note, (int, str)):
                raise _malformed(given, f"state.{component}.{name}", note)
        if notes:
            state[component] = dict(notes)
    return state


def _mapping(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = given.get(name, {})
    if not isinstance(section, Mapping):
        raise _malformed(given, name, section)
    return section


def _malformed(given: Mapping[str, Any], place: str, value: Any) -> CheckpointError:
    return CheckpointError(
        f"the checkpoint has an offset with {brief(value)} as {place}: {REMEDY}. Given: {_shown(given)}",
        code="PYSTORM_CHECKPOINT_DAMAGED",
    )
