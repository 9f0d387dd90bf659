"""The types of a topology's streams, worked out from its spouts on."""

from pystorm_source.cli.migration.expressions import Expressions
from pystorm_source.cli.migration.java_spouts import KafkaSource
from pystorm_source.cli.migration.topologies import Spec, TopologyClass
from pystorm_source.cli.migration.value_types import EMPTY, Type, column_type, joined


class StreamTypes:
    """``kafka``: attribute → what is known of a spout in Java that becomes a KafkaSpout."""

    def __init__(self, topology: TopologyClass, kafka: dict[str, KafkaSource]):
        self._topology = topology
        self._kafka = kafka
        self._running: set[str] = set()

    def columns(self, spec: Spec, stream: str) -> list[str | None]:
        """The type of each field, as DDL; None for one that is not certain."""
        fields = (spec.outputs or {}).get(stream, [])
        declared = [field.partition(" ")[2] or None for field in fields]
        try:
            found = self._of_stream(spec, stream)
        except RecursionError:  # expressions that are nested without end
            found = [None] * len(fields)
        return [ddl or column_type(one) for ddl, one in zip(declared, found, strict=True)]

    def _of_stream(self, spec: Spec, stream: str) -> list[Type]:
        fields = (spec.outputs or {}).get(stream, [])
        if spec.attribute in self._kafka:
            return ["string" if self._kafka[spec.attribute].text else None]
        unknown = [None] * len(fields)
        component = spec.component
        # A cycle: what its tuples hold is not worked out.
        if component is None or spec.attribute in self._running:
            return unknown
        self._running.add(spec.attribute)
        try:
            expressions = Expressions(component, self._values(spec))
        finally:
            self._running.discard(spec.attribute)
        rows: list[list[Type]] = []
        for emit in component.emits:
            if emit.stream == stream:
                if emit.values is None or len(emit.values) != len(fields):
                    return unknown
                rows.append([expressions.of_emit(emit.method, value) for value in emit.values])
        return [joined(list(column)) for column in zip(*rows, strict=True)] if rows else unknown

    def _values(self, spec: Spec) -> Type:
        """The type of the values that reach the component: those of its inputs, if they are all alike."""
        found: Type = EMPTY
        for one in spec.inputs:
            producer = self._topology.specs.get(one.producer)
            if producer is None or producer.outputs is None or one.stream not in producer.outputs:
                return None
            names = [field.split(" ")[0] for field in producer.outputs[one.stream]]
            given = ("values", *zip(names, self._of_stream(producer, one.stream), strict=True))
            if found not in (EMPTY, given):
                return None
            found = given
        return None if found == EMPTY else found
