"""What the bolt of the campaign of keyed states does with a row, and what of each key must be there afterwards."""

import copy
import datetime
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from cython_core.arrow.row_error import RowError
from cython_core.arrow.value_converter import Misfit
from cython_core.states.states_base import part_of_key
from pystorm_source.api.state_values import values_of
from pystorm_source.types.arrow import field_type
from tests.stages.random_states import FIELDS, ODD, TYPES, exact_value

PARTITIONS = "ab"
PER_BATCH = 24
"""Offsets of a partition in a micro-batch: most of BUSY keys, one of each BRIEF key, one of a RARE key."""
BUSY, BRIEF, RARE = 7, 4, 50
KEY = {
    "number": "bigint",
    "price": "decimal(10,2)",
    "day": "date",
    "at": "timestamp",
    "local": "timestamp_ntz",
    "text": "string",
    "raw": "binary",
    "real": "double",
    "flag": "boolean",
}
KEY_TYPES = {name: field_type(ddl, name) for name, ddl in KEY.items()}
TIMER = -1
"""Stands for a row where a timer has called."""


def key_number(partition: str, n: int) -> int:
    """The key of an offset."""
    place = n % PER_BATCH
    own = BUSY + place if place < BRIEF else place % BUSY
    if place == PER_BATCH - 1:
        own = BUSY + BRIEF + n // PER_BATCH % RARE
    return 2 * own + PARTITIONS.index(partition)


def is_brief(number: int) -> bool:
    """Whether every second row forgets that key."""
    return BUSY <= number // 2 < BUSY + BRIEF


def key_values(number: int) -> tuple[Any, ...]:
    """The fields of a key."""
    chance = Random(f"key {number}")
    rest = [part_of_key(exact_value(chance, type)) for name, type in KEY_TYPES.items() if name != "number"]
    return (number, *rest)


def text_of(values: Iterable[Any]) -> str:
    """A text that only values have that are equal, of equal types, down to their parts."""
    return repr([_ordered(value) for value in values])


def text_of_key(values: Iterable[Any]) -> str:
    """The same of a key, whose times have UTC in other forms than states have it."""
    return text_of(value.astimezone(datetime.UTC) if getattr(value, "tzinfo", None) else value for value in values)


def _ordered(value: Any) -> Any:
    if isinstance(value, list):
        return [_ordered(each) for each in value]
    if isinstance(value, dict):
        return {name: _ordered(value[name]) for name in sorted(value)}
    return value


@dataclass(frozen=True)
class Step:
    """What a row does. ``fate``: good; once: it fails after its changes, and comes again; never: it fails each time;
    wrong: it leaves a value in a list that does not fit. ``timer``: seconds, 0 to cancel it, None to leave it."""

    fate: str
    sets: tuple[tuple[str, Any, bool], ...]
    grows: int
    timer: float | None

    @classmethod
    def of(cls, row: int) -> "Step":
        """The step of that row, always the same one."""
        chance = Random(f"row {row}")
        sets = []
        for name in chance.sample(sorted(FIELDS), 6):
            is_exact = chance.random() < 0.6
            sets.append((name, exact_value(chance, TYPES[name]) if is_exact else chance.choice(ODD), is_exact))
        fate = chance.choices(["good", "once", "never", "wrong"], [85, 8, 4, 3])[0]
        return cls(fate, tuple(sets), chance.randrange(1000), chance.choice([None, None, 0, 0.5, 1, 2]))

    @property
    def stays(self) -> bool:
        """Whether it leaves a trace."""
        return self.fate in ("good", "once")

    def change(self, get: Callable[[str], Any], put: Callable[[str, Any, bool], None]) -> None:
        """Changes a state: assigns, and changes lists, maps and structs in place."""
        for name, value, is_exact in self.sets:
            put(name, copy.deepcopy(value), is_exact)
        if get("numbers") is None or len(get("numbers")) > 9:
            put("numbers", [], True)
        get("numbers").append(self.grows)
        if (lists := get("lists")) and lists[0] is not None:
            lists[0][2:] = [float(self.grows)]
        if (by := get("by")) is not None:
            by[str(self.grows % 5)] = float(self.grows)
        if (both := get("both")) is not None:
            both["x"] = self.grows


