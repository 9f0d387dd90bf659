"""Topology class → Plan, and every check that a topology must pass to run."""

import difflib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from pystorm_source.api.arrow_bolt import ArrowBolt
from pystorm_source.api.async_batch_bolt import AsyncBatchBolt
from pystorm_source.api.bolt import Bolt
from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.spout import Spout
from pystorm_source.api.topology import Topology
from pystorm_source.errors import OptionError, TopologyError, given
from pystorm_source.errors.redaction import redacted
from pystorm_source.options import EngineOptions
from pystorm_source.options.named import load_named
from pystorm_source.plan.component_checks import check_component
from pystorm_source.plan.join_inputs import join_inputs, joins
from pystorm_source.plan.lint import may_take_permits
from pystorm_source.plan.plan import ComponentPlan, EdgePlan, Plan, engine_options, own_options
from pystorm_source.plan.unread_par import refuse_unread_par
from pystorm_source.types.json_values import json_copy


def load_topology(reference: str) -> type[Topology]:
    """The topology class named by ``package.module:Class``.

    Raises OptionError if the text has another form, the module cannot be imported or has no such Topology.
    """
    if reference.startswith("<"):  # Spark turns the value of any option into text
        raise OptionError(
            "option 'topology' is the name of a class, 'package.module:Class', and was given an object: write its "
            "name, or hand the class itself to pystorm_source.read_stream(spark, Class) or register(spark, Class). "
            f"Given: {reference!r}",
            code="PYSTORM_INVALID_ARGUMENT",
        )
    module, found = load_named(
        "topology",
        reference,
        "package.module:Class, such as 'jobs.word_count:WordCount'",
        f", or register the class with pystorm_source.register(spark, {reference.partition(':')[2]})",
    )
    if not (isinstance(found, type) and issubclass(found, Topology)):
        raise _not_found(reference, module, found)
    return found


def _not_found(reference: str, module: ModuleType, found: Any) -> OptionError:
    """The error for a name that does not exist, or is not a topology's."""
    module_name, _, class_name = reference.partition(":")
    what = f"option 'topology': {module_name!r} has no Topology {class_name!r}"
    names = sorted(
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Topology) and value is not Topology
    )
    near = difflib.get_close_matches(class_name, names, n=1)
    has = f"it has: {', '.join(names) or 'none'}{f'; did you mean {near[0]!r}?' if near else '.'}"
    if instead := _instead(found):
        return OptionError(f"{what}: {instead}; {has} Given: {reference!r}", code="PYSTORM_INVALID_ARGUMENT")
    if module_name == "__main__":
        return OptionError(
            f"{what}: Spark's processes have another '__main__' than this notebook or script. Pass the class: "
            f"pystorm_source.read_stream(spark, {class_name}) or register(spark, {class_name}); or put it into a "
            f"module: 'jobs.words:{class_name}'. Given: {reference!r}",
            code="PYSTORM_NAME_NOT_FOUND",
        )
    return OptionError(f"{what}; {has} Given: {reference!r}", code="PYSTORM_NAME_NOT_FOUND")


def _no_topology(value: Any) -> TopologyError:
    remedy = "import the class, and give it instead of its name" if isinstance(value, str) else "give the class"
    return TopologyError(
        f"a topology is a subclass of pystorm_source.Topology: {_instead(value) or remedy}. Given: {given(value)}",
        code="PYSTORM_INVALID_ARGUMENT",
    )


def _instead(value: Any) -> str:
    """What was given instead of a topology, and what to give; empty if that is unclear."""
    line = "class Line(Topology): lines = MySpout.spec(); words = MyBolt.spec(inputs=[lines])"
    if isinstance(value, Topology):
        return f"it is an instance: give the class, {type(value).__name__} without parentheses"
    if isinstance(value, ComponentSpec):
        return f"it is a component: make it a part of a topology, `{line}`"
    if isinstance(value, type) and issubclass(value, (Spout, Bolt)):
        kind = "bolt" if issubclass(value, Bolt) else "spout"
        return f"{value.__name__} is a {kind}: make it a part of a topology, `{line}`"
    return ""


