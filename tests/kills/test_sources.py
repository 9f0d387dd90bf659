"""A few kills around a ready-made source; ``python -m tests.kills.sources`` is the long campaign."""

import sys

import pytest

from tests.kills import sources
from tests.kills.source_topologies import text

ROWS = [(n, text(n)) for n in range(1, 11)]


def test_the_judge_sees_what_is_lost_doubled_or_another():
    assert sources.faults(ROWS, 10, may_repeat=False) == {"rows": 10, "lost": 0, "duplicates": 0, "wrong": []}
    for wrong in (ROWS[1:], [*ROWS, ROWS[3]], [*ROWS[1:], (1, "row 2 é")], [*ROWS, (11, text(11))]):
        assert sources.faults(wrong, 10, may_repeat=False)["wrong"]
    assert sources.faults([*ROWS, ROWS[3]], 10, may_repeat=True) == {
        "rows": 10,
        "lost": 0,
        "duplicates": 1,
        "wrong": [],
    }


@pytest.mark.spark
@pytest.mark.campaign
@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_no_row_is_lost_or_doubled_whatever_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(sources.Campaign, "drivers", 0.0)  # a new one takes ten seconds to start
    monkeypatch.setattr(sources.Campaign, "servers", 0.5)
    monkeypatch.setattr(sources, "FROZEN", 0.0)
    found = sources.run("HttpSpout", tmp_path / "campaign", kills=3, seed=1)
    assert found["wrong"] == [], found
    assert sum(found["kills"].values()) >= 1, found
