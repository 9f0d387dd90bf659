"""The laws of bolts, each with its remedy and its check, after Jet's ``TestSupport``.

all rows at once ──► the reference
a fresh instance for each tuple · the task killed after each · each failing once · two micro-batches ·
one tuple at a time, all at once · queues of two · a thread for each executor · an Arrow bolt's rows
in batches of one, of some  ──► the same rows
"""

import copy
from collections.abc import Sequence
from typing import Any

from pystorm_source.api import ArrowBolt
from pystorm_source.errors import ContractBroken, given
from pystorm_source.testing.bolt_trial import BoltTrial, missing
from pystorm_source.testing.law import (
    LATE,
    LATE_REMEDY,
    Law,
    check_pickles,
    difference,
    key_of,
    law_of,
)
from pystorm_source.testing.script import ABORT, EOF, FAIL, PAUSE

PAUSE_SECONDS = 1e-6
"""Pause on the engine's clock before a task is killed. More: ticks arrive, and a bolt emits earlier."""

CUTS = (1, 2, 7)
"""Most rows of the batches that an Arrow bolt gets, besides all at once."""
LAWS: list[Law] = []
"""In the order of the checks: the first broken law is the most telling one."""


def copied(rows: Sequence[Any]) -> list[Any]:
    """Copies the rows, to protect them from changes by other runs."""
    try:
        return copy.deepcopy(list(rows))
    except Exception:  # values that cannot be copied are shared
        return list(rows)


def row_place(rows: Sequence[Any], number: int) -> str:
    return f"tuple {number + 1} of {len(rows)}, {given(rows[number])}"


@law_of(
    LAWS,
    "the class pickles",
    "Open connections, locks and files in initialize(), not in the class, its module or a closure",
)
def _check_pickles(trial: BoltTrial) -> None:
    assert trial._law is not None
    check_pickles(trial.cls, trial._law.remedy)


@law_of(
    LAWS,
    "a bolt does not change its input",
    "Values are shared with all receivers and emitted again if the tuple fails: copy what you change",
)
def _check_input(trial: BoltTrial) -> None:
    trial.given = copied(trial.rows)
    trial.reference = trial.run(trial.given, waits=True)
    for number, (before, after) in enumerate(zip(trial.rows, trial.given, strict=True)):
        if key_of(getattr(before, "values", before)) != key_of(getattr(after, "values", after)):
            trial.broken(row_place(trial.rows, number), f"values {given(before)} afterwards", given(after))


@law_of(
    LAWS,
    "every tuple gets a verdict",
    "With auto_ack = False call ack(tup) or fail(tup) once for every tuple, also for those that give no row",
)
def _check_verdicts(trial: BoltTrial) -> None:
    source = trial._names[1]
    forgotten = trial.reference.result.unsettled[source]
    if forgotten:
        trial.broken(
            "", f"ack or fail of all {len(trial.rows)} tuples before the micro-batch ends", f"{forgotten} of neither"
        )


@law_of(LAWS, LATE, LATE_REMEDY)
def _check_late(trial: BoltTrial) -> None:
    if trial.reference.late:
        trial.broken("", "every emit before the run has ended", "an emit of a thread of its own after cleanup()")


@law_of(
    LAWS,
    "values stay as they were emitted",
    "Receivers get the very objects: emit a copy of a list or dict that you go on changing",
)
def _check_output(trial: BoltTrial) -> None:
    streams = trial.spec.streams
    if not streams or any(stream.direct for stream in streams):
        return
    try:
        ran = trial.run(copied(trial.rows), "", behind=True, testing_always_try_serialize=True)
    except ContractBroken as error:
        if "always.try.serialize" in error.found:
            return  # values that do not copy
        raise
    for name, rows in ran.received.items():
        differs = missing(rows, ran.rows[name])
        if differs is not None:
            trial.broken(f"stream {name!r}", *differs)


@law_of(
    LAWS,
    "the same tuples give the same rows again",
    "Make rows of the tuples and the configuration alone: no clock, no random numbers, and no state outside of the "
    "instance, such as a dict or list in the class body or the module",
)
def _check_again(trial: BoltTrial) -> None:
    trial.compare(trial.run(copied(trial.rows)), "another run")


@law_of(
    LAWS,
    "any cut of the rows into batches gives the same rows",
    "Which rows come in one batch is the engine's choice: what process_batch() emits for a row must not depend on the "
    "others of its batch, such as on their number, sum or order",
)
def _check_cuts(trial: BoltTrial) -> None:
    if trial.state != "none" or not issubclass(trial.cls, ArrowBolt):
        return
    for rows in CUTS:
        trial.compare(trial.run(copied(trial.rows), max_spout_pending=rows), f"batches of at most {rows} rows")


