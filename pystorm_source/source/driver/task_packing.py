"""Several short ranges share a Spark task.

A task of a Python source costs Spark 15 to 40 ms besides its work, and a topic or a folder may have hundreds of
partitions with a few rows each. So one task reads neighbours one after the other as long as their work is small. Each
is still a separate range with its own report, and reads the same rows as it would in a separate task.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from pystorm_source.source.admission.rate_estimator import RateEstimator
from pystorm_source.source.admission.rate_samples import Flags
from pystorm_source.source.admission.task_schedule import Floats
from pystorm_source.source.task.range_partition import JoinedRanges, RangePartition

TASKS_PER_SLOT = 2
"""Fewest tasks per slot, if ranges are joined at all. Too many: each costs what a task costs. Too few:
if one takes longer than estimated, the other slots wait, and slots that are added find nothing to do."""
TASK_COST = 0.05
"""Seconds of work that are joined regardless of the number of slots. Too large: slots are empty. Too small: tasks cost
more than they do."""
LONGEST = 1.0
"""Most seconds of work in a joined task. Too large: a task that fails repeats that much work, and one that takes longer
than estimated holds up the micro-batch. Too small: with a target of minutes, tasks are needlessly short."""
MOST_UNMEASURED = 8
"""Most unmeasured ranges in a task. Too many: a slow bolt behind many partitions works in few tasks in the first
micro-batch, and throughout a batch read. Too few: thousands of small files are thousands of tasks."""
UNKNOWN_SLOTS = 4
"""Assumed number of tasks at work at once before any has reported. Too many: as TASKS_PER_SLOT. Too few: a large
cluster takes some micro-batches to be used."""


def estimates(
    ranges: Sequence[RangePartition], initial: Mapping[str, float], rates: RateEstimator
) -> tuple[Floats, Flags]:
    """Seconds of work of each range, and whether tasks have reported on its partition. ``initial``: offsets per second
    of the spouts that have offsets, before anything is measured; the ranges of others take unknown time: infinite."""
    keys = ((component, name) for component, names in rates.names.items() for name in names)
    columns = zip(keys, rates.in_use.tolist(), rates.measured.tolist(), strict=True)
    known = {key: rate for key, rate, is_measured in columns if is_measured and key[0] in initial}
    seconds, measured = np.full(len(ranges), np.inf), np.zeros(len(ranges), bool)
    for at, each in enumerate(ranges):
        rate = known.get((each.component, each.partition))
        if rate is not None:
            measured[at] = True
            seconds[at] = (each.end - each.start) / rate + rates.task_fixed
        elif each.component in initial:
            seconds[at] = (each.end - each.start) / initial[each.component]
    return seconds, measured


def packed(
    ranges: Sequence[RangePartition], seconds: Floats, measured: Flags, slots: int
) -> Sequence[RangePartition | JoinedRanges]:
    """Tasks for the ranges, in their order. ``seconds``, ``measured``: as ``estimates`` gives them; ``slots``: tasks at
    work at once, 0 if unknown."""
    short = float(seconds[seconds < LONGEST].sum())
    share = short / (slots or UNKNOWN_SLOTS)
    bound = min(max(share / TASKS_PER_SLOT, min(share, TASK_COST)), LONGEST)
    # A little more: sums of floats are not exact, and one task too many would get only the remainder.
    return list(_joined(ranges, _groups(seconds, measured, 1.001 * bound)))


def _groups(seconds: Floats, measured: Flags, bound: float) -> Iterator[int]:
    """How many ranges each task has."""
    held, work, unmeasured = 0, 0.0, 0
    for each, is_measured in zip(seconds.tolist(), measured.tolist(), strict=True):
        if held and (work + each > bound or unmeasured + (not is_measured) > MOST_UNMEASURED):
            yield held
            held, work, unmeasured = 0, 0.0, 0
        held, work, unmeasured = held + 1, work + each, unmeasured + (not is_measured)
    if held:
        yield held


def _joined(ranges: Sequence[RangePartition], groups: Iterable[int]) -> Iterator[RangePartition | JoinedRanges]:
    at = 0
    for count in groups:
        yield ranges[at] if count == 1 else JoinedRanges(tuple(ranges[at : at + count]))
        at += count
