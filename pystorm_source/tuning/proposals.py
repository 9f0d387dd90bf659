"""What is worth trying for a finding: a few settings each, by Little's law and the rules of docs/TUNING.md."""

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pystorm_source.plan.plan import Plan
from pystorm_source.plan.unplaceable import is_placeable
from pystorm_source.tuning.classify import WAITS, Finding
from pystorm_source.tuning.model import ROOM, instances_for, pending_for, power_of_two, stays
from pystorm_source.tuning.observed import Observed
from pystorm_source.tuning.placing import LIGHT_SECONDS, cores_of_task
from pystorm_source.tuning.settings import Settings

SCHEDULER = "topology.scheduler"
BATCH = "topology.producer.batch.size"
QUEUE = "topology.executor.receive.buffer.size"
FLUSH = "topology.batch.flush.interval.millis"
PENDING = "topology.max.spout.pending"
REQUESTS = "topology.async.max.pending"

MOST_TASKS = 64
"""Most tasks of a component that waits. More: the threads of one Spark task cost more memory than the wait is worth; an
AsyncBolt waits for thousands of answers in one thread."""
MOST_FASTER = 256.0
"""Bounds allow for at most so many times the present rate. More: a component without limits gets huge ones."""
BATCH_STEPS = (256, 64, 16, 4)
"""Factors on the present size: one of them is near the top of the second regime."""
MOST_BATCH = 100_000
"""Most tuples of a batch. More: memory, and all are repeated if one fails."""
SPREADABLE = ("shuffle", "local_or_shuffle", "fields", "partial_key", "none")
"""Groupings that let more tasks share the work."""


class Proposal(NamedTuple):
    """``change``: to the present settings. ``arithmetic``: why these figures."""

    finding: Finding
    change: Settings
    arithmetic: str


class Tried(NamedTuple):
    """A proposal after its first pairs. ``before``, ``after``: tuples per second, ``gain``: by the goal. ``waits``:
    whether calls of the finding's component wait rather than compute."""

    proposal: Proposal
    gain: float
    before: float
    after: float
    waits: bool = False


def proposals(finding: Finding, observed: Observed, plan: Plan) -> list[Proposal]:
    """Returns settings to try, the most promising first; empty if no setting helps. ``plan``: as it was observed."""
    made = {
        "slow bolt": _slow,
        "slow spout": _slow,
        "small batches": _batch_sizes,
        "starved by source": _starved,
        "interpreter lock": _lock,
        "tiny batches": _tiny_batches,
        "short queue": _short_queue,
        "few open trees": _few_trees,
        "few requests": _few_requests,
    }.get(finding.cause)
    found = made(finding, observed, plan) if made is not None else ()
    return [each for each in found if _changes(each.change, plan)]


def wanted_rate(observed: Observed, component: str) -> tuple[float, str]:
    """Returns the spouts' tuples per second that all other components could handle, and how that is computed."""
    others = max((observed.busy(each) for each in observed.components if each.name != component), default=0.0)
    faster = min(MOST_FASTER, 1 / others) if others > 0 else MOST_FASTER
    rate = observed.rate * faster
    return rate, f"the others could do {observed.rate:,.0f}/s / {others:.3f} busy = {rate:,.0f}/s"


