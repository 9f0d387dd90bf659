"""Machine instructions per tuple of the core's topologies: what a busy machine cannot blur.

Valgrind's callgrind counts the instructions of a process that sends few tuples and of one that sends more; the
difference, divided by the tuples between, has neither start-up nor warm-up in it. By hand, with the functions that they
are spent in:

    valgrind --tool=callgrind --callgrind-out-file=out python -m benchmarks.instructions const-id-null 100000
    callgrind_annotate --auto=yes out

Build with ``PYSTORM_CFLAGS=-g`` for line numbers. Without valgrind the records say so.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.core import CASES, send
from benchmarks.ladder import Settings
from benchmarks.record import ROOT, Record, record

FEW = 30_000


def run(settings: Settings) -> Iterator[Record]:
    """Counts once per case: instructions do not vary from run to run by more than a few per mille."""
    many = FEW * (3 if settings.quick else 6)
    for case in CASES[1:3] if settings.quick else CASES:
        if shutil.which("valgrind") is None:
            yield record("instructions", case.name, [], "instructions/tuple", note="valgrind is not installed")
            continue
        counted = (counted_instructions(case.name, many) - counted_instructions(case.name, FEW)) / (many - FEW)
        yield record("instructions", case.name, [counted], "instructions/tuple", less_is_better=True)


def counted_instructions(case: str, emits: int) -> int:
    """Instructions of a whole process in which the spout of the case emits so many tuples. Raises RuntimeError."""
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder, "callgrind.out")
        command = [
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={counts}",
            sys.executable,
            "-m",
            "benchmarks.instructions",
        ]
        # Dictionaries of different layout cost different numbers of instructions, and idle threads of numpy's spin.
        environment = os.environ | {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run([*command, case, str(emits)], cwd=ROOT, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"callgrind over {case} failed: {done.stderr[-2000:]}")
        summary = re.search(r"^(?:summary|totals): (\d+)", counts.read_text(), re.MULTILINE)
    if summary is None:
        raise RuntimeError(f"callgrind over {case} gave no summary")
    return int(summary[1])


if __name__ == "__main__":
    send(next(case for case in CASES if case.name == sys.argv[1]), int(sys.argv[2]))
