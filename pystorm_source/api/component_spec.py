"""A component as it stands in a topology: class, name, inputs, parallelism, configuration."""

import copy
import json
from dataclasses import dataclass
from typing import Any

from cython_core.output_collector import SpoutBase
from pystorm_source.api.grouping import Grouping
from pystorm_source.api.stream import DEAD_LETTER, Stream
from pystorm_source.errors import given
from pystorm_source.redaction import redacted


@dataclass(frozen=True, init=False)
class GlobalStreamId:
    """A stream of a component, as subscriptions name it. ``component`` is a spec, or the name of a component or of its
    attribute in the Topology, which may be declared later: this is how to wire a cycle.

    ``componentId`` and ``streamId`` are the names that Storm has for the two. Raises TypeError for others than these.
    """

    component: Any
    stream: str = "default"

    def __init__(
        self,
        component: Any = None,
        stream: str | None = None,
        *,
        componentId: Any = None,
        streamId: str | None = None,
    ):
        if componentId is not None and component is None:
            component = componentId
        if streamId is not None and stream is None:
            stream = streamId
        if not isinstance(component, (str, ComponentSpec)) or component == "":
            raise TypeError(
                "a GlobalStreamId names a component: a spec, or the name of a component of the Topology. "
                f"Given: {given(component)}"
            )
        if stream is not None and not isinstance(stream, str):
            raise TypeError(f"a GlobalStreamId names a stream by a str. Given: {given(stream)}")
        object.__setattr__(self, "component", component)
        object.__setattr__(self, "stream", "default" if stream is None else stream)

    @property
    def componentId(self) -> str:
        """The name of the component."""
        return self.component.label if isinstance(self.component, ComponentSpec) else str(self.component)

    @property
    def streamId(self) -> str:
        """The name of the stream."""
        return self.stream


