"""Names what holds a query back, using only the record of a micro-batch. docs/TUNING.md says what to do about it.

Each suspect gets the share of the time that it explains; the largest share wins::

    busy                   a component's calls take the time. Under ``inline`` all components share one thread, so that
                           their shares add up, and the busiest of them is named. A bolt with ``processes=`` has two
                           shares: its link adds up with the others, the calls in its processes do not
    waits for downstream   a component has a full queue and is not busy: it waits for what it calls. Or a spout is not
                           asked, because too many of its trees are open
    waits for upstream     a spout has nothing to emit: its source is slow
    waits for Spark        finished rows wait to be taken, or no task runs for most of the micro-batch
    starts Python          the same in the first micro-batch of a run, whose tasks wait for their processes
    waits for its          tuples of a bolt with processes= wait for room in them, and they are hardly ever in a call:
    processes              pickling costs more than the bolt
    waits for a limit      calls wait for permits of topology.rate.limit; or for its circuit breaker, which is open

A share that another one explains does not count: a component that waits for a busy one is not slow.
"""

from collections.abc import Iterator

from pystorm_source.records.record import Bottleneck, ComponentProgress, LimitProgress, TopologyProgress
from pystorm_source.records.stall_reasons import LIMITS

BUSY = "busy"
DOWNSTREAM = "waits for downstream"
UPSTREAM = "waits for upstream"
SPARK = "waits for Spark"
START = "starts Python"
LIMIT = "waits for a limit"
BREAKER = "waits for a circuit breaker"
PROCESSES = "waits for its processes"

LEAST = 0.5
"""Something that takes at least this share of the time holds the query back. Larger: a mixture of causes is not named.
Smaller: what is not slow is named."""
CLEARLY_BUSY = 0.6
"""A busy component, or a limit, with at least this share explains what waits for it."""
_CAUSES = (BUSY, LIMIT, BREAKER, PROCESSES)

ADVICE = {
    BUSY: "make process() cheaper, or give it more cores: more Spark tasks by option minPartitions (behind a "
    "journal: journal.readers), or par under topology.scheduler=threads",
    "processes": "make process() cheaper, or, if the task has more cores, raise processes= and spark.task.cpus",
    "link": "sending its tuples to processes and taking back what comes of them holds the task's own thread: leave "
    "processes= out, or have one tuple carry more work",
    PROCESSES: "its processes are in its calls for only {:.0%} of the time, although tuples wait: a call takes "
    "{:.3g} µs, and unpickling its tuple and pickling what comes of it takes longer. Leave processes= out, or have one "
    "tuple carry more work",
    "in processes": "its processes wait for something that is not counted: for an AsyncBolt in them, allow for more "
    "requests, topology.async.max.pending; a bolt that holds batches processes them at its next tick",
    "spout": "its calls take the time: give batches by next_batch, fetch more at once, or read more partitions",
    "async": "allow for more requests: topology.async.max.pending; or the service that it asks is slow",
    "pending": "raise topology.max.spout.pending: too few tuples are under way",
    DOWNSTREAM: "it waits for something that is not counted: an AsyncBolt lets many calls wait at once",
    UPSTREAM: "its source gives too little: more partitions, a larger fetch, or next_batch",
    SPARK: "look at the sink and what stands before it: it takes the rows slower than they are made",
    "fixed cost": "no task runs for most of the micro-batch: raise batch.target.millis, which makes micro-batches "
    "longer, or, if the query shuffles, set spark.sql.shuffle.partitions to about the number of cores",
    "start": "the first micro-batch starts Python: its processes begin and import your modules. Later micro-batches "
    "use them again: look at the next record",
}

USED = 0.95
"""A limit is used up from this share on: more than 0.96 is not possible, because permits expire. More: users are
advised to use a limit better although it is used up. Less: users raise a limit that is not the cause."""

