"""The state of one key in a bolt, and what a bolt keeps for each key."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import pyarrow as pa

from cython_core.arrow.row_error import RowError, row_error
from cython_core.arrow.value_converter import Misfit
from cython_core.states.states_base import StateBase, StateFields, part_of_key
from pystorm_source.api.state_values import StateValues, values_of
from pystorm_source.errors import ArgumentError, given, nearest

Key = tuple[Any, ...]

DUE = "__timer"
ASKED = "__timer_asked"
TIMER_FIELDS = (DUE, ASKED)
"""Fields that follow the user's in a bolt with timers, both in milliseconds since 1970: when the key's timer is due;
and when the store gives the key back, which is not later."""


class KeyState(StateBase):
    """The state of one key: an attribute for each of the bolt's ``state_fields``, None until it is set.

    Lists and maps can change in place, or be set again. Changes are stored once, when all tuples of the key in this
    micro-batch are processed.

    A value takes its declared type when it is set, as an emitted value does: 7 is 7.0 in a ``double``. A value that the
    type cannot hold is an error there; in a list or a map that changed in place, when the tuple is processed.

    Example:
        >>> state = KeyState(("count", "last"), (2, None))
        >>> state.count += 1
        >>> state
        KeyState(count=3, last=None)
        >>> state.cuont = 1
        Traceback (most recent call last):
        pystorm_source.errors.ArgumentError: [PYSTORM_INVALID_ARGUMENT] state_fields ... did you mean 'count'?...
    """

    __slots__ = ()

    def __init__(self, names: tuple[str, ...], values: tuple[Any, ...]):
        self._pystorm_begin(StateFields(names, KeyState), (), list(values))

    def clear(self) -> None:
        """Forgets the key and its timer: nothing stays stored."""
        self._values[:] = [None] * len(self._values)

    def __repr__(self) -> str:
        return f"KeyState({', '.join(f'{name}={value!r}' for name, value in self._shown().items())})"

    def _shown(self) -> dict[str, Any]:
        values = dict(zip(self._pystorm_fields.names, self._values, strict=True))
        return {name: value for name, value in values.items() if name not in TIMER_FIELDS}

    def _pystorm_conformed(self, name: str, value: Any) -> Any:
        """The value in the declared type of the field."""
        shape: StateShape = self._pystorm_fields.shape
        try:
            return shape.forms[name].of(value)
        except Misfit as misfit:
            raise shape.misfit(self._key, name, misfit) from misfit.__cause__

    def _unknown(self, name: str) -> ArgumentError:
        shown = self._shown()
        return ArgumentError(
            f"state_fields declares {', '.join(shown)}{nearest(name, shown) or ''}: declare it "
            f"there, such as {f'{name} long'!r}. Given: {given(name)}",
            code="PYSTORM_INVALID_ARGUMENT",
        )


_PLAIN = frozenset((pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float64(), pa.string()))


@dataclass(frozen=True)
class StateShape:
    """What a bolt keeps for each key. ``names``, ``types``: of the fields, timer fields last; types are Arrow's.
    ``key_names``, ``key_types``: of the key. ``positions``: component and stream, as tuples name them → where the key
    is in their values. ``ttl``: seconds after which an unchanged key is forgotten, None for never."""

    bolt: str
    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    key_names: tuple[str, ...]
    key_types: tuple[pa.DataType, ...]
    positions: Mapping[tuple[str, str], tuple[int, ...]]
    ttl: float | None

    @property
    def has_timers(self) -> bool:
        return DUE in self.names

    @cached_property
    def forms(self) -> dict[str, StateValues]:
        """Field → the values of its type."""
        return {name: values_of(type) for name, type in zip(self.names, self.types, strict=True)}

    @cached_property
    def changing(self) -> tuple[tuple[int, str], ...]:
        """Place and name of the fields whose values can change in place."""
        return tuple((place, name) for place, (name, form) in enumerate(self.forms.items()) if form.can_change)

    @cached_property
    def state_fields(self) -> StateFields:
        """The fields as a state has them."""
        return StateFields(self.names, KeyState, self)

    @cached_property
    def is_plain(self) -> bool:
        """Whether a store gives every value as a bolt reads it, and none can change in place."""
        return all(type in _PLAIN for type in self.types)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def check_timer_key(self, key: Key) -> None:
        """Raises RowError for a key that Spark's state store would give back as another one, or not at all."""
        for name, kind, value in zip(self.key_names, self.key_types, key, strict=True):
            if value is not None:
                try:
                    values_of(kind).of(value)
                except Misfit as misfit:
                    raise self.misfit(key, name, misfit) from misfit.__cause__

    def misfit(self, key: Key, name: str, misfit: Misfit) -> RowError:
        """The error of a value that a field, of the state or of the key, cannot hold."""
        types = dict(zip((*self.key_names, *self.names), (*self.key_types, *self.types), strict=True))
        field = pa.field(name, types[name])
        shown = given(key[0] if len(key) == 1 else key)
        label = f"the state of {self.bolt!r}, key {shown},"
        return row_error(field, misfit.path, misfit.type, misfit.value, label, misfit.reason)

    def settle(self, key: Key, values: list[Any]) -> None:
        """Gives values that were changed in place their declared types. Raises RowError."""
        for place, name in self.changing:
            if (value := values[place]) is not None:
                try:
                    values[place] = self.forms[name].of(value)
                except Misfit as misfit:
                    raise self.misfit(key, name, misfit) from misfit.__cause__

    def key_of(self, stored: Iterable[Any]) -> Key:
        """A stored key, with values like a tuple's, so that a dict finds it."""
        pairs = zip(stored, self.key_types, strict=True)
        return tuple(part_of_key(None if value is None else values_of(kind).read(value)) for value, kind in pairs)
