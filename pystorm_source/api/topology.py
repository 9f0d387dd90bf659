"""A topology, declared as a class."""

import copy
from typing import Any, ClassVar

from pystorm_source.api.component import Component
from pystorm_source.api.component_spec import ComponentSpec, GlobalStreamId
from pystorm_source.api.spout import Spout


class Topology:
    """Spouts and bolts wired together::

        class WordCount(Topology):
            lines = FilesSpout.spec()
            words = SplitBolt.spec(inputs=[lines])
            counts = CountBolt.spec(inputs={words: Grouping.fields("word")}, par=2)

    ``config`` is a dict for all components. Subclasses inherit components and may replace them. A class without a
    component is a base for others. Raises ValueError for a name used twice, a bolt without inputs, a spout without
    outputs, no spout, an unknown stream or field; TypeError for an instance instead of a spec and a config that is no
    dict.
    """

    config: ClassVar[dict[str, Any]] = {}
    specs: ClassVar[tuple[ComponentSpec, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.specs = cls._collect()
        if cls.specs:
            cls._check()

    @classmethod
    def _collect(cls) -> tuple[ComponentSpec, ...]:
        if not isinstance(cls.config, dict):
            raise TypeError(f"Topology config must be a dict. Given: {cls.config!r}")
        specs: dict[str, ComponentSpec] = {}
        for base in reversed(cls.__mro__):
            for attribute, value in vars(base).items():
                if isinstance(value, Component):
                    raise TypeError(
                        f"{cls.__name__}.{attribute} is an instance; write {type(value).__name__}.spec(). "
                        f"Given: {value!r}"
                    )
                if isinstance(value, ComponentSpec):
                    specs[attribute] = value.named(attribute)
                else:  # what a subclass sets to something else is no component any more
                    specs.pop(attribute, None)
        return tuple(specs.values())

    @classmethod
    def _check(cls) -> None:
        names = [spec.label for spec in cls.specs]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two components of {cls.__name__} are called {name!r}. Given: {names!r}")
        if not any(issubclass(spec.component_cls, Spout) for spec in cls.specs):
            raise ValueError(f"a Topology requires at least one Spout. Given: {cls.__name__} with {names!r}")
        for spec in cls.specs:
            if issubclass(spec.component_cls, Spout):
                if not any(stream.fields for stream in spec.streams):
                    raise ValueError(
                        f"spout {spec.label!r} of {cls.__name__} needs `outputs`, such as outputs = ['word string']. "
                        f"Given: {spec.component_cls.outputs!r}"
                    )
            elif not spec.inputs:
                raise ValueError(f"bolt {spec.label!r} of {cls.__name__} needs inputs=[...]. Given: none")
            for source, grouping in spec.inputs:
                cls._check_input(spec, source, grouping)

    @classmethod
    def _check_input(cls, spec: ComponentSpec, source: GlobalStreamId, grouping: Any) -> None:
        producer = cls.resolve(source)
        if producer is None:
            raise ValueError(
                f"input of {spec.label!r} is no component of {cls.__name__}: assign it to an attribute of the Topology."
                f" Given: {source.component!r}"
            )
        stream = producer.stream(source.stream)
        if stream is None:
            raise ValueError(
                f"input of {spec.label!r}: {producer.label!r} declares the streams "
                f"{[declared.name for declared in producer.streams]!r}. Given: {source.stream!r}"
            )
        unknown = [name for name in grouping.names if name not in stream.fields]
        if unknown:
            raise ValueError(
                f"fields grouping of {spec.label!r}: stream {stream.name!r} of {producer.label!r} has the fields "
                f"{list(stream.fields)!r}. Given: {unknown!r}"
            )

    @classmethod
    def resolve(cls, source: GlobalStreamId) -> ComponentSpec | None:
        """The component of this topology that a stream id names, or None. An inherited spec that a subclass replaced
        stands for its replacement."""
        wanted = source.component
        name = wanted.label if isinstance(wanted, ComponentSpec) else wanted
        for spec in cls.specs:
            if spec is wanted or spec.label == name:
                return spec
        return None

    @classmethod
    def merged_config(cls) -> dict[str, Any]:
        """A copy of the configuration of the whole topology."""
        return copy.deepcopy(cls.config)
