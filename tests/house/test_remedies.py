"""A remedy names packages that anyone can install, and never this project: an index may give its name to another."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pystorm_source.errors.packages import EXTRAS, installing, requirements
from tests.house.test_packaging import PROJECT
from tests.house.test_words import committed

ROOT = Path(__file__).resolve().parents[2]
WITHOUT_A_COMMAND = {"draw", "tune", "ui"}
"""Extras that bring the command line, too; their remedies are read in it, so it is there."""
FROM_AN_INDEX = [
    re.compile(r"(?<![/\w])pystorm[-_]source\["),  # an extra by name; a path before it is a clone or a wheel
    re.compile(r"pip\s+install\s+(?:-\S+\s+)*[\"']?pystorm[-_]source(?![\w-]*/)(?=[\s\"'`=<>~]|$)"),
    re.compile(r"(?:dependencies|requires) = \[[^]\n]*\"pystorm-source"),
]
SPEAK_OF_IT = {"CHANGELOG.md", "MAINTAINERS.md", "pystorm_source/errors/packages.py", "tests/house/test_remedies.py"}


def test_the_packages_of_an_extra_are_those_of_pyproject():
    asked = PROJECT["project"]["optional-dependencies"]
    assert set(EXTRAS) == set(asked) - {"spark"}
    for extra, packages in EXTRAS.items():
        command_line = set(EXTRAS["cli"]) if extra in WITHOUT_A_COMMAND else set()
        assert set(packages) == set(asked[extra]) - command_line, extra
        assert all(re.fullmatch(r"[a-z0-9-]+(\[[a-z]+\])?>=[\d.]+", package) for package in packages)


def found_in(text: str) -> list[str]:
    return [match[0] for pattern in FROM_AN_INDEX for match in pattern.finditer(text)]


def test_no_text_has_pip_ask_an_index_for_this_project():
    texts = {path.relative_to(ROOT).as_posix(): path for path in committed() if path.suffix != ".png"}
    wrong = {
        name: found
        for name, path in texts.items()
        if name not in SPEAK_OF_IT and (found := found_in(path.read_text(errors="replace")))
    }
    assert not wrong, "say pystorm_source.errors.packages.installing(extra), or give a path"


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("pip install 'pystorm-source[redis]'", True),
        ("pip\ninstall pystorm_source", True),
        ("pip install -U pystorm-source==1", True),
        ('dependencies = ["pystorm-source"]', True),
        ("pip install '/path/to/pystorm-source[kafka]'", False),
        ("pip install dist/pystorm_source-*.whl", False),
        ("pip install -e '.[redis]'", False),
        ("pip install 'redis>=5'", False),
    ],
)
def test_the_patterns_find_what_an_index_would_be_asked_for(text, asks):
    assert bool(found_in(text)) is asks


@pytest.mark.parametrize("extra", EXTRAS)
def test_pip_understands_the_remedy(extra):
    """It resolves nothing: it only reads the requirements, as a shell hands them over."""
    command = f'set -- {requirements(extra)}; for each; do echo "$each"; done'
    said = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout.split()
    assert said == list(EXTRAS[extra])
    assert installing(extra) == f"pip install {requirements(extra)}"


def test_the_command_line_says_what_it_needs_without_the_compiled_core():
    code = "import sys; sys.modules['typer'] = None; from pystorm_source.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and installing("cli") in done.stderr
