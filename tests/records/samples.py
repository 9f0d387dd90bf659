"""Records as large as a query can make them, for what shows and stores records."""

import random
from itertools import pairwise

from pystorm_source.records.record import (
    Bottleneck,
    CacheProgress,
    ComponentProgress,
    Counts,
    EdgeProgress,
    ErrorRecord,
    Latency,
    LimitProgress,
    Metric,
    PartitionProgress,
    PystormProgress,
    StreamCounts,
    TaskProgress,
    TopologyProgress,
)


def progress(
    batch: int = 0, components: int = 5, partitions: int = 4, slow: str = "bolt1", seed: int = 7
) -> PystormProgress:
    """A chain of one spout and bolts; ``slow`` is the bottleneck. The same arguments give the same record."""
    chance = random.Random(seed * 1_000_003 + batch)
    rows = chance.randrange(9_000, 11_000)
    names = ["spout", *(f"bolt{i}" for i in range(1, components))]
    made = tuple(_component(name, rows, batch, name == slow, chance) for name in names)
    edges = [EdgeProgress(source=a, target=b, grouping="shuffle", transferred=rows) for a, b in pairwise(names)]
    edges.append(EdgeProgress(source=names[-1], transferred=rows))
    backlog = {f"spout:{i}": chance.randrange(1, 500) for i in range(min(partitions, 100))}
    return PystormProgress(
        query_id="6f1e",
        run_id="a3b4",
        name="sample",
        batch_id=batch,
        timestamp=f"2026-01-01T{batch // 3600:02d}:{batch // 60 % 60:02d}:{batch % 60:02d}.000Z",
        seconds=chance.uniform(0.8, 1.2),
        rows=rows,
        backlog=sum(backlog.values()),
        backlog_by_partition=backlog,
        avg_offsets_behind_latest=100.0,
        max_offsets_behind_latest=500,
        min_offsets_behind_latest=1,
        limit=12_000,
        reason="rate",
        throttled_by={"rate": partitions},
        throttled=tuple(backlog)[:100],
        budget=12_000,
        pressure=chance.uniform(0.5, 2),
        target=1.0,
        tasks=TaskProgress(
            ranges=partitions,
            offsets=rows,
            rows=rows,
            acked=rows,
            longest=1.0,
            queue_high_mark=900,
            queue_capacity=1024,
            stalls={"downstream_full": 0.4},
            latency={"p50": 1e-5, "p95": 2e-5, "p99": 1e-4},
        ),
        topology=TopologyProgress(
            name="Sample",
            run="0123456789abcdef",
            batch=batch,
            seconds=partitions * 0.9,
            components=made,
            edges=tuple(edges),
            limits=(
                LimitProgress(component=slow, name="api", rate="50/s", calls=9, used=0.4, waits=0.02, paused=0.01),
            ),
            caches=(CacheProgress(component=slow, name="names", hits=90, misses=8, refreshes=2, entries=800),),
            bottleneck=Bottleneck(
                component=slow, capacity=0.97, why="busy", advice="give it more tasks, or make process() cheaper"
            ),
            slow_partitions=tuple(
                PartitionProgress(
                    spout="spout",
                    partition=str(i),
                    offsets=rows // partitions,
                    rows=rows // partitions,
                    seconds=1.0 - i / 20,
                )
                for i in range(min(10, partitions))
            ),
        ),
    )


def _component(name: str, rows: int, batch: int, slow: bool, chance: random.Random) -> ComponentProgress:
    counts = Counts(executed=rows, emitted=rows, transferred=rows, acked=rows, failed=3, retries=3)
    execute = Latency(
        count=rows, mean=(9e-5 if slow else 4e-6) * chance.uniform(0.9, 1.1), p50=5e-6, p99=2e-4, max=0.01
    )
    return ComponentProgress(
        name=name,
        kind="spout" if name == "spout" else "bolt",
        batch=counts,
        total=Counts(**{field: getattr(counts, field) * (batch + 1) for field in Counts.__struct_fields__}),
        streams={"default": StreamCounts(emitted=rows, transferred=rows)},
        execute=execute,
        complete=execute if name == "spout" else Latency(),
        capacity=0.97 if slow else chance.uniform(0.01, 0.3),
        stalls={"input_empty": 0.1} if slow else {"downstream_full": chance.uniform(0, 0.5)},
        queue_high_mark=1024 if slow else chance.randrange(900),
        queue_capacity=1024,
        batch_fill=90.0,
        metrics={"seen": Metric(count=rows, sum=float(rows), last=1)},
        last_error=ErrorRecord(text="ValueError: boom", at=1_767_225_600.0, frames=("bolts.py:12 in process",))
        if slow
        else None,
    )
