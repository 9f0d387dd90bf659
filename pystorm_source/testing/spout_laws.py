"""The laws of every PartitionedSpout, each with its remedy and its check."""

import copy
import random
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from pystorm_source.api import ComponentSpec, PartitionedSpout, Snapshot
from pystorm_source.api.snapshot_check import checked_snapshot
from pystorm_source.clock import Clock
from pystorm_source.errors import TopologyError, given
from pystorm_source.testing.driven import Driven, Reading
from pystorm_source.testing.law import (
    Law,
    check_pickles,
    difference,
    law_of,
)
from pystorm_source.testing.spout_trial import Rows, SpoutTrial, driven_by, place_of

PARTS = (2, 3, 7, 20)
"""Numbers of ranges to cut a partition into."""

LAWS: list[Law] = []
"""In the order of the checks: the first broken law is the most telling one."""


def _joined(parts: list[Rows]) -> Rows:
    joined: Rows = {}
    for part in parts:
        for stream, rows in part.items():
            joined.setdefault(stream, []).extend(rows)
    return joined


@law_of(
    LAWS,
    "a snapshot makes sense",
    "Partitions are named by str; offsets are ints, 0 <= earliest <= latest; state holds ints and strs by str",
)
def _check_snapshot(trial: SpoutTrial) -> None:
    answer = trial.first(trial.snapshot)
    try:
        snapshot = checked_snapshot(trial.driven.component.name, answer)
    except TopologyError as error:
        trial.broken("", "a snapshot of such names and offsets", str(error).partition(". Given: ")[2] or str(error))
    for name, (earliest, latest) in snapshot.heads.items():
        if type(earliest) is not int or type(latest) is not int:
            trial.broken(f"partition {name!r}", "offsets of type int", given((earliest, latest)))
        try:
            name.encode("utf-8")
        except UnicodeError:
            trial.broken(f"partition {name!r}", "a name that UTF-8 can hold", given(name))


@law_of(
    LAWS,
    "a snapshot is a function of known and state",
    "Compute heads and state from the source, `known` and `state`, and partitions() and latest() from the source "
    "alone, not from attributes that an earlier call has left; the source must stand still meanwhile, so take the time "
    "from self.clock",
)
def _check_snapshot_is_pure(trial: SpoutTrial) -> None:
    driver = trial.driven.driver
    first = driver.snapshot({}, {})
    _same_answer(trial, "a second call of snapshot()", first, driver.snapshot({}, {}))
    known = {name: latest for name, (_, latest) in first.heads.items()}
    second = driver.snapshot(dict(known), dict(first.state))
    _same_answer(trial, "a second call of snapshot()", second, driver.snapshot(dict(known), dict(first.state)))
    fresh = trial.driven.instance("driver").snapshot(dict(known), dict(first.state))
    _same_answer(trial, "snapshot() of a driver that was started again", second, fresh)


def _same_answer(trial: SpoutTrial, call: str, expected: Any, found: Any) -> None:
    if found == expected:
        return
    if trial.driven.cls.snapshot is PartitionedSpout.snapshot:  # the author knows only the methods that snapshot calls
        call = call.replace("snapshot()", "partitions() and latest()")
        expected, found = ({name: latest for name, (_, latest) in answer.heads.items()} for answer in (expected, found))
    trial.broken(call, given(expected), given(found))


@law_of(
    LAWS,
    "heads never go back",
    "latest() never goes back; a partition that is gone and wholly read is named in Snapshot.retired",
)
def _check_heads_stay(trial: SpoutTrial) -> None:
    first = trial.driven.driver.snapshot({}, {})
    known = {name: latest for name, (_, latest) in first.heads.items()}
    second = trial.driven.driver.snapshot(dict(known), dict(first.state))
    for name, offset in known.items():
        head = second.heads.get(name)
        if name not in second.retired and (head is None or head[1] != offset):
            found = "no such partition" if head is None else f"latest {head[1]}"
            trial.broken(f"partition {name!r}", f"latest {offset}, as before, or the partition as retired", found)


@law_of(
    LAWS,
    "partitions, earliest and latest agree with snapshot",
    "Define them or snapshot(), or answer the same in both",
)
def _check_parts_agree(trial: SpoutTrial) -> None:
    driver, cls = trial.driven.driver, trial.driven.cls
    heads = driver.snapshot({}, {}).heads
    if cls.partitions is not PartitionedSpout.partitions and sorted(driver.partitions()) != sorted(heads):
        trial.broken("partitions()", given(sorted(heads)), given(sorted(driver.partitions())))
    if cls.latest is not PartitionedSpout.latest:
        for name, (_, latest) in heads.items():
            found = driver.latest(name)
            if found != latest:
                trial.broken(f"partition {name!r}", f"latest() to be {latest}", given(found))


