"""What to change that no trial here can show: micro-batches, partitions, sinks, the code of a component.

Each gain is computed, not measured: ``arithmetic`` says how. If something becomes faster, admission puts more rows
into a micro-batch of the same target duration, so a gain is in rows per second at the same target.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pystorm_source.records.bottleneck import CLEARLY_BUSY
from pystorm_source.tuning.classify import WAITS, Finding
from pystorm_source.tuning.model import (
    ROOM,
    bend_of,
    cut,
    fitted,
    pending_for,
    power_of_two,
    rows_in,
    share_for_tasks,
    span,
    target_for,
)
from pystorm_source.tuning.observed import Observed
from pystorm_source.tuning.placing import (
    LIGHT_SECONDS,
    PARENT_SECONDS,
    cores_of_task,
    gain_of,
    lines_of,
    thread_busy,
    without_processes,
)
from pystorm_source.tuning.proposals import Tried

FIXED_SHARE = 0.05
"""Share of a micro-batch for its fixed cost. Less: rows wait longer for little gain. More: throughput is lost."""
LONGEST_TARGET = 30.0
"""Longest target, in seconds. More: rows wait longer than most readers of streams accept."""
WORTH_MORE = 1.03
"""Least gain that is worth a change. Less: noise is promised. More: small gains are left out."""
BELOW_BEND = 0.8
"""Share of the rows that would overwhelm a sink. More: a burst overwhelms it. Less: it does less than it could."""
LEAST_CPUS = 0.1
"""Least spark.task.cpus of a task that waits. Less: so many Python processes that memory runs out first."""
TASKS_A_CORE = 3
"""Tasks for each core: they level out ranges of different length."""


class Advice(NamedTuple):
    """``change``: what to do, in words. ``option``: a key of the reader with its value, or nothing. ``gain``: factor in
    rows per second; None: no promise. ``condition``: what the gain depends on, besides the change."""

    finding: Finding
    change: str
    gain: float | None
    arithmetic: str
    option: tuple[str, int] | None = None
    condition: str = ""

    @property
    def promise(self) -> str:
        """The gain, in words."""
        if self.gain is None:
            return "no gain is computed"
        return f"computed, not tried: {self.gain:.2f} times{f', {self.condition}' if self.condition else ''}"


def modelled(found: Iterable[Finding], observed: Observed, refuted: Sequence[Tried] = ()) -> list[Advice]:
    """Advises on the findings that allow it, in their order. ``refuted``: proposals that gained nothing in trials; no
    advice promises them again."""
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
        "rate limit": _rate_limit,
        "open breaker": _breaker,
        "overwhelmed sink": _overwhelmed,
        "few open files": _open_files,
        "short time-out": _time_out,
        "garbage collection": _garbage,
        "costly processes": _costly,
        "idle processes": _idle,
    }
    found, advised = list(found), []
    holds = _holds(found, observed)
    for each in found:
        more = _more_at_a_time(refuted, each)
        if more and each.cause in ("slow bolt", "slow spout", "starved by source"):
            advised.append(_saturated(each, more))
        elif more and each.cause in _MORE_TASKS:
            continue  # as many calls at a time as these, and as slow
        elif holds and each.cause in _MORE_TASKS:
            advised += [one._replace(gain=None, arithmetic=holds) for one in _parts(each, observed)]
        elif each.cause in makers:
            advised += makers[each.cause](each, observed)
    return advised


_MORE_TASKS = ("few tasks", "skewed partition")


def _holds(found: Iterable[Finding], observed: Observed) -> str:
    """Says in words what more tasks would not change; empty if they are not limited."""
    for each in found:
        if each.cause in ("rate limit", "open breaker"):
            return f"more tasks share the same calls: {each.why}"
        if each.cause == "starved by source" and _has_no_more(each, observed):
            return f"more tasks have no more rows: {each.why}"
    return ""


def _has_no_more(finding: Finding, observed: Observed) -> bool:
    spout = observed.component(finding.component)
    return spout.stalls.get("nothing_to_emit", 0.0) >= observed.busy(spout)


def _more_at_a_time(refuted: Sequence[Tried], finding: Finding) -> list[Tried]:
    """Returns the trials with more calls at a time of the finding's component, or of any if it names no component."""
    return [
        each
        for each in refuted
        if any(tasks > 1 for _, tasks in each.proposal.change.pars)
        and each.proposal.finding.component == (finding.component or each.proposal.finding.component)
        and each.waits
    ]