def _slow(finding: Finding, observed: Observed, plan: Plan) -> Iterator[Proposal]:
    if finding.cause == "slow bolt" and observed.cpu_share.get(finding.component, 1.0) < WAITS:
        yield from _instances(finding, observed, plan)
        return
    yield from _processes(finding, observed, plan)
    if plan.component(finding.component).processes:
        return
    if finding.cause == "slow bolt" and _spreadable(finding.component, plan):
        text = f"one task for each of {observed.cores} cores: pays if process() gives the interpreter's lock away"
        threads = _keys({SCHEDULER: "threads"})
        yield Proposal(finding, threads.with_pars({finding.component: observed.cores}), text)
    if plan.options.scheduler == "inline":
        several = {each.name: 1 for each in plan.components if len(each.tasks) > 1}
        if several:
            yield Proposal(finding, Settings().with_pars(several), "under inline tasks share one thread: one is enough")
        for queue in (256, 128):
            text = f"under inline a batch ends with its turn: none is needed; {queue} tuples stay near the processor"
            yield Proposal(finding, _keys({BATCH: 1, QUEUE: queue}), text)
        yield Proposal(finding, _keys({BATCH: 1}), "under inline a batch ends with its turn: none is needed")
        yield Proposal(finding, _batches(256, plan), "fewer hand-overs: one for 256 tuples")
        yield Proposal(finding, _keys({QUEUE: 256}), "a queue of 256 stays nearer to the processor")
    else:
        yield from _lock(finding, observed, plan)
        yield from _tiny_batches(finding, observed, plan)


def _processes(finding: Finding, observed: Observed, plan: Plan) -> Iterator[Proposal]:
    """Proposes a process for each core of this machine that its Spark task may have."""
    component = plan.component(finding.component)
    here, cores = os.cpu_count() or 1, cores_of_task(observed)
    count = min(here, cores)
    bolt = observed.component(finding.component)
    if (
        finding.cause == "slow bolt"
        and count > max(1, component.processes)
        and bolt.execute.mean >= LIGHT_SECONDS
        and is_placeable(component)
        and _spreadable(finding.component, plan)
    ):
        text = f"a process for each of {count} cores that its Spark task may have, as Python code uses one"
        yield Proposal(finding, Settings().with_processes({finding.component: count}), text)