STATE_IN_SELF = (
    "It keeps state in self, which is lost with its process; Spark may give any tuple to a fresh instance. Emit what "
    "each tuple adds, and let Spark sum it up. If the bolt emits its state at the final tick of a micro-batch, say "
    "state='micro-batch'; if the state may be lost, such as a cache, say state='instance'"
)


@law_of(LAWS, "a fresh instance gives the same rows", STATE_IN_SELF)
def _check_fresh(trial: BoltTrial) -> None:
    if trial.state != "none":
        return
    at = dict.fromkeys(trial.reference.rows, 0)
    for number, row in enumerate(trial.rows):
        place = row_place(trial.rows, number)
        ran = trial.run(copied([row]), place)
        trial.solo.append(ran)
        for name, rows in ran.rows.items() if trial.ordered else ():
            wanted = trial.reference.rows[name][at[name] : at[name] + len(rows)]
            at[name] += len(rows)
            differs = difference(wanted, rows)
            if differs is not None:
                trial.broken(f"{place}, in an instance of its own, against all tuples in one", *differs)
    whole = {name: [row for ran in trial.solo for row in ran.rows[name]] for name in trial.reference.rows}
    trial.compare_rows(trial.reference.rows, whole, "each tuple in an instance of its own, against all in one")


@law_of(
    LAWS,
    "a killed task leaves nothing behind",
    "Nothing may outlive an instance: neither what is in the class or the module, nor files that its rows depend on",
)
def _check_killed(trial: BoltTrial) -> None:
    for number in trial.turns():
        rows = copied(trial.rows)
        # Order: during the pause, everything before it passes through the bolt.
        ran = trial.run([*rows[: number + 1], PAUSE(PAUSE_SECONDS), ABORT, *rows[number + 1 :]])
        trial.compare(ran, f"{row_place(trial.rows, number)}, where the task was killed and started again")


@law_of(
    LAWS,
    "a tuple that fails gives its rows once more",
    "It comes again, to the same instance: keep nothing in self by which its second coming differs",
)
def _check_replayed(trial: BoltTrial) -> None:
    if trial.state != "none":
        return
    source = trial._names[1]
    for number in trial.turns():
        solo = trial.solo[number]
        if solo.result.failed[source]:
            continue  # the bolt fails it by itself
        rows = copied(trial.rows)
        ran = trial.run([*rows[: number + 1], FAIL, *rows[number + 1 :]])
        for name, wanted in trial.reference.rows.items():
            differs = missing([*wanted, *solo.rows[name]], ran.rows[name])
            if differs is not None:
                place = f"{row_place(trial.rows, number)}, which failed once"
                trial.broken(place if name == "default" else f"{place}, stream {name!r}", *differs)


@law_of(
    LAWS,
    "a micro-batch begins with nothing kept",
    "Emit and clear at the final tick what process() has gathered: `if self.is_final_tick(tup)`, or at every tick. The "
    "instance stays for the next micro-batch, or is lost before it",
)
def _check_two(trial: BoltTrial) -> None:
    if trial.state != "instance":
        ran = trial.run([*copied(trial.rows), EOF, *copied(trial.rows)])
        trial.compare(ran, "two micro-batches of the same tuples, in the same instance", times=2)


SAME_ANYHOW = "How many tuples wait, and which thread runs the bolt, is the engine's choice: rows must not depend on it"


@law_of(LAWS, "one tuple at a time or all at once, the rows are the same", SAME_ANYHOW)
def _check_inbox(trial: BoltTrial) -> None:
    if trial.state == "none":
        trial.compare(trial.run(copied(trial.rows), max_spout_pending=1), "an inbox of one tuple")
    size = max(4, 2 * len(trial.rows))
    sizes: dict[str, Any] = {"executor_receive_buffer_size": size, "producer_batch_size": size // 2}
    trial.compare(trial.run(copied(trial.rows), **sizes), "an inbox of all tuples")


@law_of(LAWS, "queues that are full change no row", SAME_ANYHOW)
def _check_capacity(trial: BoltTrial) -> None:
    behind = bool(trial.spec.streams) and not any(stream.direct for stream in trial.spec.streams)
    sizes: dict[str, Any] = {"executor_receive_buffer_size": 2, "producer_batch_size": 1}
    ran = trial.run(copied(trial.rows), "", behind=behind, **sizes)
    trial.compare(ran, "queues of two tuples")
    if behind:
        trial.compare_rows(trial.reference.rows, ran.received, "the bolt behind queues of two tuples")


@law_of(LAWS, "both schedulers give the same rows", SAME_ANYHOW)
def _check_threads(trial: BoltTrial) -> None:
    trial.compare(trial.run(copied(trial.rows), scheduler="threads"), "topology.scheduler=threads")
