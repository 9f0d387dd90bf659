"""What a query's records say about it, read from its record file while it runs or later."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import fmean, median

import msgspec

from pystorm_source.errors import OptionError, given
from pystorm_source.records.bottleneck import MOSTLY
from pystorm_source.records.counts import Counts
from pystorm_source.records.record import (
    ComponentProgress,
    Latency,
    LimitProgress,
    PystormProgress,
    TopologyProgress,
)
from pystorm_source.records.record_file import RecordFile
from pystorm_source.tuning.observed import MicroBatch, Observed

LAST = 50
"""Micro-batches to look at. More: the time before the last change counts, too. Less: one odd batch decides."""
COLD = 2
"""First micro-batches of a run to leave out, if others exist: they start processes."""


def read_records(path: Path) -> list[PystormProgress]:
    """Reads the records of a file, the last line of each micro-batch.

    Raises:
        OptionError: the file cannot be read, or has no record.
    """
    try:
        records = RecordFile(path).read().records
    except OSError as error:
        raise OptionError(
            f"--records is the record file of a query, a .jsonl in the folder of its option progress.path "
            f"({error.strerror}). Given: {given(str(path))}",
            code="PYSTORM_INVALID_OPTION",
        ) from None
    found = [record for record in records if record.topology is not None]
    if not found:
        raise OptionError(
            "--records is the record file of a query that has finished a micro-batch: it has no such line. Given: "
            f"{given(str(path))}",
            code="PYSTORM_INVALID_OPTION",
        )
    return found


def observed_of(records: Iterable[PystormProgress], cores: int) -> Observed:
    """Sums up the last micro-batches of a query. ``cores``: what its tasks have, together."""
    every = [record for record in _aligned(list(records)) if record.topology is not None]
    chosen = every[COLD:][-LAST:] or every[-1:]
    topologies = [record.topology for record in chosen if record.topology is not None]
    last = chosen[-1]
    spouts = {each.name for each in topologies[-1].components if each.kind == "spout"}
    seconds = sum(each.seconds for each in topologies)
    components = tuple(_component(each.name, topologies) for each in topologies[-1].components)
    reasons = Counter(record.reason for record in chosen)
    # Also count what waited before them: the last micro-batch of a run that has read everything leaves nothing.
    waited = [record.backlog for record in every[: len(every) - len(chosen)][-1:] + chosen]
    return Observed(
        components=components,
        seconds=seconds,
        cores=cores,
        scheduler=topologies[-1].scheduler,
        tuples=sum(each.batch.emitted for each in components if each.name in spouts),
        micro_batches=tuple(batch for record in chosen if (batch := _micro_batch(record)) is not None),
        backlog=round(median(waited)),
        target=last.target,
        reason=reasons.most_common(1)[0][0],
        limits=tuple(_limits(topologies)),
        cpu_share=_cpu_share(components, topologies),
    )


def _cpu_share(components: tuple[ComponentProgress, ...], topologies: list[TopologyProgress]) -> dict[str, float]:
    """Returns the busiest component's share, if it has nearly all of the thread's busy time."""
    known = [each.computes for each in topologies if each.computes is not None]
    busiest = max(components, key=lambda each: each.capacity, default=None)
    if not known or busiest is None or busiest.capacity < MOSTLY * sum(each.capacity for each in components):
        return {}
    return {busiest.name: fmean(known)}


def _limits(topologies: list[TopologyProgress]) -> Iterator[LimitProgress]:
    """Yields each limit with the mean of its shares and the sum of its calls."""
    seen: dict[tuple[str, str], list[LimitProgress]] = {}
    for topology in topologies:
        for limit in topology.limits:
            seen.setdefault((limit.component, limit.name), []).append(limit)
    for found in seen.values():
        yield msgspec.structs.replace(
            found[-1],
            calls=sum(each.calls for each in found),
            used=sum(each.used for each in found) / len(topologies),
            waits=sum(each.waits for each in found) / len(topologies),
            paused=sum(each.paused for each in found) / len(topologies),
        )


def _aligned(records: list[PystormProgress]) -> list[PystormProgress]:
    """Aligns durations and rows with the counts, which in Spark's progress belong to the micro-batch before. Leaves out
    the first record, whose counts have no known duration."""
    aligned = []
    for number, record in enumerate(records):
        if not record.counts_of_batch_before:
            aligned.append(record)
        elif number:
            before = records[number - 1]
            aligned.append(msgspec.structs.replace(record, seconds=before.seconds, rows=before.rows))
    return aligned or records


def _micro_batch(record: PystormProgress) -> MicroBatch | None:
    topology, tasks = record.topology, record.tasks
    if topology is None or tasks is None or not tasks.ranges or record.seconds <= 0:
        return None
    full = tasks.stalls.get("output_full", 0.0)
    return MicroBatch(
        record.seconds, record.rows, topology.seconds, tasks.longest, tasks.ranges, full, topology.elapsed
    )


def _component(name: str, topologies: list[TopologyProgress]) -> ComponentProgress:
    """Combines a component: sums of counts, means of shares, the largest high marks."""
    seen = [each for topology in topologies for each in topology.components if each.name == name]
    last = seen[-1]
    batch = Counts()
    for each in seen:
        batch += each.batch
    calls = sum(each.execute.count for each in seen)
    mean = sum(each.execute.mean * each.execute.count for each in seen) / calls if calls else 0.0
    reasons = sorted({reason for each in seen for reason in each.stalls})
    return msgspec.structs.replace(
        last,
        batch=batch,
        execute=Latency(count=calls, mean=mean, p50=last.execute.p50, p99=max(each.execute.p99 for each in seen),
                        max=max(each.execute.max for each in seen)),
        capacity=fmean(each.capacity for each in seen),
        stalls={reason: fmean(each.stalls.get(reason, 0.0) for each in seen) for reason in reasons},
        queue_high_mark=max(each.queue_high_mark for each in seen),
        pending_high_mark=max(each.pending_high_mark for each in seen),
    )  # fmt: skip
