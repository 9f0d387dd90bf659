"""``make build`` notices what the core is made of."""

import re
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


def test_the_name_of_a_tag_is_never_read_by_the_shell():
    """Git allows much in it: `make` hands it over by the environment, which it fills from its own command line."""
    command = ["make", "--dry-run", "release-check", "TAG=v1;x", "DIST=a b"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert '.ci/release_check.py --tag "$TAG" --dist "$DIST"' in said


def test_a_user_installs_what_a_project_needs_and_not_what_our_tests_need():
    def printed(target):
        command = ["make", "--dry-run", "--always-make", target]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert " .venv/.installed .venv/.use java-inner\n" in printed("use")
    assert re.findall(r"install.py (\S+)", printed(".venv/.use")) == [
        f"requirements/{name}.txt" for name in ("build", "demo", "use")
    ]
    asked = [line for line in (ROOT / "requirements/use.in").read_text().splitlines() if not line.startswith("#")]
    assert asked and set(asked) <= set((ROOT / "requirements/test.in").read_text().splitlines())


@pytest.fixture
def install():
    """The functions of .ci/install.py."""
    return runpy.run_path(str(ROOT / ".ci/install.py"))


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("  Downloading numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl (16.9 MB)\n", "numpy 2.4.6, 16.9 MB"),
        ("  Using cached pyspark-4.3.0.tar.gz (450.1 MB)\n", "pyspark 4.3.0, 450.1 MB (cached)"),
        ("  Building wheel for pyspark (pyproject.toml): started\n", "pyspark: made into a wheel"),
        ("Installing collected packages: py4j, numpy, pyspark\n", "3 packages: unpacking"),
        ("Collecting numpy==2.4.6\n", ""),
        ("Requirement already satisfied: pip\n", ""),
    ],
)
def test_steps_of_pip_are_said_in_few_words(install, line, step):
    assert install["step_of"](line) == step


def test_a_failure_of_pip_is_shown_whole(install, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    (tmp_path / "bad.txt").write_text("no-such-package-of-ours==9\n")
    assert install["main"](["-r", str(tmp_path / "bad.txt")]) == 1
    printed = capfd.readouterr()
    assert printed.out == "" and "No matching distribution found for no-such-package-of-ours==9" in printed.err
