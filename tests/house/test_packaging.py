"""What pyproject.toml and MANIFEST.in promise is what lies in the folders."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pystorm_source.__main__ import NEEDED
from pystorm_source.version import __version__

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


INTERPRETERS = ["3.11", "3.12", "3.13", "3.14"]


def test_the_interpreters_are_the_same_everywhere():
    assert PROJECT["project"]["requires-python"] == ">=3.11,<3.16"
    classifiers = PROJECT["project"]["classifiers"]
    assert [each.rsplit(" ", 1)[1] for each in classifiers if "Python :: 3" in each] == INTERPRETERS
    wheels = PROJECT["tool"]["cibuildwheel"]["build"]
    assert wheels == [f"cp{version.replace('.', '')}-*" for version in INTERPRETERS]
    gates = (ROOT / ".ci/run").read_text()
    assert f"for version in {' '.join(INTERPRETERS[:-1])}; do" in gates and f"python-{INTERPRETERS[-1]}" in gates


@pytest.mark.parametrize("file", ["setup.py", "cython_core/__init__.py"])
@pytest.mark.parametrize(
    ("pretend", "given"),
    [
        ("sys.version_info = (3, 10, 0)", "Given: Python 3.10.0"),
        ("sys.abiflags = 't'", f"{sys.version_info[1]}.{sys.version_info[2]}t"),
    ],
)
def test_an_interpreter_that_the_core_does_not_run_on_is_refused_in_one_line(file, pretend, given):
    """By setup.py before it needs Cython, and at the first import."""
    code = f"import sys; {pretend}; import runpy; runpy.run_path({file!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    line = done.stderr.strip().splitlines()[-1]
    assert "CPython 3.11 to 3.15, but not on a free-threaded build" in line and given in line
    assert file != "setup.py" or done.stderr.strip() == line


def test_every_room_is_packaged():
    folders = [path.parent for top in ("pystorm_source", "cython_core") for path in ROOT.glob(f"{top}/**/__init__.py")]
    names = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    assert names == set(PROJECT["tool"]["setuptools"]["packages"])


def test_every_folder_with_modules_is_a_package():
    for path in [*ROOT.glob("pystorm_source/**/*.py"), *ROOT.glob("cython_core/**/*.pyx")]:
        assert (path.parent / "__init__.py").exists(), path


def test_the_files_of_a_new_project_are_packaged():
    """In the wheel by package-data, in the sdist by MANIFEST.in."""
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["pystorm_source"]
    packaged = {path for pattern in patterns for path in (ROOT / "pystorm_source").glob(pattern) if path.is_file()}
    templates = {path for path in (ROOT / "pystorm_source/cli/quickstart_files").rglob("*") if path.is_file()}
    assert len(templates) >= 9 and templates <= packaged
    (line,) = [line for line in (ROOT / "MANIFEST.in").read_text().splitlines() if "include pystorm_source" in line]
    assert {path.suffix for path in templates} == {".in"} and "*.in" in line.split()
    assert any(path.name == "SKILL.md.in" for path in templates)


def test_presets_alerts_the_dashboard_and_the_text_of_the_demo_are_packaged():
    """In the wheel by package-data, in the sdist by MANIFEST.in."""
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["pystorm_source"]
    packaged = {path.stem for pattern in patterns for path in (ROOT / "pystorm_source").glob(pattern)}
    assert {"latency", "throughput", "prose", "alerts", "grafana"} <= packaged
    (line,) = [line for line in (ROOT / "MANIFEST.in").read_text().splitlines() if "include pystorm_source" in line]
    assert {"*.json", "*.yaml", "*.txt", "*.js", "*.css"} <= set(line.split())


def test_executors_install_four_packages():
    """The command line is an extra: what it needs is a dozen packages and 25 MB."""
    project = PROJECT["project"]
    names = {re.split(r"[>=\[]", each)[0] for each in project["dependencies"]}
    assert names == {"numpy", "pyarrow", "msgspec", "pyyaml"}
    extras = project["optional-dependencies"]
    assert set(extras["cli"]) < set(extras["spark"])
    assert {re.split(">", each)[0] for each in extras["cli"]} == set(NEEDED)


def test_every_compiled_module_has_a_stub():
    missing = [path.name for path in ROOT.glob("cython_core/**/*.pyx") if not path.with_suffix(".pyi").exists()]
    assert not missing, f"write the .pyi of {missing}"


def test_changelog_speaks_of_this_version():
    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text()
