"""What a ``StatefulBolt`` keeps, and its key, according to the plan."""

from dataclasses import replace

import pyarrow as pa

from cython_core.states.states_base import TIMERS
from pystorm_source.api.input import Input
from pystorm_source.api.key_state import TIMER_FIELDS, StateShape
from pystorm_source.api.stateful_bolt import StatefulBolt
from pystorm_source.api.stream import Stream
from pystorm_source.errors import SchemaError, TopologyError
from pystorm_source.options import EngineOptions
from pystorm_source.plan.plan import ComponentPlan, EdgePlan, Plan
from pystorm_source.types.arrow import ddl_of, field_type

TIMER_INPUT = "__timer"
"""The Input of keys whose timers may be due. No component of a user's has a name that begins so."""


def has_timers(component: ComponentPlan) -> bool:
    """Whether a bolt keeps states and has timers."""
    return issubclass(component.cls, StatefulBolt) and component.cls.process_timer is not StatefulBolt.process_timer


def needs_time(component: ComponentPlan) -> bool:
    """Whether a bolt keeps states that change as time goes by."""
    return has_timers(component) or getattr(component.cls, "state_ttl_secs", None) is not None


def state_columns(component: ComponentPlan) -> tuple[tuple[str, str], ...]:
    """The fields of a bolt's state as (name, type of Spark), timer fields last."""
    (stream,) = Stream.all_of(component.cls.state_fields, given_by=component.name)  # type: ignore[attr-defined]
    fields = [(name, ddl or "") for name, ddl in zip(stream.fields, stream.types, strict=True)]
    return (*fields, *((name, "bigint") for name in TIMER_FIELDS if has_timers(component)))


def key_columns(plan: Plan, bolt: str) -> tuple[tuple[str, str], ...]:
    """The fields of its key as (name, type of Spark), from its first input."""
    edge = next(edge for edge in plan.edges if edge.consumer == bolt)
    stream = plan.component(edge.producer).stream(edge.stream)
    return tuple((stream.fields[place], stream.types[place] or "") for place in edge.positions)


def state_shape(plan: Plan, component: ComponentPlan) -> StateShape:
    """What a bolt keeps, in a stage that has it."""
    bolt = component.name
    state, key = state_columns(component), key_columns(plan, bolt)
    return StateShape(
        bolt,
        tuple(name for name, _ in state),
        tuple(field_type(ddl, f"field {name!r} of the state of {bolt!r}") for name, ddl in state),
        tuple(name for name, _ in key),
        tuple(field_type(ddl, f"the key of {bolt!r}") for _, ddl in key),
        {
            plan.component(edge.producer).tuples_of(edge.stream): edge.positions
            for edge in plan.edges
            if edge.consumer == bolt
        },
        component.cls.state_ttl_secs,  # type: ignore[attr-defined]
    )


def with_timer_input(plan: Plan, component: ComponentPlan, task: int, options: EngineOptions) -> Plan:
    """The plan of a stage with an Input of the keys whose timers may be due. ``task``: its id; ``options``: its own."""
    key = key_columns(plan, component.name)
    columns = [f"{name} {ddl}" for name, ddl in key] + [f"{TIMERS[1]} bigint"]
    timers = ComponentPlan(TIMER_INPUT, Input, (Stream(columns),), (task,), options, origin=TIMERS)
    edge = EdgePlan(TIMER_INPUT, "default", component.name, "fields", tuple(range(len(key))))
    # Order: behind the other edges, because the first edge names the key.
    return replace(plan, components=(timers, *plan.components), edges=(*plan.edges, edge))


def types_of_key(plan: Plan, edge: EdgePlan) -> tuple[pa.DataType | None, ...]:
    """Arrow's types of the fields that an edge is grouped by, None for any."""
    stream = plan.component(edge.producer).stream(edge.stream)
    types = []
    for place in edge.positions:
        ddl = stream.types[place]
        types.append(None if ddl is None else field_type(ddl, f"field {stream.fields[place]!r} of {edge.producer}"))
    return tuple(types)


def refuse_unkept(type: pa.DataType, where: str) -> None:
    """Raises SchemaError for a type that Spark's state store does not take."""
    kinds = pa.types
    if kinds.is_duration(type) or kinds.is_time(type):
        remedy = "a long of microseconds" if kinds.is_duration(type) else "a long of microseconds of the day"
        raise _unkept(type, where, f"keep {remedy}")
    if kinds.is_map(type):
        if not kinds.is_string(type.key_type):
            raise _unkept(type, where, "keep a map whose keys are strings, or an array of structs")
        refuse_unkept(type.item_type, where)
    elif kinds.is_list(type):
        refuse_unkept(type.value_type, where)
    elif kinds.is_struct(type):
        for field in type:
            refuse_unkept(field.type, where)


def _unkept(type: pa.DataType, where: str, remedy: str) -> SchemaError:
    return SchemaError(
        f"Spark's state store has no values of the type of {where}: {remedy}. Given: {ddl_of(type)!r}",
        code="PYSTORM_INVALID_TYPE",
    )


def refuse_name_of_timers(plan: Plan, component: ComponentPlan) -> None:
    """Raises TopologyError for a key with a field that the tuples of timers have."""
    if has_timers(component) and TIMERS[1] in dict(key_columns(plan, component.name)):
        raise TopologyError(
            f"bolt {component.name!r} has timers, whose tuples have the key's fields and one of this name: call the "
            f"field another name. Given: {TIMERS[1]!r}",
            code="PYSTORM_CANNOT_BE_CUT",
        )


def refuse_without_key(plan: Plan) -> None:
    """Raises TopologyError for a bolt that keeps states and has no key, or a key that is not a plain value."""
    for component in plan.components:
        if not issubclass(component.cls, StatefulBolt):
            continue
        keys = {}
        for edge in plan.edges:
            if edge.consumer == component.name:
                types = types_of_key(plan, edge)
                keys[f"{edge.producer}.{edge.stream} by {edge.grouping}"] = (edge.grouping, types)
                nested = [each for each in types if each is not None and pa.types.is_nested(each)]
                if nested:
                    raise TopologyError(
                        f"bolt {component.name!r} keeps a state for each key, and a key is made of plain values: group "
                        f"by fields of other types. Given: {', '.join(map(str, nested))}",
                        code="PYSTORM_CANNOT_BE_CUT",
                    )
        for _, types in keys.values():
            for kind in types:
                if kind is not None:
                    refuse_unkept(kind, f"the key of bolt {component.name!r}")
        if {grouping for grouping, _ in keys.values()} != {"fields"} or len(set(keys.values())) > 1:
            raise TopologyError(
                f"bolt {component.name!r} keeps a state for each key: subscribe it to each of its inputs by "
                "Grouping.fields, by as many fields of the same types. Given: "
                + ", ".join(f"{name} ({', '.join(map(str, types))})" for name, (_, types) in keys.items()),
                code="PYSTORM_CANNOT_BE_CUT",
            )
        refuse_name_of_timers(plan, component)
