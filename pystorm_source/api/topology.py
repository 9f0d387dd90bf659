"""A topology, declared as a class."""

import copy
from typing import Any, ClassVar, NamedTuple, NoReturn

from pystorm_source.api.component import Component
from pystorm_source.api.component_spec import ComponentSpec, GlobalStreamId
from pystorm_source.api.grouping import Grouping
from pystorm_source.api.spout import Spout
from pystorm_source.api.stream import Stream
from pystorm_source.errors import given
from pystorm_source.redaction import redacted


class Subscription(NamedTuple):
    """A resolved input of a bolt: producer, stream, grouping."""

    producer: ComponentSpec
    stream: Stream
    grouping: Grouping


class _Thrift:
    """An attribute of streamparse's topologies that is not here: AttributeError, which names the replacement."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(
            f"no Thrift structures are made here: {owner.__name__}.specs holds the components, and "
            f"`pystorm-source draw` shows them. Given: {owner.__name__}.{self.name}"
        )


class Topology:
    """Spouts and bolts wired together::

        class WordCount(Topology):
            lines = FilesSpout.spec()
            words = SplitBolt.spec(inputs=[lines])
            counts = CountBolt.spec(inputs={words: Grouping.fields("word")}, par=2)

    ``config`` is a dict for all components. Subclasses inherit components and may replace them. A class without a
    component is a base for others. Raises ValueError for a name used twice, a bolt without inputs, a spout without
    outputs, no spout, an unknown stream or field; TypeError for an instance instead of a spec and a config that is not
    a dict.
    """

    config: ClassVar[dict[str, Any]] = {}
    specs: ClassVar[tuple[ComponentSpec, ...]] = ()
    thrift_spouts = _Thrift()
    thrift_bolts = _Thrift()
    thrift_topology = _Thrift()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.specs = cls._collect()
        if cls.specs:
            cls._check()

    @classmethod
    def _collect(cls) -> tuple[ComponentSpec, ...]:
        if not isinstance(cls.config, dict):
            raise TypeError(f"Topology config must be a dict. Given: {given(redacted('config', cls.config))}")
        specs: dict[str, ComponentSpec] = {}
        for base in reversed(cls.__mro__):
            for attribute, value in vars(base).items():
                if isinstance(value, Component):
                    raise TypeError(
                        f"{cls.__name__}.{attribute} is an instance; write {type(value).__name__}.spec(). "
                        f"Given: {given(value)}"
                    )
                if isinstance(value, ComponentSpec):
                    specs[attribute] = value.named(attribute)
                else:  # a subclass that sets it to something else removes the component
                    specs.pop(attribute, None)
        return tuple(specs.values())

    @classmethod
    def _check(cls) -> None:
        names = [spec.label for spec in cls.specs]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two components of {cls.__name__} are called {name!r}. Given: {given(names)}")
        if not any(issubclass(spec.component_cls, Spout) for spec in cls.specs):
            raise ValueError(f"a Topology requires at least one Spout. Given: {cls.__name__} with {given(names)}")
        for spec in cls.specs:
            if issubclass(spec.component_cls, Spout):
                if not any(stream.fields for stream in spec.streams):
                    raise ValueError(
                        f"spout {spec.label!r} of {cls.__name__} needs `outputs`, such as outputs = ['word string']. "
                        f"Given: {given(spec.component_cls.outputs)}"
                    )
            elif not spec.subscriptions:
                raise ValueError(f"bolt {spec.label!r} of {cls.__name__} needs inputs=[...]. Given: none")
            cls.subscriptions(spec)

    @classmethod
    def subscriptions(cls, spec: ComponentSpec) -> tuple[Subscription, ...]:
        """The subscriptions of a component of this topology, each stream once.

        The default grouping is DIRECT for a direct stream, else SHUFFLE. Raises ValueError for an unknown
        component, stream or field, for a direct stream with another grouping and the reverse, and for one stream with
        two groupings.
        """
        found: dict[tuple[str, str], Subscription] = {}
        for source, grouping in spec.subscriptions:
            one = cls._subscription(spec, source, grouping)
            same = found.setdefault((one.producer.label, one.stream.name), one)
            if same.grouping != one.grouping:
                raise ValueError(
                    f"input of {spec.label!r} ({spec.component_cls.__name__}): stream {one.stream.name!r} of "
                    f"{one.producer.label!r} is given twice, with two groupings; keep one. "
                    f"Given: {same.grouping} and {one.grouping}"
                )
        return tuple(found.values())

    @classmethod
    def _subscription(cls, spec: ComponentSpec, source: GlobalStreamId, grouping: Grouping | None) -> Subscription:
        producer = cls.resolve(source)
        if producer is None:
            raise ValueError(
                f"input of {spec.label!r} ({spec.component_cls.__name__}) is no component of {cls.__name__}, which has "
                f"{[known.label for known in cls.specs]!r}: assign it to an attribute of the Topology. "
                f"Given: {given(source.component)}"
            )
        stream = producer.stream(source.stream)
        if stream is None:
            raise ValueError(
                f"input of {spec.label!r} ({spec.component_cls.__name__}): {producer.label!r} declares the streams "
                f"{[declared.name for declared in producer.streams]!r}. Given: {given(source.stream)}"
            )
        if grouping is None:
            grouping = Grouping.DIRECT if stream.direct else Grouping.SHUFFLE
        if stream.direct != (grouping == Grouping.DIRECT):
            remedy = (
                f"stream {stream.name!r} of {producer.label!r} is direct: subscribe by Grouping.DIRECT"
                if stream.direct
                else f"stream {stream.name!r} of {producer.label!r} is not direct: declare it as "
                f"Stream(..., name={stream.name!r}, direct=True), or take another grouping"
            )
            raise ValueError(f"input of {spec.label!r} ({spec.component_cls.__name__}): {remedy}. Given: {grouping}")
        unknown = [name for name in grouping.names if name not in stream.fields]
        if unknown:
            raise ValueError(
                f"{grouping.kind} grouping of {spec.label!r} ({spec.component_cls.__name__}): stream {stream.name!r} "
                f"of {producer.label!r} has the fields {list(stream.fields)!r}. Given: {given(unknown)}"
            )
        return Subscription(producer, stream, grouping)

    @classmethod
    def resolve(cls, source: GlobalStreamId) -> ComponentSpec | None:
        """The component of this topology that a stream id names, or None: by its name, then by its attribute. An
        inherited spec that a subclass replaced stands for its replacement."""
        wanted = source.component
        if isinstance(wanted, ComponentSpec):
            names = [wanted.name, wanted.attribute]
        else:
            names = [wanted]
        for spec in cls.specs:
            if spec is wanted:
                return spec
        for name in names:
            for known in ("label", "attribute"):
                for spec in cls.specs:
                    if name is not None and getattr(spec, known) == name:
                        return spec
        return None

    @classmethod
    def merged_config(cls) -> dict[str, Any]:
        """A copy of the configuration of the whole topology."""
        return copy.deepcopy(cls.config)

    @classmethod
    def write(cls, stream: Any) -> NoReturn:
        """Raises NotImplementedError: there is no Nimbus to write a topology to."""
        raise NotImplementedError(
            f"a topology is not written for Nimbus here: name the class in the option topology="
            f"'{cls.__module__}:{cls.__qualname__}', or call pystorm_source.read_stream(spark, {cls.__name__}). "
            f"Given: {cls.__name__}.write({given(stream)})"
        )

    @classmethod
    def read(cls, stream: Any) -> NoReturn:
        """Raises NotImplementedError: a topology is a class, not a Thrift file."""
        raise NotImplementedError(
            f"a topology is not read from Thrift here: import its class. Given: {cls.__name__}.read({given(stream)})"
        )

    @classmethod
    def to_flux_dict(cls, name: Any) -> NoReturn:
        """Raises NotImplementedError: Flux starts topologies on Storm."""
        raise NotImplementedError(
            "Flux starts topologies on Storm, not here: `pystorm-source draw` shows this one. "
            f"Given: {cls.__name__}.to_flux_dict({given(name)})"
        )
