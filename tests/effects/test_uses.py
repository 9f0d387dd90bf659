"""A few kills around two uses of one topology; ``python -m tests.effects.uses`` is the long campaign."""

import sys

import pytest

from tests.effects import uses


@pytest.mark.spark
@pytest.mark.campaign
@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_no_two_rows_share_a_key_and_no_letter_is_lost_whatever_is_killed(tmp_path):
    found = uses.run(tmp_path / "campaign", kills=4, seed=3)
    assert found["wrong"] == [], found
    assert sum(found["kills"].values()) >= 1, found
