"""Runs for the page's tests: a topology with branches, names with markup, files of records."""

from pathlib import Path

import msgspec

from pystorm_source.records.bottleneck import ADVICE, BUSY
from pystorm_source.records.record import (
    Bottleneck,
    ComponentProgress,
    Counts,
    EdgeProgress,
    ErrorRecord,
    Latency,
    PystormProgress,
    TopologyProgress,
)
from pystorm_source.records.record_file import Begin, End
from tests.records.samples import progress

MARKUP = [
    "<script>document.title = 'owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "</script><script>document.title='owned'</script>",
    "</style><svg onload=document.title='owned'>",
    "\"><b id='owned'>x</b>",
    "javascript:document.title='owned'",
    "&lt;i&gt; <!-- \u2028 ' ` ${document.title='owned'} {{7*7}} ]]>",
    "\u202eevil\u202c",
]
"""What a page must show as it is."""


def orders(batch: int, batches: int = 120) -> PystormProgress:
    """A shop's orders: ``price`` becomes slow in the second half, so the budget falls and the backlog grows."""
    late = max(0.0, (batch - batches * 0.5) / (batches * 0.5))
    slow = 1 - min(1.0, late * 2)
    rows = int(4000 + 8000 * slow) + batch * 37 % 400
    seconds = 1.0 + (0.35 * late if late else 0.0) + batch * 13 % 7 / 40
    # name, kind, tasks, tuples in and out, capacity
    known = [
        ("orders", "spout", 1, rows, rows, 0.12 + 0.2 * slow),
        ("parse", "bolt", 2, rows, rows, 0.2 + 0.3 * slow),
        ("price", "bolt", 4, rows, rows, 0.55 + 0.42 * min(1.0, late * 3)),
        ("stock", "bolt", 2, rows, rows // 2, 0.18 + 0.2 * slow),
        ("fraud", "bolt", 2, rows // 10, rows // 90, 0.08 + 0.1 * slow),
        ("alerts", "bolt", 1, rows // 90, rows // 90, 0.01),
        ("totals", "bolt", 2, rows * 3 // 2, rows // 40, 0.1 + 0.1 * slow),
    ]
    edges = [
        ("orders", "default", "parse", "shuffle", rows),
        ("parse", "default", "price", "fields: sku", rows),
        ("parse", "default", "stock", "fields: sku", rows),
        ("parse", "suspects", "fraud", "fields: user", rows // 10),
        ("price", "default", "totals", "fields: day", rows),
        ("stock", "default", "totals", "fields: day", rows // 2),
        ("fraud", "default", "alerts", "global", rows // 90),
        ("totals", "default", "", "", rows // 40),
        ("alerts", "default", "", "", rows // 90),
    ]
    components = tuple(
        _component(name, kind, tasks, given, made, capacity, batch, late)
        for name, kind, tasks, given, made, capacity in known
    )
    backlog = {f"orders:{i}": int((300 + 97 * i % 400) * (1 + 30 * late * (i % 3 == 0))) for i in range(12)}
    return msgspec.structs.replace(
        progress(batch),
        name="orders",
        timestamp=f"2026-03-01T12:{batch * 2 // 60 % 60:02d}:{batch * 2 % 60:02d}.000Z",
        seconds=seconds,
        rows=rows // 40 + rows // 90,
        backlog=sum(backlog.values()),
        backlog_by_partition=backlog,
        limit=rows,
        budget=rows,
        pressure=sum(backlog.values()) / rows,
        target=1.0,
        reason="target_duration" if late else "none",
        throttled_by={"target_duration": 12} if late else {},
        topology=msgspec.structs.replace(
            progress(batch).topology or TopologyProgress(),
            name="Orders",
            components=components,
            edges=tuple(
                EdgeProgress(source=a, stream=stream, target=b, grouping=grouping, transferred=tuples)
                for a, stream, b, grouping, tuples in edges
            ),
            bottleneck=Bottleneck(component="price", capacity=components[2].capacity, advice=ADVICE[BUSY])
            if late
            else None,
        ),
    )


def _component(
    name: str, kind: str, tasks: int, given: int, made: int, capacity: float, batch: int, late: float
) -> ComponentProgress:
    lost = int(9 * late) if name == "price" else 0
    counts = Counts(executed=given, emitted=made, transferred=made, acked=given - lost, failed=lost, retries=lost)
    total = {field: getattr(counts, field) * (batch + 1) for field in Counts.__struct_fields__}
    if lost:
        total.update(dead_letters=batch // 9, errors=batch // 4)
    mean = capacity * tasks / max(1, given)
    stalls = {"downstream_full": 0.6 * late} if name in ("orders", "parse") else {"input_empty": (1 - capacity) * 0.8}
    return ComponentProgress(
        name=name,
        kind=kind,
        tasks=tasks,
        batch=counts,
        total=Counts(**total),
        execute=Latency(count=given, mean=mean, p50=mean * 0.9, p99=mean * 6, max=mean * 40),
        complete=Latency(count=given, mean=0.02, p50=0.01, p99=0.2 + late, max=1.0) if kind == "spout" else Latency(),
        capacity=round(capacity, 3),
        stalls=stalls,
        queue_high_mark=1024 if name == "price" and late else int(900 * capacity),
        queue_capacity=0 if kind == "spout" else 1024,
        batch_fill=88.0,
        last_error=ErrorRecord(
            text="TimeoutError: the price service has not answered for 2 s",
            at=1_772_366_400.0 + batch * 2,
            frames=("shop/price.py:41 in process", "shop/client.py:88 in price_of"),
        )
        if lost
        else None,
    )


def renamed(record: PystormProgress, names: list[str]) -> PystormProgress:
    """The record with these names for its first components, and for everything else that a user may name."""
    topology = record.topology
    assert topology is not None and topology.bottleneck is not None
    new = {old.name: name for old, name in zip(topology.components, names, strict=False)}

    def name(old: str) -> str:
        return new.get(old, old)

    replace = msgspec.structs.replace
    return replace(
        record,
        name=names[0],
        reason=names[1],
        backlog_by_partition={f"{name}:{i}": i + 1 for i, name in enumerate(names)},
        throttled_by={names[2]: 3},
        topology=replace(
            topology,
            name=names[0],
            run=names[1],
            components=tuple(
                replace(
                    each,
                    name=name(each.name),
                    kind=names[3],
                    stalls={**each.stalls, names[4]: 0.2},
                    metrics={text: metric for text in names for metric in each.metrics.values()},
                    last_error=ErrorRecord(text=names[0], at=1e9, frames=tuple(names)),
                )
                for each in topology.components
            ),
            edges=tuple(
                replace(each, source=name(each.source), target=name(each.target), grouping=names[5])
                for each in topology.edges
            ),
            bottleneck=replace(
                topology.bottleneck, component=name(topology.bottleneck.component), why=names[4], advice=names[5]
            ),
            slow_partitions=tuple(replace(each, partition=names[6]) for each in topology.slow_partitions),
            shortened=tuple(names),
        ),
    )


def write_run(path: Path, records: list[PystormProgress], ended: bool = True) -> Path:
    """A record file, as the runner of a query writes it."""
    topology = records[-1].topology or TopologyProgress()
    begin = Begin(topology=topology.name, run=topology.run, began=1_772_366_400.0)
    lines = [msgspec.json.encode(begin), *(record.to_json().encode() for record in records)]
    lines += [msgspec.json.encode(End(ended=1_772_366_700.0))] if ended else []
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path
