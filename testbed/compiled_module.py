"""Compiles Cython sources of tests and benchmarks against this checkout, once for each state of source and core."""

import hashlib
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from cython_core import build_info

ROOT = Path(__file__).resolve().parents[1]
SETUP = """
from setuptools import setup
from pystorm_source import building
{before}
setup(ext_modules=building.extensions({source!r}, build_dir="c"))
"""


def built(source: Path, before: str = "") -> Path:
    """Returns the compiled module of that source. ``before``: Python code that its setup.py runs first."""
    text = SETUP.format(before=before, source=source.name)
    key = hashlib.sha256("\0".join([text, source.read_text(), build_info.SOURCES, build_info.ABI]).encode()).hexdigest()
    folder = ROOT / "build/compiled-modules" / key[:16]
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    made = folder / f"{source.stem}{suffix}"
    if not made.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / source.name).write_text(source.read_text())
        (folder / "setup.py").write_text(text)
        command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace", "--build-lib", "lib"]
        done = subprocess.run(
            command, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return made


def compiled(source: Path) -> ModuleType:
    """Returns the same module, imported under the source's name, like in the processes of a run."""
    made = built(source)
    if source.stem not in sys.modules:
        spec = importlib.util.spec_from_file_location(source.stem, made)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[source.stem] = module
        spec.loader.exec_module(module)
    return sys.modules[source.stem]
