"""What make and CI install is pinned with hashes, and fits what pyproject.toml asks for."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PINNED = re.compile(r"([\w.-]+)(?:\[[\w,-]+\])?==([\w.*]+)(?: ; [^\\]+)?")
APART = ("connect", "oracle", "lowest", "spark-4.0", "spark-4.1", "spark-4.2", "wheels", "macos")
"""Locks of environments that are not .venv."""


def entries(path: Path) -> list[list[str]]:
    """The entries of a requirements file: the requirement, and the hashes behind it."""
    lines = path.read_text().replace("\\\n", " ").splitlines()
    return [line.split(" --hash=") for line in lines if line and not line.startswith(("#", "-r "))]


def pins(path: Path) -> dict[str, str]:
    """Normal name → version, for this Python: the first if a lock has several."""
    found = [PINNED.fullmatch(requirement.strip()) for requirement, *_ in entries(path)]
    assert all(found), f"{path.name} has a requirement that is not pinned"
    return {normal(each[1]): each[2] for each in reversed(found)}


def normal(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


LOCKS = sorted(ROOT.glob("requirements/*.txt"))


def test_whatever_make_and_ci_install_is_a_lock():
    """Two names of pip's are no locks: the wheel that the gate has built, and the checkout itself."""
    for path in (ROOT / "Makefile", *(ROOT / ".ci").rglob("*"), *(ROOT / ".github").rglob("*.yml")):
        if path.is_file() and path.suffix != ".pyc":
            text = path.read_text().replace("\\\n", " ")
            for named in re.findall(r"-r requirements/([\w.-]+)", text):
                assert (ROOT / "requirements" / named) in LOCKS, f"{path}: {named}"
            for line in re.findall(r".*\bpip\b.* install .*-r .*", text):
                assert "--require-hashes" in line, f"{path}: {line}"
    assert "--require-hashes" in (ROOT / ".ci/install.py").read_text()


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.stem)
def test_a_lock_has_a_hash_for_every_package_and_what_its_source_asks_for(path):
    for requirement, *hashes in entries(path):
        assert hashes and all(re.fullmatch(r"sha256:[0-9a-f]{64}\s*", each) for each in hashes), requirement
    locked, asked = pins(path), asked_by(path.with_suffix(".in"))
    assert {name: locked.get(name) for name in asked} == asked or path.stem == "lowest"
    assert set(asked) <= set(locked), "run `make lock`"


def asked_by(path: Path) -> dict[str, str]:
    found = pins(path)
    for other in re.findall("^-r (.+)$", path.read_text(), re.MULTILINE):
        found.update(asked_by(path.parent / other))
    return found


def test_locks_agree_on_a_version():
    largest = pins(ROOT / "requirements/dev.txt")
    for path in LOCKS:
        if path.stem not in APART:
            assert {name: largest.get(name, version) for name, version in pins(path).items()} == pins(path), path.name


def test_a_lock_satisfies_the_ranges_of_the_package():
    project = PROJECT["project"]
    extras = [each for extra in project["optional-dependencies"].values() for each in extra]
    largest, oldest = pins(ROOT / "requirements/dev.txt"), pins(ROOT / "requirements/lowest.txt")
    for asked in map(Requirement, [*project["dependencies"], *extras, *PROJECT["build-system"]["requires"]]):
        if normal(asked.name) in largest:
            assert asked.specifier.contains(largest[normal(asked.name)]), asked
    for asked in map(Requirement, project["dependencies"]):
        (lowest,) = (each.version for each in asked.specifier if each.operator == ">=")
        assert f"{oldest[normal(asked.name)]}.".startswith(f"{lowest}."), f"{asked}: run `make lock`"