def compile_plan(
    topology: type[Topology], overrides: Mapping[str, Any] | None = None, *, any_environment: bool = False
) -> Plan:
    """Compiles a topology. ``overrides``: configuration over ``Topology.config`` (options win over the class).
    ``any_environment``: options are still to come. This leaves open which environment counts if a ``par`` depends on
    it, for ``Plan.in_environment`` (until then such a component has one task), and whether there are dead letters, for
    ``Plan.check_dead_letters``.

    Raises TopologyError for a topology that cannot run, OptionError for a wrong engine key,
    SchemaError for a wrong type of any stream.
    """
    if not (isinstance(topology, type) and issubclass(topology, Topology)):
        raise _no_topology(topology)
    if not topology.specs:
        raise TopologyError(
            f"a topology needs components, such as lines = MySpout.spec(). Given: {topology.__name__}",
            code="PYSTORM_INVALID_TOPOLOGY",
        )
    config = {**topology.merged_config(), **(overrides or {})}
    engine = engine_options(config)
    owns: dict[str, EngineOptions] = {}
    tasks: dict[str, tuple[int, ...]] = {}
    next_task = 1
    for spec in topology.specs:
        count = spec.par if isinstance(spec.par, int) else 1
        tasks[spec.label] = tuple(range(next_task, next_task + count))
        next_task += count
    edges = []
    for spec in topology.specs:
        check_component(spec, topology)
        if issubclass(spec.component_cls, ArrowBolt):
            inputs = [
                (f"{each.producer.label}.{each.stream.name}", each.stream) for each in topology.subscriptions(spec)
            ]
            spec.component_cls.check_inputs(spec, inputs)
        owns[spec.label] = own_options(spec.label, spec.config, config, engine)
        for producer, stream, grouping in topology.subscriptions(spec):
            edges.append(
                EdgePlan(
                    producer=producer.label,
                    stream=stream.name,
                    consumer=spec.label,
                    grouping=grouping.kind,
                    positions=tuple(stream.fields.index(name) for name in grouping.names),
                    custom=grouping.chooser,
                )
            )
            edges[-1].own_custom()
    components = tuple(
        ComponentPlan(
            name=spec.label,
            cls=spec.component_cls,
            streams=spec.streams,
            tasks=tasks[spec.label],
            options=owns[spec.label],
            config=_frozen(spec.config),
            pars=tuple(spec.par.items()) if isinstance(spec.par, dict) else (),
            processes=spec.processes,
            takes_permits=bool(engine.limits) and may_take_permits(spec.component_cls),
        )
        for spec in _upstream_first(topology.specs, edges)
    )
    plan = Plan(
        name=engine.name or topology.__name__,
        components=components,
        edges=tuple(edges),
        options=engine,
        config=_frozen(config),
    )
    plan.check_keys()
    refuse_unread_par(plan)
    for component in components:
        if issubclass(component.cls, AsyncBatchBolt):
            _check_pending(component, component.cls.batch_rows)
    for bolt in joins(plan):
        join_inputs(plan, bolt, several_tasks=False)
    if any_environment:
        return plan
    plan.check_dead_letters()
    return plan.in_environment(engine.environment)


def _check_pending(component: ComponentPlan, rows: int) -> None:
    most = component.options.async_max_pending
    if most != "adaptive" and rows > most:
        raise OptionError(
            f"batch_rows={rows} of {component.name!r} is more than topology.async.max.pending, the tuples that may be "
            f"under way: no call would ever be full. Raise topology.async.max.pending to {2 * rows} for two calls at a "
            f"time. Given: topology.async.max.pending={most}",
            code="PYSTORM_OPTIONS_CONFLICT",
        )


def _frozen(config: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    try:
        copied = json_copy(dict(config))
    except (TypeError, ValueError) as error:
        raise TopologyError(
            f"the configuration of a topology must be JSON: {error}. Given: {redacted('config', config)!r}",
            code="PYSTORM_INVALID_TOPOLOGY",
        ) from None
    return tuple(sorted(copied.items()))


def _upstream_first(specs: tuple[ComponentSpec, ...], edges: list[EdgePlan]) -> list[ComponentSpec]:
    """Reverse postorder of a depth-first walk from the spouts: upstream first, with cycles cut at their back edges."""
    by_name = {spec.label: spec for spec in specs}
    below: dict[str, list[str]] = {name: [] for name in by_name}
    for edge in edges:
        below[edge.producer].append(edge.consumer)
    order: list[str] = []
    seen: set[str] = set()
    roots = [spec.label for spec in specs if not spec.subscriptions]
    for root in [*reversed(roots), *by_name]:
        stack = [(root, iter(below[root]))] if root not in seen else []
        seen.add(root)
        while stack:
            name, consumers = stack[-1]
            consumer = next((c for c in consumers if c not in seen), None)
            if consumer is None:
                order.append(name)
                stack.pop()
            else:
                seen.add(consumer)
                stack.append((consumer, iter(below[consumer])))
    return [by_name[name] for name in reversed(order)]
