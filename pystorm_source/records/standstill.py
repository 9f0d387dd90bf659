"""What the tasks of a run do at one moment: their components' calls with stacks, and which component waits for which.

A runner answers a question with a line for itself and one for each range that is read. Durations are seconds.
"""

from collections.abc import Iterable, Iterator

import msgspec

from pystorm_source.types.json_values import JsonDecoder, utf8_json

NOTHING = b"{}"
"""The line of a process that reads no range."""
MOST_RANGES = 20
"""Ranges that a text shows. More: it is not read."""


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Unknown fields of a newer version are passed over."""


class Asked(_Line, frozen=True, kw_only=True, tag_field="kind", tag="asked"):
    """The runner's own line. ``asked``: processes of tasks that got the question. ``driver``: frames of the runner's
    planning thread, outermost first; empty if it waits for Spark."""

    topology: str
    run: str
    process: int
    asked: int
    driver: tuple[str, ...] = ()


class TaskState(_Line, frozen=True, kw_only=True):
    """A task of a component.

    ``method``: the method that it is in, empty in compiled code; ``seconds``: how long it has been in it, at least;
    ``input``: the tuple and the offset; ``frames``: of code that is not of this package, outermost first. If it is in
    no call (``in_call``), ``waits``: for what, ``waits_for``: for which component; in a call, ``waits``: for a permit.
    ``queued``: tuples in its receive queue, of ``capacity``.

    With ``processes=``: ``process``: the bolt's process id, 0 without one; ``away``: tuples sent there without a
    verdict yet; ``seconds``: since the oldest one, ``input``, was sent; ``frames``: of the process.
    """

    component: str
    task: int
    kind: str = "bolt"
    in_call: bool = False
    method: str = ""
    seconds: float = 0.0
    input: str = ""
    frames: tuple[str, ...] = ()
    waits: str = ""
    waits_for: str = ""
    queued: int = 0
    capacity: int = 0
    process: int = 0
    away: int = 0


class RangeState(_Line, frozen=True, kw_only=True, tag_field="kind", tag="range"):
    """A range that is read. ``run_id``: Spark's name of the query's run; ``place``: which range; ``seconds``: since it
    began; ``waits``: for what its worker waits if no component is in a call; ``tasks``: upstream first."""

    run_id: str = ""
    place: str
    host: str = ""
    process: int = 0
    seconds: float = 0.0
    waits: str = ""
    tasks: tuple[TaskState, ...] = ()

    @property
    def longest(self) -> TaskState | None:
        """The task that has been in a call for longest."""
        return max((task for task in self.tasks if task.in_call), key=lambda task: task.seconds, default=None)

    @property
    def longest_away(self) -> TaskState | None:
        """The task that has had a tuple in its process for longest."""
        return max((task for task in self.tasks if task.away), key=lambda task: task.seconds, default=None)


_decoder: JsonDecoder[Asked | RangeState] = JsonDecoder(Asked | RangeState)


def encoded(line: Asked | RangeState, most: int | None = None) -> bytes:
    """One line of JSON without its end. A range of more than ``most`` bytes loses what matters least: tasks in no call,
    then frames, at last all tasks."""
    body = utf8_json(line)
    for shorter in _SHORTER:
        if most is None or len(body) <= most or isinstance(line, Asked):
            break
        line = msgspec.structs.replace(line, tasks=tuple(shorter(line.tasks)))
        body = utf8_json(line)
    return body


def _in_call(tasks: Iterable[TaskState]) -> Iterator[TaskState]:
    return (task for task in tasks if task.in_call or task.away)


def _unframed(tasks: Iterable[TaskState]) -> Iterator[TaskState]:
    return (msgspec.structs.replace(task, frames=task.frames[-1:]) for task in tasks)


_SHORTER = (_in_call, _unframed, lambda tasks: ())


def decoded(line: bytes) -> Asked | RangeState | None:
    """Reads the result of ``encoded``; None for anything else."""
    try:
        return _decoder.decode(line)
    except msgspec.DecodeError:
        return None


class RunState(_Line, frozen=True, kw_only=True):
    """What a run does. ``missing``: processes that were asked and have not answered in time; ``unreadable``: answers
    that cannot be decoded."""

    asked: Asked
    ranges: tuple[RangeState, ...] = ()
    missing: int = 0
    unreadable: int = 0

    def __str__(self) -> str:
        """The text that ``pystorm-source ui --stacks`` prints."""
        return "\n".join(_of_run(self))


class Stacks(_Line, frozen=True, kw_only=True):
    """What the tasks of several runs do; its text says which component waits for which."""

    runs: tuple[RunState, ...] = ()

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.runs))

    __repr__ = __str__


def _of_run(run: RunState) -> Iterator[str]:
    asked = run.asked
    yield f"topology {asked.topology!r}, run {asked.run[:12]}, runner process {asked.process}"
    if asked.driver:
        yield "  the driver is at:"
        yield from (f"    {frame}" for frame in asked.driver)
    elif not run.ranges and not run.missing and not run.unreadable:
        yield f"  no range is read: the driver waits for Spark. Processes asked: {asked.asked}"
    longest = sorted(run.ranges, key=lambda each: each.seconds, reverse=True)
    for each in longest[:MOST_RANGES]:
        yield from (f"  {line}" for line in _of_range(each))
    if len(longest) > MOST_RANGES:
        yield f"  … {len(longest) - MOST_RANGES:,} more ranges are read, all of them for a shorter time"
    if run.missing:
        yield (
            f"  {run.missing} of {asked.asked} processes have not answered: code in them may keep the interpreter's "
            "lock, or the network is slow"
        )
    if run.unreadable:
        yield (
            f"  {run.unreadable} of {asked.asked} processes have answered what cannot be read: see that they have the "
            "same version of pystorm-source as the driver"
        )


def _of_range(each: RangeState) -> Iterator[str]:
    yield f"{each.place}, for {each.seconds:,.3g} s, in process {each.process} on {each.host}"
    if chain := chain_of(each):
        yield f"  {chain}"
    for task in each.tasks:
        yield from (f"  {line}" for line in _of_task(task))


def chain_of(each: RangeState) -> str:
    """Which component waits for which, in a line; ends with what the last one is in."""
    busy = each.longest or each.longest_away
    if busy is None:
        return each.waits
    at = f" at {busy.frames[-1]}" if busy.frames else ""
    chain = f"{busy.component!r} {f'is {_call(busy)}' if busy.in_call else busy.waits}{at}"
    first = busy.component
    for task in reversed(each.tasks):
        if task.waits_for == first and task.component != first:
            first = task.component
            chain = f"{first!r} waits for {task.waits} {task.waits_for!r} ← {chain}"
    return chain


def _call(task: TaskState) -> str:
    called = f"in {task.method}()" if task.method else "in a call"
    called += f" for {task.seconds:.0f} s or more" if task.seconds >= 1 else ""
    return called + (f", where it {task.waits}" if task.waits else "")


def _of_task(task: TaskState) -> Iterator[str]:
    queue = f"; {task.queued:,} of {task.capacity:,} tuples in its queue" if task.capacity else ""
    what = _call(task) + task.input
    if not task.in_call:
        what = f"waits for {task.waits} {task.waits_for!r}" if task.waits_for else task.waits + task.input
    yield f"{task.component}, task {task.task}: {what}{queue}"
    yield from (f"    {frame}" for frame in task.frames)
