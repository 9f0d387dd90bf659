"""Topology class → Plan, and every check that a topology must pass to run."""

import difflib
import inspect
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from cython_core.compiled.bolt import CompiledBolt
from pystorm_source.api.arrow_bolt import ArrowBolt
from pystorm_source.api.async_bolt import AsyncBolt
from pystorm_source.api.batching_bolt import BatchingBolt
from pystorm_source.api.bolt import Bolt
from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.join_bolt import JoinBolt
from pystorm_source.api.key_state import TIMER_FIELDS
from pystorm_source.api.limited_calls import called_method
from pystorm_source.api.partitioned_spout import PartitionedSpout
from pystorm_source.api.spout import Spout
from pystorm_source.api.stateful_bolt import StatefulBolt
from pystorm_source.api.stream import Stream
from pystorm_source.api.topology import Topology
from pystorm_source.errors import OptionError, TopologyError, given
from pystorm_source.errors.redaction import redacted
from pystorm_source.options import EngineOptions
from pystorm_source.options.named import load_named
from pystorm_source.plan.join_inputs import join_inputs, joins
from pystorm_source.plan.key_states import refuse_unkept
from pystorm_source.plan.plan import ComponentPlan, EdgePlan, Plan, engine_options, own_options
from pystorm_source.plan.unplaceable import refuse_limited, refuse_unplaceable
from pystorm_source.plan.unread_par import refuse_unread_par
from pystorm_source.types.arrow import field_type
from pystorm_source.types.json_values import json_copy


def load_topology(reference: str) -> type[Topology]:
    """The topology class named by ``package.module:Class``.

    Raises OptionError if the text has another form, the module cannot be imported or has no such Topology.
    """
    if reference.startswith("<"):  # Spark makes a text of whatever an option is given
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
    """The error for a name that is none, or not that of a topology."""
    module_name, _, class_name = reference.partition(":")
    what = f"option 'topology': {module_name!r} has no Topology {class_name!r}"
    names = sorted(
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Topology) and value is not Topology
    )
    near = difflib.get_close_matches(class_name, names, n=1)
    has = f"it has: {', '.join(names) or 'none'}{f'; did you mean {near[0]!r}' if near else ''}"
    if instead := _instead(found):
        return OptionError(f"{what}: {instead}; {has}. Given: {reference!r}", code="PYSTORM_INVALID_ARGUMENT")
    if module_name == "__main__":
        return OptionError(
            f"{what}: Spark's processes have another '__main__' than this notebook or script. Hand the class itself "
            f"over: pystorm_source.read_stream(spark, {class_name}) or register(spark, {class_name}); or put it into a "
            f"module: 'jobs.words:{class_name}'. Given: {reference!r}",
            code="PYSTORM_NAME_NOT_FOUND",
        )
    return OptionError(f"{what}; {has}. Given: {reference!r}", code="PYSTORM_NAME_NOT_FOUND")


def _no_topology(value: Any) -> TopologyError:
    remedy = "import the class, and give it instead of its name" if isinstance(value, str) else "give the class"
    return TopologyError(
        f"a topology is a subclass of pystorm_source.Topology: {_instead(value) or remedy}. Given: {given(value)}",
        code="PYSTORM_INVALID_ARGUMENT",
    )


def _instead(value: Any) -> str:
    """What was given instead of a topology, and what to give; empty for what tells nothing."""
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
    ``any_environment``: options are still to come. Leaves open which environment counts if a ``par`` differs by it,
    for ``Plan.in_environment`` (until then such a component has one task), and for ``Plan.check_dead_letters`` whether
    there are dead letters.

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
        _check_component(spec, topology)
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
        refuse_limited(component)
    for bolt in joins(plan):
        join_inputs(plan, bolt, several_tasks=False)
    if any_environment:
        return plan
    plan.check_dead_letters()
    return plan.in_environment(engine.environment)


