"""Machine instructions per tuple of the core's topologies and per item of its rings: figures that a busy machine
cannot blur.

Valgrind's callgrind counts the instructions of a process that sends few tuples and of one that sends more; their
difference, divided by the difference in tuples, includes neither start-up nor warm-up. The cases ``ring-*`` turn a ring
with one thread (``peer_programs/ring_turns.c``): an offer and a poll, or a hundredth of a batch of 100, including the
calls and the loop; they are the same in every run. By hand, listed by function:

    valgrind --tool=callgrind --callgrind-out-file=out python -m benchmarks.rungs.instructions const-id-null 100000
    callgrind_annotate --auto=yes out

Build with ``PYSTORM_CFLAGS=-g`` for line numbers. Without valgrind the records say so.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from benchmarks.harness.ladder import Settings
from benchmarks.harness.programs import build_program
from benchmarks.harness.record import ROOT, Record, record
from benchmarks.rungs.core import CASES, send
from testbed.maven import PeerMissing

FEW = 30_000


RINGS = (
    "spsc",
    "spsc-batch",
    "mpsc",
    "mpsc-batch",
    "broadcast",
)


def run(settings: Settings) -> Iterator[Record]:
    """Counts once per case, because instructions vary by only a few per mille from run to run."""
    yield from _rings(settings)
    few, many = (1_000, 4_000) if settings.quick else (FEW, 6 * FEW)
    for case in CASES[1:2] if settings.quick else CASES:
        if shutil.which("valgrind") is None:
            yield record("instructions", case.name, [], "instructions/tuple", note="valgrind is not installed")
            continue
        counted = (counted_instructions(case.name, many) - counted_instructions(case.name, few)) / (many - few)
        yield record("instructions", case.name, [counted], "instructions/tuple", less_is_better=True)


def _rings(settings: Settings) -> Iterator[Record]:
    with tempfile.TemporaryDirectory() as folder:
        for ring in RINGS[:1] if settings.quick else RINGS:
            try:
                counted, note = [instructions_per_item(ring, Path(folder))], None
            except (PeerMissing, OSError) as error:
                counted, note = [], str(error)
            yield record("instructions", f"ring-{ring}", counted, "instructions/item", less_is_better=True, note=note)


def instructions_per_item(ring: str, folder: Path) -> float:
    """Returns the instructions of an offer and a poll of that ring. Raises PeerMissing without a compiler, OSError
    without valgrind."""
    program = build_program("ring_turns", folder)
    few, many = (callgrind([str(program), ring, str(items)]) for items in (FEW, 2 * FEW))
    return (many - few) / FEW


def counted_instructions(case: str, emits: int) -> int:
    """Returns the instructions of an entire process whose spout emits so many tuples. Raises RuntimeError."""
    # The layout of dictionaries changes the number of instructions, and so do numpy's idle threads, which spin.
    environment = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
    return callgrind([sys.executable, "-m", "benchmarks.rungs.instructions", case, str(emits)], environment)


def callgrind(command: list[str], environment: Mapping[str, str] = MappingProxyType({})) -> int:
    """Returns the instructions of an entire process. Raises RuntimeError if it fails, OSError without valgrind."""
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder, "callgrind.out")
        counted = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}", *command]
        done = subprocess.run(counted, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"callgrind over {command} failed: {done.stderr[-2000:]}")
        summary = re.search(r"^(?:summary|totals): (\d+)", counts.read_text(), re.MULTILINE)
    if summary is None:
        raise RuntimeError(f"callgrind over {command} gave no summary")
    return int(summary[1])


if __name__ == "__main__":
    send(next(case for case in CASES if case.name == sys.argv[1]), int(sys.argv[2]))
