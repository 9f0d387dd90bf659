"""What a JoinBolt joins: its inputs and keys, and every check that they must pass."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pystorm_source.api.join_bolt import JoinBolt
from pystorm_source.errors import TopologyError, given, nearest
from pystorm_source.plan.plan import ComponentPlan, EdgePlan, Plan
from pystorm_source.types.arrow import field_type

ONE_KEY = "key"


@dataclass(frozen=True)
class JoinInputs:
    """``names``: (component, stream), as tuples have them → the name that the bolt knows the input by. ``keys``: for
    each of these, name of the key → positions of its fields."""

    names: dict[tuple[str, str], str]
    keys: list[dict[str, tuple[int, ...]]]


def join_inputs(plan: Plan, bolt: ComponentPlan, *, several_tasks: bool | None = None) -> JoinInputs:
    """Inputs and keys of a JoinBolt. ``several_tasks``: whether more than one task of it runs; None: as the plan says.

    Raises TopologyError if they do not form a join, or if tuples that belong together could go to different tasks.
    """
    edges = [edge for edge in plan.edges if edge.consumer == bolt.name]
    names = {plan.component(edge.producer).tuples_of(edge.stream): _name(plan, edge) for edge in edges}
    if len(edges) < 2 or len(names) < len(edges):
        raise _wrong(bolt, "joins two streams or more: give it several inputs", list(names.values()))
    declared = bolt.cls.join_keys  # type: ignore[attr-defined]
    if declared is None:
        keys = [dict(_of_grouping(bolt, edge)) for edge in edges]
    else:
        _check_names(bolt, declared, list(names.values()))
        keys = [
            {key: _positions(plan, bolt, edge, fields) for key, fields in _keys_of(declared[_name(plan, edge)]).items()}
            for edge in edges
        ]
    _check_tree(bolt, keys)
    _check_fields(plan, bolt, edges, keys)
    if several_tasks if several_tasks is not None else len(bolt.tasks) > 1:
        _check_together(plan, bolt, edges, keys)
    return JoinInputs(names, keys)


def joins(plan: Plan) -> Iterator[ComponentPlan]:
    """The JoinBolts of a plan."""
    return (component for component in plan.components if issubclass(component.cls, JoinBolt))


def _name(plan: Plan, edge: EdgePlan) -> str:
    component, stream = plan.component(edge.producer).tuples_of(edge.stream)
    return component if stream == "default" else f"{component}.{stream}"


def _wrong(bolt: ComponentPlan, what: str, was_given: Any) -> TopologyError:
    return TopologyError(f"JoinBolt {bolt.name!r} {what}. Given: {given(was_given)}", code="PYSTORM_INVALID_TOPOLOGY")


def _of_grouping(bolt: ComponentPlan, edge: EdgePlan) -> Iterator[tuple[str, tuple[int, ...]]]:
    if edge.grouping != "fields":
        raise _wrong(
            bolt,
            f"gets {edge.producer}.{edge.stream} by {edge.grouping}, which names no key: group it by fields, or "
            "declare join_keys, such as join_keys = {'orders': 'id', 'payments': 'order'}",
            bolt.cls.__name__,
        )
    yield ONE_KEY, edge.positions


def _check_names(bolt: ComponentPlan, declared: Any, names: list[str]) -> None:
    if not isinstance(declared, Mapping):
        raise _wrong(bolt, "has join_keys that are no dict from the name of an input to its field", declared)
    for name in declared:
        if name not in names:
            raise _wrong(
                bolt, f"has the inputs {', '.join(names)}{nearest(str(name), names) or ''}: join_keys names these", name
            )
    for name in names:
        if name not in declared:
            raise _wrong(bolt, f"has no key for its input {name!r}: add it to join_keys", dict(declared))


def _keys_of(declared: Any) -> Mapping[str, Any]:
    return declared if isinstance(declared, Mapping) else {ONE_KEY: declared}


def _positions(plan: Plan, bolt: ComponentPlan, edge: EdgePlan, fields: Any) -> tuple[int, ...]:
    stream = plan.component(edge.producer).stream(edge.stream)
    named: Sequence[Any] = [fields] if isinstance(fields, str) else fields
    if not isinstance(named, (list, tuple)) or not named:
        raise _wrong(bolt, f"has a key of {_name(plan, edge)!r} that is no field and no list of fields", fields)
    for field in named:
        if field not in stream.fields:
            raise _wrong(
                bolt,
                f"has the fields {', '.join(stream.fields)} in its input {_name(plan, edge)!r}"
                f"{nearest(str(field), list(stream.fields)) or ''}: join_keys names these",
                field,
            )
    return tuple(stream.fields.index(field) for field in named)


def _check_tree(bolt: ComponentPlan, keys: list[dict[str, tuple[int, ...]]]) -> None:
    """Checks that keys connect all inputs, and in only one way."""
    holders = Counter(key for own in keys for key in own)
    for key, count in holders.items():
        if count < 2:
            raise _wrong(bolt, f"has a key that only one input has: give {key!r} to another one, too", key)
    reached, waiting = {0}, [0]
    while waiting:
        place = waiting.pop()
        for other, own in enumerate(keys):
            if other not in reached and own.keys() & keys[place].keys():
                reached.add(other)
                waiting.append(other)
    if len(reached) < len(keys):
        raise _wrong(bolt, "has inputs that no key leads to from the others: join them by a key", [*map(list, keys)])
    if sum(holders.values()) != len(keys) + len(holders) - 1:
        raise _wrong(
            bolt,
            "has inputs that are connected by more than one way: make a list of fields one key, such as "
            "{'orders': ['shop', 'id'], 'payments': ['shop', 'order']}",
            [*map(list, keys)],
        )


def _check_fields(
    plan: Plan, bolt: ComponentPlan, edges: list[EdgePlan], keys: list[dict[str, tuple[int, ...]]]
) -> None:
    """Checks that a key has as many fields in each input, of types that can be equal."""
    seen: dict[str, tuple[str, list[str | None]]] = {}
    for edge, own in zip(edges, keys, strict=True):
        stream = plan.component(edge.producer).stream(edge.stream)
        for key, positions in own.items():
            kinds = [_kind(stream.types[position], stream.fields[position]) for position in positions]
            name = _name(plan, edge)
            other, before = seen.setdefault(key, (name, kinds))
            if len(kinds) != len(before):
                raise _wrong(
                    bolt, f"has a key of {len(before)} fields in {other!r} and of {len(kinds)} in {name!r}", key
                )
            for one, two in zip(before, kinds, strict=True):
                if one != two and None not in (one, two):
                    raise _wrong(
                        bolt,
                        f"would compare {one} of {other!r} with {two} of {name!r}, which are never equal: cast one of "
                        "them before",
                        key,
                    )


def _kind(ddl: str | None, field: str) -> str | None:
    if ddl is None:
        return None
    found = field_type(ddl, f"field {field!r}")
    if pa.types.is_integer(found) or pa.types.is_floating(found) or pa.types.is_decimal(found):
        return "numbers"
    return str(found)


def _check_together(
    plan: Plan, bolt: ComponentPlan, edges: list[EdgePlan], keys: list[dict[str, tuple[int, ...]]]
) -> None:
    """Checks that tuples with equal keys go to one task."""
    if all(edge.grouping == "global" for edge in edges):
        return
    by_parts = set()
    for edge, own in zip(edges, keys, strict=True):
        positions = next(iter(own.values()))
        is_part = edge.grouping == "fields" and set(edge.positions) <= set(positions)
        by_parts.add(tuple(positions.index(place) for place in edge.positions) if is_part else None)
    if len(by_parts) == 1 and None not in by_parts and len({key for own in keys for key in own}) == 1:
        return
    raise _wrong(
        bolt,
        "gets tuples that belong together in different tasks: group each input by the fields of its key, in the same "
        "order, or all of them by Grouping.GLOBAL; a join by several keys runs in one task",
        {_name(plan, edge): edge.grouping for edge in edges},
    )
