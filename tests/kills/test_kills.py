"""kill -9 of Python workers, executors and drivers at named points: no row lost, none twice, nothing left behind.

Each round is a real query with a checkpoint and a Parquet sink; `README.md` says what they are. A few seeds here, as
many as ``PYSTORM_KILLS_ROUNDS`` says if it is set.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MORE = int(os.environ.get("PYSTORM_KILLS_ROUNDS", "0"))
FEW = [0, 6, 13, 9, 1000, 2001, 2005, 2012, 3001, 4003, 5003, 5010]
SEEDS = list(range(MORE)) or FEW

pytestmark = [
    pytest.mark.spark,
    pytest.mark.campaign,
    pytest.mark.timeout(1000 + 60 * MORE),
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Seed → outcome of all rounds, which share their sessions of Spark; None → of what is left at their end."""
    command = [sys.executable, "-m", "tests.kills", "--folder", str(tmp_path_factory.mktemp("kills"))]
    ended = subprocess.run([*command, *map(str, SEEDS)], cwd=ROOT, capture_output=True, text=True)
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert lines, ended.stderr[-4000:]
    return {outcome["seed"]: outcome for outcome in lines[:-1]}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_sink_has_every_row_once(outcomes, seed):
    assert outcomes[seed]["wrong"] == []


def test_nothing_is_alive_at_the_end(outcomes):
    assert None not in outcomes, outcomes[None]["wrong"]