def _saturated(finding: Finding, more: Sequence[Tried]) -> Advice:
    rates = [more[0].before, *(each.after for each in more)]
    tasks = ", ".join(str(number) for each in more for _, number in each.proposal.change.pars)
    measured = " → ".join(f"{rate:,.0f}" for rate in rates)
    return Advice(
        finding, "what it waits for can do no more: a quicker service, or fewer calls (several tuples in one, a "
        "cache). More calls at a time do not help", None, f"{measured} tuples/s measured with 1, {tasks} tasks",
    )  # fmt: skip


class _Mean(NamedTuple):
    """The mean micro-batch. ``fixed`` and ``grows``: its seconds outside of tasks, a fixed part and a part that grows
    with the rows."""

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
        "store", gain,
        f"({mean.inside:.2f} + {mean.grows:.2f}) / ({mean.inside:.2f} + {mean.grows / 2:.2f})",
        condition="if it takes half of its time",
    )  # fmt: skip


def _overwhelmed(finding: Finding, observed: Observed) -> Iterator[Advice]:
    """Advises smaller micro-batches: as large as the sink's second regime allows, with some room."""
    batches, cores = observed.micro_batches, observed.cores
    bend = bend_of([each.rows for each in batches], [each.outside(cores) for each in batches])
    rows = sum(each.rows for each in batches)
    if bend is None or rows <= 0:
        return
    for_a_row = sum(each.inside(cores) for each in batches) / rows
    asked = round(bend.rows * BELOW_BEND)
    seconds = bend.fixed + asked * (bend.before + for_a_row)
    before, after = rows / sum(each.seconds for each in batches), asked / max(seconds, 1e-9)
    if after > WORTH_MORE * before:
        yield Advice(
            finding, f"smaller micro-batches: {asked:,} offsets, {BELOW_BEND:.0%} of those from which on the sink is "
            "overwhelmed", after / before,
            f"{bend.fixed:.2f} + {asked:,} * ({bend.before * 1e3:.3f} + {for_a_row * 1e3:.3f} ms) = {seconds:.2f} s: "
            f"{after:,.0f} rows/s instead of {before:,.0f}",
            ("maxOffsetsPerTrigger", asked),
        )  # fmt: skip


def _rate_limit(finding: Finding, observed: Observed) -> Iterator[Advice]:
    limit = max((each for each in observed.limits if each.component == finding.component), key=lambda each: each.waits)
    yield Advice(
        finding, f"only the value of topology.rate.limit, {limit.name!r}: {limit.rate}, if the service allows for "
        "more, or fewer calls (several tuples in one, a cache); more partitions, tasks or requests change nothing",
        None, f"{limit.used:.0%} of {limit.rate} is used",
    )  # fmt: skip


def _breaker(finding: Finding, observed: Observed) -> Iterator[Advice]:
    yield Advice(finding, "the service that fails, and the component's last error", None, finding.why)


def _open_files(finding: Finding, observed: Observed) -> Iterator[Advice]:
    """Advises as many sockets as there are requests."""
    before, most, allowed = observed.open_files
    bounds = sum(bound * observed.component(name).tasks for name, bound in observed.requests.items())
    wanted = power_of_two(ROOM * max(allowed, bounds))
    sockets = max(1, most - before)
    busiest = max([0.01, *(observed.busy(each) for each in observed.bolts)])
    gain = max(1.0, min(bounds / sockets, 1 / busiest)) if bounds else None
    yield Advice(
        finding, f"a higher limit of open files for Spark's workers: ulimit -n {wanted:,} where executors start, or "
        "LimitNOFILE of the service that starts them; thousands of sockets need as many", gain,
        f"min({bounds:,} requests / {sockets:,} sockets, 1 / {busiest:.2f} busy)",
        condition="if the service can do more",
    )  # fmt: skip


def _time_out(finding: Finding, observed: Observed) -> Iterator[Advice]:
    yield Advice(
        finding, "a longer topology.async.request.timeout.secs, three times what 99 % of the answers take, or fewer "
        "requests at a time: each one that runs out of time is made again", 1 / (1 - min(0.9, finding.share)),
        f"1 / (1 - {finding.share:.2f}): no call is made twice",
    )  # fmt: skip


