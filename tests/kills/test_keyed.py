"""States of every type: a few kills, and the model that judges them. ``python -m tests.kills.keyed`` does many."""

import sys

import pytest

from pystorm_source.testing import run_topology
from tests.kills import keyed
from tests.kills.keyed_job import Plain, Timed
from tests.kills.keyed_model import PER_BATCH, faults, text_of
from tests.stages.random_states import FIELDS

TOTAL = 3 * PER_BATCH


@pytest.fixture(params=[False, True], ids=["plain", "timers"])
def run(request, tmp_path):
    """(Whether keys have timers, emitted rows, key → text of its state) of the topology without Spark and kills."""
    timers, config = request.param, {"kills.total": TOTAL, "effects": str(tmp_path)}
    result = run_topology(Timed if timers else Plain, config, scope="cluster", timers_after=60 * timers)
    states = {
        key[0]: text_of(state[name] for name in ("count", *FIELDS)) for key, state in result.states["keep"].items()
    }
    return timers, [tuple(row) for row in result._left["keep", "default"]], states


def test_the_model_agrees_with_the_bolt(run):
    timers, rows, states = run
    assert faults(TOTAL, timers, rows, states) == []
    assert len(rows) > 100


def test_the_model_sees_what_is_lost_doubled_or_another(run):
    timers, rows, states = run
    number, row, count, before = rows[50]
    others = [(number, row, count, before.replace("None", "0", 1)), (number, row, count + 1, before)]
    for wrong in (rows[:50] + rows[51:], [*rows, rows[50]], *([*rows[:50], other, *rows[51:]] for other in others)):
        assert faults(TOTAL, timers, wrong, states)
    key = sorted(states)[0]
    for wrong in ({**states, key: states[key].replace("[", "[7, ", 1)}, {**states, 999: "[]"}):
        assert faults(TOTAL, timers, rows, wrong)
    del states[key]
    assert faults(TOTAL, timers, rows, states)


@pytest.mark.spark
@pytest.mark.campaign
@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_every_state_is_what_the_model_says_whatever_is_killed(tmp_path):
    found = keyed.run(tmp_path / "campaign", kills=3, seed=1)
    assert found["wrong"] == [], found
    assert sum(found["kills"].values()) >= 1, found
