"""A bolt that keeps a state for each key, from micro-batch to micro-batch."""

import copy
import datetime
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, Protocol

import pyarrow as pa

from pystorm_source.api.bolt import Bolt
from pystorm_source.errors import ArgumentError, given, nearest


class KeyState:
    """The state of one key: an attribute for each of the bolt's ``state_fields``, None as long as it was not set.

    Lists and maps are changed in place, or set anew. What has changed is stored once, when all tuples of the key in
    this micro-batch are processed.

    Example:
        >>> state = KeyState(("count", "last"), (2, None))
        >>> state.count += 1
        >>> state
        KeyState(count=3, last=None)
        >>> state.cuont = 1
        Traceback (most recent call last):
        pystorm_source.errors.ArgumentError: [PYSTORM_INVALID_ARGUMENT] state_fields ... did you mean 'count'?...
    """

    __slots__ = ("_names", "_values")

    _names: tuple[str, ...]
    _values: dict[str, Any]

    def __init__(self, names: tuple[str, ...], values: tuple[Any, ...] | None):
        object.__setattr__(self, "_names", names)
        object.__setattr__(self, "_values", dict(zip(names, values or (None,) * len(names), strict=True)))

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise self._unknown(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._values:
            raise self._unknown(name)
        self._values[name] = value

    def clear(self) -> None:
        """Forgets the key: nothing is stored of it any more."""
        self._values.update(dict.fromkeys(self._names))

    def __repr__(self) -> str:
        return f"KeyState({', '.join(f'{name}={value!r}' for name, value in self._values.items())})"

    def _unknown(self, name: str) -> ArgumentError:
        return ArgumentError(
            f"state_fields declares {', '.join(self._names)}{nearest(name, list(self._names)) or ''}: declare it "
            f"there, such as {f'{name} long'!r}. Given: {given(name)}",
            code="PYSTORM_INVALID_ARGUMENT",
        )


class StateStore(Protocol):
    """Where states lie between two micro-batches. Keys and values are tuples."""

    def get(self, key: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """The values of a key; None if it has none."""

    def put(self, key: tuple[Any, ...], values: tuple[Any, ...]) -> None:
        """Stores the values of a key."""

    def remove(self, key: tuple[Any, ...]) -> None:
        """Forgets a key."""


class KeyedStates:
    """The states that one task of a bolt has read in a run. ``positions``: (component, stream) → where the key is in
    its tuples.

    ``types``: Arrow's, of the fields ``names``. A tuple that fails leaves no trace: what its processing has changed is
    put back.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        types: tuple[pa.DataType, ...],
        store: StateStore,
        positions: Mapping[tuple[str, str], tuple[int, ...]],
    ):
        self._names = names
        self._types = types
        self._store = store
        self._positions = positions
        self._read: dict[tuple[Any, ...], KeyState] = {}
        self._stored: dict[tuple[Any, ...], tuple[Any, ...] | None] = {}
        self._tup: Any = None
        self._touched: tuple[KeyState, dict[str, Any]] | None = None
        self._has_failed = False

    @classmethod
    def of(
        cls,
        executors: Iterable[Any],
        bolt: str,
        names: tuple[str, ...],
        types: tuple[pa.DataType, ...],
        store: StateStore,
        positions: Mapping[tuple[str, str], tuple[int, ...]],
    ) -> "list[KeyedStates]":
        """Those of each task of the bolt ``bolt``, whose instances have them from now on. A key is in one task."""
        found = []
        for executor in executors:
            if executor.component == bolt:
                executor.instance._pystorm_states = cls(names, types, store, positions)
                found.append(executor.instance._pystorm_states)
        return found

    def begin(self, tup: Any) -> None:
        """The bolt is to process this tuple."""
        self._tup, self._touched, self._has_failed = tup, None, False

    def end(self) -> None:
        """The bolt has processed it, or has raised."""
        if self._has_failed:
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
        values = self._tup.values
        positions = self._positions[self._tup.component, self._tup.stream]
        key = tuple(_of_key(values[position]) for position in positions)
        state = self._read.get(key)
        if state is None:
            stored = self._store.get(key)
            if stored is not None:
                stored = tuple(map(_as_declared, stored, self._types))
            self._stored[key] = stored
            state = self._read[key] = KeyState(self._names, None if stored is None else tuple(map(_copied, stored)))
        self._touched = (state, {name: _copied(value) for name, value in state._values.items()})
        return state

    def flush(self) -> None:
        """Stores what has changed since the last flush."""
        for key, state in self._read.items():
            values = tuple(state._values[name] for name in self._names)
            stored = self._stored[key]
            if all(value is None for value in values):
                if stored is not None:
                    self._store.remove(key)
            elif values != stored:
                self._store.put(key, values)
        self._read.clear()
        self._stored.clear()


_NAN = float("nan")


def _of_key(value: Any) -> Any:
    """Floats that Spark takes for one key are one key here: any NaN, and both zeros."""
    if type(value) is not float:
        return value
    return _NAN if value != value else value + 0.0


def _as_declared(value: Any, declared: pa.DataType) -> Any:
    """A stored value as tuples have values of its type: times in UTC, structs and maps as dicts. Spark gives times of
    the process's zone without one, and structs as rows."""
    if value is None:
        return None
    if pa.types.is_timestamp(declared) and declared.tz is not None:
        return value.astimezone(datetime.UTC)  # without a zone it is that of the process
    if pa.types.is_list(declared) or pa.types.is_large_list(declared):
        return [_as_declared(item, declared.value_type) for item in value]
    if pa.types.is_map(declared):
        items = value.items() if isinstance(value, Mapping) else value
        return {_as_declared(k, declared.key_type): _as_declared(v, declared.item_type) for k, v in items}
    if pa.types.is_struct(declared):
        fields = list(declared)
        values = [value.get(field.name) for field in fields] if isinstance(value, Mapping) else list(value)
        return {field.name: _as_declared(item, field.type) for field, item in zip(fields, values, strict=True)}
    return value


_PLAIN = (int, str, float, bool, type(None), bytes)


def _copied(value: Any) -> Any:
    """What a change in place of the value does not change."""
    return value if type(value) in _PLAIN else copy.deepcopy(value)


class StatefulBolt(Bolt):
    """A bolt that keeps a state for each key, exactly once: ``self.state`` in ``process``.

    It stands behind a fields grouping, whose fields are the key, and runs with ``scope="cluster"`` alone, from Spark
    4.1 on: Spark's state store keeps the states, and its checkpoint goes with them (docs/STAGES.md). A tuple that fails
    has changed nothing when it is processed again. Bolts behind it are a stage of their own, so that what fails there
    is not counted twice here.

    Attributes:
        state_fields (list[str]): what is kept of each key: names and types as Spark writes them.
        state_ttl_secs (float | None): seconds after which a key that was not changed is forgotten. Costs: Spark runs a
            micro-batch after the other then, with or without rows. None: never.

    Example:
        >>> from pystorm_source import Grouping
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Count(StatefulBolt):
        ...     outputs = ["word string", "count long"]
        ...     state_fields = ["count long"]
        ...     def process(self, tup):
        ...         self.state.count = (self.state.count or 0) + 1
        ...         self.emit([tup.values.word, self.state.count])
        >>> class Words(Topology):
        ...     words = MemorySpout.spec(fields=["word string"], rows=[["cow"], ["dog"], ["cow"]])
        ...     count = Count.spec(inputs={words: Grouping.fields("word")})
        >>> sorted(run_topology(Words, scope="cluster").rows("count"))
        [('cow', 1), ('cow', 2), ('dog', 1)]
    """

    state_fields: list[str] = []
    state_ttl_secs: float | None = None

    _pystorm_states: KeyedStates | None = None

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        own = cls.__dict__.get("process")
        if own is not None:
            cls.process = _with_state(own)  # type: ignore[assignment, method-assign]

    @property
    def state(self) -> KeyState:
        """In ``process``: the state of the tuple's key.

        Returns:
            KeyState: an attribute for each of ``state_fields``.

        Raises:
            ArgumentError: no tuple is processed now.
        """
        if self._pystorm_states is None:
            raise ArgumentError(
                "a StatefulBolt has states in a run alone: use self.state in process(). Given: self.state",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        return self._pystorm_states.current

    def fail(self, tup: Any, *, error: BaseException | None = None, retry: bool = True) -> None:
        """As ``Bolt.fail``: what the tuple has changed in its state is put back.

        Args:
            tup (Tuple | str): the tuple, or its id.
            error (BaseException): as of ``Bolt.fail``. Defaults to None.
            retry (bool): as of ``Bolt.fail``. Defaults to True.
        """
        if self._pystorm_states is not None:
            self._pystorm_states.fail(tup)
        super().fail(tup, error=error, retry=retry)


def _with_state(process: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The user's ``process``, with the state of the tuple's key, which it leaves as it was if it raises."""

    @wraps(process)
    def with_state(self: Any, tup: Any) -> Any:
        states = self._pystorm_states
        if states is None or states._tup is not None:  # super().process(tup)
            return process(self, tup)
        states.begin(tup)
        try:
            return process(self, tup)
        except BaseException:
            states.fail()
            raise
        finally:
            states.end()

    return with_state
