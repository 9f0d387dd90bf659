"""The tests of the core against a core built with AddressSanitizer, UndefinedBehaviorSanitizer and every own check.

Built with PYSTORM_DEBUG=1 in a copy, so that no object of it ever reaches a release build. Memory comes from malloc, so
that the sanitizer sees each Python object; leaks are not looked for, as CPython itself keeps some memory to the end.
"""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytestmark = [pytest.mark.gate, pytest.mark.timeout(2400)]

ROOT = Path(__file__).resolve().parents[2]
SANITIZE = "-O0 -g1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
COPIED = ["cython_core", "pystorm_source", "testbed", "tests", "setup.py", "pyproject.toml", "pyspark_pystorm.py"]


@pytest.fixture(scope="module")
def checkout() -> Path:
    """A copy of the sources in `build/asan`, compiled; kept, so that a second run compiles what has changed only."""
    folder = ROOT / "build" / "asan"
    for name in COPIED:
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            ignored = shutil.ignore_patterns("*.so", "*.c.html", "__pycache__")
            _remove_vanished(source, target)
            shutil.copytree(source, target, ignore=ignored, dirs_exist_ok=True)
        elif source.exists():
            shutil.copy2(source, target)
    flags = {"PYSTORM_DEBUG": "1", "PYSTORM_CFLAGS": SANITIZE, "PYSTORM_LDFLAGS": SANITIZE}
    built = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        cwd=folder,
        env=os.environ | flags,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def _remove_vanished(source: Path, target: Path) -> None:
    for path in sorted(target.rglob("*"), reverse=True):
        if (
            path.suffix not in {".so", ".pyc"}
            and not path.is_dir()
            and not (source / path.relative_to(target)).exists()
        ):
            path.unlink()


def environment(checkout: Path) -> dict[str, str]:
    """The environment in which an ordinary Python loads modules that were built with sanitizers."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    libraries = []
    for name in ("libasan.so", "libubsan.so", "libstdc++.so.6"):  # the last for exceptions thrown by Arrow
        asked = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
        libraries.append(os.path.realpath(asked.stdout.strip()))
        assert Path(libraries[-1]).is_file(), f"{compiler} has no {name}"
    return os.environ | {
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0:detect_odr_violation=0:abort_on_error=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(checkout),
        # A fifth of the examples: each costs three times as much here, and another gate tries all of them.
        "PYSTORM_FEWER": os.environ.get("PYSTORM_FEWER", "1"),
    }


def run(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python there; -P keeps this checkout's own build out of sight."""
    return subprocess.run(
        [sys.executable, *arguments], cwd=checkout, env=environment(checkout), capture_output=True, text=True
    )


def test_it_is_the_sanitized_core(checkout):
    code = "import cython_core.build_info as b; print(b.__file__, b.DEBUG)"
    done = run(checkout, "-c", code)
    assert done.returncode == 0, done.stderr
    path, debug = done.stdout.split()
    assert Path(path).is_relative_to(checkout)
    assert debug == "True"


def test_core(checkout):
    # What a module of another version is told comes before any code of the core, and each costs a compilation.
    left_out = ["--ignore=tests/core/compiled/test_abi.py", "-m", "not spark"]
    done = run(checkout, "-m", "pytest", "-q", "tests/core", *left_out, "-p", "no:cacheprovider", "--capture=sys")
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:]
