"""An uncompiled checkout says what to run; a stale core is noticed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cython_core
from cython_core.sources import digest
from pystorm_source.errors.compiled import is_stale, require_core
from pystorm_source.version import __version__

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def uncompiled(tmp_path: Path) -> Path:
    """A copy of the checkout without compiled modules."""
    for package in ("cython_core", "pystorm_source"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return tmp_path


def ask(checkout: Path) -> str:
    """What `require_core` says in that checkout; -S and -E keep the installed one out of the way."""
    code = f"import sys; sys.path.insert(0, {str(checkout)!r})\n"
    code += "from pystorm_source.errors.compiled import *; require_core()"
    return subprocess.run([sys.executable, "-S", "-E", "-P", "-c", code], capture_output=True, text=True).stderr


def test_compiled_core_is_there_and_fresh():
    from cython_core import build_info

    require_core()
    assert not is_stale()
    assert build_info.VERSION == __version__
    assert build_info.SOURCES == digest(Path(cython_core.__file__).parent)


def test_uncompiled_checkout_says_what_to_run(uncompiled):
    said = ask(uncompiled)
    assert "ImportError" in said
    assert "is not compiled. Run `make build` in a checkout, or install it: `pip install .`" in said


def test_core_of_another_python_is_named(uncompiled):
    (uncompiled / "cython_core" / "build_info.cpython-399-x86_64-linux-gnu.so").touch()
    assert "compiled for another Python (build_info.cpython-399-x86_64-linux-gnu.so; this one needs *" in ask(
        uncompiled
    )


def test_core_that_does_not_load_is_named(uncompiled):
    suffix = next(iter(__import__("importlib.machinery").machinery.EXTENSION_SUFFIXES))
    (uncompiled / "cython_core" / f"build_info{suffix}").write_text("no shared object")
    said = ask(uncompiled)
    assert "does not load" in said
    assert "make build" in said


def test_missing_package_is_named(uncompiled):
    shutil.rmtree(uncompiled / "cython_core")
    assert "the package cython_core is not installed" in ask(uncompiled)


@pytest.mark.parametrize(
    "statement",
    [
        "from pystorm_source import Bolt",
        "import pystorm_source; pystorm_source.Topology",
        "import pystorm_source.bolt",
        "import pystorm_source.worker",
        "import pystorm_source.plan",
        "import pystorm_source.testing",
        "import pystorm_source.source.task.read_range",
    ],
)
def test_every_import_that_needs_the_core_says_what_to_run(uncompiled, statement):
    done = subprocess.run([sys.executable, "-c", statement], capture_output=True, text=True, cwd=uncompiled)
    assert done.returncode == 1
    assert "is not compiled. Run `make build` in a checkout, or install it: `pip install .`" in done.stderr


def test_commands_of_an_uncompiled_checkout(uncompiled):
    """`check` looks at everything and names the core; the others say what to run."""

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pystorm_source", *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=uncompiled)

    checked = command("check", "some.where:Topology")
    assert checked.returncode == 1
    (line,) = [line for line in checked.stdout.splitlines() if line.split()[1:3] == ["compiled", "core"]]
    assert line.startswith("FAIL") and "is not compiled" in line and "->  Run `make build`" in line
    assert "FAIL  topology               cannot be looked at without the compiled core" in checked.stdout
    assert any(line.startswith("ok    pyarrow") for line in checked.stdout.splitlines())
    other = command("draw", "some.where:Topology", "--format", "svg")
    assert (other.returncode, other.stdout) == (1, "")
    assert other.stderr.startswith("error: the core in ") and "make build" in other.stderr
    assert command("--help").returncode == 0


def test_digest_follows_every_source(tmp_path):
    assert digest(tmp_path) == ""
    (tmp_path / "a.pyx").write_text("x = 1")
    (tmp_path / "room").mkdir()
    seen = {digest(tmp_path)}
    for name in ("a.h", "b.pyx", "b.pxi", "b.pxd"):
        (tmp_path / "room" / name).write_text("int x;")
        seen.add(digest(tmp_path))
    assert len(seen) == 5
