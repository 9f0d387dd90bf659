"""``make build`` notices what the core is made of."""

import runpy
import subprocess
from pathlib import Path

import pytest
import setuptools

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "source", ["pystorm_source/version.py", "cython_core/sources.py", "cython_core/build_info.pyx"]
)
def test_the_core_is_compiled_again_if_this_changed(source):
    said = subprocess.run(
        ["make", "--dry-run", "--what-if", source, ".venv/.core"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "build_ext --inplace" in said.stdout


def test_the_module_that_holds_the_version_depends_on_it(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(setuptools, "setup", lambda **_: None)
    extension = runpy.run_path("setup.py")["extension"]
    assert "pystorm_source/version.py" in extension("cython_core/build_info.pyx").depends
    assert extension("cython_core/tuples/tuple.pyx").depends == []
