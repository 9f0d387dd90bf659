"""A component of a topology: class, name, inputs, parallelism, configuration."""

import copy
import json
from dataclasses import dataclass
from typing import Any

from cython_core.routing.component_base import SpoutBase
from pystorm_source.api.grouping import Grouping
from pystorm_source.api.stream import DEAD_LETTER, Stream
from pystorm_source.errors import ArgumentTypeError, StreamNotDeclaredError, TopologyError, given, nearest
from pystorm_source.errors.redaction import redacted
from pystorm_source.types.html_table import html_table


@dataclass(frozen=True, init=False)
class GlobalStreamId:
    """A stream of a component: what a subscription names. Storm's ``GlobalStreamId``.

    ``spec["stream"]`` makes one. With a name, it can refer to a component that is declared later, to wire a cycle.

    Args:
        component (ComponentSpec | str): a spec, or the name of a component or of its attribute in the Topology.
        stream (str): name of the stream. Defaults to "default".
        componentId (ComponentSpec | str): Storm's name for ``component``.
        streamId (str): Storm's name for ``stream``.

    Raises:
        ArgumentTypeError: a component or stream of another type, or no component.

    Example:
        >>> GlobalStreamId("words", "errors")
        GlobalStreamId(component='words', stream='errors')
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
            raise ArgumentTypeError(
                "a GlobalStreamId names a component: a spec, or the name of a component of the Topology. "
                f"Given: {given(component)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        if stream is not None and not isinstance(stream, str):
            raise ArgumentTypeError(
                f"a GlobalStreamId names a stream by a str. Given: {given(stream)}", code="PYSTORM_INVALID_ARGUMENT"
            )
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
    """A component of a Topology. Made by ``Spout.spec`` and ``Bolt.spec``.

    ``spec["stream"]`` names one of its streams, ``spec["__dead_letter"]`` a spout's stream of dead letters.

    Args:
        component_cls (type[Component]): the class.
        name (str): name of the component. Defaults to its attribute's name in the Topology.
        inputs (ComponentSpec | GlobalStreamId | list | dict): what it subscribes to; see ``Bolt.spec``.
        par (int | dict[str, int]): tasks inside one Spark task, or environment → tasks. Defaults to the class's.
        config (dict): configuration of this component only, JSON. Defaults to the class's.
        processes (int): as in ``Bolt.spec``. Defaults to 0.

    Raises:
        ArgumentTypeError: an argument of another type.
        TopologyError: a name that begins with ``__``, ``par`` below 1 or empty, fewer tasks than processes.
        StreamNotDeclaredError: by ``spec["stream"]``, for a stream that is not declared.

    Example:
        >>> class Split(Bolt):
        ...     outputs = ["word string", Stream(["line string"], name="errors")]
        >>> Split.spec(name="words", inputs=["lines"])
        Traceback (most recent call last):
        pystorm_source.errors.ArgumentTypeError: [PYSTORM_INVALID_ARGUMENT] an input of Split must be ... Given: 'lines'
        >>> words = Split.spec(name="words", inputs=[GlobalStreamId("lines")], par=2)
        >>> words["errors"].streamId
        'errors'
    """

    def __init__(
        self,
        component_cls: type[Any],
        name: str | None = None,
        inputs: Any = None,
        par: int | dict[str, int] | None = None,
        config: dict[str, Any] | None = None,
        processes: int = 0,
    ):
        self.component_cls = component_cls
        self.name = self._checked_name(name)
        self.attribute: str | None = None
        self.streams = Stream.all_of(getattr(component_cls, "outputs", None), given_by=component_cls.__name__)
        self.processes = self._checked_processes(processes)
        if par is None:
            par = component_cls.par if self.processes <= 1 or component_cls.par != 1 else self.processes
        self.par = self._checked_par(par)
        self._check_tasks()
        self.config = self._checked_config(component_cls.config if config is None else config)
        self.subscriptions = self._checked_inputs(inputs, component_cls.__name__)

    def __getitem__(self, stream: str) -> GlobalStreamId:
        if self.stream(stream) is None:
            names = [declared.name for declared in self.streams]
            raise StreamNotDeclaredError(
                f"{self.label!r} declares the streams: {', '.join(names) or 'none'}"
                f"{nearest(stream, names) or '.'} Given: {given(stream)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        return GlobalStreamId(self, stream)

    def __copy__(self) -> "ComponentSpec":
        twin = ComponentSpec.__new__(ComponentSpec)
        twin.__dict__.update(self.__dict__)
        return twin

    def named(self, attribute: str) -> "ComponentSpec":
        """Gives the spec the name of its attribute, unless it has a name. The Topology calls it.

        Args:
            attribute (str): the attribute of the Topology.

        Returns:
            ComponentSpec: itself.
        """
        self.attribute = self.attribute or attribute
        if self.name is None:
            self.name = attribute
        return self

    @property
    def inputs(self) -> dict[GlobalStreamId, Grouping]:
        """What this component subscribes to: stream → grouping.

        Without a grouping, a direct stream of a spec gets DIRECT, any other stream SHUFFLE. ``Topology.subscriptions``
        also knows the components that are given by name.
        """
        return {source: grouping or self._default_grouping(source) for source, grouping in self.subscriptions}

    @staticmethod
    def _default_grouping(source: GlobalStreamId) -> Grouping:
        stream = source.component.stream(source.stream) if isinstance(source.component, ComponentSpec) else None
        return Grouping.DIRECT if stream is not None and stream.direct else Grouping.SHUFFLE

    @property
    def label(self) -> str:
        """The name, or the name of the class while the spec has no name."""
        return self.name or self.component_cls.__name__

    def stream(self, name: str) -> Stream | None:
        """The declared stream of that name; a spout has ``__dead_letter``, too.

        Args:
            name (str): name of the stream.

        Returns:
            Stream | None: None if no stream of that name is declared.
        """
        if name == DEAD_LETTER.name and issubclass(self.component_cls, SpoutBase):
            return DEAD_LETTER
        return next((stream for stream in self.streams if stream.name == name), None)

    def __repr__(self) -> str:
        return f"<{self.component_cls.__name__} spec {self.label!r}>"

    def _repr_html_(self) -> str:
        """Asked by a notebook."""
        rows: list[tuple[str, object]] = [("tasks", self.par if isinstance(self.par, int) else json.dumps(self.par))]
        rows += [("processes", self.processes)] if self.processes else []
        rows += [("input", f"{each.componentId}.{each.streamId} by {by}") for each, by in self.inputs.items()]
        rows += [("stream", f"{each.name}: {', '.join(_declared(each)) or 'no fields'}") for each in self.streams]
        rows += [("config", f"{key} = {json.dumps(redacted(key, value))}") for key, value in self.config.items()]
        return html_table(f"{self.label}, {self.component_cls.__name__}", ("", ""), rows)

    @staticmethod
    def _checked_name(name: Any) -> str | None:
        if name is not None and (not isinstance(name, str) or not name):
            hint = "" if isinstance(name, str) else ", and inputs come by keyword: spec(inputs=[...])"
            raise ArgumentTypeError(
                f"the name of a component must be a non-empty str{hint}. Given: {given(name)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        if name is not None and name.startswith("__"):
            raise TopologyError(
                f"component names that begin with '__' belong to the engine. Given: {given(name)}",
                code="PYSTORM_INVALID_TOPOLOGY",
            )
        return name

    @staticmethod
    def _checked_par(par: Any) -> int | dict[str, int]:
        if not isinstance(par, dict):
            return _task_count(par)
        if not par:
            raise TopologyError(
                f"`par` as a dict needs an environment, such as {{'prod': 4, 'beta': 1}}. Given: {given(par)}",
                code="PYSTORM_INVALID_TOPOLOGY",
            )
        for environment in par:
            if not isinstance(environment, str):
                raise ArgumentTypeError(
                    f"`par` as a dict goes from the name of an environment to an int. Given: {given(par)}",
                    code="PYSTORM_INVALID_ARGUMENT",
                )
        return {environment: _task_count(tasks) for environment, tasks in par.items()}

    @staticmethod
    def _checked_processes(processes: Any) -> int:
        if not isinstance(processes, int) or isinstance(processes, bool) or processes < 0:
            raise ArgumentTypeError(
                f"`processes` of a component is a number of processes, or 0 for none of its own. Given: "
                f"{given(processes)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        return processes

    def _check_tasks(self) -> None:
        fewest = self.par if isinstance(self.par, int) else min(self.par.values())
        if self.processes > fewest:
            raise TopologyError(
                f"processes={self.processes} of {self.component_cls.__name__}.spec are more than its tasks, and a task "
                f"runs in one process: give par={self.processes}. Given: par={self.par!r}",
                code="PYSTORM_INVALID_TOPOLOGY",
            )

    @staticmethod
    def _checked_config(config: Any) -> dict[str, Any]:
        if config is None:
            return {}
        if not isinstance(config, dict):
            raise ArgumentTypeError(
                f"`config` of a component must be a dict or None. Given: {_shown(config)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        try:
            json.dumps(config)
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(
                f"`config` of a component must be JSON: {error}. Given: {_shown(config)}",
                code="PYSTORM_INVALID_ARGUMENT",
            ) from None
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
                    raise ArgumentTypeError(
                        f"the grouping of an input of {of} must be a Grouping. Given: {given(grouping)}",
                        code="PYSTORM_INVALID_ARGUMENT",
                    )
            pairs = list(inputs.items())
        elif isinstance(inputs, (list, tuple)):
            pairs = [(source, None) for source in inputs]
        else:
            raise ArgumentTypeError(
                f"`inputs` of {of} must be a spec, a list of specs and streams, or a dict of these to Groupings; "
                f"{_remedy_for(inputs)}. Given: {given(inputs)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        checked: dict[GlobalStreamId, Grouping | None] = {}
        for source, grouping in pairs:
            if isinstance(source, ComponentSpec):
                source = GlobalStreamId(source)
            elif not isinstance(source, GlobalStreamId):
                raise ArgumentTypeError(
                    f"an input of {of} must be a component spec or spec['stream']; {_remedy_for(source)}. "
                    f"Given: {given(source)}",
                    code="PYSTORM_INVALID_ARGUMENT",
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
        raise ArgumentTypeError(
            "`par`, the number of tasks, must be an int of at least 1, or a dict of environments to such. "
            f"Given: {given(tasks)}",
            code="PYSTORM_INVALID_ARGUMENT",
        )
    if tasks < 1:
        raise TopologyError(
            f"`par`, the number of tasks, must be at least 1. Given: {given(tasks)}", code="PYSTORM_INVALID_TOPOLOGY"
        )
    return tasks


def _declared(stream: Stream) -> list[str]:
    return [f"{name} {ddl}" if ddl else name for name, ddl in zip(stream.fields, stream.types, strict=True)]


def _shown(config: Any) -> str:
    return given(redacted("config", config))
