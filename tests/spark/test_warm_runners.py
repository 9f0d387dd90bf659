"""The processes of Spark's that a test session forks are to the JVM what those are that start by themselves."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.warm_daemons.sitecustomize import RUNNERS, SOCKET
from testbed.warm_runners import ROOT, warm_runners

WARM = {"PYTHONPATH": f"{ROOT / 'testbed/warm_daemons'}{os.pathsep}{ROOT}"}


def run(environment, folder):
    """The runner without a JVM: it fails because it does not know whom to call."""
    command = [sys.executable, "-X", "faulthandler", "-m", RUNNERS[0]]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=60)


@pytest.fixture
def server(tmp_path):
    environment = {**os.environ, **WARM, "PYTHON_WORKER_FACTORY_PORT": "not a number"}
    with warm_runners(tmp_path, environment) as more:
        yield {**environment, **more}


def test_a_forked_process_has_the_streams_and_the_environment_of_the_one_that_asks(server, tmp_path):
    done = run({**server, "PYTHON_WORKER_FACTORY_PORT": "of the one that asks"}, tmp_path)
    assert "of the one that asks" in done.stderr
    assert "warm_runners.py" in done.stderr, "it was forked"


def test_it_starts_by_itself_where_nothing_forks(server, tmp_path):
    done = run({**server, SOCKET: str(tmp_path / "gone")}, tmp_path)
    assert "not a number" in done.stderr
    assert "warm_runners.py" not in done.stderr


def test_the_server_ends_with_the_session(tmp_path):
    with warm_runners(tmp_path, {**os.environ, **WARM}) as more:
        assert Path(more[SOCKET]).is_socket()
    assert "warm_runners.py" not in run({**os.environ, **WARM, **more}, tmp_path).stderr
