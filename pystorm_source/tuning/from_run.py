"""The counts of a trial as an observation, in the form of a query's records."""

from collections.abc import Iterator, Mapping
from typing import Any

from pystorm_source.api import AsyncBolt, BatchingBolt
from pystorm_source.plan.plan import ComponentPlan, Plan
from pystorm_source.records.counts import Counts
from pystorm_source.records.record import ComponentProgress, Latency, LimitProgress
from pystorm_source.tuning.observed import Observed
from pystorm_source.worker.report import busy_seconds

LATENCY = ("count", "mean", "p50", "p99", "max")


def observed_run(plan: Plan, report: Mapping[str, Any], seconds: float, rate: float, computed: float) -> Observed:
    """``report``: the workers' sum, over ``seconds`` of their rounds; ``rate``: tuples of the spouts per second;
    ``computed``: processor seconds. Leaves what the report does not say, such as the cores, at its default."""
    reported: Mapping[str, Any] = report.get("components", {})
    waiting = {component.name: component for component in plan.components if issubclass(component.cls, AsyncBolt)}
    return Observed(
        components=tuple(_component(plan, each, reported.get(each.name, {}), seconds) for each in plan.components),
        seconds=seconds,
        cores=1,
        tuples=round(rate * seconds),
        scheduler=plan.options.scheduler,
        processors=computed / seconds if seconds > 0 else None,
        requests={
            name: bound
            for name, component in waiting.items()
            if isinstance(bound := component.options.async_max_pending, int)
        },
        spread={name: _spread(each) for name, each in reported.items()},
        limits=tuple(_limits(plan, reported, seconds)),
        batched={
            component.name: size
            for component in plan.components
            if issubclass(component.cls, BatchingBolt) and (size := component.cls.tuples_between_batches)
        },
        emitted_at_once=max([0, *(each.get("pending_emits_high_mark", 0) for each in reported.values())]),
    )


def _limits(plan: Plan, reported: Mapping[str, Any], seconds: float) -> Iterator[LimitProgress]:
    calls: dict[str, int] = {}
    for counts in reported.values():
        for name, each in counts.get("permits", {}).items():
            calls[name] = calls.get(name, 0) + each["calls"]
    for component, counts in reported.items():
        share = 1 / (seconds * max(1, len(counts.get("tasks", {})))) if seconds > 0 else 0.0
        for name, each in counts.get("permits", {}).items():
            limit = plan.options.limits[name]
            yield LimitProgress(
                component=component,
                name=name,
                rate=limit.text,
                calls=each["calls"],
                used=min(1.0, calls[name] * limit.seconds / (limit.calls * seconds)) if seconds > 0 else 0.0,
                waits=min(1.0, each["wait_seconds"] * share),
                paused=min(1.0, each["pause_seconds"] * share),
            )


def _spread(counts: Mapping[str, Any]) -> float:
    """Returns what the busiest task executed, relative to the mean of the tasks."""
    executed = [each.get("executed", 0) for each in counts.get("tasks", {}).values()]
    return max(executed) * len(executed) / sum(executed) if sum(executed) else 1.0


def _component(plan: Plan, component: ComponentPlan, counts: Mapping[str, Any], seconds: float) -> ComponentProgress:
    tasks = list(counts.get("tasks", {}).values()) or [{}]
    latency = counts.get("latency", {})
    share = 1.0 / seconds if seconds > 0 else 0.0
    busy = [each.get("busy_seconds", 0.0) for each in tasks]
    return ComponentProgress(
        name=component.name,
        kind="spout" if component.is_spout else "bolt",
        tasks=len(tasks),
        batch=Counts(**{name: counts.get(name, 0) for name in Counts.__struct_fields__}),
        execute=Latency(**{name: latency.get(name, 0) for name in LATENCY}),
        # As in records: under inline all tasks share one thread, under threads the busiest task counts. Processes are
        # busy side by side.
        capacity=busy_seconds(component, counts, plan.options.scheduler) * share,
        processes=min(component.processes, len(component.tasks)),
        link=max(0.0, sum(busy) - sum(each.get("process_seconds", 0.0) for each in tasks)) * share
        if component.processes
        else 0.0,
        away_high_mark=counts.get("away_high_mark", 0),
        unread_high_mark=counts.get("unread_high_mark", 0),
        stalls={reason: spent * share / len(tasks) for reason, spent in counts.get("stall_seconds", {}).items()},
        queue_high_mark=counts.get("queue_high_mark", 0),
        queue_capacity=0 if component.is_spout else component.options.receive_buffer_size,
        batch_fill=counts.get("batch_fill", 0.0),
    )
