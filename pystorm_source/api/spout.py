"""Spouts: they bring tuples into a topology."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from cython_core.routing.component_base import SpoutBase
from cython_core.routing.failure_kinds import RetryLater
from pystorm_source.api.component import Component
from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.errors import MethodMissingError


class Spout(Component, SpoutBase):
    """A spout without offsets: ``next_tuple`` emits what there is. streamparse's ``Spout``.

    Trap: Spark cannot ask it again. A streaming query needs the option ``journal.path``, which writes its tuples down
    and replays them from there, or ``delivery.guarantee=best-effort``, which replays nothing. If your source can be
    read again, write a ``PartitionedSpout``.

    Example:
        >>> class Greeting(Spout):
        ...     outputs = ["word string"]
        ...     words = iter(["hello", "world"])
        ...     def next_tuple(self):
        ...         for word in self.words:
        ...             self.emit([word])
        ...             return
        >>> from pystorm_source.testing import run_topology
        >>> class Greetings(Topology):
        ...     greeting = Greeting.spec()
        >>> run_topology(Greetings).rows("greeting")
        [('hello',), ('world',)]
    """

    # The engine's: its retries and dead letters; None outside of a topology.
    _pystorm_retries: Any = None
    _pystorm_outage: Any = None
    _pystorm_opens_source = True  # False: `open` says nothing about whether the source answers

    def next_tuple(self) -> Any:
        """Emits zero or more tuples; must not block, because other components may share its thread.

        Returns:
            Any: False if the micro-batch gets nothing more from this spout. Anything else without an emit says that
                there is nothing now.
        """
        raise MethodMissingError(f"{type(self).__name__} must define next_tuple()", code="PYSTORM_INVALID_COMPONENT")

    def _pystorm_repeatable(self) -> AbstractContextManager[None]:
        """Wraps a call that may be made again with the same arguments, as ``topology.retry.on`` says."""
        return nullcontext() if self._pystorm_outage is None else self._pystorm_outage.repeatable()

    def _pystorm_is_busy(self, error: Exception) -> bool:
        """Whether a call that raised this is repeated, with pauses that the engine counts."""
        return isinstance(error, RetryLater) or (
            self._pystorm_outage is not None and self._pystorm_outage.passes(error)
        )

    def _pystorm_notes(self) -> str:
        """Returns JSON text: where the spout is after the rows of this micro-batch. ``over``: its source then had
        nothing more."""
        raise NotImplementedError

    def _pystorm_resume(self, notes: str | None) -> None:
        """Goes on where ``_pystorm_notes`` was; None: at the beginning."""
        raise NotImplementedError

    def _pystorm_batch_ended(self, is_journaled: bool) -> None:
        """What was emitted since the last time is in the journal for good, or does not count. May raise RetryLater."""

    def activate(self) -> None:
        """Called before the spout is asked for the tuples of a micro-batch."""

    def deactivate(self) -> None:
        """Called when the micro-batch wants no more tuples."""

    @classmethod
    def spec(
        cls, name: str | None = None, par: int | dict[str, int] | None = None, config: dict[str, Any] | None = None
    ) -> ComponentSpec:
        """This spout for a Topology.

        Args:
            name (str): name of the component. Defaults to its attribute's name in the Topology.
            par (int | dict[str, int]): tasks inside one Spark task, at least 1; or environment → tasks. Defaults to
                the class's ``par``.
            config (dict): configuration of this component only, JSON. Defaults to the class's ``config``.

        Returns:
            ComponentSpec: what an attribute of the Topology is set to.

        Raises:
            ArgumentTypeError: an argument of another type.
            TopologyError: a name that begins with ``__``, or ``par`` below 1.
        """
        return ComponentSpec(cls, name=name, par=par, config=config)
