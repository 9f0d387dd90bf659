"""One batch of a state: reads each key once, updates in memory, writes each key once, at the end.

    with state.batch(7):   get, get, update, …  (memory)   → one put, and Spark then notes batch 7 as done
                                                    ↑ killed before, in the middle or after it: batch 7 comes again

Each key is written once per batch, and that is part of the promise. If a batch wrote a key by two puts and were killed
between them, a replay of it would take the first half for the whole.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from pystorm_source.errors import ArgumentError, ArgumentTypeError, given
from pystorm_source.states.key import key_text
from pystorm_source.states.store import Entry

if TYPE_CHECKING:
    from pystorm_source.states.map_state import MapState

V = TypeVar("V")
K = TypeVar("K", bound=Hashable)


class _Slot:
    """A key of the batch. ``before``: its value when the batch began, as text; ``value``: its value by now."""

    __slots__ = ("before", "changed", "fixed", "value")

    def __init__(self, before: str | None, value: Any, fixed: bool):
        self.before = before
        self.value = value
        self.fixed = fixed  # this batch has been applied to it: updates change nothing
        self.changed = False


class StateBatch(Generic[V]):
    """The state while one batch updates it: ``with state.batch(batch_id) as batch:``.

    Gets see the updates of the same batch. The store is written when the block ends, and not if it raises.

    Example:
        >>> from pystorm_source.states import MemoryStore, OpaqueMapState
        >>> state = OpaqueMapState(MemoryStore())
        >>> with state.batch(0) as batch:
        ...     batch.put("ann", 5)
        ...     batch.get("ann")
        5
        >>> state.get("ann")
        5
    """

    def __init__(self, state: "MapState[V]", batch_id: int):
        """Users get one by ``MapState.batch``.

        Args:
            state (MapState): the state that it belongs to.
            batch_id (int): the number of the batch.

        Raises:
            ArgumentTypeError: the batch has no such number.
        """
        if not isinstance(batch_id, int) or batch_id < 0:
            raise ArgumentTypeError(
                "a batch has a number from 0 on, such as Spark gives it to the function of foreachBatch. "
                f"Given: {given(batch_id)}",
                code="PYSTORM_WRONG_TYPE",
            )
        self._state = state
        self._id = batch_id
        self._slots: dict[str, _Slot] = {}
        self._ended = False

    def get(self, key: Hashable) -> V | None:
        """The value of a key, with the updates of this batch.

        Args:
            key (Hashable): a text, number, date, time, UUID, bytes or None, or a tuple of these.

        Returns:
            V | None: None if it has no value.
        """
        return self.multi_get([key])[0]

    def multi_get(self, keys: Iterable[Hashable]) -> list[V | None]:
        """The values of these keys, with the updates of this batch.

        Args:
            keys (Iterable[Hashable]): the keys.

        Returns:
            list[V | None]: one for each key, in the same order.

        Raises:
            ArgumentError: the block of the batch has ended.
        """
        return [slot.value for slot in self._load([key_text(key) for key in keys])]

    def put(self, key: Hashable, value: V | None) -> None:
        """Sets the value of a key, whatever it was.

        Args:
            key (Hashable): the key.
            value (V | None): its value; None removes it.
        """
        self.update({key: lambda stored: value})

    def remove(self, keys: Iterable[Hashable]) -> None:
        """Takes the values of these keys away. Their entries stay, with null, so that a replay can restore them.

        Args:
            keys (Iterable[Hashable]): the keys.
        """
        self.update({key: lambda stored: None for key in keys})

    def update(self, updaters: Mapping[K, Callable[[V | None], V | None]]) -> dict[K, V | None]:
        """Updates each key by a function of its own.

        A transactional state does not call it if this batch has been applied to the key.

        Args:
            updaters (Mapping[K, Callable[[V | None], V | None]]): key → function, which gets the value, None for none,
                and gives the new one, None to remove it.

        Returns:
            dict[K, V | None]: key → its value now.

        Raises:
            ArgumentError: the block of the batch has ended.
        """
        slots = self._load([key_text(key) for key in updaters])
        for updater, slot in zip(updaters.values(), slots, strict=True):
            if not slot.fixed:
                slot.value = updater(slot.value)
                slot.changed = True
        return {key: slot.value for key, slot in zip(updaters, slots, strict=True)}

    def aggregate(
        self,
        items: Mapping[K, Any] | Iterable[tuple[K, Any]],
        combine: Callable[[Any, Any], Any],
        zero: Callable[[], Any] | None = None,
    ) -> dict[K, V | None]:
        """Combines values with those of their keys: what Trident's ``persistentAggregate`` does with a batch.

        Args:
            items (Mapping[K, Any] | Iterable[tuple[K, Any]]): keys and values; pairs may name a key several times.
            combine (Callable[[Any, Any], Any]): gets the stored value and the item's, gives the new one:
                ``operator.add``, ``max``.
            zero (Callable[[], Any]): makes the stored value of a new key, such as ``list``. Defaults to None: the
                item's value becomes the stored one.

        Returns:
            dict[K, V | None]: key → its value now.

        Raises:
            ArgumentError: the block of the batch has ended.
        """
        pairs = list(items.items() if isinstance(items, Mapping) else items)
        slots = self._load([key_text(key) for key, _ in pairs])
        for (_, value), slot in zip(pairs, slots, strict=True):
            if slot.fixed:
                continue
            if slot.value is not None:
                slot.value = combine(slot.value, value)
            else:
                slot.value = value if zero is None else combine(zero(), value)
            slot.changed = True
        return {key: slot.value for (key, _), slot in zip(pairs, slots, strict=True)}

    def _load(self, texts: list[str]) -> list[_Slot]:
        """The slots of these keys; those that are new to the batch are read, all at once. Raises ArgumentError."""
        if self._ended:
            raise ArgumentError(
                f"batch {self._id} has ended: call it inside of the block `with state.batch({self._id}) as batch:`. "
                f"Given: a call behind it",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        missing = [text for text in dict.fromkeys(texts) if text not in self._slots]
        if missing:
            for text, entry in zip(missing, self._state.entries(missing), strict=True):
                before, fixed = (None, False) if entry is None else self._state.seen_by(self._id, text, entry)
                value = None if before is None else self._state.values.decode(before)
                self._slots[text] = _Slot(before, value, fixed)
        return [self._slots[text] for text in texts]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended = True
        if kind is None:
            self._state.write(self._entries())

    def _entries(self) -> dict[str, Entry]:
        encode, entry_of = self._state.values.encode, self._state.entry_of
        return {
            text: entry_of(self._id, encode(slot.value), slot.before)
            for text, slot in self._slots.items()
            if slot.changed
        }
