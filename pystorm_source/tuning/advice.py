"""What to change that no trial here can show: micro-batches, partitions, sinks, the code of a component.

Each gain is computed, not measured: ``arithmetic`` says how. A micro-batch that admission holds at its target reads
more rows if something becomes quicker; so a gain is that of rows per second at the same target.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pystorm_source.tuning.classify import WAITS, Finding
from pystorm_source.tuning.model import ROOM, cut, fitted, pending_for, rows_in, share_for_tasks, span, target_for
from pystorm_source.tuning.observed import Observed

FIXED_SHARE = 0.05
"""Of a micro-batch, that its fixed cost may take. Less: rows wait longer for little. More: throughput is given away."""
LONGEST_TARGET = 30.0
"""Seconds. More: rows wait longer than the readers of most streams accept."""
TASKS_A_CORE = 3
"""Tasks for each core: they level out ranges of different length."""


class Advice(NamedTuple):
    """``change``: what to do, in words. ``option``: a key of the reader with its value, or nothing. ``gain``: times as
    many rows per second, 1.0 if that is not known."""

    finding: Finding
    change: str
    gain: float
    arithmetic: str
    option: tuple[str, int] | None = None


def modelled(found: Iterable[Finding], observed: Observed) -> list[Advice]:
    """Advice for the findings that have any, in their order."""
    makers = {
        "fixed cost of micro-batches": _target,
        "slow sink": _sink,
        "skewed partition": _parts,
        "few tasks": _parts,
        "limit of yours": _limit,
        "skewed keys": _keys,
        "starved by source": _source,
        "slow bolt": _component,
        "slow spout": _component,
        "few open trees": _trees,
    }
    return [advice for each in found if each.cause in makers for advice in makers[each.cause](each, observed)]


class _Mean(NamedTuple):
    """The micro-batches as one: means. ``fixed`` and ``grows``: seconds outside of tasks, however many rows there are,
    and in proportion to them."""

    seconds: float
    rows: float
    inside: float
    fixed: float
    grows: float

    @classmethod
    def of(cls, observed: Observed) -> "_Mean":
        batches, cores = observed.micro_batches, observed.cores
        count = len(batches)
        outside = [each.outside(cores) for each in batches]
        line = fitted([each.rows for each in batches], outside)
        inside = sum(each.inside(cores) for each in batches) / count
        full = min(inside, sum(each.output_full for each in batches) / count)
        mean = sum(outside) / count
        fixed = line.fixed if line is not None else 0.0 if full > 0.2 * inside else mean
        rows = sum(each.rows for each in batches) / count
        return cls(sum(each.seconds for each in batches) / count, rows, inside - full, fixed, mean - fixed + full)


def _target(finding: Finding, observed: Observed) -> Iterator[Advice]:
    mean = _Mean.of(observed)
    wanted = min(LONGEST_TARGET, target_for(mean.fixed, FIXED_SHARE))
    if wanted <= 1.05 * mean.seconds:
        return
    before, after = share_for_tasks(mean.seconds, mean.fixed), share_for_tasks(wanted, mean.fixed)
    if before <= 0:
        return
    batches = observed.micro_batches
    for_a_row = sum(each.task_seconds for each in batches) / max(1, sum(each.rows for each in batches))
    at_work = min(observed.cores, max(each.ranges for each in batches))
    rows = rows_in(wanted - mean.fixed, for_a_row, at_work)
    yield Advice(
        finding,
        f"a longer target: {wanted:.0f} s, about {rows:,} rows a micro-batch; a row then waits 1.5 times as long, "
        f"{1.5 * wanted:.0f} s, on average",
        after / before,
        f"1 - {mean.fixed:.2f} / {mean.seconds:.2f} = {before:.0%} is left for tasks; "
        f"1 - {mean.fixed:.2f} / {wanted:.1f} = {after:.0%}",
        ("batch.target.millis", round(wanted * 1000)),
    )


def _sink(finding: Finding, observed: Observed) -> Iterator[Advice]:
    mean = _Mean.of(observed)
    gain = (mean.inside + mean.grows) / (mean.inside + mean.grows / 2)
    yield Advice(
        finding, "the sink, and what stands before it: fewer or more shuffle partitions, larger writes, a quicker "
        "store; if it takes half of its time", gain,
        f"({mean.inside:.2f} + {mean.grows:.2f}) / ({mean.inside:.2f} + {mean.grows / 2:.2f})",
    )  # fmt: skip


def _parts(finding: Finding, observed: Observed) -> Iterator[Advice]:
    """``minPartitions``: the longest range is cut."""
    cores = observed.cores
    ranges = _ranges(observed)
    if not ranges or cores < 2:
        return
    parts = max(len(ranges), TASKS_A_CORE * cores)
    before, after = span(ranges, cores), span(cut(ranges, parts), cores)
    unit = "s" if observed.micro_batches else "offsets"
    yield Advice(
        finding, f"{parts} Spark tasks instead of {len(ranges)}, or more partitions at the source", before / after,
        f"tasks take max(all / {cores} cores, longest) = {before:,.2f} {unit}, cut {after:,.2f} {unit}",
        ("minPartitions", parts),
    )  # fmt: skip


def _ranges(observed: Observed) -> list[float]:
    """How long each range takes; sizes instead, if none was read."""
    if not observed.micro_batches:
        return [float(size) for size in observed.partitions if size > 0]
    batches = observed.micro_batches
    count = max(1, round(sum(each.ranges for each in batches) / len(batches)))
    longest = sum(each.longest for each in batches) / len(batches)
    rest = sum(each.task_seconds for each in batches) / len(batches) - longest
    return [longest, *([max(0.0, rest) / (count - 1)] * (count - 1) if count > 1 else [])]


def _limit(finding: Finding, observed: Observed) -> Iterator[Advice]:
    mean = _Mean.of(observed)
    target = observed.target or 1.0
    work = mean.seconds - mean.fixed
    times = (target - mean.fixed) / work if work > 0 else 1.0
    if times <= 1.05:
        return
    rows = round(mean.rows * times)
    gain = times * mean.seconds / (mean.fixed + times * work)
    yield Advice(
        finding, f"a higher limit, or none: {rows:,} offsets fill the target of {target:g} s", gain,
        f"({target:g} - {mean.fixed:.2f}) / {work:.2f} = {times:.1f} times the rows in {mean.fixed + times * work:.2f} "
        f"s instead of {mean.seconds:.2f} s",
        ("maxOffsetsPerTrigger", rows),
    )  # fmt: skip


def _keys(finding: Finding, observed: Observed) -> Iterator[Advice]:
    spread = observed.spread[finding.component]
    yield Advice(
        finding, "Grouping.partial_key instead of fields, and the sums of its two tasks added behind it; or a key that "
        "is more even", min(spread, 2.0) if observed.scheduler == "threads" else 1.0,
        f"the busiest task does {spread:.1f} times the mean; partial_key shares each key between two tasks",
    )  # fmt: skip


def _source(finding: Finding, observed: Observed) -> Iterator[Advice]:
    spout = observed.component(finding.component)
    if spout.stalls.get("nothing_to_emit", 0.0) >= observed.busy(spout):
        yield Advice(finding, "nothing: the source has no more", 1.0, finding.why)
    else:
        yield Advice(
            finding, "next_batch, or a larger fetch of its client, so that one wait brings many tuples; if it waits "
            "half as long", 1 / (1 - finding.share / 2), f"1 / (1 - {finding.share:.2f} / 2)",
        )  # fmt: skip


def _component(finding: Finding, observed: Observed) -> Iterator[Advice]:
    """Of code: what half the duration of a call would gain."""
    waits = observed.cpu_share.get(finding.component, 1.0) < WAITS
    what = "an AsyncBolt, which waits for many answers at once" if waits else "a cheaper call, or more Spark tasks"
    yield Advice(
        finding, f"{what}; if its calls take half as long", 1 / (1 - finding.share / 2),
        f"1 / (1 - {finding.share:.2f} / 2)",
    )  # fmt: skip


def _trees(finding: Finding, observed: Observed) -> Iterator[Advice]:
    """From records, which do not have the bound: what was open at once is it."""
    spout = observed.component(finding.component)
    held = min(0.99, spout.stalls.get("max_spout_pending", 0.0))
    busiest = max([0.01, *(observed.busy(each) for each in observed.bolts)])
    gain = min(1 / (1 - held), 1 / busiest)
    if not observed.micro_batches or not spout.pending_high_mark:
        return
    asked = pending_for(spout.pending_high_mark * gain, 1.0)
    yield Advice(
        finding, f"topology.max.spout.pending: {asked:,}, or unset", gain,
        f"held {held:.0%} of the time, bolts busy {busiest:.0%}: {gain:.1f} times; {spout.pending_high_mark:,} * "
        f"{gain:.1f} * {ROOM:g}",
    )  # fmt: skip
