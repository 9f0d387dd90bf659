"""The plan of a child: a topology's component between its links.

lines.default ──shuffle──► parse            in the parent
lines.default ─► parse ─► (out)             in the child: LinkSpout, the component, LinkBolt
"""

from dataclasses import replace

from pystorm_source.api.stream import Stream
from pystorm_source.options import EngineOptions
from pystorm_source.plan.plan import ComponentPlan, EdgePlan, Plan, engine_options
from pystorm_source.worker.processes.link_bolt import LinkBolt
from pystorm_source.worker.processes.link_spout import LinkSpout, Source

OUT = "__link"


def sources_of(plan: Plan, component: str) -> list[Source]:
    """Component, stream and task of each producer that sends tuples to a component, each once."""
    found = [
        (*plan.component(name).tuples_of(stream), task)
        for name, stream in _streams_to(plan, component)
        for task in plan.component(name).tasks
    ]
    return list(dict.fromkeys(found))


def _streams_to(plan: Plan, component: str) -> list[tuple[str, str]]:
    return list(dict.fromkeys((edge.producer, edge.stream) for edge in plan.edges if edge.consumer == component))


def child_plan(plan: Plan, component: str, task: int) -> Plan:
    """A topology of one task of a component, with the same configuration."""
    placed = replace(plan.component(component), tasks=(task,), processes=0)
    config = {
        **dict(plan.config),
        # The parent spreads work over tasks, and decides about a tuple that fails.
        "topology.max.spout.pending": None,
        # One component gains nothing from the engine's threads.
        "topology.scheduler": "inline",
        "topology.dead.letter": "fail",
        # Even if the parent does not track trees, the child tracks each tuple, to report its verdict.
        "topology.acker.executors": None,
    }
    if plan.options.acker_executors == 0:
        config["topology.enable.message.timeouts"] = False
    options = engine_options(config)
    out_task = max(max(each.tasks) for each in plan.components) + 1
    streams = _streams_to(plan, component)
    spouts = [_spout(plan, name, stream, options) for name, stream in streams]
    out = ComponentPlan(OUT, LinkBolt, (), (out_task,), options)
    edges = [EdgePlan(f"{name}.{stream}", "default", component, "global") for name, stream in streams]
    edges += [EdgePlan(component, stream.name, OUT, "global") for stream in placed.streams if stream.fields]
    return replace(
        plan,
        components=(*spouts, placed, out),
        edges=tuple(edges),
        options=options,
        config=tuple(sorted(config.items())),
        leaving=None,
        of=plan,
    )


def _spout(plan: Plan, name: str, stream: str, options: EngineOptions) -> ComponentPlan:
    producer = plan.component(name)
    declared = producer.stream(stream)
    typed = zip(declared.fields, declared.types, strict=True)
    fields = [field if ddl is None else f"{field} {ddl}" for field, ddl in typed]
    origin = producer.tuples_of(stream)
    return ComponentPlan(f"{name}.{stream}", LinkSpout, (Stream(fields),), producer.tasks, options, origin=origin)
