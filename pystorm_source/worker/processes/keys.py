"""Keys of input rows in a child: the parent sends them before the tuples, if the bolt's class names them.

Threading law: for the thread that runs the bolt.
"""

from collections.abc import Sequence

from cython_core.tuples.tuple import Tuple, ids_of_trees

_NOT_SENT = (
    "a bolt with processes= has the keys of its tuples only if its class names idempotency_key, and this one leaves it "
    "to a function elsewhere: call it in a method of the class"
)


class Keys:
    """Replaces a worker's InputPlace. ``refused``: why rows have no key; empty if they have."""

    def __init__(self) -> None:
        self.refused = _NOT_SENT
        self._keys: dict[int, str | None] = {}

    def add(self, first: int, keys: Sequence[str | None], refused: str) -> None:
        """Adds the keys of tuples numbered from ``first`` on."""
        self._keys.update(enumerate(keys, first))
        self.refused = refused

    def forget(self, number: int) -> None:
        """Its tuple has a verdict."""
        self._keys.pop(number, None)

    def key_of_tuple(self, tup: Tuple) -> str | None:
        """As ``InputPlace``."""
        (numbers, _) = ids_of_trees(tup)
        return self._keys.get(numbers[0]) if len(numbers) == 1 else None
