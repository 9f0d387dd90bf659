"""The plan of a child: a component of a topology between its links.

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
    """The streams that a component subscribes to, as component and stream of the plan, each once."""
    return list(dict.fromkeys((edge.producer, edge.stream) for edge in plan.edges if edge.consumer == component))


def child_plan(plan: Plan, component: str, task: int) -> Plan:
    """One task of a component as a topology of its own, under the same configuration."""
    placed = replace(plan.component(component), tasks=(task,))
    # What is spread over tasks, and what is done about a tuple that fails, is the parent's affair.
    config = {**dict(plan.config), "topology.max.spout.pending": None}
    options = engine_options(config)
    above = max(max(each.tasks) for each in plan.components)
    sources = sources_of(plan, component)
    spouts = [_spout(plan, source, above + i, options) for i, source in enumerate(sources, 1)]
    out = ComponentPlan(OUT, LinkBolt, (), (above + len(sources) + 1,), options)
    edges = [EdgePlan(f"{name}.{stream}", stream, component, "global") for name, stream in sources]
    edges += [EdgePlan(component, stream.name, OUT, "global") for stream in placed.streams if stream.fields]
    return replace(
        plan,
        components=(*spouts, placed, out),
        edges=tuple(edges),
        options=options,
        config=tuple(sorted(config.items())),
        leaving=None,
    )


def _spout(plan: Plan, source: Source, task: int, options: EngineOptions) -> ComponentPlan:
    producer = plan.component(source[0])
    declared = producer.stream(source[1])
    typed = zip(declared.fields, declared.types, strict=True)
    fields = [name if ddl is None else f"{name} {ddl}" for name, ddl in typed]
    stream = Stream(fields, declared.name)
    origin = producer.tuples_of(source[1])
    return ComponentPlan(".".join(source), LinkSpout, (stream,), (task,), options, origin=origin)
