"""What each rule of the admission controller is worth: ``python -m testbed.ablation [RULE ...]``.

Plays every scenario of ``testbed.simulate`` except the largest with all rules, and without each rule in turn. A rule is
worth the share of the score (``testbed.simulate.score``) that is lost without it: on average over the scenarios, and in
the one that needs it most. Delete a rule if every scenario loses less than 5 % without it.
"""

import argparse
import sys
from dataclasses import replace

import numpy as np

from testbed import simulate
from testbed.rules import RULES, without
from testbed.scenarios import Scenario, scenarios

MOST_PARTITIONS = 10_000


def scores(seeds: range) -> dict[str, float]:
    """Scenario → score, a mean over seeds."""
    return {
        scenario.name: _scored(seeds, scenario) for scenario in scenarios() if scenario.partitions <= MOST_PARTITIONS
    }


def _scored(seeds: range, scenario: Scenario) -> float:
    seeded = [replace(scenario, seed=seed) for seed in seeds]
    return float(np.mean([simulate.score(each, simulate.run(each)) for each in seeded]))


def main(arguments: list[str] | None = None) -> int:
    """Prints a row of a Markdown table per rule."""
    parser = argparse.ArgumentParser(prog="python -m testbed.ablation", description=__doc__.splitlines()[0])
    parser.add_argument("rules", nargs="*", help="rules to switch off; all if none is named")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each scenario")
    asked = parser.parse_args(arguments)
    unknown = sorted(set(asked.rules) - set(RULES))
    if unknown:
        parser.error(f"there is no such rule; there are {', '.join(RULES)}. Given: {unknown!r}")
    seeds = range(1, 1 + asked.seeds)
    every = scores(seeds)
    print("| rule | what it does | worth on average | worth most |\n|---|---|---|---|")
    for name in asked.rules or RULES:
        with without([name]):
            found = scores(seeds)
        lost = {scenario: 1 - found[scenario] / every[scenario] for scenario in every}
        worst = sorted(lost, key=lost.__getitem__, reverse=True)[:2]
        most = ", ".join(f"{lost[scenario]:.0%} in `{scenario}`" for scenario in worst)
        print(f"| {name} | {RULES[name].meaning} | {np.mean(list(lost.values())):.1%} | {most} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
