"""Spouts that read by tuple or by column, whichever serves what takes their rows."""

import inspect

from pystorm_source.api.partitioned_spout import PartitionedSpout

_BY_ROW = ("next_tuple", "emit", "ack", "fail")
"""What a subclass overrides to see each row."""


class EitherWaySpout(PartitionedSpout):
    """Defines both ``next_tuple`` and ``next_batch``, which give the same rows.

    Batches are read if none but the output and bolts of batches takes them, and no offset is asked for. A subclass of a
    ready-made spout that sees each row is read by tuple.
    """

    @classmethod
    def gives_batches(cls) -> bool:
        return False

    def _pystorm_reads_batches(self, straight: bool) -> bool:
        return straight and self._has_columns() and not any(map(self._overrides, _BY_ROW))

    def _has_columns(self) -> bool:
        """Whether the rows can be columns."""
        return True

    def _overrides(self, name: str) -> bool:
        """Whether another class than the ready-made spout, a subclass of it, defines the method."""
        own = next(each for each in type(self).__mro__ if each.__module__.startswith("pystorm_source."))
        return inspect.unwrap(getattr(type(self), name)) is not getattr(own, name)