WAITS = 0.5
"""A component that computes for less than this share of its busy time waits. More: users are advised to make an
AsyncBolt of one that computes. Less: users are advised to make one cheaper that waits for a quick service."""
MOSTLY = 0.8
"""With this share of all busy time, the busiest component gets the advice that fits its thread. A component that itself
waits for this share of the wait for it is not the cause."""
PICKLES = 0.2
"""If the link of a bolt takes this share of the time, pickling explains why its processes are in no call. More: a bolt
of long tuples is reported to wait for a service. Less: one that waits is reported to pickle."""
WAITING = {
    BUSY: "it computes for {:.0%} of its time and waits for the rest: an AsyncBolt waits for many answers at once",
    "spout": "it computes for {:.0%} of its time and waits for the rest: next_batch, or a larger fetch of its client, "
    "so that one wait brings many tuples",
}


def bottleneck(topology: TopologyProgress, trigger_seconds: float = 0.0) -> Bottleneck | None:
    """What holds the query back, None if nothing does for at least half of the time.

    Args:
        topology (TopologyProgress): the counts of a micro-batch.
        trigger_seconds (float): how long the micro-batch took as a whole, 0.0 if that is not known.
    """
    suspects = list(_suspects(topology, trigger_seconds))
    busiest = max((share for share, found in suspects if found.why in _CAUSES), default=0.0)
    if busiest >= CLEARLY_BUSY:
        suspects = [(share, found) for share, found in suspects if not _is_explained(found)]
    share, worst = max(suspects, key=lambda suspect: suspect[0], default=(0.0, None))
    return worst if share >= LEAST else None


def _is_explained(found: Bottleneck) -> bool:
    return found.why == DOWNSTREAM


def _suspects(topology: TopologyProgress, trigger_seconds: float) -> Iterator[tuple[float, Bottleneck]]:
    yield from _limited(topology, trigger_seconds)
    yield from _busy(topology)
    for component in topology.components:
        yield from _waiting(topology, component)
    waits = max((component.stalls.get("output_full", 0.0) for component in topology.components), default=0.0)
    yield waits, Bottleneck(capacity=waits, why=SPARK, advice=ADVICE[SPARK])
    if trigger_seconds > 0 and topology.elapsed > 0:
        idle = max(0.0, 1.0 - topology.elapsed / trigger_seconds)
        if topology.batch == 0:
            yield idle, Bottleneck(capacity=idle, why=START, advice=ADVICE["start"])
        else:
            yield idle, Bottleneck(capacity=idle, why=SPARK, advice=ADVICE["fixed cost"])


def _limited(topology: TopologyProgress, trigger_seconds: float) -> Iterator[tuple[float, Bottleneck]]:
    """While rows wait to be taken, no call notices that its permit has arrived: that time is not the limit's. Between
    tasks nothing waits for permits. A limit that is less than half used is never the cause."""
    taken = max((component.stalls.get("output_full", 0.0) for component in topology.components), default=0.0)
    at_work = min(1.0, topology.elapsed / trigger_seconds) if trigger_seconds > 0 and topology.elapsed > 0 else 1.0
    for limit in topology.limits:
        is_paused = limit.paused > limit.waits
        share = min(1.0, limit.waits + limit.paused, 1.0 - taken, 1.0 if is_paused else limit.used) * at_work
        yield (
            share,
            Bottleneck(
                component=limit.component,
                capacity=limit.used,
                why=BREAKER if is_paused else LIMIT,
                advice=_of_breaker(limit) if is_paused else _of_limit(limit, at_work),
                limit=limit.name,
            ),
        )


def _of_limit(limit: LimitProgress, at_work: float) -> str:
    """``at_work``: share of the micro-batch that tasks run."""
    used = limit.used * at_work
    said = f"limit {limit.name!r} of topology.rate.limit is {limit.rate}, and {used:.0%} of it is used"
    if used >= USED:
        return f"{said}: only a higher value makes the query faster; more partitions, cores or requests do not"
    return (
        f"{said}: the rest passes between micro-batches and while the last answers of one are awaited, so raise "
        "batch.target.millis; more partitions or cores do not help"
    )


