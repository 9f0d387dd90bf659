"""Bolts: they process tuples."""

from typing import Any

from cython_core.output_collector import BoltBase
from cython_core.tuple import SYSTEM_COMPONENT, TICK_STREAM, Tuple, is_final_tick
from pystorm_source.api.component import Component
from pystorm_source.api.component_spec import ComponentSpec


class Bolt(Component, BoltBase):
    """A bolt in streamparse's shape: ``process`` gets one tuple and may emit any number.

    Emits are anchored to the tuple in ``process`` (``auto_anchor``), which is acked when ``process`` returns
    (``auto_ack``) and failed when it raises (``auto_fail``); class attributes, or set in ``initialize``. The first
    verdict of a tuple counts, a second has no effect. An exception fails the Spark task, unless ``exit_on_exception``
    is False: then it is logged and counted, the tuple is failed, and the bolt goes on with the next one.
    """

    auto_anchor = True
    auto_ack = True
    auto_fail = True

    def process(self, tup: Tuple) -> None:
        """Handles one tuple. An exception that fails the Spark task names component, task, values and offset."""
        raise NotImplementedError(f"{type(self).__name__} must define process(tup)")

    @staticmethod
    def is_tick(tup: Tuple) -> bool:
        """Whether this is a tick tuple of the engine."""
        return tup.component == SYSTEM_COMPONENT and tup.stream == TICK_STREAM

    @staticmethod
    def is_final_tick(tup: Tuple) -> bool:
        """Whether this is the tick that ends a range, and with it a micro-batch, not one that time has brought.

        Its value is 0, that of any other tick the period in seconds. It comes once per range: a Spark task reads one
        range of the micro-batch, and no task knows whether its process gets another one.

        Example::

            def process_tick(self, tup):
                if not self.is_final_tick(tup):
                    self.seconds += tup.values[0]
        """
        return is_final_tick(tup)

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        inputs: Any = None,
        par: int | dict[str, int] | None = None,
        config: dict[str, Any] | None = None,
    ) -> ComponentSpec:
        """This bolt for a Topology.

        ``inputs``: a spec or ``spec["stream"]``, a list of these (shuffled), or a dict of these to Groupings. ``par``:
        tasks inside one Spark task. ``config``: for this component only.
        """
        return ComponentSpec(cls, name=name, inputs=inputs, par=par, config=config)
