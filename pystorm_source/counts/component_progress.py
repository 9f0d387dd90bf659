"""From sums of columns to the record of a topology: names, shares, rates."""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from pystorm_source.counts.batch_counts import BatchCounts, ComponentSums
from pystorm_source.counts.latencies import short
from pystorm_source.plan.plan import ComponentPlan, Plan
from pystorm_source.records.bottleneck import bottleneck
from pystorm_source.records.counts import SHOWN, Counts
from pystorm_source.records.record import (
    CacheProgress,
    ComponentProgress,
    EdgeProgress,
    ErrorRecord,
    LimitProgress,
    Metric,
    StreamCounts,
    TopologyProgress,
)
from pystorm_source.worker.output import OutputPlan

_LEAST_SHARE = 0.0005
"""Shares below it are not shown."""


class TopologyView:
    """Makes the records of one plan. ``run``: names the run of the query."""

    def __init__(self, plan: Plan, output: OutputPlan, run: str):
        self._plan = plan
        self._run = run
        self._open = [(view.component, view.stream) for view in output.views]
        self._above = plan.spouts_above
        self._streams = {
            (component.name, stream.name): place for place, (component, stream) in enumerate(plan.counted_streams())
        }
        self._ways: dict[tuple[str, str], list[int]] = {of: [] for of in self._streams}
        for i, edge in enumerate(plan.edges):
            self._ways[edge.producer, edge.stream].append(i)

    def of(
        self,
        batch: BatchCounts,
        totals: ComponentSums,
        metrics: Mapping[tuple[int, str], Metric],
        errors: Mapping[int, ErrorRecord],
    ) -> TopologyProgress:
        """The record of a micro-batch. ``totals``: since the run began."""
        by_component: dict[int, dict[str, Metric]] = {}
        for (place, name), metric in sorted(metrics.items()):
            by_component.setdefault(place, {})[name] = metric
        latencies = zip(self._plan.components, batch.execute.all(), batch.complete.all(), strict=True)
        made = TopologyProgress(
            name=self._plan.name,
            run=self._run,
            batch=batch.number,
            seconds=round(sum(batch.seconds.values()), 3),
            elapsed=round(batch.elapsed, 3),
            scheduler=self._plan.options.scheduler,
            whole=batch.whole,
            computes=_computes(batch),
            components=tuple(
                replace(
                    self._component(place, component, batch, totals),
                    execute=execute,
                    complete=complete,
                    metrics=by_component.get(place, {}),
                    last_error=errors.get(place),
                )
                for place, (component, execute, complete) in enumerate(latencies)
            ),
            edges=tuple(self._edges(batch.sums)),
            slow_partitions=batch.slowest,
        )
        made = replace(made, limits=tuple(self._limits(batch)), caches=tuple(self._caches(batch)))
        return replace(made, bottleneck=bottleneck(made, batch.duration))

    def _limits(self, batch: BatchCounts) -> Iterator[LimitProgress]:
        calls: dict[str, float] = {}
        for (_, name), (own, _, _) in batch.limits.items():
            calls[name] = calls.get(name, 0) + own
        for (place, name), (own, waited, paused) in sorted(batch.limits.items()):
            limit = self._plan.options.limits.get(name)
            if limit is None or place >= len(self._plan.components):
                continue
            component = self._plan.components[place]
            seconds = self._seconds(component, batch) * len(component.tasks)
            most = limit.calls / limit.seconds * batch.elapsed
            yield LimitProgress(
                component=component.name,
                name=name,
                rate=limit.text,
                calls=int(own),
                used=round(min(1.0, calls[name] / most), 3) if most > 0 else 0.0,
                waits=round(min(1.0, waited / seconds), 3),
                paused=round(min(1.0, paused / seconds), 3),
            )

    def _caches(self, batch: BatchCounts) -> Iterator[CacheProgress]:
        for (place, name), (hits, misses, refreshes, entries) in sorted(batch.caches.items()):
            if place < len(self._plan.components):
                component = self._plan.components[place].name
                yield CacheProgress(
                    component=component, name=name, hits=hits, misses=misses, refreshes=refreshes, entries=entries
                )

    def _seconds(self, component: ComponentPlan, batch: BatchCounts) -> float:
        """How long its tasks were at work. Ranges of a spout that is not above it give it no work."""
        return max(1e-6, sum(batch.seconds[spout] for spout in self._above[component.name]))

    def _component(
        self, place: int, component: ComponentPlan, batch: BatchCounts, totals: ComponentSums
    ) -> ComponentProgress:
        sums = batch.sums.of
        batches = sums["batches_published"][place]
        seconds = self._seconds(component, batch)
        in_turn = self._plan.options.scheduler == "inline" and not component.processes
        busy = sums["busy_seconds"] if in_turn else batch.busiest_seconds
        link = sums["busy_seconds"][place] - sums["process_seconds"][place] if component.processes else 0.0
        stalls: dict[str, float] = {
            reason: round(min(1.0, share), 3)
            for reason, stalled in batch.stall_seconds.items()
            if (share := stalled[place] / seconds / len(component.tasks)) >= _LEAST_SHARE
        }
        return ComponentProgress(
            name=component.name,
            kind="spout" if component.is_spout else "bolt",
            tasks=len(component.tasks),
            batch=self._counts(place, component, batch.sums),
            total=self._counts(place, component, totals),
            streams=self._stream_counts(component, batch.sums),
            capacity=round(min(1.0, busy[place] / seconds), 3),
            stalls=stalls,
            queue_high_mark=batch.largest["queue_high_mark"][place],
            queue_capacity=0 if component.is_spout else self._plan.queue_capacity,
            pending_high_mark=batch.largest["pending_high_mark"][place],
            processes=min(component.processes, len(component.tasks)),
            link=round(min(1.0, max(0.0, link) / seconds), 3),
            away_high_mark=batch.largest["away_high_mark"][place],
            unread_high_mark=batch.largest["unread_high_mark"][place],
            batch_fill=short(sums["tuples_published"][place] / batches) if batches else 0.0,
        )

    def _counts(self, place: int, component: ComponentPlan, sums: ComponentSums) -> Counts:
        streams = self._stream_counts(component, sums).values()
        return Counts(
            emitted=sum(stream.emitted for stream in streams),
            transferred=sum(stream.transferred for stream in streams),
            **{name: round(value, 6) for name in SHOWN if (value := sums.of[name][place])},  # JSON leaves zeros out
        )

    def _stream_counts(self, component: ComponentPlan, sums: ComponentSums) -> dict[str, StreamCounts]:
        """The counts of the streams that something was emitted on."""
        found: dict[str, StreamCounts] = {}
        for stream in self._plan.streams_of(component):
            of = component.name, stream.name
            if emitted := sums.emitted[self._streams[of]]:
                transferred = sum([sums.edges[i] for i in self._ways[of]])
                found[stream.name] = StreamCounts(emitted=emitted, transferred=transferred)
        return found

    def _edges(self, sums: ComponentSums) -> list[EdgeProgress]:
        made = [
            EdgeProgress(
                source=edge.producer,
                stream=edge.stream,
                target=edge.consumer,
                grouping=edge.grouping,
                transferred=sums.edges[i],
            )
            for i, edge in enumerate(self._plan.edges)
        ]
        return made + [
            EdgeProgress(source=name, stream=stream, transferred=sums.emitted[self._streams[name, stream]])
            for name, stream in self._open
        ]


def _computes(batch: BatchCounts) -> float | None:
    busy = sum(batch.sums.of["busy_seconds"]) - sum(batch.sums.of["process_seconds"])
    return round(min(1.0, batch.cpu_seconds / busy), 3) if batch.cpu_seconds and busy > 0 else None
