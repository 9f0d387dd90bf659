"""How a side is measured: what a small run of its program costs is taken off a large one."""

import ast
import sys
import tokenize
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.harness.record import ROOT, Record, record, rounded
from benchmarks.jobs.process import Failed, Processes
from benchmarks.jobs.side import BARE, Side
from testbed.maven import PeerMissing

PROGRAMS = ROOT / "benchmarks" / "job_programs"


class Load(NamedTuple):
    """What goes in: so many rows. ``options``: folder of a run → options of the program; called just before it runs.
    ``check``: folder of the output → raises RuntimeError for other rows than those that must come out."""

    rows: int
    options: Callable[[Path], Mapping[str, Any]]
    check: Callable[[Path], None]


class Loads(NamedTuple):
    """``few``: to warm up, and what starting costs; ``part``: for slow sides; ``all``: for the others."""

    few: Load
    part: Load
    all: Load


class Job(NamedTuple):
    """``loads``: folder, whether it is to be quick → what goes in, while the block runs. ``asked``: ours, in rows per
    core-second, by each peer's that is as exact, or by any peer's if ``asked_of_all``."""

    name: str
    sides: tuple[Side, ...]
    loads: Callable[[Path, bool], AbstractContextManager[Loads]]
    asked: float
    asked_of_all: bool


class Took(NamedTuple):
    """Rows per second, by the clock and of all processors that the side used."""

    rows_per_second: float
    rows_per_core_second: float
    wrong: str | None = None
    """What is wrong with the rows of a side that loses some."""


def lines_of_code(program: Path) -> int:
    """Lines of a Python file with anything but comments and docstrings."""
    texts = set()
    for node in ast.walk(ast.parse(program.read_text())):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            texts |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    with program.open("rb") as file:
        kinds = {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}
        tokens = [token for token in tokenize.tokenize(file.readline) if token.type in kinds]
    lines = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
    return len(lines - texts)


def measured(job: str, side: Side, loads: Loads, processes: Processes) -> Took:
    """Runs a side once: twice few rows, then many; the second of the small runs is taken off. Quick: only many, and
    nothing is taken off. Raises PeerMissing, RuntimeError for wrong rows, and Failed, also if many rows take no longer
    than few."""
    quick = processes.quick
    load = loads.part if side.kind.slow else loads.all
    runs = [load] if quick else [loads.few, loads.few, load]
    with TemporaryDirectory(prefix="jobs") as folder:
        took, wrong = [], None
        with processes.of(side.kind) as process:
            for number, each in enumerate(runs):
                out = Path(folder, f"out_{number}")
                work = Path(folder, f"work_{number}")
                work.mkdir()
                options = {**side.kind.options(), **side.more, **each.options(work), "out": str(out), "work": str(work)}
                took.append(process.does(f"{job}_{side.program}", options))
                wrong = _wrong_with(each, out)
                if wrong and not side.loses:
                    raise RuntimeError(f"{job}, {side.name}: {wrong}")
    if quick:
        return Took(load.rows / took[0]["seconds"], load.rows / max(took[0]["processor"], 0.01), wrong)
    rows = load.rows - loads.few.rows
    seconds, processor = (took[2][key] - took[1][key] for key in ("seconds", "processor"))
    if min(seconds, processor) <= 0:
        raise Failed(f"{load.rows} rows take no longer than {loads.few.rows}: {took}")
    return Took(rows / seconds, rows / processor, wrong)


def _wrong_with(load: Load, out: Path) -> str | None:
    try:
        load.check(out)
    except RuntimeError as error:
        return str(error)
    return None


def records(
    job: Job, loads: Loads, names: frozenset[str], runs: int, peers: bool, processes: Processes
) -> list[Record]:
    """A record of each side: ours, and each peer's beside it. ``names``: of the peers to measure; none: all."""
    sides = [side for side in job.sides if side is job.sides[0] or (peers and (not names or side.name in names))]
    seen: dict[str, list[Took]] = {side.name: [] for side in sides}
    notes: dict[str, str] = {}
    for _ in range(runs):
        for side in sides:
            if side.name in notes:
                continue
            try:
                took = measured(job.name, side, loads, processes)
                seen[side.name].append(took)
                print(f"{job.name} / {side.name}: {took}", file=sys.stderr, flush=True)  # all of them take long
            except (PeerMissing, Failed) as error:
                if side is job.sides[0]:
                    raise
                notes[side.name] = str(error)
                print(f"{job.name} / {side.name}: {error}", file=sys.stderr, flush=True)
    ours = job.sides[0]
    return [_record(job, ours, side, seen, loads, notes.get(side.name)) for side in sides]


def _record(job: Job, ours: Side, side: Side, seen: Mapping[str, list[Took]], loads: Loads, note: str | None) -> Record:
    is_peer = side is not ours
    is_asked = is_peer and side.kind is not BARE and not side.loses
    is_asked = is_asked and (job.asked_of_all or side.guarantee == ours.guarantee)
    took, rates = seen[side.name], [each.rows_per_second for each in seen[side.name]]
    return record(
        "jobs",
        f"{job.name} / {side.name}",
        [each.rows_per_core_second for each in seen[ours.name]],
        "rows_per_core_second",
        peer=side.name if is_peer else None,
        peer_version=side.kind.version if is_peer else None,
        peer_values=[each.rows_per_core_second for each in took] if is_peer else (),
        asked=job.asked if is_asked else None,
        rows_per_second=rounded(median(each.rows_per_second for each in seen[ours.name])),
        peer_rows_per_second=rounded(median(rates)) if is_peer and rates else None,
        guarantee=side.guarantee,
        lines=lines_of_code(PROGRAMS / f"{job.name}_{side.program}.py"),
        rows=(loads.part if side.kind.slow else loads.all).rows,
        note=note or next((each.wrong for each in took if each.wrong), None),
    )
