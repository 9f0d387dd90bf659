"""Map states: values by key in a store, brought up to date batch by batch. Trident's three kinds.

What each keeps under a key, and what batch 7 sees there after batch 7 was cut and comes again:

                        keeps                          batch 7 sees         so it is exact
    non-transactional   value                          value                if no batch ever comes again
    transactional       value, txid                    value; txid 7: done  if a batch comes again with the same rows
    opaque              value, txid, previous          txid 7: previous     also if its rows have changed for that key
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from pystorm_source.errors import ArgumentError, CheckpointError, given
from pystorm_source.states.entry_cache import EntryCache
from pystorm_source.states.key import key_texts
from pystorm_source.states.state_batch import StateBatch
from pystorm_source.states.store import Entry, Store, is_newer
from pystorm_source.states.store_at import store_at
from pystorm_source.states.value_text import NULL, ValueText

V = TypeVar("V")
K = TypeVar("K", bound=Hashable)

CACHE = 10_000
"""Entries. Fewer: a batch reads keys again that the one before it wrote. More: memory of the driver, about 500 bytes
each."""


class MapState(ABC, Generic[V]):
    """Values by key in a store. Take one of the three kinds: ``TransactionalMapState`` unless you know better.

    Call it from ``foreachBatch``, on the driver. Only one query may write to a state: batch ids belong to a query.

    Attributes:
        fields (tuple[str, ...]): what the kind keeps under a key, of ``Entry``.

    Example:
        >>> from pystorm_source.states import MapState, OpaqueMapState
        >>> issubclass(OpaqueMapState, MapState), OpaqueMapState.fields
        (True, ('value', 'txid', 'previous'))
    """

    fields: ClassVar[tuple[str, ...]]

    def __init__(self, where: Store | str, name: str | None = None, *, cache: int = CACHE, type: Any = None):
        """Connects when it is first used.

        Args:
            where (Store | str): a store, or the URL of a database: "postgresql://user@host/db", "sqlite:///file.db",
                "redis://host:6379/0".
            name (str): with a URL: the table, which may have a schema in front, or the prefix of Redis' keys. Defaults
                to None, for a store.
            cache (int): how many entries to keep in memory, those used last; 0: no entries. Defaults to 10000.
            type (Any): the type of the values, if JSON does not tell it: ``Decimal``, ``date``, ``tuple[int, int]``,
                a dataclass. Defaults to None: numbers, texts, lists, dictionaries.

        Raises:
            ArgumentError: the URL names no known store, or the name or the size of the cache makes no sense.
        """
        if isinstance(where, Store) == (name is not None):
            raise ArgumentError(
                "a state is given a URL and a name for its table or its keys, or a store alone: "
                f'{self.__class__.__name__}("postgresql://…", "totals"). Given: name={given(name)}',
                code="PYSTORM_INVALID_ARGUMENT",
            )
        if not isinstance(cache, int) or cache < 0:
            raise ArgumentError(
                f"cache is a number of entries, 0 for none. Given: {given(cache)}", code="PYSTORM_INVALID_ARGUMENT"
            )
        self.store: Store = where if isinstance(where, Store) else store_at(where, str(name))
        self.values = ValueText(type)
        self._cache = EntryCache(cache)
        self._is_prepared = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store!r})"

    def __getstate__(self) -> dict[str, Any]:
        """Without entries: a copy in another process would not see what this one writes."""
        copied = {"_cache": EntryCache(self._cache.size), "_is_prepared": False, "values": self.values.kind}
        return vars(self) | copied

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, values=ValueText(state["values"]))

    def prepare(self) -> None:
        """Blocking. Connects to the store and creates its table, so that errors show before a query runs."""
        if not self._is_prepared:
            self.store.prepare(self.fields)
            self._is_prepared = True

    # --- for users

    def get(self, key: Hashable) -> V | None:
        """Blocking. The value that the store has for a key now: Trident's ``stateQuery``.

        Args:
            key (Hashable): a text, number, date, time, UUID, bytes or None, or a tuple of these.

        Returns:
            V | None: None if it has no value.
        """
        return self.multi_get([key])[0]

    def multi_get(self, keys: Iterable[Hashable]) -> list[V | None]:
        """Blocking. The values that the store has now, past the cache: another process may have written them.

        Args:
            keys (Iterable[Hashable]): the keys.

        Returns:
            list[V | None]: one for each key, in the same order.
        """
        self.prepare()
        texts = key_texts(keys)
        distinct = list(dict.fromkeys(texts))
        found = dict(zip(distinct, self.store.multi_get(distinct), strict=True)) if distinct else {}
        entries = [found[text] for text in texts]
        return [None if entry is None else self.values.decode(entry.value) for entry in entries]

    def batch(self, batch_id: int) -> StateBatch[V]:
        """The state for one batch. Use it as ``with state.batch(batch_id) as batch:``.

        Args:
            batch_id (int): the number that Spark gives to the function of ``foreachBatch``: Trident's transaction id.

        Returns:
            StateBatch: gets and updates; written when the block ends.
        """
        return StateBatch(self, batch_id)

    def update(self, batch_id: int, updaters: Mapping[K, Callable[[V | None], V | None]]) -> dict[K, V | None]:
        """Blocking. Updates these keys, as one complete batch.

        Trap: call it once for a batch. A second call with the same number counts as the replay of the first.

        Args:
            batch_id (int): the number of the batch.
            updaters (Mapping[K, Callable[[V | None], V | None]]): key → function of the value; None: no value.

        Returns:
            dict[K, V | None]: key → its value now.
        """
        with self.batch(batch_id) as batch:
            return batch.update(updaters)

    def aggregate(
        self,
        batch_id: int,
        items: Mapping[K, Any] | Iterable[tuple[K, Any]],
        combine: Callable[[Any, Any], Any],
        zero: Callable[[], Any] | None = None,
    ) -> dict[K, V | None]:
        """Blocking. Combines the values of a batch with the stored values of their keys, as one complete batch.

        Trap: call it once for a batch. A second call with the same number counts as the replay of the first.

        Args:
            batch_id (int): the number of the batch.
            items (Mapping[K, Any] | Iterable[tuple[K, Any]]): keys and values; pairs may name a key several times.
            combine (Callable[[Any, Any], Any]): takes the stored value and the item's, returns the new one.
            zero (Callable[[], Any]): makes the stored value of a new key. Defaults to None: the item's value becomes
                the stored one.

        Returns:
            dict[K, V | None]: key → its value now.
        """
        with self.batch(batch_id) as batch:
            return batch.aggregate(items, combine, zero)

    # --- for its batches

    def entries(self, keys: Sequence[str]) -> list[Entry | None]:
        """Blocking. The entries of these keys, from the cache or the store. Only this state's puts change them.

        Args:
            keys (Sequence[str]): the keys as texts, each once.

        Returns:
            list[Entry | None]: one for each key.
        """
        self.prepare()
        cached = self._cache.multi_get(keys)
        missing = [key for key, entry in zip(keys, cached, strict=True) if entry is None]
        if not missing:
            return cached
        read = dict(zip(missing, self.store.multi_get(missing), strict=True))
        self._cache.put((key, entry) for key, entry in read.items() if entry is not None)
        return [read.get(key) if entry is None else entry for key, entry in zip(keys, cached, strict=True)]

    def write(self, entries: Mapping[str, Entry]) -> None:
        """Blocking. Puts the entries into the store, then into the cache.

        Args:
            entries (Mapping[str, Entry]): by key; may be empty.

        Raises:
            CheckpointError: a later batch has written some of these keys since they were read.
        """
        if not entries:
            return
        try:
            written = self.store.multi_put(entries)
            if written is not None and written < len(entries):
                self._refuse_late_put(entries)
        except BaseException:
            self._cache.discard(entries)  # any of them may have been written: the replay must ask the store
            raise
        self._cache.put(entries.items())

    def _refuse_late_put(self, entries: Mapping[str, Entry]) -> None:
        """Raises CheckpointError, with the key that the store has from a later batch."""
        keys = list(entries)
        for key, kept in zip(keys, self.store.multi_get(keys), strict=True):
            if kept is not None and is_newer(kept, entries[key]):
                raise _behind(kept, key, entries[key])
        raise _behind(None, keys[0], entries[keys[0]])

    @abstractmethod
    def seen_by(self, batch_id: int, key: str, entry: Entry) -> tuple[str | None, bool]:
        """What a batch sees of an entry that was there before it.

        Args:
            batch_id (int): the number of the batch.
            key (str): the key as text, for messages.
            entry (Entry): what the store has.

        Returns:
            tuple[str | None, bool]: the value; whether the batch has been applied to it.

        Raises:
            CheckpointError: a later batch wrote it.
        """

    @abstractmethod
    def entry_of(self, batch_id: int, value: str, before: str | None) -> Entry:
        """What a batch writes.

        Args:
            batch_id (int): the number of the batch.
            value (str): the new value.
            before (str | None): the value before the batch; None: no value.

        Returns:
            Entry: with the fields of this kind.
        """


class NonTransactionalMapState(MapState[V]):
    """Keeps only values. **Not exactly once**: a batch that comes again is counted again.

    Use it for values that may be counted twice: a maximum, a set, the newest value.

    Example:
        >>> from pystorm_source.states import MemoryStore, NonTransactionalMapState
        >>> state = NonTransactionalMapState(MemoryStore())
        >>> state.aggregate(0, {"ann": 5}, max), state.aggregate(0, {"ann": 5}, max)
        ({'ann': 5}, {'ann': 5})
    """

    fields = ("value",)

    def seen_by(self, batch_id: int, key: str, entry: Entry) -> tuple[str | None, bool]:
        return entry.value, False

    def entry_of(self, batch_id: int, value: str, before: str | None) -> Entry:
        return Entry(value)


class TransactionalMapState(MapState[V]):
    """Keeps each value with the batch that wrote it: a batch that comes again **with the same rows** counts once.

    Spark gives the same rows again if the source can replay, like Kafka, tables and the sources of this package, and
    the steps between source and state are deterministic. If they might not be, take ``OpaqueMapState``.

    Example:
        >>> from operator import add
        >>> from pystorm_source.states import MemoryStore, TransactionalMapState
        >>> state = TransactionalMapState(MemoryStore())
        >>> [state.aggregate(batch_id, {"ann": 5}, add) for batch_id in (0, 0, 1)]
        [{'ann': 5}, {'ann': 5}, {'ann': 10}]
    """

    fields = ("value", "txid")

    def seen_by(self, batch_id: int, key: str, entry: Entry) -> tuple[str | None, bool]:
        return entry.value, _newest(batch_id, key, entry)

    def entry_of(self, batch_id: int, value: str, before: str | None) -> Entry:
        return Entry(value, batch_id)


class OpaqueMapState(MapState[V]):
    """Keeps each value with its batch and the value before: a batch that comes again replaces what it did.

    The rows may differ then, for example after a bolt that asks a service. A key that only the first attempt had keeps
    that attempt's value: no state can know about it.

    Example:
        >>> from operator import add
        >>> from pystorm_source.states import MemoryStore, OpaqueMapState
        >>> state = OpaqueMapState(MemoryStore())
        >>> [state.aggregate(batch_id, {"ann": more}, add) for batch_id, more in [(0, 5), (0, 6), (1, 1)]]
        [{'ann': 5}, {'ann': 6}, {'ann': 7}]
    """

    fields = ("value", "txid", "previous")

    def seen_by(self, batch_id: int, key: str, entry: Entry) -> tuple[str | None, bool]:
        return (entry.previous if _newest(batch_id, key, entry) else entry.value), False

    def entry_of(self, batch_id: int, value: str, before: str | None) -> Entry:
        return Entry(value, batch_id, NULL if before is None else before)


def _newest(batch_id: int, key: str, entry: Entry) -> bool:
    """Whether this very batch wrote the entry. Raises CheckpointError if a later one did."""
    if entry.txid is None or entry.txid < batch_id:
        return False
    if entry.txid == batch_id:
        return True
    raise CheckpointError(
        f"the state is ahead of the query: batch {entry.txid} wrote key {given(key)}, and this is batch {batch_id}. A "
        "new checkpoint counts from 0 again: give the state a new name, or continue with its old checkpoint. Two "
        f"queries cannot share a state. Given: batch {batch_id}",
        code="PYSTORM_BATCH_BEHIND_STATE",
    )


def _behind(kept: Entry | None, key: str, entry: Entry) -> CheckpointError:
    by = "another batch" if kept is None else f"batch {kept.txid}"
    late = f"batch {entry.txid}"
    return CheckpointError(
        f"{by} has written key {given(key)} since {late} read it, so the store has refused this put. If another "
        f"attempt of {late} has ended meanwhile, all is well. If two queries write to this state, give each a name of "
        f"its own. Given: {late}",
        code="PYSTORM_BATCH_BEHIND_STATE",
    )