def _batch_sizes(finding: Finding, observed: Observed, plan: Plan) -> Iterator[Proposal]:
    """Proposes larger batches for the costliest batch operation while its time grows slower than its tuples."""
    now = observed.batched[finding.component]
    for times in BATCH_STEPS:
        size = min(MOST_BATCH, now * times)
        text = f"one operation for {size:,} tuples instead of {now:,}, as long as its time grows slower than they do"
        if size > now:
            yield Proposal(finding, Settings().with_batches({finding.component: size}), text)
    for size in (now // 4, now // 16):
        if size >= 1:
            text = f"batches of {size:,} instead of {now:,}: very large ones overwhelm the other side"
            yield Proposal(finding, Settings().with_batches({finding.component: size}), text)


def _instances(finding: Finding, observed: Observed, plan: Plan) -> Iterator[Proposal]:
    """Proposes as many tasks as calls must be in flight."""
    if finding.cause == "slow bolt" and not _spreadable(finding.component, plan):
        return
    component = observed.component(finding.component)
    rate, text = wanted_rate(observed, finding.component)
    calls = component.execute.count / max(1, observed.tuples)
    asked = instances_for(rate * calls, component.execute.mean)
    text = f"{text}; * {calls:.2f} calls * {component.execute.mean * 1e3:.2f} ms = {asked:,} under way"
    most = min(asked, MOST_TASKS)
    if most < asked:
        text += f", at most {MOST_TASKS} tasks: an AsyncBolt could wait for all of them"
    for tasks in _falling(most):
        yield Proposal(finding, _keys({SCHEDULER: "threads"}).with_pars({finding.component: tasks}), text)


def _starved(finding: Finding, observed: Observed, plan: Plan) -> Iterator[Proposal]:
    spout = observed.component(finding.component)
    if (
        spout.stalls.get("nothing_to_emit", 0.0) < observed.busy(spout)
        and observed.cpu_share.get(spout.name, 1.0) < WAITS
    ):
        yield from _instances(finding, observed, plan)


def _lock(finding: Finding, observed: Observed, plan: Plan) -> Iterator[Proposal]:
    yield Proposal(finding, _keys({SCHEDULER: "inline"}), "one thread takes turns: no lock is passed to and fro")


def _tiny_batches(finding: Finding, observed: Observed, plan: Plan) -> Iterator[Proposal]:
    for size in (100, 256):
        yield Proposal(finding, _batches(size, plan), f"one wake-up for {size} tuples instead of each")
    if plan.options.flush_interval_millis < 10 and plan.options.producer_batch_size > 1:
        yield Proposal(finding, _keys({FLUSH: 10}), "batches that are not full wait 10 ms for more")


def _short_queue(finding: Finding, observed: Observed, plan: Plan) -> Iterator[Proposal]:
    now = plan.options.receive_buffer_size
    once = observed.emitted_at_once
    for size in sorted({power_of_two(ROOM * once) if once > now else 0, 1024, 256}, reverse=True):
        if size > now:
            text = f"a turn hands over at most {now:,} tuples, and takes up to 256; one call emitted {once:,} beyond it"
            yield Proposal(finding, _keys({QUEUE: size}), text)


def _few_trees(finding: Finding, observed: Observed, plan: Plan) -> Iterator[Proposal]:
    now = plan.options.max_spout_pending
    if now is None:
        return
    stay = stays(now * max(1, len(plan.component(finding.component).tasks)), observed.rate)
    rate, text = wanted_rate(observed, "")
    asked = pending_for(rate, stay)
    text = f"{now} / {observed.rate:,.0f}/s = {stay * 1e3:.2f} ms from emit to ack; {text}"
    yield Proposal(finding, _keys({PENDING: asked}), f"{text}; * {stay * 1e3:.2f} ms * {ROOM:g} = {asked:,}")
    yield Proposal(finding, _keys({PENDING: None}), "unset: the queues bound open trees")


def _few_requests(finding: Finding, observed: Observed, plan: Plan) -> Iterator[Proposal]:
    now = observed.requests[finding.component]
    bolt = observed.component(finding.component)
    done = bolt.batch.executed / observed.seconds if observed.seconds > 0 else 0.0
    stay = stays(now * bolt.tasks, done)
    rate, text = wanted_rate(observed, "")
    asked = pending_for(rate * done / max(observed.rate, 1e-9), stay)
    text = (
        f"{now} / {done:,.0f}/s = {stay * 1e3:.2f} ms a request; {text}; * {stay * 1e3:.2f} ms * {ROOM:g} = {asked:,}"
    )
    for bound in (asked, max(now * 8, 1000)):
        yield Proposal(finding, _keys({REQUESTS: min(bound, 1 << 20)}), text)


def _falling(most: int) -> Sequence[int]:
    return sorted({most, math.ceil(most / 4), min(4, most)}, reverse=True)


def _spreadable(name: str, plan: Plan) -> bool:
    groupings = {edge.grouping for edge in plan.edges if edge.consumer == name}
    return bool(groupings) and groupings <= set(SPREADABLE)


def _batches(size: int, plan: Plan) -> Settings:
    """Returns settings for batches of that size, with a longer queue if a batch exceeds half of it."""
    return _keys({BATCH: size} if size <= plan.options.receive_buffer_size // 2 else {BATCH: size, QUEUE: 4 * size})


def _keys(keys: dict[str, Any]) -> Settings:
    return Settings().with_keys(keys)


def _changes(change: Settings, plan: Plan) -> bool:
    """Whether it changes anything, and no component's own key overrides it."""
    config = dict(plan.config)
    own = {key for component in plan.components for key, _ in component.config}
    if own & change.own:
        return False
    tasks = {component.name: len(component.tasks) for component in plan.components}
    return (
        any(config.get(key) != value for key, value in change.keys)
        or any(tasks[name] != number for name, number in change.pars)
        or bool(change.batches)
        or any(plan.component(name).processes != count for name, count in change.processes)
    )


def frontier(points: Iterable[tuple[float, float]]) -> set[tuple[float, float]]:
    """Returns the (rate, latency) pairs that no other pair beats in both."""
    kept: set[tuple[float, float]] = set()
    least = math.inf
    for rate, latency in sorted(points, key=lambda point: (-point[0], point[1])):
        if latency < least:
            kept.add((rate, latency))
            least = latency
    return kept
