"""The core compiles for macOS: all that Cython has written, for arm64; for x86-64 the modules with the most C of ours.

Compiled, no more: nothing is linked or run. Python's headers are those of this machine, which has the same sizes of C's
types. `.ci/gates/macos` brings the compiler, Zig's, with the C headers of macOS.
"""

import importlib.util
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = ROOT / "build/cython/cython_core"
ONE_OF_EACH = ("queues", "parker", "timers", "acker")
"""Modules that between them include each header with an #ifdef, and atomics."""
FLAGS = ["-std=c11", "-O0", "-g0", "-Wall", "-Wno-unused-function", "-Werror=implicit-function-declaration"]
MACROS = ["-DPYSTORM_CORE=1", "-DPYSTORM_BUILT_FOR_DEBUG=0"]
MACROS += [f'-DPYSTORM_{name}="-"' for name in ("VERSION", "SOURCES", "ABI")]

pytestmark = [
    pytest.mark.gate,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="no ziglang: .ci/gates/macos installs it"),
]


def faults(source: Path, platform: str, folder: Path) -> str:
    """What the compiler has to say; empty: it compiles to an object of that platform."""
    target = folder / f"{source.stem}.o"
    command = [sys.executable, "-m", "ziglang", "cc", "-target", platform, *FLAGS, *MACROS, f"-I{ROOT}"]
    command += [f"-I{sysconfig.get_path('include')}", "-c", str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    said = done.stderr if done.returncode else ""
    return said or ("" if target.read_bytes()[:4] == b"\xcf\xfa\xed\xfe" else f"{target} is no object of macOS")


def compiled(sources: list[Path], platform: str, folder: Path) -> dict[str, str]:
    """Source → its faults, for those that have some."""
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda source: faults(source, platform, folder), sources)
    return {source.stem: said for source, said in zip(sources, found, strict=True) if said}


def test_all_modules_compile_for_arm64(tmp_path):
    sources = sorted(WRITTEN.rglob("*.c"))
    assert len(sources) >= len(list((ROOT / "cython_core").rglob("*.pyx"))) > 20, "run `make build`"
    assert compiled(sources, "aarch64-macos", tmp_path) == {}


def test_the_modules_with_platform_code_compile_for_x86_64(tmp_path):
    sources = [path for path in sorted(WRITTEN.rglob("*.c")) if path.stem in ONE_OF_EACH]
    assert len(sources) >= 4, "run `make build`"
    assert compiled(sources, "x86_64-macos", tmp_path) == {}


def test_a_header_that_macos_lacks_is_found(tmp_path):
    """The negative control: the C of threads, which Linux has."""
    source = tmp_path / "control.c"
    source.write_text("#include <threads.h>\n")
    assert "'threads.h' file not found" in faults(source, "aarch64-macos", tmp_path)
