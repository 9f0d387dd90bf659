"""Offsets of a checkpoint: bytes that changed, numbers that a hand changed, sections of another offset."""

import copy
import json
import random
import re
from collections.abc import Callable
from typing import Any

from pystorm_source.errors import CheckpointError
from pystorm_source.source.offsets.offsets import parse, ranges, sealed
from tests.mutations.json_faults import spoiled
from tests.mutations.outcomes import refused

SPOUTS = ("lines", "numbers", "tokens")
ODD: list[Any] = [
    *[None, True, -1, 0, 1.5, 2**63, 10**40, "", "task", "../..", "\0", [], {}],
    *[{"": {"": 0}}, {"a": {"b": {"c": 1}}}],
]
BASES = [
    sealed(sections)
    for sections in (
        {"version": 1},
        {"offsets": {}, "version": 1},
        {"offsets": {"numbers": {"a": 40, "b": 160}}, "version": 1},
        {
            "begins": {"numbers": {"b": 100}},
            "state": {"numbers": {"done": "a_done", "newest": 17}},
            "offsets": {"numbers": {"a": 40, "b": 160}},
            "admission": {"numbers": {"common": 120, "others": {"a": 9}, "slots": 2}},
            "version": 1,
        },
        {"offsets": {"lines": {f"{n:03d}.log": n * 1009 for n in range(30)}}, "version": 1},
        {"state": {"lines": {"\udcff": -1}}, "offsets": {"lines": {"Sträßchen\n\udcff": 2**62}}, "version": 1},
        {"offsets": {"tokens": {"5f0c7f0e2d7a4a5f8f5e3b1c9a7d2e10": 300_000}}, "version": 1},
    )
]
MEANINGS = [parse(base, SPOUTS) for base in BASES]


def mutated_offset(rng: random.Random) -> str:
    """Accepted is only what says the same. With a checksum of its own it is refused, or an offset in every respect."""
    which = rng.randrange(len(BASES))
    mutant = mutant_of(BASES[which], rng)
    parsed = accepted(mutant)
    assert parsed is None or parsed == MEANINGS[which], mutant
    if isinstance(mutant, dict) and not rng.randrange(4):
        again = accepted(mutant, sealed)
        if again is not None:
            assert parse(json.loads(json.dumps(again.to_json())), SPOUTS) == again
            _check_ranges(MEANINGS[which], again)
            _check_ranges(again, MEANINGS[which])
    return "refused" if parsed is None else "same"


def accepted(mutant: Any, first: Callable[[Any], Any] = lambda mutant: mutant) -> Any:
    """The parsed offset; None if it is refused as it should be. ``first``: what is done to it before."""
    try:
        return parse(first(mutant), SPOUTS)
    except CheckpointError as error:
        refused(error)
        return None


def _check_ranges(start: Any, end: Any) -> None:
    try:
        found = ranges(start, end)
    except CheckpointError:
        return
    assert all(0 <= each.start < each.end < 2**63 for each in found)


def mutant_of(offset: dict[str, Any], rng: random.Random) -> Any:
    """Of the text, as far as it is JSON, else of the value."""
    kind = rng.randrange(5)
    text = json.dumps(offset)
    if kind == 0:
        changed: str | bytes = spoiled(text.encode(), rng)
    elif kind == 1:
        changed = _with_other_digits(text, rng)
    elif kind == 2:
        return {**offset, **{name: rng.choice(BASES).get(name, {}) for name in rng.sample(sorted(offset), 1)}}
    else:
        value: Any = offset
        for _ in range(rng.randint(1, 3)):
            value = grown(value, rng) if isinstance(value, dict) else value
        return value
    try:
        return json.loads(changed)
    except (ValueError, RecursionError):
        return None  # Spark's, or its Python's, to refuse; and so are we


def _with_other_digits(text: str, rng: random.Random) -> str:
    """As a hand edits: a digit more, less, or another one; two numbers exchanged."""
    numbers = list(re.finditer(r"\d+", text))
    one, other = rng.choice(numbers), rng.choice(numbers)
    at = rng.randrange(one.start(), one.end())
    digit = str(rng.randrange(10))
    kind = rng.randrange(4)
    if kind == 0:
        return text[:at] + digit + text[at:]
    if kind == 1:
        return text[:at] + text[at + 1 :]
    if kind == 2:
        return text[:at] + digit + text[at + 1 :]
    if one.start() > other.start():
        one, other = other, one
    return text[: one.start()] + other[0] + text[one.end() : other.start()] + one[0] + text[other.end() :]


def grown(value: dict[str, Any], rng: random.Random) -> Any:
    """A copy with one place changed: another value, a key that is gone, renamed or new."""
    changed = copy.deepcopy(value)
    holders = [changed]
    for holder in holders:
        holders += [each for each in holder.values() if isinstance(each, dict) and each]
    holder = rng.choice(holders)
    key = rng.choice(sorted(holder) or [""])
    kind = rng.randrange(4)
    if kind == 0:
        holder.pop(key, None)
    elif kind == 1:
        holder[rng.choice(["", "version", "offsets", "numbers", "../x", "z"])] = holder.pop(key, 0)
    else:
        holder[key] = copy.deepcopy(rng.choice(ODD))
    return changed