def _of_breaker(limit: LimitProgress) -> str:
    return (
        f"the service behind limit {limit.name!r} ({limit.rate}) fails, so it is not called until one call that tries "
        "it succeeds: look at the service, and at the last error"
    )


def _busy(topology: TopologyProgress) -> Iterator[tuple[float, Bottleneck]]:
    """The busiest component of the task's own threads, and each one that has processes."""
    here = [(each.link if each.processes else each.capacity, each) for each in topology.components]
    share, busiest = max(here, key=lambda each: each[0], default=(0.0, None))
    if busiest is None:
        return
    own = share
    if topology.scheduler == "inline":
        share = min(1.0, sum(each for each, _ in here))
    advice = ADVICE["link" if busiest.processes else "spout" if busiest.kind == "spout" else BUSY]
    computes = topology.computes
    if computes is not None and computes < WAITS and own >= MOSTLY * share and not busiest.processes:
        advice = WAITING["spout" if busiest.kind == "spout" else BUSY].format(computes)
    yield share, Bottleneck(component=busiest.name, capacity=own, why=BUSY, advice=advice)
    for component in topology.components:
        if component.processes:
            share = component.capacity
            yield share, Bottleneck(component=component.name, capacity=share, why=BUSY, advice=ADVICE["processes"])


def _of_processes(component: ComponentProgress) -> Bottleneck:
    """Tuples wait for room in its processes, which are hardly ever in a call. A process unpickles and pickles about as
    much as the task does: if that is little, the process waits."""
    if component.link < max(PICKLES, component.capacity):
        return _of(component, ADVICE["in processes"])
    advice = ADVICE[PROCESSES].format(component.capacity, component.execute.mean * 1e6)
    return Bottleneck(component=component.name, capacity=component.capacity, why=PROCESSES, advice=advice)


def _waiting(topology: TopologyProgress, component: ComponentProgress) -> Iterator[tuple[float, Bottleneck]]:
    name, stalls = component.name, component.stalls
    share = stalls.get("nothing_to_emit", 0.0)
    yield share, Bottleneck(component=name, capacity=component.capacity, why=UPSTREAM, advice=ADVICE[UPSTREAM])
    share = stalls.get("max_spout_pending", 0.0)
    waiting = _outside(topology)
    if waiting is not None:
        yield share, _of(waiting, ADVICE["async"])
    else:
        yield share, _of(component, ADVICE["pending"])
    share = stalls.get("async_max_pending", 0.0)
    yield share, _of(component, ADVICE["async"])
    share = stalls.get("downstream_full", 0.0)
    for below in _below(topology, component):
        waits_itself = below.stalls.get("downstream_full", 0.0) >= MOSTLY * share
        if below.queue_high_mark >= below.queue_capacity > 0 and not waits_itself:
            if not below.processes:
                yield share, _of(below, ADVICE["async" if below.pending_high_mark else DOWNSTREAM])
            elif below.capacity + sum(below.stalls.get(reason, 0.0) for reason in LIMITS) < LEAST:
                yield share, _of_processes(below)


def _of(component: ComponentProgress, advice: str) -> Bottleneck:
    return Bottleneck(component=component.name, capacity=component.capacity, why=DOWNSTREAM, advice=advice)


def _outside(topology: TopologyProgress) -> ComponentProgress | None:
    """The bolt with the most requests in flight, if any."""
    bolts = [component for component in topology.components if component.kind == "bolt"]
    most = max(bolts, key=lambda bolt: bolt.pending_high_mark, default=None)
    return most if most is not None and most.pending_high_mark else None


def _below(topology: TopologyProgress, component: ComponentProgress) -> list[ComponentProgress]:
    targets = {edge.target for edge in topology.edges if edge.source == component.name}
    return [below for below in topology.components if below.name in targets]
