"""The real streamparse, in a virtual environment of its own: it must not be importable beside our aliases."""

import fcntl
import hashlib
import json
import os
import subprocess
import sys
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


def _python_with_streamparse():
    """The interpreter of the environment, which is made on first use, once per version of Python and requirements."""
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:8]
    folder = ROOT / "build" / "oracle" / f"{sys.implementation.cache_tag}-{wanted}"
    python = folder / "bin" / "python"
    done = folder / "installed"
    if done.exists():
        return str(python)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two runs of the tests in one checkout
        _install(folder, python, done)
    return str(python)


def _install(folder, python, done):
    if not done.exists():
        pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r", str(REQUIREMENTS)]
        steps = [[sys.executable, "-m", "venv", "--clear", str(folder)], [str(python), *pip]]
        for step in steps:
            ended = subprocess.run(step, capture_output=True, text=True, timeout=110)
            if ended.returncode != 0:
                _impossible(f"streamparse cannot be installed for the comparison: {' '.join(step)}\n{ended.stderr}")
        done.touch()


def _impossible(said):
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(said)
    pytest.skip(said)