def _garbage(finding: Finding, observed: Observed) -> Iterator[Advice]:
    yield Advice(
        finding, "fewer objects that live long: caches of plain bytes and numbers instead of objects; gc.freeze() at "
        "the end of initialize; or less that is open at a time (topology.max.spout.pending)",
        1 / (1 - min(0.9, finding.share)), f"1 / (1 - {finding.share:.2f})",
        condition="if no garbage is collected",
    )  # fmt: skip


def _parts(finding: Finding, observed: Observed) -> Iterator[Advice]:
    """Advises ``minPartitions``, which cuts the longest range."""
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
        ("minPartitions", parts), "" if observed.micro_batches else "if tasks take most of the time",
    )  # fmt: skip


def _ranges(observed: Observed) -> list[float]:
    """Returns how long each range takes; if no range was read, the sizes of partitions."""
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
    if _has_no_more(finding, observed):
        yield Advice(finding, "nothing: the source has no more", None, finding.why)
    else:
        yield Advice(
            finding, "next_batch, or a larger fetch of its client, so that one wait brings many tuples",
            1 / (1 - finding.share / 2), f"1 / (1 - {finding.share:.2f} / 2)", condition="if it waits half as long",
        )  # fmt: skip


def _processes(finding: Finding, observed: Observed) -> Iterator[Advice]:
    """Advises ``processes=`` for a bolt that computes, if its task may have more cores."""
    bolt, cores = observed.component(finding.component), cores_of_task(observed)
    if (
        finding.cause != "slow bolt"
        or observed.scheduler != "inline"
        or cores <= max(1, bolt.processes)
        or bolt.processes
        or bolt.execute.mean < LIGHT_SECONDS
        or observed.cpu_share.get(bolt.name, 1.0) < WAITS
    ):
        return
    lines = lines_of(bolt, observed, cores, cores)
    gain, in_tasks = gain_of(lines, thread_busy(observed)), observed.share_in_tasks
    gain = 1 / (1 - in_tasks + in_tasks / gain)
    if gain < WORTH_MORE:
        return
    yield Advice(
        finding, f"processes={cores} in the spec of {bolt.name}, and spark.task.cpus={cores}: its task has one range, "
        "and its calls the cores that the task leaves idle. If the range can be cut, minPartitions does the same, and "
        "nothing is copied", gain,
        f"of the time of now, the task's own thread takes {lines.own:.2f} ({PARENT_SECONDS * 1e6:.1f} µs a tuple for "
        f"the link), each process {lines.each:.2f}, all of it on {cores} cores {lines.cores:.2f}",
        condition="if it may have processes (docs/PROCESSES.md)",
    )  # fmt: skip


def _costly(finding: Finding, observed: Observed) -> Iterator[Advice]:
    bolt = observed.component(finding.component)
    now, then = thread_busy(observed), without_processes(bolt, observed)
    gain = max(1.0, now / max(then, 1e-9)) if now >= CLEARLY_BUSY else None
    yield Advice(
        finding, f"{bolt.name} without processes= at this rate: they cost more than they give", gain,
        f"the task's own thread is busy for {now:.0%} of the time; with the bolt's calls instead of the link for "
        f"{then:.0%}",
    )  # fmt: skip


def _idle(finding: Finding, observed: Observed) -> Iterator[Advice]:
    bolt = observed.component(finding.component)
    yield Advice(
        finding, f"{bolt.name} without processes= at this rate: they keep memory and the cores of spark.task.cpus, and "
        "no tuple is quicker", None, finding.why,
    )  # fmt: skip


def _component(finding: Finding, observed: Observed) -> Iterator[Advice]:
    """Says what calls of half the duration would gain."""
    yield from _processes(finding, observed)
    computes = observed.cpu_share.get(finding.component, 1.0)
    what = "a cheaper call, or more Spark tasks"
    if computes < WAITS:
        cpus = max(LEAST_CPUS, round(computes, 1))
        what = (
            "an AsyncBolt, which waits for many answers at once. Or more Spark tasks than cores: from Spark 4.3 on "
            f"spark.task.cpus may be {cpus:g}, as its calls compute for {computes:.0%} of their time"
        )
    yield Advice(
        finding, what, 1 / (1 - finding.share / 2), f"1 / (1 - {finding.share:.2f} / 2)",
        condition="if its calls take half as long",
    )  # fmt: skip


def _trees(finding: Finding, observed: Observed) -> Iterator[Advice]:
    """Takes the most trees open at once for the bound, which records do not hold."""
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
