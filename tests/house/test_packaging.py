"""What pyproject.toml and MANIFEST.in promise is what lies in the folders."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from pystorm_source.__main__ import NEEDED
from pystorm_source.version import __version__

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


INTERPRETERS = ["3.11", "3.12", "3.13"]


def test_the_interpreters_are_the_same_everywhere():
    assert PROJECT["project"]["requires-python"] == ">=3.11,<3.14"
    classifiers = PROJECT["project"]["classifiers"]
    assert [each.rsplit(" ", 1)[1] for each in classifiers if "Python :: 3" in each] == INTERPRETERS
    wheels = PROJECT["tool"]["cibuildwheel"]["build"]
    assert wheels == [f"cp{version.replace('.', '')}-*" for version in INTERPRETERS]
    assert f"for version in {' '.join(INTERPRETERS)}; do" in (ROOT / ".ci/run").read_text()


@pytest.mark.parametrize(("version", "compiles"), [("0x030D00F0", True), ("0x030E0000", False)])
def test_the_core_does_not_compile_for_an_interpreter_whose_tuples_keep_their_hash(version, compiles, tmp_path):
    """The header's own guard, before anything of Python's is used."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "Python.h").write_text(f"#define PY_VERSION_HEX {version}\n")
    (tmp_path / "structmember.h").touch()
    source = ROOT / "cython_core/tuples/values_tuple.h"
    done = subprocess.run(
        [compiler, "-E", f"-I{tmp_path}", "-x", "c", str(source), "-o", "/dev/null"], capture_output=True, text=True
    )
    assert (done.returncode == 0) is compiles, done.stderr
    assert compiles or "pystorm-source runs on CPython 3.11, 3.12 and 3.13" in done.stderr


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
