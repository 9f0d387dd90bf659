"""A topology, declared as a class."""

import copy
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, NoReturn

from pystorm_source.api.component import Component
from pystorm_source.api.component_spec import ComponentSpec, GlobalStreamId
from pystorm_source.api.grouping import Grouping
from pystorm_source.api.spout import Spout
from pystorm_source.api.stream import Stream
from pystorm_source.errors import (
    ArgumentTypeError,
    AttributeMissingError,
    NotSupportedError,
    TopologyError,
    given,
    nearest,
)
from pystorm_source.errors.door import door
from pystorm_source.errors.redaction import redacted


class Subscription(NamedTuple):
    """A resolved input of a bolt: producer, stream, grouping."""

    producer: ComponentSpec
    stream: Stream
    grouping: Grouping


class Drawing(NamedTuple):
    """How a notebook's picture of a topology is drawn: given from above, since this room knows no plan."""

    svg: Callable[[type["Topology"]], str | None]
    html: Callable[[type["Topology"]], str]


class _Thrift:
    """An attribute of streamparse's topologies that is not here: AttributeError, which names the replacement."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeMissingError(
            f"no Thrift structures are made here: {owner.__name__}.specs holds the components, and "
            f"`pystorm-source draw` shows them. Given: {owner.__name__}.{self.name}",
            code="PYSTORM_NOT_SUPPORTED",
        )


class Topology:
    """Spouts and bolts wired together, declared as a class: each attribute that is a spec is a component.

    Subclasses inherit components and may replace them; a class without a component is a base for others. It is checked
    when the class is made. Run it by ``run_topology`` in a test, by ``read_stream`` in Spark. streamparse's
    ``Topology``, without Thrift.

    Trap: the whole topology runs in every Spark task. Tuples of two spouts, or of two partitions, do not meet.

    Attributes:
        config (dict): configuration for all components. Defaults to {}.
        specs (tuple[ComponentSpec, ...]): the components, in order.

    Raises:
        TopologyError: a name used twice, a bolt without inputs, a spout without outputs, no spout, an unknown stream or
            field.
        ArgumentTypeError: an instance instead of a spec, or a config that is no dict.

    Example:
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Count(Bolt):
        ...     outputs = ["word string", "n long"]
        ...     def process(self, tup):
        ...         self.emit([tup.values.word, 1])
        >>> class WordCount(Topology):
        ...     words = MemorySpout.spec(fields=["word string"], rows=[["cow"], ["dog"]])
        ...     counts = Count.spec(inputs={words: Grouping.fields("word")}, par=2)
        >>> sorted(run_topology(WordCount).rows("counts"))
        [('cow', 1), ('dog', 1)]
    """

    config: ClassVar[dict[str, Any]] = {}
    specs: ClassVar[tuple[ComponentSpec, ...]] = ()
    _drawing: ClassVar[Drawing | None] = None
    thrift_spouts = _Thrift()
    thrift_bolts = _Thrift()
    thrift_topology = _Thrift()

    @door
    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.specs = cls._collect()
        if cls.specs:
            cls._check()

    @classmethod
    def _collect(cls) -> tuple[ComponentSpec, ...]:
        if not isinstance(cls.config, dict):
            raise ArgumentTypeError(
                f"Topology config must be a dict. Given: {given(redacted('config', cls.config))}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        specs: dict[str, ComponentSpec] = {}
        for base in reversed(cls.__mro__):
            for attribute, value in vars(base).items():
                if isinstance(value, Component):
                    raise ArgumentTypeError(
                        f"{cls.__name__}.{attribute} is an instance; write {type(value).__name__}.spec(). "
                        f"Given: {given(value)}",
                        code="PYSTORM_INVALID_ARGUMENT",
                    )
                if isinstance(value, ComponentSpec):
                    specs[attribute] = value.named(attribute)
                else:  # a subclass that sets it to something else removes the component
                    specs.pop(attribute, None)
        cls._refuse_classes([spec.component_cls for spec in specs.values()])
        return tuple(specs.values())

    @classmethod
    def _refuse_classes(cls, used: list[type[Any]]) -> None:
        """``words = Split`` makes no component. A class that a spec is made of, or that is written in the body of the
        topology, is no mistake."""
        for attribute, value in vars(cls).items():
            if not isinstance(value, type) or not issubclass(value, Component):
                continue
            if value not in used and value.__qualname__ != f"{cls.__qualname__}.{attribute}":
                inputs = "" if issubclass(value, Spout) else "inputs=[...]"
                raise ArgumentTypeError(
                    f"{cls.__name__}.{attribute} is a class, which is no component: write "
                    f"{value.__name__}.spec({inputs}). Given: {given(value)}",
                    code="PYSTORM_INVALID_ARGUMENT",
                )

    @classmethod
    def _check(cls) -> None:
        names = [spec.label for spec in cls.specs]
        for name in names:
            if names.count(name) > 1:
                raise TopologyError(
                    f"two components of {cls.__name__} are called {name!r}. Given: {given(names)}",
                    code="PYSTORM_INVALID_TOPOLOGY",
                )
        if not any(issubclass(spec.component_cls, Spout) for spec in cls.specs):
            raise TopologyError(
                f"a Topology requires at least one Spout. Given: {cls.__name__} with {given(names)}",
                code="PYSTORM_INVALID_TOPOLOGY",
            )
        for spec in cls.specs:
            if issubclass(spec.component_cls, Spout):
                if not any(stream.fields for stream in spec.streams):
                    raise TopologyError(
                        f"spout {spec.label!r} of {cls.__name__} needs `outputs`, such as outputs = ['word string']. "
                        f"Given: {given(spec.component_cls.outputs)}",
                        code="PYSTORM_INVALID_TOPOLOGY",
                    )
            elif not spec.subscriptions:
                raise TopologyError(
                    f"bolt {spec.label!r} of {cls.__name__} needs inputs=[...]. Given: none",
                    code="PYSTORM_INVALID_TOPOLOGY",
                )
            cls.subscriptions(spec)

    @classmethod
    def subscriptions(cls, spec: ComponentSpec) -> tuple[Subscription, ...]:
        """The subscriptions of a component of this topology, each stream once.

        Without a grouping, a direct stream gets DIRECT, any other stream SHUFFLE.

        Args:
            spec (ComponentSpec): a component of this topology.

        Returns:
            tuple[Subscription, ...]: (producer, stream, grouping) of each.

        Raises:
            TopologyError: an unknown component, stream or field, a direct stream with another grouping or the reverse,
                one stream with two groupings.
        """
        found: dict[tuple[str, str], Subscription] = {}
        for source, grouping in spec.subscriptions:
            one = cls._subscription(spec, source, grouping)
            same = found.setdefault((one.producer.label, one.stream.name), one)
            if same.grouping != one.grouping:
                raise TopologyError(
                    f"input of {spec.label!r} ({spec.component_cls.__name__}): stream {one.stream.name!r} of "
                    f"{one.producer.label!r} is given twice, with two groupings; keep one. "
                    f"Given: {same.grouping} and {one.grouping}",
                    code="PYSTORM_INVALID_TOPOLOGY",
                )
        return tuple(found.values())

    @classmethod
    def _subscription(cls, spec: ComponentSpec, source: GlobalStreamId, grouping: Grouping | None) -> Subscription:
        producer = cls.resolve(source)
        if producer is None:
            labels = [known.label for known in cls.specs]
            raise TopologyError(
                f"input of {spec.label!r} ({spec.component_cls.__name__}) is no component of {cls.__name__}, which has "
                f"{labels!r}: assign it to an attribute of the Topology{nearest(source.component, labels) or '.'} "
                f"Given: {given(source.component)}",
                code="PYSTORM_INVALID_TOPOLOGY",
            )
        stream = producer.stream(source.stream)
        if stream is None:
            names = [declared.name for declared in producer.streams]
            raise TopologyError(
                f"input of {spec.label!r} ({spec.component_cls.__name__}): {producer.label!r} declares the streams "
                f"{names!r}{nearest(source.stream, names) or '.'} Given: {given(source.stream)}",
                code="PYSTORM_INVALID_TOPOLOGY",
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
            raise TopologyError(
                f"input of {spec.label!r} ({spec.component_cls.__name__}): {remedy}. Given: {grouping}",
                code="PYSTORM_INVALID_TOPOLOGY",
            )
        unknown = [name for name in grouping.names if name not in stream.fields]
        if unknown:
            raise TopologyError(
                f"{grouping.kind} grouping of {spec.label!r} ({spec.component_cls.__name__}): stream {stream.name!r} "
                f"of {producer.label!r} has the fields {list(stream.fields)!r}"
                f"{nearest(unknown[0], stream.fields) or '.'} Given: {given(unknown)}",
                code="PYSTORM_INVALID_TOPOLOGY",
            )
        return Subscription(producer, stream, grouping)

    @classmethod
    def resolve(cls, source: GlobalStreamId) -> ComponentSpec | None:
        """The component of this topology that a stream id names: by its name, then by its attribute.

        An inherited spec that a subclass replaced stands for its replacement.

        Args:
            source (GlobalStreamId): the stream.

        Returns:
            ComponentSpec | None: None if there is no such component.
        """
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
    def drawn_by(cls, drawing: Drawing) -> None:
        """Says how the pictures of all topologies are drawn in a notebook.

        Args:
            drawing (Drawing): functions that take a topology.
        """
        cls._drawing = drawing

    @classmethod
    def _repr_svg_(cls) -> str | None:
        """A notebook whose cell ends in a topology calls it, like the next one."""
        return cls._drawing.svg(cls) if cls._drawing is not None and cls.specs else None

    @classmethod
    def _repr_html_(cls) -> str | None:
        return cls._drawing.html(cls) if cls._drawing is not None and cls.specs else None

    @classmethod
    def merged_config(cls) -> dict[str, Any]:
        """A copy of the configuration of the whole topology.

        Returns:
            dict: ``config``, copied deeply.
        """
        return copy.deepcopy(cls.config)

    @classmethod
    def write(cls, stream: Any) -> NoReturn:
        """streamparse's writer of Thrift. There is no Nimbus here: use ``read_stream``.

        Args:
            stream (Any): where streamparse writes to.

        Raises:
            NotSupportedError: always.
        """
        raise NotSupportedError(
            f"a topology is not written for Nimbus here: name the class in the option topology="
            f"'{cls.__module__}:{cls.__qualname__}', or call pystorm_source.read_stream(spark, {cls.__name__}). "
            f"Given: {cls.__name__}.write({given(stream)})",
            code="PYSTORM_NOT_SUPPORTED",
        )

    @classmethod
    def read(cls, stream: Any) -> NoReturn:
        """streamparse's reader of Thrift. A topology is a class here: import it.

        Args:
            stream (Any): where streamparse reads from.

        Raises:
            NotSupportedError: always.
        """
        raise NotSupportedError(
            f"a topology is not read from Thrift here: import its class. Given: {cls.__name__}.read({given(stream)})",
            code="PYSTORM_NOT_SUPPORTED",
        )

    @classmethod
    def to_flux_dict(cls, name: Any) -> NoReturn:
        """streamparse's Flux file, which starts a topology on Storm.

        Args:
            name (str): name of the topology.

        Raises:
            NotSupportedError: always.
        """
        raise NotSupportedError(
            "Flux starts topologies on Storm, not here: `pystorm-source draw` shows this one. "
            f"Given: {cls.__name__}.to_flux_dict({given(name)})",
            code="PYSTORM_NOT_SUPPORTED",
        )
