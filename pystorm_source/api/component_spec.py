"""A component as it stands in a topology: class, name, inputs, parallelism, configuration."""

import copy
import json
from dataclasses import dataclass
from typing import Any

from pystorm_source.api.grouping import Grouping
from pystorm_source.api.stream import Stream


@dataclass(frozen=True)
class GlobalStreamId:
    """A stream of a component: what a subscription names. ``component`` is a spec, or a component's name."""

    component: Any
    stream: str = "default"


class ComponentSpec:
    """Made by ``Spout.spec`` and ``Bolt.spec``; named after its attribute in the Topology unless given a name.

    ``spec["stream"]`` names one of its streams. Raises TypeError and ValueError for wrong arguments, KeyError for an
    undeclared stream.
    """

    def __init__(
        self,
        component_cls: type[Any],
        name: str | None = None,
        inputs: Any = None,
        par: int | None = None,
        config: dict[str, Any] | None = None,
    ):
        self.component_cls = component_cls
        self.name = self._checked_name(name)
        self.streams = Stream.all_of(getattr(component_cls, "outputs", None), given_by=component_cls.__name__)
        self.par = self._checked_par(component_cls.par if par is None else par)
        self.config = self._checked_config(component_cls.config if config is None else config)
        self.inputs = self._checked_inputs(inputs)

    def __getitem__(self, stream: str) -> GlobalStreamId:
        names = [declared.name for declared in self.streams]
        if stream not in names:
            raise KeyError(f"{self.label} has no stream {stream!r}; it declares: {', '.join(names) or 'none'}")
        return GlobalStreamId(self, stream)

    def __copy__(self) -> "ComponentSpec":
        twin = ComponentSpec.__new__(ComponentSpec)
        twin.__dict__.update(self.__dict__)
        return twin

    def named(self, name: str) -> "ComponentSpec":
        """This spec under the given name, unless it has one."""
        if self.name is None:
            self.name = name
        return self

    @property
    def label(self) -> str:
        return self.name or self.component_cls.__name__

    def stream(self, name: str) -> Stream | None:
        """The declared stream of that name, or None."""
        return next((stream for stream in self.streams if stream.name == name), None)

    def __repr__(self) -> str:
        return f"<{self.component_cls.__name__} spec {self.label!r}>"

    @staticmethod
    def _checked_name(name: Any) -> str | None:
        if name is not None and (not isinstance(name, str) or not name):
            raise TypeError(f"the name of a component must be a non-empty str. Given: {name!r}")
        if name is not None and name.startswith("__"):
            raise ValueError(f"component names that begin with '__' belong to the engine. Given: {name!r}")
        return name

    @staticmethod
    def _checked_par(par: Any) -> int:
        if isinstance(par, bool) or not isinstance(par, int):
            raise TypeError(f"`par`, the number of tasks, must be an int of at least 1. Given: {par!r}")
        if par < 1:
            raise ValueError(f"`par`, the number of tasks, must be at least 1. Given: {par!r}")
        return par

    @staticmethod
    def _checked_config(config: Any) -> dict[str, Any]:
        if config is None:
            return {}
        if not isinstance(config, dict):
            raise TypeError(f"`config` of a component must be a dict or None. Given: {config!r}")
        try:
            json.dumps(config)
        except (TypeError, ValueError) as error:
            raise TypeError(f"`config` of a component must be JSON: {error}. Given: {config!r}") from None
        return copy.deepcopy(config)

    @classmethod
    def _checked_inputs(cls, inputs: Any) -> tuple[tuple[GlobalStreamId, Grouping], ...]:
        if inputs is None:
            return ()
        if isinstance(inputs, (ComponentSpec, GlobalStreamId)):
            inputs = [inputs]
        if isinstance(inputs, dict):
            pairs = list(inputs.items())
        elif isinstance(inputs, (list, tuple)):
            pairs = [(source, Grouping.SHUFFLE) for source in inputs]
        else:
            raise TypeError(
                "`inputs` must be a spec, a list of specs and streams, or a dict of these to Groupings. "
                f"Given: {inputs!r}"
            )
        checked = []
        for source, grouping in pairs:
            if isinstance(source, ComponentSpec):
                source = GlobalStreamId(source)
            elif not isinstance(source, GlobalStreamId):
                raise TypeError(f"an input must be a component spec or spec['stream']. Given: {source!r}")
            if not isinstance(grouping, Grouping):
                raise TypeError(f"the grouping of an input must be a Grouping. Given: {grouping!r}")
            checked.append((source, grouping))
        return tuple(checked)
