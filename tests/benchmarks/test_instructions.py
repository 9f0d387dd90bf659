"""Instructions of the rings, as valgrind counts them: the same in every run."""

import shutil

from benchmarks.rungs.instructions import RINGS, instructions_per_item
from tests.missing import missing


def test_counts_of_rings_are_repeatable(tmp_path):
    if shutil.which("valgrind") is None:
        missing("valgrind", "valgrind")
    assert "mpsc" in RINGS
    counted = [instructions_per_item("mpsc", tmp_path) for _ in range(2)]
    assert counted[0] == counted[1]
    assert 10 < counted[0] < 200