@law_of(
    LAWS,
    "offsets lie in the range and ascend",
    "emit(values, tup_id=offset) with an offset of the range that open() was given, each above the one before",
)
def _check_offsets(trial: SpoutTrial) -> None:
    for name, (start, end) in trial.ranges.items():
        _check_inside(trial, name, start, end, trial.whole(name))


def _check_inside(trial: SpoutTrial, name: str, start: int, end: int, rows: Rows) -> None:
    for stream in rows.values():
        offsets = [offset for offset, _ in stream if offset is not None]
        for offset in offsets:
            if not start <= offset < end:
                trial.broken(place_of(name, start, end), f"offsets in [{start}, {end})", f"offset {offset}")
        for before, offset in pairwise(offsets):
            if offset < before:
                trial.broken(place_of(name, start, end), f"an offset of at least {before}", f"offset {offset}")


@law_of(
    LAWS,
    "a range reads the same again",
    "Reset in open() whatever next_tuple() uses up; make values of the stored data alone: no clock, no random numbers, "
    "no counter in self",
)
def _check_same_again(trial: SpoutTrial) -> None:
    spout = trial.driven.instance("task")
    for name, (start, end) in trial.ranges.items():
        place = place_of(name, start, end)
        whole = trial.whole(name)
        trial.compare(f"{place}, in a fresh instance", whole, trial.driven.read_all(name, start, end))
        trial.compare(f"{place}, in a fresh instance", whole, trial.driven.read_all(name, start, end, spout))
        trial.compare(f"{place}, again in the same instance", whole, trial.driven.read_all(name, start, end, spout))


@law_of(
    LAWS,
    "the class pickles and opens anew",
    "Open connections, files and locks in initialize() or open(), not in the class, its module or the constructor",
)
def _check_pickles(trial: SpoutTrial) -> None:
    driven = copy.copy(trial.driven)
    assert trial._law is not None
    driven.cls = check_pickles(trial.driven.cls, trial._law.remedy)
    name, (start, end) = next(iter(trial.ranges.items()))
    trial.compare(place_of(name, start, end), trial.whole(name), driven.read_all(name, start, end))


@law_of(
    LAWS,
    "ranges that meet are the whole",
    "Read [start, end): start is included, end is not, and nothing between two ranges is lost or read twice; forbid "
    "cuts by an empty split()",
)
def _check_ranges_meet(trial: SpoutTrial) -> None:
    rng = random.Random(7)
    for name, (start, end) in trial.ranges.items():
        for parts in PARTS:
            wished = trial.driven.driver.split(name, start, end, parts)
            _check_cuts(trial, name, [start, *wished, end])
            if wished:
                cuts = sorted(rng.sample(range(start + 1, end), min(parts, end - start - 1)))
                _check_cuts(trial, name, [start, *cuts, end])


def _check_cuts(trial: SpoutTrial, name: str, cuts: list[int]) -> None:
    spout = trial.driven.instance("task")
    parts = []
    for low, high in pairwise(cuts):
        parts.append(trial.driven.read_all(name, low, high, spout))
        _check_inside(trial, name, low, high, parts[-1])
    place = place_of(name, cuts[0], cuts[-1])
    trial.compare(f"{place}, cut at {given(cuts[1:-1])}", trial.whole(name), _joined(parts))


@law_of(
    LAWS,
    "a reader that starts at any offset goes on there",
    "open(partition, start, end) finds its place by `start` alone: in another process nothing was read before it",
)
def _check_restart(trial: SpoutTrial) -> None:
    rng = random.Random(9)
    for name, (start, end) in trial.ranges.items():
        wished = [rng.randint(start + 1, end) for _ in range(5)]
        for cut in {trial.driven.driver.align(name, start, cut) for cut in wished}:
            if start < cut < end:
                parts = [trial.driven.read_all(name, low, high) for low, high in ((start, cut), (cut, end))]
                trial.compare(f"{place_of(name, cut, end)}, in a fresh instance", trial.whole(name), _joined(parts))


@law_of(
    LAWS,
    "split is pure and stays inside",
    "split() returns at most parts - 1 ascending offsets between start and end, computed of its arguments alone",
)
def _check_split(trial: SpoutTrial) -> None:
    for name, (start, end) in trial.ranges.items():
        for parts in (1, 2, 5, 1000):
            place = f"{place_of(name, start, end)}, {parts} parts"
            cuts = trial.driven.driver.split(name, start, end, parts)
            again = trial.driven.instance("driver").split(name, start, end, parts)
            if list(cuts) != list(again):
                trial.broken(place, f"the same cuts again, {given(cuts)}", given(again))
            if any(a >= b for a, b in pairwise([start, *cuts, end])) or len(cuts) >= max(2, parts):
                trial.broken(place, f"at most {parts - 1} ascending offsets between {start} and {end}", given(cuts))


