"""A bolt whose outputs follow from its inputs.

spec(inputs=[sales], …) ──► the columns that the inputs declare ──► _derived(columns) ──► the streams of the spec
                                 (again when the topology is compiled, because a subclass of it may replace inputs)
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import pyarrow as pa

from cython_core.arrow.lossless_cast import conform_array
from cython_core.arrow.value_converter import Misfit
from pystorm_source.api.arrow_bolt import ArrowBolt
from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.stream import Stream
from pystorm_source.errors import SchemaError, TopologyError, given, nearest
from pystorm_source.types.arrow import ddl_of, field_type


class Columns(NamedTuple):
    """The columns that a bolt gets: their Arrow ``schema``, and their types as declared."""

    schema: pa.Schema
    ddl: Mapping[str, str]


class DerivedBolt(ArrowBolt):
    """Its outputs follow from the types of the streams that it subscribes to, unless the class declares ``outputs``."""

    @classmethod
    def _having(cls, attribute: str, value: Any) -> type[Self]:
        """Returns this class if the value is None, otherwise a subclass with the value, to take it to the tasks: an
        expression is not JSON, so no configuration can."""
        if value is None:
            return cls
        return type(cls.__name__, (cls,), {attribute: value, "__module__": cls.__module__})

    @classmethod
    def _needed(cls, config: Mapping[str, Any]) -> list[str] | None:
        """The columns that it reads; None: all."""
        raise NotImplementedError

    @classmethod
    def _derived(cls, columns: Columns, config: Mapping[str, Any]) -> list[str]:
        """The fields of its output, names and types. Raises SchemaError if they cannot be made from these columns."""
        raise NotImplementedError

    @classmethod
    def _with_outputs(cls, spec: ComponentSpec) -> ComponentSpec:
        """The spec, with the outputs that follow from its inputs. Raises SchemaError and TopologyError."""
        inputs = []
        for source, _ in spec.subscriptions:
            if not isinstance(source.component, ComponentSpec):
                if not spec.streams:
                    raise TopologyError(
                        f"the outputs of {spec.label!r} follow from its inputs, and one is given by its name: give the "
                        f"component itself, or declare `outputs` in a subclass of {cls.__name__}. Given: {source!r}",
                        code="PYSTORM_INVALID_TOPOLOGY",
                    )
                return spec
            stream = source.component.stream(source.stream)
            if stream is not None:
                inputs.append((f"{source.componentId}.{source.streamId}", stream))
        if not inputs:  # the topology says it
            return spec
        if spec.streams:
            cls.check_inputs(spec, inputs)
        else:
            spec.streams = (Stream(cls._fields(spec, inputs)),)
        return spec

    @classmethod
    def check_inputs(cls, spec: ComponentSpec, inputs: Iterable[tuple[str, Stream]]) -> None:
        """Compares the outputs with those that follow from these inputs.

        Raises:
            SchemaError: they differ, or an input does not have the columns that the bolt needs.
        """
        fields = Stream(cls._fields(spec, list(inputs)))
        declared = spec.stream("default")
        if declared is None or len(declared.fields) != len(fields.fields):
            raise SchemaError(
                f"`outputs` of {spec.label!r} has a field for each column that it emits, which are "
                f"{_listed(fields)}. Given: {_listed(declared)}",
                code="PYSTORM_SCHEMA_MISMATCH",
            )
        for name, wanted, made in zip(declared.fields, declared.types, fields.types, strict=True):
            if wanted is None or made is None:
                continue
            where = f"field {name!r} of {spec.label!r}"
            try:
                conform_array(pa.array([], field_type(made, where)), field_type(wanted, where))
            except Misfit:
                raise SchemaError(
                    f"{where} is declared as {wanted}, and the bolt emits {made}: change `outputs` or its inputs. "
                    f"Given: {_listed(declared)}",
                    code="PYSTORM_SCHEMA_MISMATCH",
                ) from None

    @classmethod
    def _fields(cls, spec: ComponentSpec, inputs: list[tuple[str, Stream]]) -> list[str]:
        config = {**(cls.config or {}), **spec.config}
        each = [_columns(spec.label, label, stream, cls._needed(config)) for label, stream in inputs]
        for (label, stream), columns in zip(inputs, each, strict=True):
            if columns.schema != each[0].schema:
                raise SchemaError(
                    f"the inputs of {spec.label!r} have the same columns, and {label!r} has others than "
                    f"{inputs[0][0]!r}: take a bolt for each. Given: {_listed(stream)} and {_listed(inputs[0][1])}",
                    code="PYSTORM_SCHEMA_MISMATCH",
                )
        return cls._derived(each[0], config)


def ddl_or_refuse(type: pa.DataType, name: str) -> str:
    """The DDL of a column that a bolt makes. Raises SchemaError if Spark has no such type."""
    try:
        return ddl_of(type)
    except KeyError:
        raise SchemaError(
            f"column {name!r} becomes {type}, which Spark has no type for: cast it, such as "
            f"pc.field({name!r}).cast(pa.int64()). Given: {type}",
            code="PYSTORM_SCHEMA_MISMATCH",
        ) from None


def _columns(bolt: str, label: str, stream: Stream, needed: list[str] | None) -> Columns:
    names = list(stream.fields) if needed is None else needed
    for name in names:
        if name not in stream.fields:
            raise SchemaError(
                f"{bolt!r} needs a column that its input {label!r} does not have: it has "
                f"{list(stream.fields)}{nearest(name, stream.fields) or '.'} Given: {given(name)}",
                code="PYSTORM_SCHEMA_MISMATCH",
            )
    types = dict(zip(stream.fields, stream.types, strict=True))
    ddl = {}
    for name in names:
        found = types[name]
        if found is None:
            raise SchemaError(
                f"{bolt!r} needs the types of its columns, and {label!r} declares none of {name!r}: declare one, such "
                f"as '{name} string'. Given: {_listed(stream)}",
                code="PYSTORM_INVALID_TYPE",
            )
        ddl[name] = found
    schema = pa.schema([(name, field_type(each, f"field {name!r} of {label}")) for name, each in ddl.items()])
    return Columns(schema, ddl)


def _listed(stream: Stream | None) -> list[str]:
    if stream is None:
        return []
    return [name if ddl is None else f"{name} {ddl}" for name, ddl in zip(stream.fields, stream.types, strict=True)]
