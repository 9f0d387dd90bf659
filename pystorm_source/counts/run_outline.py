"""The outline of a run: the topology to draw before a task has reported."""

import os
from collections.abc import Mapping
from typing import Any

from pystorm_source.plan.plan import Plan
from pystorm_source.records.record import ComponentProgress, EdgeProgress
from pystorm_source.records.record_file import Begin
from pystorm_source.worker.output import OutputPlan


def begin_of(plan: Plan, output: OutputPlan, run: str, began: float, options: Mapping[str, Any]) -> Begin:
    """The first line of a run's file. ``began``: seconds since 1970; ``options``: as in ``given_options``."""
    components = tuple(
        ComponentProgress(name=each.name, kind="spout" if each.is_spout else "bolt", tasks=len(each.tasks))
        for each in plan.components
    )
    edges = [
        EdgeProgress(source=each.producer, stream=each.stream, target=each.consumer, grouping=each.grouping)
        for each in plan.edges
    ]
    edges += [EdgeProgress(source=view.component, stream=view.stream) for view in output.views]
    return Begin(
        topology=plan.name,
        run=run,
        began=began,
        process=os.getpid(),
        components=components,
        edges=tuple(edges),
        options=dict(options),
    )
