"""Rotation under kill -9, seed by seed: every line once, whatever the writer does between two looks of the reader."""

import os

import pytest

from tests.rotation.sets import run_set

SETS = int(os.environ.get("PYSTORM_ROTATION_SETS", "0"))
"""As many sets as this, if it is set; else one of each kind and way."""
SEEDS = list(range(SETS)) if SETS else [*range(5), *range(15, 20)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="tasks are forked")
@pytest.mark.parametrize("seed", SEEDS)
def test_every_line_is_read_once(seed):
    outcome = run_set(seed)
    assert outcome.is_exact, outcome


def test_a_set_is_its_seed():
    first, again = run_set(3), run_set(3)
    assert (first.lines, first.rotations, first.kills) == (again.lines, again.rotations, again.kills)
    assert first.lines > 0
