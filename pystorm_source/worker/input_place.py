"""Which input a run reads: it names an input row for services that must do each row once."""

from collections.abc import Callable

from cython_core.tuples.tuple import Tuple, offset_of_tree


class InputPlace:
    """The input of one worker, for its components. ``prefix``: goes before spout and partition, such as the topology's
    name. ``key_of``: the user's own key of an input row, by its offset, which replaces all that. ``refused``: why rows
    have no key without that one; empty if they have. ``denied``: whether a refused key was asked for."""

    def __init__(self, prefix: str):
        self.prefix = prefix
        self.key_of: Callable[[int], str] | None = None
        self.refused = ""
        self.denied = False
        self._spout = self._partition = ""
        self._several = False

    def opened(self, spout: str, partition: str) -> None:
        """Rows now come from this partition."""
        self._several |= bool(self._spout) and spout != self._spout
        self._spout, self._partition = spout, partition

    def ended(self) -> None:
        """The run has ended."""
        self._spout = self._partition = ""
        self._several = False
        self.key_of = None

    def key_of_tuple(self, tup: Tuple) -> str | None:
        """The key of the input row that it stems from; None if it stems from several rows, or from one without a
        key."""
        offset = offset_of_tree(tup)
        return self.key(offset) if offset >= 0 else None

    @property
    def refuses(self) -> bool:
        """Whether rows have no key, although they have offsets."""
        return bool(self.refused) and self.key_of is None

    def key(self, offset: int) -> str | None:
        """The key of the input row at that offset; None if keys are refused, or unless a single spout with offsets is
        read."""
        if self._several or not self._spout:
            return None
        if self.key_of is not None:
            return self.key_of(offset)
        if self.refused:
            self.denied = True
            return None
        return f"{self.prefix}/{self._spout}/{self._partition}/{offset}"