class Model:
    """What a key has."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = dict.fromkeys(("count", *FIELDS))
        self.has_timer = False

    @property
    def text(self) -> str:
        return text_of(self.values.values())

    @property
    def is_forgotten(self) -> bool:
        return all(value is None for value in self.values.values())

    def put(self, name: str, value: Any, is_exact: bool) -> None:
        if value is not None and not is_exact:
            with suppress(Misfit):
                self.values[name] = values_of(TYPES[name]).of(value)
            return
        self.values[name] = value

    def take(self, row: int, number: int, timers: bool) -> None:
        """A row of that key, or a timer, has been processed."""
        if is_brief(number) and self.values["count"] is not None:
            self.values = dict.fromkeys(self.values)
            return
        self.values["count"] = (self.values["count"] or 0) + 1
        if row == TIMER:
            self.has_timer = False
            return
        step = Step.of(row)
        step.change(self.values.__getitem__, self.put)
        if timers and not is_brief(number) and step.timer is not None:
            self.has_timer = step.timer > 0


def put_into(state: Any) -> Callable[[str, Any, bool], None]:
    """Assigns to a state of the product; a value that does not fit is an error, and the field as it was."""

    def put(name: str, value: Any, is_exact: bool) -> None:
        try:
            setattr(state, name, value)
        except RowError:
            if is_exact:
                raise

    return put


def rows_of(total: int) -> dict[int, list[int]]:
    """Key → its rows of so many offsets, those that stay."""
    found = defaultdict(list)
    for n in range(total):
        for place, partition in enumerate(PARTITIONS):
            number, row = key_number(partition, n), 2 * n + place
            if is_brief(number) or Step.of(row).stays:
                found[number].append(row)
    return found


def faults(
    total: int, timers: bool, emitted: Iterable[tuple[int, int, int, str]], states: dict[int, str] | None = None
) -> list[str]:
    """What is wrong in the rows: key, row, count, text of the state before; and in the states at the end."""
    by_key = defaultdict(list)
    for number, row, count, before in emitted:
        by_key[number].append((count, row, before))
    wanted = rows_of(total)
    wrong = [f"keys that are none: {sorted(set(by_key) - set(wanted))}"] if set(by_key) - set(wanted) else []
    left = set(states or ())
    for number, rows in wanted.items():
        model, found = Model(), by_key[number]
        wrong += _faults_of(number, rows, found, model, timers)
        if states is not None:
            left.discard(number)
            expected = None if model.is_forgotten else model.text
            if states.get(number) != expected:
                wrong.append(f"key {number}: state {states.get(number)}, not {expected}")
    return [*wrong, *(f"key {number}: a state of no key" for number in left)]


def _faults_of(number: int, rows: list[int], found: list[Any], model: Model, timers: bool) -> list[str]:
    each = Counter(row for _, row, _ in found if row != TIMER)
    if each != Counter(rows):
        lost, more = Counter(rows) - each, each - Counter(rows)
        return [f"key {number}: lost {sorted(lost.elements())}, too often {sorted(more.elements())}"]
    wrong = []
    found.sort(key=(lambda one: one[1]) if is_brief(number) else (lambda one: one[0]))
    for place, (count, row, before) in enumerate(found, start=1):
        if not is_brief(number) and count != place:
            return [*wrong, f"key {number}: counts {[one[0] for one in found]}"]
        if before != model.text:
            return [*wrong, f"key {number}, row {row}: before it {before}, not {model.text}"]
        if row == TIMER and not model.has_timer:
            wrong.append(f"key {number}: a timer that was not set, at count {count}")
        model.take(row, number, timers)
    if model.has_timer:
        wrong.append(f"key {number}: its timer was never due")
    return wrong
