"""The campaign over seeds: what it draws, and what it says of a round that fails."""

import json
import logging
import sys
import threading

import pytest

from tests.acking import __main__ as campaign
from tests.acking.drawn import Seeded, Unfit
from tests.acking.test_any_topology import drawn_case

pytestmark = pytest.mark.inline


@pytest.fixture(autouse=True)
def level_of_the_log():
    """The campaign silences the package's log, for the process that it has to itself."""
    log = logging.getLogger("pystorm")
    level = log.level
    yield
    log.setLevel(level)


def said_of(monkeypatch, capsys, check, *arguments):
    monkeypatch.setattr(campaign, "CHECKS", {"made": campaign.Check(lambda draws: draws.integer(0, 999), check)})
    monkeypatch.setattr(sys, "argv", ["tests.acking", *arguments])
    status = campaign.main()
    return status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_seed_draws_the_same_case_again():
    assert drawn_case(Seeded(7)) == drawn_case(Seeded(7)) != drawn_case(Seeded(8))


def test_a_round_that_fails_is_told_with_seed_and_case_and_the_others_run(monkeypatch, capsys):
    def check(case, scheduler):
        assert case % 4, "as it was drawn"
        return "ran"

    cases = {seed: Seeded(seed).integer(0, 999) for seed in range(100, 140)}
    wrong = [seed for seed, case in cases.items() if case % 4 == 0]
    status, (*failed, summary) = said_of(monkeypatch, capsys, check, "--first", "100", "--rounds", "40")
    assert [(line["seed"], line["case"]) for line in failed] == [(seed, repr(cases[seed])) for seed in wrong]
    assert all("as it was drawn" in line["wrong"] for line in failed)
    assert (status, summary["rounds"], summary["failed"]) == (1, 40, len(wrong))
    assert summary["outcomes"]["made"] == {"failed": len(wrong), "ran": 40 - len(wrong)}


def test_a_case_that_does_not_fit_is_drawn_again(monkeypatch, capsys):
    def check(case, scheduler):
        if case < 500:
            raise Unfit
        return "ran"

    threads = threading.enumerate()
    status, (summary,) = said_of(monkeypatch, capsys, check, "1", "2", "3")
    assert threading.enumerate() == threads, "what ends a process that hangs has ended with the rounds"
    assert (status, summary["rounds"], summary["outcomes"]) == (0, 3, {"made": {"ran": 3}})
    assert summary["unfit"] > 0


def test_the_schedulers_take_turns_unless_one_is_named(monkeypatch, capsys):
    _, (summary,) = said_of(monkeypatch, capsys, lambda case, scheduler: "ran", "--rounds", "16")
    assert (summary["threads"], summary["inline"]) == (2, 14)
    _, (summary,) = said_of(monkeypatch, capsys, lambda case, scheduler: "ran", "--scheduler", "threads")
    assert summary["threads"] == summary["rounds"] == 1000


@pytest.mark.timeout(30)
@pytest.mark.parametrize("scheduler", ["inline", "threads"])
@pytest.mark.parametrize("seed", [100329])
def test_rounds_that_did_not_end_once(seed, scheduler):
    """100329: the sleep until the last time-out ended a nanosecond before it, again and again."""
    found = campaign.Round(seed, scheduler)
    found.run()
    assert found.outcome