class ComponentSpec:
    """Made by ``Spout.spec`` and ``Bolt.spec``; named after its attribute in the Topology unless given a name.

    ``spec["stream"]`` names one of its streams, ``spec["__dead_letter"]`` that of a spout's dead letters. Raises
    TypeError and ValueError for wrong arguments, KeyError for an undeclared stream.
    """

    def __init__(
        self,
        component_cls: type[Any],
        name: str | None = None,
        inputs: Any = None,
        par: int | dict[str, int] | None = None,
        config: dict[str, Any] | None = None,
    ):
        self.component_cls = component_cls
        self.name = self._checked_name(name)
        self.attribute: str | None = None
        self.streams = Stream.all_of(getattr(component_cls, "outputs", None), given_by=component_cls.__name__)
        self.par = self._checked_par(component_cls.par if par is None else par)
        self.config = self._checked_config(component_cls.config if config is None else config)
        self.subscriptions = self._checked_inputs(inputs, component_cls.__name__)

    def __getitem__(self, stream: str) -> GlobalStreamId:
        if self.stream(stream) is None:
            names = [declared.name for declared in self.streams]
            raise KeyError(f"{self.label!r} declares the streams: {', '.join(names) or 'none'}. Given: {given(stream)}")
        return GlobalStreamId(self, stream)

    def __copy__(self) -> "ComponentSpec":
        twin = ComponentSpec.__new__(ComponentSpec)
        twin.__dict__.update(self.__dict__)
        return twin

    def named(self, attribute: str) -> "ComponentSpec":
        """This spec with the name of its attribute, which also becomes its own name unless it has one."""
        self.attribute = self.attribute or attribute
        if self.name is None:
            self.name = attribute
        return self

    @property
    def inputs(self) -> dict[GlobalStreamId, Grouping]:
        """The subscriptions of this component. The default grouping is DIRECT for a direct stream of a spec, else
        SHUFFLE; ``Topology.subscriptions`` also resolves components that are given by name."""
        return {source: grouping or self._default_grouping(source) for source, grouping in self.subscriptions}

    @staticmethod
    def _default_grouping(source: GlobalStreamId) -> Grouping:
        stream = source.component.stream(source.stream) if isinstance(source.component, ComponentSpec) else None
        return Grouping.DIRECT if stream is not None and stream.direct else Grouping.SHUFFLE

    @property
    def label(self) -> str:
        return self.name or self.component_cls.__name__

    def stream(self, name: str) -> Stream | None:
        """The declared stream of that name, a spout's ``__dead_letter``, or None."""
        if name == DEAD_LETTER.name and issubclass(self.component_cls, SpoutBase):
            return DEAD_LETTER
        return next((stream for stream in self.streams if stream.name == name), None)

    def __repr__(self) -> str:
        return f"<{self.component_cls.__name__} spec {self.label!r}>"

    @staticmethod
    def _checked_name(name: Any) -> str | None:
        if name is not None and (not isinstance(name, str) or not name):
            raise TypeError(f"the name of a component must be a non-empty str. Given: {given(name)}")
        if name is not None and name.startswith("__"):
            raise ValueError(f"component names that begin with '__' belong to the engine. Given: {given(name)}")
        return name

    @staticmethod
    def _checked_par(par: Any) -> int | dict[str, int]:
        if not isinstance(par, dict):
            return _task_count(par)
        if not par:
            raise ValueError(
                f"`par` as a dict needs an environment, such as {{'prod': 4, 'beta': 1}}. Given: {given(par)}"
            )
        for environment in par:
            if not isinstance(environment, str):
                raise TypeError(f"`par` as a dict goes from the name of an environment to an int. Given: {given(par)}")
        return {environment: _task_count(tasks) for environment, tasks in par.items()}

    @staticmethod
    def _checked_config(config: Any) -> dict[str, Any]:
        if config is None:
            return {}
        if not isinstance(config, dict):
            raise TypeError(f"`config` of a component must be a dict or None. Given: {_shown(config)}")
        try:
            json.dumps(config)
        except (TypeError, ValueError) as error:
            raise TypeError(f"`config` of a component must be JSON: {error}. Given: {_shown(config)}") from None
        return copy.deepcopy(config)

    @staticmethod
    def _checked_inputs(inputs: Any, of: str) -> tuple[tuple[GlobalStreamId, Grouping | None], ...]:
        if inputs is None:
            return ()
        if isinstance(inputs, (ComponentSpec, GlobalStreamId)):
            inputs = [inputs]
        pairs: list[tuple[Any, Any]]
        if isinstance(inputs, dict):
            for grouping in inputs.values():
                if not isinstance(grouping, Grouping):
                    raise TypeError(f"the grouping of an input of {of} must be a Grouping. Given: {given(grouping)}")
            pairs = list(inputs.items())
        elif isinstance(inputs, (list, tuple)):
            pairs = [(source, None) for source in inputs]
        else:
            raise TypeError(
                f"`inputs` of {of} must be a spec, a list of specs and streams, or a dict of these to Groupings; "
                f"{_remedy_for(inputs)}. Given: {given(inputs)}"
            )
        checked: dict[GlobalStreamId, Grouping | None] = {}
        for source, grouping in pairs:
            if isinstance(source, ComponentSpec):
                source = GlobalStreamId(source)
            elif not isinstance(source, GlobalStreamId):
                raise TypeError(
                    f"an input of {of} must be a component spec or spec['stream']; {_remedy_for(source)}. "
                    f"Given: {given(source)}"
                )
            checked[source] = grouping
        return tuple(checked.items())


def _remedy_for(source: Any) -> str:
    if isinstance(source, type) and hasattr(source, "spec"):
        name = source.__name__
        return f"{name} is a class: assign {name}.spec() to an attribute of the Topology and name that"
    return "a component that is declared later is GlobalStreamId('its name')"


def _task_count(tasks: Any) -> int:
    if isinstance(tasks, bool) or not isinstance(tasks, int):
        raise TypeError(
            "`par`, the number of tasks, must be an int of at least 1, or a dict of environments to such. "
            f"Given: {given(tasks)}"
        )
    if tasks < 1:
        raise ValueError(f"`par`, the number of tasks, must be at least 1. Given: {given(tasks)}")
    return tasks


def _shown(config: Any) -> str:
    return given(redacted("config", config))
