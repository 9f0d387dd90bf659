"""Spouts: they bring tuples into a topology."""

from typing import Any

from cython_core.output_collector import SpoutBase
from pystorm_source.api.component import Component
from pystorm_source.api.component_spec import ComponentSpec


class Spout(Component, SpoutBase):
    """A spout in streamparse's shape: ``next_tuple`` emits zero or more tuples and must not block.

    It has no offsets, so Spark cannot ask it again: in a streaming query it runs with the option ``journal.path``,
    which keeps its tuples for a replay, or with ``delivery.guarantee=best-effort``, without replay. If the external
    system can be read again, write a ``PartitionedSpout``.
    """

    # The engine's: its retries and dead letters; None outside of a topology.
    _pystorm_retries: Any = None

    def next_tuple(self) -> Any:
        """Emits the next tuple; a return without an emit means that there is none now."""
        raise NotImplementedError(f"{type(self).__name__} must define next_tuple()")

    def activate(self) -> None:
        """Called before the spout is asked for the tuples of a micro-batch."""

    def deactivate(self) -> None:
        """Called when the micro-batch wants no more tuples."""

    @classmethod
    def spec(
        cls, name: str | None = None, par: int | dict[str, int] | None = None, config: dict[str, Any] | None = None
    ) -> ComponentSpec:
        """This spout for a Topology. ``par``: tasks inside one Spark task; ``config``: for this component only."""
        return ComponentSpec(cls, name=name, par=par, config=config)
