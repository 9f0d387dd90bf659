"""The C programs of tests/c on aarch64, whose memory is ordered more weakly than that of x86-64.

Compiled by a cross compiler and run by QEMU (Debian: gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user). QEMU
keeps the order of the machine that it runs on, so a run shows that the code is right on aarch64 but for its orders:
those are looked for in the machine code, and by ThreadSanitizer in test_c_headers.py.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.gates.test_c_headers import CONTROL, PROGRAMS, ROOT, THREADS

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"

pytestmark = [
    pytest.mark.gate,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        not (shutil.which(COMPILER) and shutil.which(EMULATOR)), reason=f"{COMPILER} or {EMULATOR} is not installed"
    ),
]

# QEMU 7 dies if a process with several threads forks.
FLAGS = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-UNDEBUG", "-pthread", "-DPYSTORM_EMULATED"]
# An acquiring load, a releasing store, a barrier. Exchanges (ldaxr, stlxr) keep their orders, that is not ours to test.
ORDERED = re.compile(r"^\s+(ldar|ldapr|stlr|dmb)[bh]?\b", re.MULTILINE)


def compile_for_aarch64(source: Path, target: Path, *flags: str) -> Path:
    include = [f"-I{ROOT}", f"-I{ROOT / 'tests/c'}"]
    command = [COMPILER, *FLAGS, *flags, *include, str(source), "-o", str(target), "-lm"]
    compiled = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert compiled.returncode == 0, compiled.stderr
    return target


def orders(source: Path, folder: Path, *flags: str) -> int:
    """How many ordered loads and stores, and barriers, the program has."""
    assembly = compile_for_aarch64(source, folder / f"{source.stem}.s", "-S", "-mno-outline-atomics", *flags)
    return len(ORDERED.findall(assembly.read_text()))


@pytest.mark.parametrize("source", PROGRAMS, ids=lambda path: path.stem)
def test_it_runs(source, tmp_path):
    program = compile_for_aarch64(source, tmp_path / source.stem, "-static")
    ended = subprocess.run([EMULATOR, str(program)], capture_output=True, text=True, timeout=1750)
    assert ended.returncode == 0, ended.stderr


def test_orders_become_ordered_instructions(tmp_path):
    tried = [source for source in THREADS if CONTROL in source.read_text()]
    assert tried
    for source in tried:
        kept, dropped = orders(source, tmp_path), orders(source, tmp_path, f"-D{CONTROL}")
        assert kept >= 2 and dropped == 0, f"{source.name}: {kept} ordered instructions, {dropped} without orders"