GETS = {
    CompiledBolt: "a CompiledBolt, whose process_tuple gets one tuple at a time",
    BatchingBolt: "a BatchingBolt, whose process_batch gets the tuples of a key",
    JoinBolt: "a JoinBolt, whose process_join gets tuples that belong together",
    StatefulBolt: "a StatefulBolt, whose process gets one tuple at a time",
    ArrowBolt: "an ArrowBolt, whose process_batch gets Arrow batches",
    AsyncBolt: "an AsyncBolt, whose process is a coroutine",
}


def _check_one_kind(cls: type[Any], where: str) -> None:
    kinds = [kind for kind in GETS if issubclass(cls, kind)]
    if len(kinds) > 1 and set(kinds) != {BatchingBolt, AsyncBolt}:
        raise TopologyError(
            f"bolt {where} is {GETS[kinds[0]]}, and {GETS[kinds[1]]}; it cannot be both: derive it from one of them. "
            f"Given: {cls.__name__}",
            code="PYSTORM_INVALID_COMPONENT",
        )


def _check_state(cls: type[StatefulBolt], where: str) -> None:
    """Raises TopologyError, or SchemaError for a wrong type of a state's field."""
    fields = Stream.all_of(cls.state_fields, given_by=f"state_fields of {where}")
    if len(fields) != 1 or not fields[0].typed:
        raise TopologyError(
            f"bolt {where} keeps a state: declare its fields with their types in `state_fields`, such as "
            f"state_fields = ['count long']. Given: {given(cls.state_fields)}",
            code="PYSTORM_INVALID_COMPONENT",
        )
    for name, ddl in zip(fields[0].fields, fields[0].types, strict=True):
        of = f"field {name!r} of the state of {where}"
        refuse_unkept(field_type(ddl or "", of), of)
    if taken := [name for name in fields[0].fields if name in TIMER_FIELDS]:
        raise TopologyError(
            f"bolt {where} keeps a state, and fields of these names keep the timers of keys: choose others in "
            f"`state_fields`. Given: {taken!r}",
            code="PYSTORM_INVALID_COMPONENT",
        )
    if not cls.auto_ack:
        raise TopologyError(
            f"bolt {where} keeps a state, and acks tuples by itself: leave auto_ack as it is, for a tuple that fails "
            "after other tuples were processed would count twice. Given: auto_ack=False",
            code="PYSTORM_INVALID_COMPONENT",
        )


def _meant_instead(cls: type[Any]) -> str:
    """Of a bolt without the method that is called: what another method of it may have been meant for."""
    if issubclass(cls, ArrowBolt):
        found = next((name for name in ("process", "process_batches") if hasattr(cls, name) and _is_own(cls, name)), "")
        return f": {found}() of an ArrowBolt is never called" if found else ""
    if not issubclass(cls, BatchingBolt) and hasattr(cls, "process_batch"):
        return ", or derive from ArrowBolt, whose process_batch(batch) gets Arrow batches"
    return ""


def _is_own(cls: type[Any], name: str) -> bool:
    return getattr(cls, name) is not getattr(ArrowBolt, name, None)


