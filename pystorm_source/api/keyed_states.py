"""The states of keys as a task of a bolt has them, and the timers of keys."""

import copy
import datetime
import math
from collections import namedtuple
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Any, Protocol

from cython_core.states.states_base import StatesBase
from pystorm_source.api.key_state import Key, KeyState, StateShape
from pystorm_source.errors import ArgumentError, given

MOST_SECONDS = 3_000_000_000
"""The longest timer, about a hundred years. More: its time may not fit into Spark's."""

TICK_MILLIS = 1000
"""Timers are due at whole seconds. Shorter: Spark calls more often, each time for fewer keys. Longer: they are late."""

DUE_AT, ASKED_AT = -2, -1
"""Where a bolt with timers has its TIMER_FIELDS in the values of a state."""


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


class KeyedStates(StatesBase):
    """The states that one task of a bolt has read in a run. ``now``: when its micro-batch began, in milliseconds since
    1970.

    A tuple that fails leaves no trace: what its processing has changed is put back.

    The store gives a key back when its timer is due. If the timer was moved to a later time, the store still gives the
    key back at the first time, and it is sent on to the new one; so a key with a tuple in every micro-batch costs the
    store nothing but its state. A key that is no longer due when the store gives it back is left out.
    """

    _shape: StateShape
    _store: StateStore
    _now: int

    def __init__(self, shape: StateShape, store: StateStore, now: int):
        super().__init__(shape, store, now, KeyState)
        self._fired: set[tuple[Key, int]] = set()
        self._asked: dict[int, list[Key]] = {}

    @classmethod
    def of(cls, executors: Iterable[Any], shape: StateShape, store: StateStore, now: int) -> "list[KeyedStates]":
        """Makes the states for each task of the bolt and gives them to its instance. A key is in one task."""
        found = []
        for executor in executors:
            if executor.component == shape.bolt:
                executor.instance._pystorm_states = cls(shape, store, now)
                found.append(executor.instance._pystorm_states)
        return found

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
        self.current._values[DUE_AT] = -(-due // TICK_MILLIS) * TICK_MILLIS

    def cancel_timer(self) -> None:
        """Cancels the timer of the tuple's key. Raises ArgumentError without timers or outside of ``process``."""
        self._refuse_without_timers()
        self.current._values[DUE_AT] = None

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
            if values[ASKED_AT] != asked:  # forgotten since, or asked for at another time
                return None
            values[ASKED_AT] = None
            if values[DUE_AT] is None or values[DUE_AT] > self._now:
                return None  # flush() has it asked for again, and that is later: Spark may not see a time that is over
            values[DUE_AT] = None
            self._fired.add((key, asked))
        return _key_type(self._shape.key_names)(*key)

    def flush(self) -> None:
        """Stores what has changed since the last flush."""
        super().flush()
        for millis, keys in sorted(self._asked.items()):
            self._store.ask_at(millis, keys)
        self._asked.clear()
        self._fired.clear()

    def _outside(self) -> ArgumentError:
        return ArgumentError(
            "self.state and timers belong to the key of a tuple, and none is processed now: use them in process(). "
            "Given: no tuple",
            code="PYSTORM_INVALID_ARGUMENT",
        )

    def _as_read(self, stored: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Any]]:
        """What the store has as a bolt reads it, and a copy for the bolt to change."""
        forms = self._shape.forms.values()
        read = tuple(None if value is None else form.read(value) for value, form in zip(stored, forms, strict=True))
        return read, self._copied(read)

    def _copied(self, values: Iterable[Any]) -> list[Any]:
        return [_copied(value) for value in values]

    def _settle(self, state: KeyState) -> None:
        """Gives values that a bolt has changed in place their declared types. Raises RowError."""
        self._shape.settle(state._key, state._values)

    def _ask(self, state: KeyState) -> None:
        """Notes that the store has to give the key back when its timer is due."""
        values = state._values
        if values[DUE_AT] is not None and (values[ASKED_AT] is None or values[DUE_AT] < values[ASKED_AT]):
            values[ASKED_AT] = values[DUE_AT]
            self._asked.setdefault(values[DUE_AT], []).append(state._key)


@lru_cache(maxsize=64)  # a class takes longer to make than a bucket to run
def _key_type(names: tuple[str, ...]) -> Any:
    return namedtuple("Key", names, rename=True)


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
