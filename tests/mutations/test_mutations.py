"""A few mutants of every kind; `python -m tests.mutations` looks at a million."""

import pytest

from tests.mutations.campaign import examine, kinds, run
from tests.spouts.mutations import COUNT


@pytest.mark.timeout(300)
def test_mutants_are_the_same_or_refused_or_valid(tmp_path):
    tallies = dict(run(tmp_path, COUNT * 20))
    assert [wrong for tally in tallies.values() for wrong in tally.wrong] == []
    for name, tally in tallies.items():
        assert tally.outcomes["refused"], f"no {name} was refused: the campaign looks at nothing"
    for name in ("offset", "frame", "journal"):
        assert not tallies[name].outcomes["other"], "a checksum tells"
    assert tallies["offset"].outcomes["same"] and tallies["journal"].outcomes["same"]


def test_what_a_campaign_finds_is_said_with_its_seed(tmp_path):
    def broken(rng):
        return {}[rng.random()]

    (wrong,) = examine("broken", broken, range(7, 8)).wrong
    assert wrong.startswith("--only broken --first 7 --count 1\n")
    assert "KeyError" in wrong


def test_a_mutant_that_hangs_is_found(monkeypatch):
    monkeypatch.setattr("tests.mutations.campaign.SECONDS", 0.01)

    def endless(rng):
        while True:
            rng.random()

    (wrong,) = examine("endless", endless, range(1)).wrong
    assert "Hang" in wrong


def test_the_shares_are_of_a_hundred(tmp_path):
    assert sum(share for share, _ in kinds(tmp_path).values()) == 100
