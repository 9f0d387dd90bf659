"""Bolts that cannot run in separate processes (``processes=`` of their spec)."""

from pystorm_source.api.async_bolt import AsyncBolt
from pystorm_source.api.bolt import Bolt
from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.stateful_bolt import StatefulBolt
from pystorm_source.errors import TopologyError
from pystorm_source.plan.plan import ComponentPlan


def refuse_unplaceable(spec: ComponentSpec, where: str) -> None:
    """Raises TopologyError for a spec with ``processes`` whose bolt must run in the process of the Spark task."""
    if not spec.processes:
        return
    cls = spec.component_cls
    if issubclass(cls, StatefulBolt):
        raise TopologyError(
            f"bolt {where} keeps a state for each key, and the states lie in the process of the Spark task: take out "
            "`processes`. Spark spreads keys over tasks, and so over cores; for a heavy calculation put a bolt with "
            f"`processes` in front of it. Given: {cls.__name__}.spec(processes={spec.processes})",
            code="PYSTORM_INVALID_TOPOLOGY",
        )
    tasks = [spec.par] if isinstance(spec.par, int) else list(spec.par.values())
    if issubclass(cls, AsyncBolt) and any(count != spec.processes for count in tasks):
        raise TopologyError(
            f"bolt {where} is an AsyncBolt, of which a process runs one task: the process sleeps in its event loop. "
            f"Give par={spec.processes}, or leave par out. Given: {cls.__name__}.spec(par={spec.par!r}, "
            f"processes={spec.processes})",
            code="PYSTORM_INVALID_TOPOLOGY",
        )
    direct = [stream.name for stream in spec.streams if stream.direct]
    if direct:
        raise TopologyError(
            f"bolt {where} has a direct stream, and emits to a task by its id do not cross from another process yet: "
            f"take out `processes`, or declare the stream {direct[0]!r} without direct=True and group it by "
            f"Grouping.fields or Grouping.custom. Given: {cls.__name__}.spec(processes={spec.processes})",
            code="PYSTORM_INVALID_TOPOLOGY",
        )


def is_placeable(component: ComponentPlan) -> bool:
    """Whether a component could have processes, and gain by them if it computes most of the time: an AsyncBolt waits,
    which needs no core."""
    cls = component.cls
    return (
        issubclass(cls, Bolt)
        and not issubclass(cls, (StatefulBolt, AsyncBolt))
        and not any(stream.direct for stream in component.streams)
    )
