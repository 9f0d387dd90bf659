"""One batch of a state: reads each key once, updates in memory, writes each key once, at the end.

    with state.batch(7):   get, get, update, …  (memory)   → one put, and Spark then notes batch 7 as done
                                                    ↑ killed before, in the middle or after it: batch 7 comes again

Each key is written once per batch, and that is part of the promise. If a batch wrote a key with two puts and were
killed between them, its replay would mistake the first half for all of it.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from pystorm_source.errors import ArgumentError, ArgumentTypeError, given
from pystorm_source.states.key import key_texts
from pystorm_source.states.store import Entry
from pystorm_source.states.value_text import NULL, ValueText

V = TypeVar("V")
K = TypeVar("K", bound=Hashable)


class State(Protocol):
    """What a batch asks of its ``MapState``."""

    values: ValueText

    def entries(self, keys: Sequence[str]) -> list[Entry | None]:
        """What the store has of these keys."""
        ...

    def write(self, entries: Mapping[str, Entry]) -> None:
        """Puts them into the store."""

    def seen_by(self, batch_id: int, key: str, entry: Entry) -> tuple[str | None, bool]:
        """What a batch sees of an entry that was there before it, and whether the batch has been applied to it."""
        ...

    def entry_of(self, batch_id: int, value: str, before: str | None) -> Entry:
        """What the batch writes."""
        ...


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

    def __init__(self, state: State, batch_id: int):
        """Users get one by ``MapState.batch``.

        Args:
            state (MapState): the state that it belongs to.
            batch_id (int): the number of the batch.

        Raises:
            ArgumentTypeError: the number is not an int, or below 0.
        """
        if not isinstance(batch_id, int) or batch_id < 0:
            raise ArgumentTypeError(
                "a batch has a number from 0 on, such as Spark gives it to the function of foreachBatch. "
                f"Given: {given(batch_id)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        self._state = state
        self._id = batch_id
        # For each key that the batch has named, by its text. Plain dictionaries: a batch may have 100,000 keys.
        self._before: dict[str, str | None] = {}  # the value when the batch began, as text
        self._values: dict[str, Any] = {}  # the value by now
        self._fixed: set[str] = set()  # this batch has been applied to these: updates change nothing
        self._changed: set[str] = set()
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
        texts = self._load(keys)
        return [self._values[text] for text in texts]

    def put(self, key: Hashable, value: V | None) -> None:
        """Sets the value of a key.

        Args:
            key (Hashable): the key.
            value (V | None): its value; None removes it.
        """
        self.update({key: lambda stored: value})

    def remove(self, keys: Iterable[Hashable]) -> None:
        """Removes the values of these keys. Their entries stay, with null, so that a replay can restore them.

        Args:
            keys (Iterable[Hashable]): the keys.
        """
        self.update({key: lambda stored: None for key in keys})

    def update(self, updaters: Mapping[K, Callable[[V | None], V | None]]) -> dict[K, V | None]:
        """Updates each key with its own function.

        A transactional state does not call it if this batch has been applied to the key.

        Args:
            updaters (Mapping[K, Callable[[V | None], V | None]]): key → function, which takes the value, or None
                without one, and returns the new value, or None to remove it.

        Returns:
            dict[K, V | None]: key → its value now.

        Raises:
            ArgumentError: the block of the batch has ended.
        """
        texts, values = self._load(updaters), self._values
        for updater, text in zip(updaters.values(), texts, strict=True):
            if text not in self._fixed:
                values[text] = updater(values[text])
                self._changed.add(text)
        return {key: values[text] for key, text in zip(updaters, texts, strict=True)}

    def aggregate(
        self,
        items: Mapping[K, Any] | Iterable[tuple[K, Any]],
        combine: Callable[[Any, Any], Any],
        zero: Callable[[], Any] | None = None,
    ) -> dict[K, V | None]:
        """Combines values with the stored values of their keys, like Trident's ``persistentAggregate`` with a batch.

        Args:
            items (Mapping[K, Any] | Iterable[tuple[K, Any]]): keys and values; pairs may name a key several times.
            combine (Callable[[Any, Any], Any]): takes the stored value and the item's, returns the new one:
                ``operator.add``, ``max``.
            zero (Callable[[], Any]): makes the stored value of a new key, such as ``list``. Defaults to None: the
                item's value becomes the stored one.

        Returns:
            dict[K, V | None]: key → its value now.

        Raises:
            ArgumentError: the block of the batch has ended.
        """
        pairs = list(items.items() if isinstance(items, Mapping) else items)
        keys = [key for key, _ in pairs]
        texts, values, fixed = self._load(keys), self._values, self._fixed
        for (_, value), text in zip(pairs, texts, strict=True):
            if text not in fixed:
                stored = values[text]
                if stored is None:
                    values[text] = value if zero is None else combine(zero(), value)
                else:
                    values[text] = combine(stored, value)
        self._changed.update(texts)
        return dict(zip(keys, [values[text] for text in texts], strict=True))

    def _load(self, keys: Iterable[Hashable]) -> list[str]:
        """The texts of these keys; those that are new to the batch are read, all at once. Raises ArgumentError."""
        if self._ended:
            raise ArgumentError(
                f"batch {self._id} has ended: call it inside of the block `with state.batch({self._id}) as batch:`. "
                f"Given: a call behind it",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        texts = key_texts(keys)
        missing = [text for text in dict.fromkeys(texts) if text not in self._values]
        if missing:
            entries = self._state.entries(missing)
            before = [
                None if entry is None else self._seen(text, entry) for text, entry in zip(missing, entries, strict=True)
            ]
            decoded = self._state.values.decode_all([NULL if text is None else text for text in before])
            self._before.update(zip(missing, before, strict=True))
            self._values.update(zip(missing, decoded, strict=True))
        return texts

    def _seen(self, text: str, entry: Entry) -> str | None:
        value, fixed = self._state.seen_by(self._id, text, entry)
        if fixed:
            self._fixed.add(text)
        return value

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended = True
        if kind is None:
            self._state.write(self._entries())

    def _entries(self) -> dict[str, Entry]:
        texts = [text for text in self._values if text in self._changed and text not in self._fixed]
        encoded = self._state.values.encode_all([self._values[text] for text in texts])
        entry_of, before, number = self._state.entry_of, self._before, self._id
        return {text: entry_of(number, value, before[text]) for text, value in zip(texts, encoded, strict=True)}
