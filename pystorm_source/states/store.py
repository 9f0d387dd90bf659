"""Where a state keeps its entries, and one in memory."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NoReturn

import msgspec

from pystorm_source.errors import ArgumentTypeError


class Entry(msgspec.Struct, frozen=True, gc=False):
    """What a store keeps under a key. Values are JSON texts, which a store need not look into.

    Args:
        value (str): the newest value.
        txid (int): the batch that wrote it; None if the state has no txids. Defaults to None.
        previous (str): the value before that batch; None if the state does not keep it. Defaults to None.

    Example:
        >>> from pystorm_source.states import Entry
        >>> Entry("12.5", 7, "10.0")
        Entry(value='12.5', txid=7, previous='10.0')
    """

    # Neither a tuple nor tracked by the garbage collector, which would look through 10,000 of them in each batch.

    value: str
    txid: int | None = None
    previous: str | None = None


def is_newer(kept: Entry, entry: Entry) -> bool:
    """Whether a later batch wrote the kept entry."""
    return kept.txid is not None and entry.txid is not None and kept.txid > entry.txid


class Store(ABC):
    """A store of entries by key: what Trident calls a backing map. Derive from it to keep a state elsewhere.

    To implement: ``multi_get`` and ``multi_put``. ``prepare``, if the store connects or creates a table. The state
    calls them on the driver, or in tasks with ``on_executors``.

    A put may be cut at any point, if the process or the server is killed: some keys are then written and some are not.
    Each single key must be written completely, and the next get must see it once ``multi_put`` has returned.

    Example:
        >>> from pystorm_source.states import Entry, OpaqueMapState, Store
        >>> class Kept(Store):
        ...     def __init__(self):
        ...         self.kept = {}
        ...     def multi_get(self, keys):
        ...         return [self.kept.get(key) for key in keys]
        ...     def multi_put(self, entries):
        ...         self.kept.update(entries)
        >>> OpaqueMapState(Kept()).update(0, {"ann": lambda stored: (stored or 0) + 1})
        {'ann': 1}
    """

    def prepare(self, fields: Sequence[str]) -> None:  # noqa: B027  # a store may need nothing
        """Called before the first get, and when a query is made ready: connects, creates a table.

        Args:
            fields (Sequence[str]): the fields of ``Entry`` that the state uses: "value", perhaps "txid" and "previous".
        """

    @abstractmethod
    def multi_get(self, keys: Sequence[str]) -> Sequence[Entry | None]:
        """The entries of these keys.

        Args:
            keys (Sequence[str]): the keys as texts, each once.

        Returns:
            Sequence[Entry | None]: one for each key, in the same order; None for a key that is not there.
        """

    @abstractmethod
    def multi_put(self, entries: Mapping[str, Entry]) -> int | None:
        """Writes the entries and replaces existing ones, unless a later batch wrote those.

        An attempt of a batch may be stuck between its get and its put: a debugger, a lost executor, a slow machine.
        Then another attempt ends the batch, and later batches write the same keys. The store must refuse a put that
        arrives so late, in the statement that writes: ``UPDATE … WHERE txid <= :txid``.

        Args:
            entries (Mapping[str, Entry]): by key. Not empty, all of one batch.

        Returns:
            int | None: how many it has written: fewer than given if it has refused some. It should then write nothing
            rather than a part. None if the store does not look: then a late put overwrites newer values.
        """


class MemoryStore(Store):
    """Entries in a dictionary: for tests. It ends with the process.

    Example:
        >>> from pystorm_source.states import MemoryStore, TransactionalMapState
        >>> store = MemoryStore()
        >>> TransactionalMapState(store).update(3, {"ann": lambda stored: (stored or 0) + 2})
        {'ann': 2}
        >>> store.entries
        {'ann': Entry(value='2', txid=3, previous=None)}
    """

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}

    def multi_get(self, keys: Sequence[str]) -> Sequence[Entry | None]:
        return [self.entries.get(key) for key in keys]

    def multi_put(self, entries: Mapping[str, Entry]) -> int:
        for key, entry in entries.items():
            kept = self.entries.get(key)
            if kept is not None and is_newer(kept, entry):
                return 0
        self.entries.update(entries)
        return len(entries)

    def __reduce__(self) -> NoReturn:
        raise ArgumentTypeError(
            "a MemoryStore lives in one process, and a copy would forget what it writes: keep the state in a database "
            "to update it on executors or by Spark Connect. Given: a MemoryStore that is to be pickled",
            code="PYSTORM_INVALID_ARGUMENT",
        )