def _check_component(spec: ComponentSpec, topology: type[Topology]) -> None:
    cls = spec.component_cls
    where = f"{spec.label!r} of {topology.__name__}"
    refuse_unplaceable(spec, where)
    for stream in spec.streams:
        for field, ddl in zip(stream.fields, stream.types, strict=True):
            if ddl is not None:
                field_type(ddl, f"field {field!r} of {spec.label}.{stream.name}")
    if all(issubclass(cls, kind) for kind in (Spout, Bolt)):
        raise TopologyError(
            f"component {where} must be a Spout or a Bolt, not both. Given: {cls.__name__}",
            code="PYSTORM_INVALID_COMPONENT",
        )
    if issubclass(cls, Bolt):
        _check_one_kind(cls, where)
        if issubclass(cls, StatefulBolt):
            _check_state(cls, where)
        method = _method_of_bolt(cls, where)
        base = next(base for base in (BatchingBolt, JoinBolt, ArrowBolt, AsyncBolt, Bolt) if issubclass(cls, base))
        missing = getattr(cls, method) is getattr(base, method)
        if missing and not (issubclass(cls, BatchingBolt) and cls.process_batches is not BatchingBolt.process_batches):
            arguments = {BatchingBolt: "key, tups", JoinBolt: "tups", ArrowBolt: "batch"}.get(base, "tup")
            how = "async def " if issubclass(cls, AsyncBolt) else ""
            raise TopologyError(
                f"bolt {where} must define {how}{method}({arguments}){_meant_instead(cls)}. Given: {cls.__name__}",
                code="PYSTORM_INVALID_COMPONENT",
            )
    elif issubclass(cls, PartitionedSpout):
        method = "next_batch" if cls.gives_batches() else "next_tuple"
        default = spec.stream("default")
        if method == "next_batch" and default is None:
            raise TopologyError(
                f"spout {where} gives Arrow batches, which are rows of its default stream: declare its fields in "
                f"`outputs`, such as outputs = ['word string']. Given: the streams "
                f"{[stream.name for stream in spec.streams]!r}",
                code="PYSTORM_INVALID_COMPONENT",
            )
        if method == "next_batch" and default is not None and default.direct:
            raise TopologyError(
                f"spout {where} gives Arrow batches, whose rows name no task: declare its default stream without "
                f"direct=True, or define next_tuple(). Given: {default!r}",
                code="PYSTORM_INVALID_COMPONENT",
            )
    else:
        method = "next_tuple"
        if issubclass(cls, Spout) and cls.next_tuple is Spout.next_tuple:
            raise TopologyError(
                f"spout {where} must define next_tuple(). Given: {cls.__name__}", code="PYSTORM_INVALID_COMPONENT"
            )
    # A call of such a function only makes an object that is never run: no error, and no tuple ever.
    for name in (method, "process_tick", "initialize", "cleanup"):
        function = getattr(cls, name, None)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TopologyError(
                f"{name}() of {where} must not yield, or nothing of it ever runs: rows leave by self.emit([...]). "
                f"Given: {cls.__name__}.{name}",
                code="PYSTORM_INVALID_COMPONENT",
            )
    function = getattr(cls, method, None)
    if issubclass(cls, AsyncBolt):
        if not inspect.iscoroutinefunction(function):
            raise TopologyError(
                f"process() of {where} must be async def, as that of every AsyncBolt; derive it from Bolt if it waits "
                f"for nothing. Given: {cls.__name__}.process",
                code="PYSTORM_INVALID_COMPONENT",
            )
        return
    for name in (method, "initialize", "cleanup", "process_tick"):
        if inspect.iscoroutinefunction(getattr(cls, name, None)):
            raise TopologyError(
                f"{name}() of {where} must be a plain def, not async; bolts whose methods are async derive from "
                f"AsyncBolt. Given: {cls.__name__}.{name}",
                code="PYSTORM_INVALID_COMPONENT",
            )


def _method_of_bolt(cls: type[Bolt], where: str) -> str:
    """The method that gets its tuples."""
    if cls.process_many is Bolt.process_many:
        return called_method(cls)
    for base, method in (
        (BatchingBolt, "process_batch(key, tups)"),
        (JoinBolt, "process_join(tups)"),
        (ArrowBolt, "process_batch(batch)"),
        (AsyncBolt, "async def process(tup)"),
        (CompiledBolt, "cdef int process_tuple(tup)"),
    ):
        if issubclass(cls, base):
            raise TopologyError(
                f"bolt {where} is of the class {base.__name__}, whose tuples come to {method}, never to process_many: "
                f"derive it from Bolt alone, or rename the method. Given: {cls.__name__}.process_many",
                code="PYSTORM_INVALID_COMPONENT",
            )
    for each in cls.__mro__:
        if "process_many" in vars(each) and "process" not in vars(each):
            break  # it takes the place of the process of a base
        if "process" in vars(each):
            raise TopologyError(
                f"bolt {where} defines process_many(tups), so its process(tup) would never be called: remove one of "
                f"them. Given: {each.__name__}.process",
                code="PYSTORM_INVALID_COMPONENT",
            )
    return "process_many"


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
