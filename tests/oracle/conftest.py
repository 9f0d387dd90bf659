"""The real streamparse, in a virtual environment of its own: it must not be importable beside our aliases."""

import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "requirements" / "oracle.txt"
ANSWERS = Path(__file__).with_name("answers.py")


@pytest.fixture(scope="session")
def oracle():
    """``oracle(program, cases)`` answers what a program of this folder prints as JSON in streamparse's interpreter."""
    python = _python_with_streamparse()

    def ask(program, cases):
        ended = subprocess.run(
            [python, program, "streamparse"], input=json.dumps(cases), capture_output=True, text=True, timeout=60
        )
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    return ask


@pytest.fixture(scope="session")
def their_tests():
    """A folder that holds streamparse's and pystorm's own tests, from their source distributions."""
    wanted = re.findall(r"^(?:streamparse|pystorm)==[\d.]+", REQUIREMENTS.read_text(), re.MULTILINE)
    assert len(wanted) == 2

    def get(folder):
        pip = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:"]
        _step([sys.executable, *pip, "--dest", str(folder), *wanted])
        for path in folder.glob("*.tar.gz"):
            with tarfile.open(path) as archive:
                archive.extractall(folder, filter="data")

    return _made("tests", get)


def _python_with_streamparse():
    """The interpreter of an environment that has the real ones."""

    def install(folder):
        pip = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--require-hashes",
            "-r",
            str(REQUIREMENTS),
        ]
        _step([sys.executable, "-m", "venv", "--clear", str(folder)])
        _step([str(folder / "bin" / "python"), *pip])

    return str(_made("python", install) / "bin" / "python")


def _made(what, make):
    """A folder under build/, made on first use, once per version of Python and requirements."""
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:8]
    folder = ROOT / "build" / "oracle" / f"{what}-{sys.implementation.cache_tag}-{wanted}"
    done = folder / "made"
    folder.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two runs of the tests in one checkout
        if not done.exists():
            make(folder)
            done.touch()
    return folder


def _step(command):
    ended = subprocess.run(command, capture_output=True, text=True, timeout=110)
    if ended.returncode == 0:
        return
    said = f"streamparse cannot be had for the comparison: {' '.join(command)}\n{ended.stderr}"
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(said)
    pytest.skip(said)
