"""Sets: a writer, a reader, and what happens between their steps, all of it from a seed."""

import multiprocessing
import os
import pickle
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.rotation.interleaving import interleaved
from tests.rotation.query import Died, Query, read_here, read_in_child
from tests.rotation.writer import BANNER, KINDS, Writer

PROCESSES = 4
"""Of so many sets one has a writer and tasks in processes of their own, which are killed; the others are replayable."""
KILLS = 12
"""Of an interleaved set at most: a reader that always dies reads nothing."""
TRIGGERS = 20_000
"""A set that is not done after so many triggers hangs."""


@dataclass
class Outcome:
    """``refused``: the error that ended the query and named what it could not tell apart; None if it was done."""

    seed: int
    kind: str
    how: str
    path: str
    lines: int
    rotations: int
    kills: int
    lost: int
    doubled: int
    torn: int
    refused: str | None
    seconds: float

    @property
    def is_exact(self) -> bool:
        return self.refused is None and not (self.lost or self.doubled or self.torn)

    def described(self) -> dict[str, Any]:
        return asdict(self) | {"exact": self.is_exact}


def run_set(seed: int) -> Outcome:
    """The set of that seed."""
    began = time.monotonic()
    kind = KINDS[seed % len(KINDS)]
    how = "processes" if seed // len(KINDS) % PROCESSES == PROCESSES - 1 else "interleaved"
    with tempfile.TemporaryDirectory(prefix="rotation-") as scratch:
        folder = Path(scratch, "logs")
        folder.mkdir()
        rng = random.Random(seed)
        path = rng.choice(
            (folder, folder / "app.log*") if how == "processes" else (folder, folder / "app.log*", folder / "app.log")
        )
        options = {"topology": "tests.spouts.topologies:Logs", "path": str(path), "feedback": "off"}
        limit = rng.choice((None, 300, 3000, 20_000))
        if limit is not None:
            options["maxOffsetsPerTrigger"] = str(limit)
        query = Query(options)
        run = _in_processes if how == "processes" else _interleaved
        refused = None
        try:
            written, rotations = run(query, path, folder, kind, rng)
        except Exception as error:
            refused, written, rotations = f"{type(error).__name__}: {error}", Counter(), 0
    found = query.rows
    known = set(written)
    return Outcome(
        seed,
        kind,
        how,
        path.name,
        sum(written.values()),
        rotations,
        query.kills,
        0 if refused else sum((written - found).values()),
        0 if refused else sum(count for line, count in (found - written).items() if line in known),
        0 if refused else sum(count for line, count in found.items() if line not in known),
        refused,
        round(time.monotonic() - began, 2),
    )


def _interleaved(query: Query, path: Path, folder: Path, kind: str, rng: random.Random) -> tuple[Counter[str], int]:
    """One process: before each look of the reader the writer may do some steps, or the reader may die."""
    writer = Writer(folder, kind, rng.randrange(1 << 30), rng.randint(3, 12), lambda lines: lines <= query.rows.keys())
    if path.name == "app.log":
        # What is rotated twice before the query has seen it is not among the files that were asked for.
        writer.may_rotate = lambda lines: not query.rows.keys().isdisjoint(lines - {BANNER})
    steps: Iterator[None] = writer.steps()
    is_writing = True
    share = rng.choice((0.01, 0.05, 0.3))
    deaths = rng.choice((0.0, 0.001, 0.01))

    def write(most: int) -> None:
        nonlocal is_writing
        for _ in range(rng.randint(1, most)):
            is_writing = is_writing and next(steps, steps) is None

    def before() -> None:
        if is_writing and rng.random() < share:
            write(rng.choice((1, 3, 20)))
        if is_writing and query.kills < KILLS and rng.random() < deaths:
            raise Died

    write(20)
    with interleaved(before):
        for _ in range(TRIGGERS):
            was_writing = is_writing
            try:
                ran = query.trigger(read_here)
            except Died:
                query.kills += 1
                query.restart()
                continue
            if rng.random() < 0.05:
                query.restart()
            if not ran and not was_writing:
                return writer.written, writer.rotations
            if is_writing and rng.random() < 0.5:
                write(10)
    raise RuntimeError(f"still not done after {TRIGGERS} triggers")


def _in_processes(query: Query, path: Path, folder: Path, kind: str, rng: random.Random) -> tuple[Counter[str], int]:
    """The writer and every task are processes; tasks are killed, the driver restarts."""
    said = folder.parent / "written"
    pause = rng.choice((0.0, 0.0005, 0.002))
    writing = multiprocessing.get_context("fork").Process(
        target=_write, args=(folder, kind, rng.randrange(1 << 30), pause, said), daemon=True
    )
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    read = read_in_child(rng, folder.parent, 0.3)
    writing.start()
    try:
        for _ in range(TRIGGERS):
            alive = writing.is_alive()
            ran = False
            if any(folder.iterdir()):
                try:
                    ran = query.trigger(read)
                except Died:
                    query.restart()
                    continue
                if rng.random() < 0.05:
                    query.restart()
            if not ran and not alive:
                break
        else:
            raise RuntimeError(f"still not done after {TRIGGERS} triggers")
    finally:
        writing.kill()
        writing.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pickle.loads(said.read_bytes())


def _write(folder: Path, kind: str, seed: int, pause: float, said: Path) -> None:
    writer = Writer(folder, kind, seed, 12)
    for _ in writer.steps():
        time.sleep(pause)
    said.write_bytes(pickle.dumps((writer.written, writer.rotations)))
    os._exit(0)
