"""The states of keys as a task of a bolt has them, and the timers of keys."""

import copy
import datetime
import math
from collections import namedtuple
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Protocol

from cython_core.tuples.tuple import Tuple, tree_has_failed
from pystorm_source.api.key_state import ASKED, DUE, Key, KeyState, StateShape, part_of_key
from pystorm_source.errors import ArgumentError, given

MOST_SECONDS = 3_000_000_000
"""The longest timer, about a hundred years. More: its time may not fit into Spark's."""

TICK_MILLIS = 1000
"""Timers are due at whole seconds. Shorter: Spark calls more often, each time for fewer keys. Longer: they are late."""


class StateStore(Protocol):
    """Keeps states between two micro-batches. Keys and values are tuples."""

    def get(self, key: Key) -> tuple[Any, ...] | None:
        """Returns the values of a key; None if it has no state."""

    def put(self, key: Key, values: tuple[Any, ...]) -> None:
        """Stores the values of a key."""

    def remove(self, key: Key) -> None:
        """Forgets a key."""

    def ask_at(self, millis: int, keys: list[Key]) -> None:
        """Gives these keys back, as tuples of the stream ``TIMERS``, when this time has come."""


class KeyedStates:
    """The states that one task of a bolt has read in a run. ``now``: when its micro-batch began, in milliseconds since
    1970.

    A tuple that fails leaves no trace: what its processing has changed is put back.

    The store gives a key back when its timer is due. If the timer was moved to a later time, the store still gives the
    key back at the first time, and it is sent on to the new one; so a key with a tuple in every micro-batch costs the
    store nothing but its state. A key that is no longer due when the store gives it back is left out.
    """

    def __init__(self, shape: StateShape, store: StateStore, now: int):
        self._shape = shape
        self._is_plain = shape.is_plain
        self._store = store
        self._now = now
        self._read: dict[Key, KeyState] = {}
        self._stored: dict[Key, tuple[Any, ...] | None] = {}
        self._fired: set[tuple[Key, int]] = set()
        self._tup: Any = None
        self._touched: tuple[KeyState, dict[str, Any]] | None = None
        self._has_failed = False

    @classmethod
    def of(cls, executors: Iterable[Any], shape: StateShape, store: StateStore, now: int) -> "list[KeyedStates]":
        """Makes the states for each task of the bolt and gives them to its instance. A key is in one task."""
        found = []
        for executor in executors:
            if executor.component == shape.bolt:
                executor.instance._pystorm_states = cls(shape, store, now)
                found.append(executor.instance._pystorm_states)
        return found

    def begin(self, tup: Any) -> None:
        """Called before the bolt processes this tuple."""
        self._tup, self._touched, self._has_failed = tup, None, False

    def check(self) -> None:
        """Called when the bolt has processed the tuple. Raises RowError if a list or a map that it has changed in place
        has a value that does not fit."""
        if self._touched is not None:
            state = self._touched[0]
            self._shape.settle(state._key, state._values)

    def end(self) -> None:
        """Called when the bolt has processed it, or has raised. A tuple whose tree has timed out comes again."""
        if self._has_failed or (isinstance(self._tup, Tuple) and tree_has_failed(self._tup)):
            self._roll_back()
        self._tup = self._touched = None

    def fail(self, tup: Any = None) -> None:
        """A tuple has failed; None: the one that is processed."""
        if self._tup is not None and (tup is None or tup is self._tup or tup == self._tup.id):
            self._has_failed = True

    def _roll_back(self) -> None:
        if self._touched is not None:
            state, before = self._touched
            state._values.update(before)

    @property
    def current(self) -> KeyState:
        """The state of the tuple's key. Raises ArgumentError outside of ``process``."""
        if self._touched is not None:
            return self._touched[0]
        if self._tup is None:
            raise ArgumentError(
                "self.state is the state of a tuple's key, and no tuple is processed now: use it in process(). "
                "Given: self.state",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        state = self._state_of(self._key())
        before = state._values
        self._touched = (
            state,
            before.copy() if self._is_plain else {name: _copied(value) for name, value in before.items()},
        )
        return state

    def _key(self) -> Key:
        values = self._tup.values
        positions = self._shape.positions[self._tup.component, self._tup.stream]
        return tuple(part_of_key(values[position]) for position in positions)

    def _state_of(self, key: Key) -> KeyState:
        state = self._read.get(key)
        if state is None:
            found = self._store.get(key)
            stored = copied = None if found is None else tuple(found)  # Spark's rows print otherwise
            if stored is not None and not self._is_plain:
                forms = self._shape.forms.values()
                stored = tuple(
                    None if value is None else form.read(value) for value, form in zip(stored, forms, strict=True)
                )
                copied = tuple(map(_copied, stored))
            self._stored[key] = stored
            state = self._read[key] = KeyState(self._shape.names, copied, self._shape, key)
        return state

    def set_timer(self, seconds: float) -> None:
        """Sets the timer of the tuple's key. Raises ArgumentError for seconds that it cannot take, without timers or
        outside of ``process``."""
        is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
        if not is_number or not 0 < seconds <= MOST_SECONDS:
            raise ArgumentError(
                f"set_timer takes seconds, more than 0 and at most {MOST_SECONDS:,}. Given: {given(seconds)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        self._refuse_without_timers()
        if self._shape.ttl is not None and seconds >= self._shape.ttl:
            raise ArgumentError(
                f"state_ttl_secs={self._shape.ttl:g} of {self._shape.bolt!r} forgets the key, and its timer with it, "
                f"before this timer is due: let the timer clear the state, or make state_ttl_secs longer. Given: "
                f"set_timer({seconds!r})",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        self._shape.check_timer_key(self._key())
        due = self._now + math.ceil(seconds * 1000)
        self.current._values[DUE] = -(-due // TICK_MILLIS) * TICK_MILLIS

    def cancel_timer(self) -> None:
        """Cancels the timer of the tuple's key. Raises ArgumentError without timers or outside of ``process``."""
        self._refuse_without_timers()
        self.current._values[DUE] = None

    def _refuse_without_timers(self) -> None:
        if not self._shape.has_timers:
            raise ArgumentError(
                "a bolt with timers says what is to be done when one is due: define process_timer(key). "
                f"Given: none in {self._shape.bolt!r}",
                code="PYSTORM_INVALID_ARGUMENT",
            )

    def due(self) -> Any:
        """Returns the key of a tuple of ``TIMERS``, with its fields' names, if its timer is due; None if it is not.

        The timer is unset even if what follows fails: the tuple then comes again and gets the same answer.
        """
        key, asked = self._key(), self._tup.values[-1]
        if (key, asked) not in self._fired:
            values = self._state_of(key)._values
            if values[ASKED] != asked:  # forgotten since, or asked for at another time
                return None
            values[ASKED] = None
            if values[DUE] is None or values[DUE] > self._now:
                return None  # flush() has it asked for again, and that is later: Spark may not see a time that is over
            values[DUE] = None
            self._fired.add((key, asked))
        return _key_type(self._shape.key_names)(*key)

    def flush(self) -> None:
        """Stores what has changed since the last flush."""
        asked: dict[int, list[Key]] = {}
        has_timers, nothing = self._shape.has_timers, (None,) * len(self._shape.names)
        for key, state in self._read.items():
            if has_timers and _has_to_ask(state._values):
                state._values[ASKED] = state._values[DUE]
                asked.setdefault(state._values[DUE], []).append(key)
            if not self._is_plain:
                self._shape.settle(key, state._values)  # a bolt may have kept a list, and changed it later
            values = tuple(state._values.values())
            stored = self._stored[key]
            if values == nothing:
                if stored is not None:
                    self._store.remove(key)
            elif values != stored or repr(values) != repr(stored):  # 0.0 and -0.0 are equal
                self._store.put(key, values)
        for millis, keys in sorted(asked.items()):
            self._store.ask_at(millis, keys)
        self._read.clear()
        self._stored.clear()
        self._fired.clear()


@lru_cache(maxsize=64)  # a class takes longer to make than a bucket to run
def _key_type(names: tuple[str, ...]) -> Any:
    return namedtuple("Key", names, rename=True)


def _has_to_ask(values: Mapping[str, Any]) -> bool:
    return values[DUE] is not None and (values[ASKED] is None or values[DUE] < values[ASKED])


_PLAIN = frozenset((int, str, float, bool, type(None), bytes, Decimal, datetime.date, datetime.datetime))


def _copied(value: Any) -> Any:
    """What a change in place of the value does not change."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is list:
        return [_copied(each) for each in value]
    if kind is dict:
        return {key: _copied(each) for key, each in value.items()}
    return copy.deepcopy(value)
