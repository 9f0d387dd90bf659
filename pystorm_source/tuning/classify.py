"""What each component does with its time, and what holds the topology back.

Observed ─► load_of each component: CPU-bound, waits, starved, skewed, held back, keeps up
         ─► findings: causes, each with the share of the time that it explains, the largest first
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from pystorm_source.records.record import ComponentProgress
from pystorm_source.records.stall_reasons import LIMITS
from pystorm_source.tuning.model import bend_of, fitted, span
from pystorm_source.tuning.observed import Observed
from pystorm_source.tuning.placing import IDLE, ROOMY, without_processes

Kind = Literal["CPU-bound", "busy", "waits", "starved", "skewed", "held back", "keeps up"]
Cause = Literal[
    "slow bolt",
    "slow spout",
    "starved by source",
    "interpreter lock",
    "tiny batches",
    "short queue",
    "few open trees",
    "few requests",
    "skewed keys",
    "skewed partition",
    "few tasks",
    "slow sink",
    "fixed cost of micro-batches",
    "limit of yours",
    "rate limit",
    "open breaker",
    "small batches",
    "overwhelmed sink",
    "few open files",
    "short time-out",
    "garbage collection",
    "costly processes",
    "idle processes",
]

BUSY = 0.5
"""Least share of the time of a busy component. Less: several are busy. More: a bottleneck among other nearly as
busy components is missed."""
STALLED = 0.3
WAITS = 0.5
"""A call that computes for a smaller share of its duration waits."""
SKEWED = 1.5
"""How many times the mean the busiest one does."""
SMALL_FILL = 4.0
"""Tuples per batch. With fewer, handing over the batch costs more than the tuples."""
MANY = 5_000.0
"""Tuples per second. From here on, the cost of handing them over one by one matters."""
LOCKED = 1.3
"""Processors in use: threads that share one lock use about one. More: some of them compute without it."""
TURN = 256
"""Calls per turn of a component: a shorter queue cuts turns."""
FULL = 0.9
"""Share of the allowed open files at which to ask for more. More: calls fail first. Less: room is left."""
WORTH = 0.1
"""Share of the time below which a finding is left out. Less: noise has findings. More: small gains are missed."""
_HELD = ("downstream_full", "max_spout_pending", "output_full", "async_max_pending", "process_full", *LIMITS)


_OUTSIDE_OF_TASKS = ("fixed cost of micro-batches", "slow sink", "overwhelmed sink")


class Load(NamedTuple):
    """``share``: the share of the time that shows the kind. ``why``: the figures, in words."""

    component: str
    kind: Kind
    share: float
    why: str


class Finding(NamedTuple):
    """``component``: what it is about; empty: the topology. ``share``: of the time that it explains."""

    cause: Cause
    component: str
    share: float
    why: str

    @property
    def about(self) -> str:
        """The cause, and the component if it names one."""
        return f"{self.cause} {self.component!r}" if self.component else self.cause


def load_of(component: ComponentProgress, observed: Observed) -> Load:
    """Classifies what a component does with its time."""
    name, busy = component.name, observed.busy(component)
    spread = observed.spread.get(name, 1.0)
    if component.tasks > 1 and spread >= SKEWED and busy >= WORTH and observed.scheduler != "inline":
        return Load(name, "skewed", busy, f"its busiest task does {spread:.1f} times the mean of its {component.tasks}")
    held = max((component.stalls.get(reason, 0.0) for reason in _HELD), default=0.0)
    idle = component.stalls.get("nothing_to_emit" if component.kind == "spout" else "input_empty", 0.0)
    if busy >= BUSY or (busy >= WORTH and busy > max(held, idle) and _is_busiest(component, observed)):
        computes = observed.cpu_share.get(name)
        if computes is None:
            return Load(name, "busy", busy, f"busy {busy:.0%} of the time")
        kind: Kind = "waits" if computes < WAITS else "CPU-bound"
        return Load(name, kind, busy, f"busy {busy:.0%} of the time, {computes:.0%} of that computing")
    if held >= STALLED and held >= idle:
        return Load(name, "held back", held, f"{held:.0%} of the time it could not go on")
    if idle >= STALLED:
        return Load(name, "starved", idle, f"{idle:.0%} of the time it had nothing to do")
    return Load(name, "keeps up", busy, f"busy {busy:.0%} of the time")


def findings(observed: Observed) -> list[Finding]:
    """Returns what holds the topology back, the largest share first; equal shares in the order of the checks. Returns
    nothing if a query has no backlog."""
    if observed.micro_batches and observed.backlog == 0:
        return list(_of_processes(observed))
    in_tasks = observed.share_in_tasks
    limits = list(_of_limits(observed))
    # A component held by a limit is not slow itself, and more tasks are not faster.
    is_held = any(each.share >= STALLED for each in limits)
    checks = (_of_resources,) if is_held else (_of_components, _of_bounds, _of_resources)
    found = [each._replace(share=each.share * in_tasks) for check in checks for each in check(observed)]
    found += [each._replace(share=each.share * in_tasks) for each in limits]
    found += [each for each in _of_query(observed) if not is_held or each.cause in _OUTSIDE_OF_TASKS]
    found += _of_processes(observed)
    return sorted((each for each in found if each.share >= WORTH), key=lambda each: -each.share)


def _of_limits(observed: Observed) -> Iterator[Finding]:
    for limit in observed.limits:
        if limit.paused > limit.waits:
            yield Finding("open breaker", limit.component, limit.paused, f"the service behind limit {limit.name!r} "
                          f"fails: {limit.paused:.0%} of the time it is not called")  # fmt: skip
        else:
            why = f"{limit.waits:.0%} of the time its calls wait for permits of {limit.name!r}, {limit.rate}, of which "
            yield Finding("rate limit", limit.component, limit.waits, f"{why}{limit.used:.0%} is used")


def _is_busiest(component: ComponentProgress, observed: Observed) -> bool:
    return component is max(observed.components, key=observed.busy)


def _of_components(observed: Observed) -> Iterator[Finding]:
    if not observed.components:
        return
    for component in observed.components:
        load = load_of(component, observed)
        if component.kind == "spout" and load.kind in ("waits", "starved"):
            calls = f"; a call takes {_duration(component.execute.mean)}" if load.kind == "waits" else ""
            yield Finding("starved by source", component.name, load.share, load.why + calls)
        elif load.kind == "skewed":
            yield Finding(
                "skewed keys", component.name, load.share * (1 - 1 / observed.spread[load.component]), load.why
            )
        elif load.kind in ("CPU-bound", "waits", "busy") and _is_busiest(component, observed):
            mean = _duration(component.execute.mean)
            if size := observed.batched.get(component.name):
                yield Finding("small batches", component.name, load.share, f"{load.why}; it gets {size:,} tuples in "
                              "a batch")  # fmt: skip
            cause: Cause = "slow spout" if component.kind == "spout" else "slow bolt"
            yield Finding(cause, component.name, load.share, f"{load.why}; a call takes {mean}")
    yield from _lock(observed)


def _lock(observed: Observed) -> Iterator[Finding]:
    """Finds threads that compute, but together use hardly more than one processor."""
    if observed.scheduler != "threads" or observed.processors is None:
        return
    busiest = max(observed.components, key=observed.busy)
    working = [each for each in observed.components if each.capacity >= WORTH or each is busiest]
    computing = [each for each in working if observed.cpu_share.get(each.name, 0.0) >= WAITS]
    waiting = max((spout.stalls.get("downstream_full", 0.0) for spout in observed.spouts), default=0.0)
    wanted = max(waiting, sum(each.capacity * each.tasks for each in computing))
    if observed.processors <= LOCKED and wanted >= STALLED and busiest in computing:
        names = ", ".join(each.name for each in computing)
        share = min(1.0, wanted) if len(computing) > 1 else STALLED
        yield Finding("interpreter lock", "", share, f"{names} compute in threads of their own, and all threads "
                      f"together use {observed.processors:.1f} processors")  # fmt: skip


def _of_bounds(observed: Observed) -> Iterator[Finding]:
    """Finds bounds that are reached although the components downstream are not busy."""
    busiest = max((observed.busy(each) for each in observed.bolts), default=0.0)
    spare = max(0.0, 1.0 - busiest)
    for spout in observed.spouts:
        held = spout.stalls.get("max_spout_pending", 0.0)
        yield Finding("few open trees", spout.name, held * max(spare, 0.3),
                      f"{held:.0%} of the time at its bound, no bolt busier than {busiest:.0%}")  # fmt: skip
    for name, bound in observed.requests.items():
        bolt = observed.component(name)
        if bolt.queue_high_mark > bound or bolt.queue_high_mark >= bolt.queue_capacity > 0:
            yield Finding("few requests", name, spare, f"{bolt.queue_high_mark:,} tuples have waited for it, which may "
                          f"make {bound:,} requests at a time; no bolt is busier than {busiest:.0%}")  # fmt: skip
    yield from _queues(observed, spare)
    many = [each for each in observed.components if 0 < each.batch_fill < SMALL_FILL]
    rate = max([0.0, *(each.batch.emitted / observed.seconds for each in many if observed.seconds > 0)])
    if observed.scheduler == "threads" and rate >= MANY:
        fill = min(each.batch_fill for each in many)
        yield Finding("tiny batches", "", min(0.5, rate / 100_000 + WORTH), f"{fill:.1f} tuples of a batch, at "
                      f"{rate:,.0f} a second: each wakes a thread")  # fmt: skip


def _of_processes(observed: Observed) -> Iterator[Finding]:
    """Finds bolts whose processes cost more than they give. Only under ``inline``: one thread would do their work."""
    if observed.scheduler != "inline":
        return
    for bolt in observed.bolts:
        if not bolt.processes or not bolt.execute.count:
            continue
        mean, work = _duration(bolt.execute.mean), bolt.capacity * bolt.processes
        without = without_processes(bolt, observed)
        if work <= bolt.link:
            yield Finding("costly processes", bolt.name, max(WORTH, bolt.link - work), f"a call takes {mean}; sending "
                          f"its tuples to processes and taking back what comes of them takes the task's own thread "
                          f"{bolt.link:.0%} of the time, and its calls in all processes {work:.0%}")  # fmt: skip
        elif bolt.capacity < IDLE and without < ROOMY:
            yield Finding("idle processes", bolt.name, WORTH, f"the busiest of its {bolt.processes} processes works "
                          f"for {bolt.capacity:.0%} of the time; the task's own thread would be busy for {without:.0%} "
                          "if it did that work, too")  # fmt: skip


def _of_resources(observed: Observed) -> Iterator[Finding]:
    """Finds limits of the process: open files, garbage collection, and requests that run out of time."""
    _, most, allowed = observed.open_files
    if allowed and most >= FULL * allowed:
        yield Finding("few open files", "", 0.5, f"{most:,} of {allowed:,} files and sockets were open (ulimit -n)")
    yield Finding("garbage collection", "", observed.collecting, f"{observed.collecting:.0%} of the time Python "
                  "collects garbage")  # fmt: skip
    for bolt in observed.bolts:
        late = bolt.batch.timed_out / max(1, bolt.batch.executed)
        yield Finding("short time-out", bolt.name, late, f"{late:.0%} of its requests ran out of time")


def _queues(observed: Observed, spare: float) -> Iterator[Finding]:
    for bolt in observed.bolts:
        held = max((each.stalls.get("downstream_full", 0.0) for each in observed.components), default=0.0)
        full = bolt.queue_high_mark >= bolt.queue_capacity > 0
        short = bolt.queue_capacity < TURN or observed.emitted_at_once > bolt.queue_capacity
        if full and short and held >= STALLED and bolt.name not in observed.requests:
            why = f"its queue of {bolt.queue_capacity:,} is full, and it is busy {observed.busy(bolt):.0%} of the time"
            yield Finding("short queue", bolt.name, held * max(spare, 0.3), why)


def _of_query(observed: Observed) -> Iterator[Finding]:
    """Finds causes in the observed micro-batches; without any, in the sizes of partitions."""
    batches = observed.micro_batches
    if not batches:
        yield from _partitions(observed)
        return
    seconds = sum(each.seconds for each in batches)
    inside = sum(each.inside(observed.cores) for each in batches)
    outside = seconds - inside
    full = sum(each.output_full for each in batches)
    line = fitted([each.rows for each in batches], [each.outside(observed.cores) for each in batches])
    if line is not None:
        fixed = line.fixed * len(batches)
        grows = outside - fixed
    else:
        fixed, grows = (0.0, outside) if full > 0.2 * inside else (outside, 0.0)
    yield Finding("fixed cost of micro-batches", "", max(0.0, fixed / seconds),
                  f"{fixed / len(batches):.2f} of {seconds / len(batches):.2f} s, however many rows")  # fmt: skip
    yield Finding("slow sink", "", max(0.0, (grows + min(full, inside)) / seconds),
                  f"{grows / len(batches):.2f} s behind the tasks grow with the rows, for {full / len(batches):.2f} s "
                  "Spark did not take rows")  # fmt: skip
    yield from _overwhelmed(observed, seconds)
    yield from _ranges(observed, seconds)
    if observed.reason == "user limit":
        yield Finding("limit of yours", "", 0.5, "micro-batches end at maxOffsetsPerTrigger or maxOffsetsPerPartition")


def _overwhelmed(observed: Observed, seconds: float) -> Iterator[Finding]:
    """Finds a sink in the third regime: beyond some number of rows, each costs far more."""
    batches = observed.micro_batches
    bend = bend_of([each.rows for each in batches], [each.outside(observed.cores) for each in batches])
    if bend is None:
        return
    lost = sum(max(0.0, each.rows - bend.rows) for each in batches) * (bend.after - bend.before)
    yield Finding("overwhelmed sink", "", min(1.0, lost / seconds), f"beyond {bend.rows:,.0f} rows of a micro-batch a "
                  f"row takes it {bend.after * 1e3:.2f} ms instead of {bend.before * 1e3:.2f} ms")  # fmt: skip


def _ranges(observed: Observed, seconds: float) -> Iterator[Finding]:
    """Finds cores without a task, because one range takes longer than the others or there are too few."""
    batches, cores = observed.micro_batches, observed.cores
    idle = sum(each.inside(cores) - each.task_seconds / cores for each in batches)
    longest = sum(each.longest for each in batches)
    mean = sum(each.task_seconds / max(1, each.ranges) for each in batches)
    ranges = sum(each.ranges for each in batches) / len(batches)
    if ranges < cores and longest < SKEWED * mean:
        yield Finding("few tasks", "", max(0.0, idle / seconds), f"{ranges:.0f} of {cores} cores have a task")
    elif longest >= SKEWED * mean:
        yield Finding("skewed partition", "", max(0.0, idle / seconds), f"the longest range takes {longest / mean:.1f} "
                      f"times the mean; {cores} cores wait for it")  # fmt: skip


def _partitions(observed: Observed) -> Iterator[Finding]:
    sizes = [size for size in observed.partitions if size > 0]
    if not sizes or observed.cores < 2:
        return
    even = sum(sizes) / observed.cores
    lost = 1 - even / span(sizes, observed.cores)
    mean = sum(sizes) / len(sizes)
    if len(sizes) > 1 and max(sizes) >= SKEWED * mean:
        why = f"the largest of {len(sizes)} partitions has {max(sizes) / mean:.1f} times the mean"
        yield Finding("skewed partition", "", lost, f"{why}; with one task each, {observed.cores} cores wait for it")
    elif len(sizes) < observed.cores:
        yield Finding("few tasks", "", lost, f"{len(sizes)} partitions, {observed.cores} cores")


def _duration(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"