@law_of(
    LAWS,
    "align stays between start and head",
    "align() returns an offset that is not below `start` and not above the head",
)
def _check_align(trial: SpoutTrial) -> None:
    rng = random.Random(8)
    trial.driven.driver.snapshot({}, {})
    for name, (start, end) in trial.ranges.items():
        for _ in range(20):
            cut = rng.randint(start + 1, end)
            found = trial.driven.driver.align(name, start, cut)
            if not start <= found <= end:
                trial.broken(f"{place_of(name, start, end)}, cut at {cut}", f"{start} to {end}", given(found))


@law_of(
    LAWS,
    "a run that breaks off can be closed and read again",
    "close() and cleanup() come at any moment, also before the first tuple; set in initialize() what they use, and "
    "keep nothing outside of the instance that a killed task would leave behind",
)
def _check_broken_run(trial: SpoutTrial) -> None:
    for name, (start, end) in trial.ranges.items():
        for calls in (0, 1):
            spout = trial.driven.instance("task")
            reading = Reading(trial.driven, spout)
            reading.open(name, start, end)
            for _ in range(calls):
                reading.executor.take_turn(1)
            spout.close()
            spout.cleanup()
        killed = Reading(trial.driven, trial.driven.instance("task"))  # never closed
        killed.open(name, start, end)
        killed.executor.take_turn(1)
        place = f"{place_of(name, start, end)}, after a run that broke off"
        trial.compare(place, trial.whole(name), trial.driven.read_all(name, start, end))
    trial.driven.instance("task").cleanup()
    trial.driven.instance("driver").cleanup()


@law_of(
    LAWS,
    "an empty range is exhausted",
    "A range [n, n) is read to its end at once, without a tuple",
)
def _check_empty(trial: SpoutTrial) -> None:
    for name, (start, end) in trial.ranges.items():
        for at in (start, end):
            rows = trial.driven.read_all(name, at, at)
            if any(rows.values()):
                trial.broken(place_of(name, at, at), "no rows", given(rows))


SAME_ROWS = "both readers give the same rows"

SAME_ROWS_REMEDY = "Offsets stay as they are and values equal if a query changes from one class to the other"


def same_rows_as(spec: ComponentSpec, config: Mapping[str, Any] | None, clock: Clock) -> Law:
    return Law(SAME_ROWS, SAME_ROWS_REMEDY, lambda trial: _check_same_rows(trial, driven_by(spec, config, clock)))


def _check_same_rows(trial: SpoutTrial, other: Driven) -> None:
    for name, (start, end) in trial.ranges.items():
        place = f"{place_of(name, start, end)}, of {trial.driven.cls.__name__} and {other.cls.__name__}"
        for stream, rows in trial.whole(name).items():
            found = other.read_all(name, start, end).get(stream, [])
            unknown = any(offset is None for offset, _ in [*rows, *found])
            pair = [[values for _, values in each] for each in (rows, found)] if unknown else [rows, found]
            differs = difference(*pair)
            if differs is not None:
                trial.broken(place, *differs)


GROWS = "what was there stays as it is while the source grows"

GROWS_REMEDY = (
    "latest() covers only offsets behind which nothing can appear any more, and never goes back; earliest() stays "
    "where it is until data is removed"
)


def check_growth(trial: SpoutTrial, before: Snapshot, wholes: dict[str, Rows]) -> None:
    after = trial.snapshot()
    if after == before:
        trial.broken("", "heads that have moved on after grow()", f"the same as before, {given(dict(after.heads))}")
    known = {name: latest for name, (_, latest) in before.heads.items()}
    planned = trial.driven.driver.snapshot(dict(known), dict(before.state))
    for name, (earliest, latest) in before.heads.items():
        place = f"partition {name!r}"
        if name not in planned.heads and name not in planned.retired:
            trial.broken(place, "it to stay, or to be retired", f"only {given(sorted(planned.heads))}")
        for heads in (planned.heads, after.heads):
            found = heads.get(name, (earliest, latest))[1]
            if found < latest:
                trial.broken(place, f"latest {latest} or more", f"latest {found}")
        # A partition may still change its name until an offset names it.
        found = after.heads.get(name, (earliest, latest))[0]
        if found != earliest:
            trial.broken(place, f"earliest {earliest}, as nothing was read yet", f"earliest {found}")
    for name, (start, end) in trial.ranges.items():
        trial.compare(place_of(name, start, end), wholes[name], trial.driven.read_all(name, start, end))
