"""``.ci/make-venv`` finds a Python that works, and says in its own words why another one does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKE_VENV = str(ROOT / ".ci/make-venv")
# Nothing can be written to /dev/null there, as on a file system that is mounted without devices.
WITHOUT_NULL = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-euc"]
HIDDEN = 'mount -t tmpfs none /dev; mkdir /dev/null; exec "$@"'


@pytest.fixture
def python(tmp_path):
    """This Python, whose virtual environments are empty folders."""
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nif [ "$1 $2" = "-m venv" ]; then mkdir "$3"; else exec {sys.executable} "$@"; fi\n')
    path.chmod(0o755)
    return str(path)


def made(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_it_needs_no_device_to_which_answers_go(python, tmp_path):
    if made(*WITHOUT_NULL, "mount -t tmpfs none /dev").returncode:
        pytest.skip("this user may not mount anything, not even in a namespace of its own")
    done = made(*WITHOUT_NULL, HIDDEN, "sh", MAKE_VENV, str(tmp_path / "venv"), python)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.listdir(tmp_path / "venv") == []


@pytest.mark.parametrize(
    ("code", "why"),
    [("echo 'Fatal Python error: no codec' >&2; exit 1", "Fatal Python error: no codec"), ("exit 1", "")],
)
def test_an_interpreter_that_does_not_start_is_refused_in_its_own_words(tmp_path, code, why):
    path = tmp_path / "broken"
    path.write_text(f"#!/bin/sh\n{code}\n")
    path.chmod(0o755)
    done = made("sh", MAKE_VENV, str(tmp_path / "venv"), str(path))
    assert done.returncode == 1
    assert f"PYTHON={path} is no Python 3.11 to 3.14 ({why})" in done.stderr
