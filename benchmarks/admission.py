"""The controller in the simulation of ``benchmarks.simulate``: how soon it follows a change, and who pays for whom.

step-N              capacity by four up, down to a quarter, with N partitions: micro-batches until three in a row
                    are within a fifth of the target, and by how much those exceed it that knew of the change
slow-one            one of 16 partitions 50 times slower: offsets/s of the other 15 afterwards, by those before
wave                capacity up and down by four: 95th percentile of micro-batch times by the target, goodput
lost, lying         half of the reports are lost, one task of 16 claims to take no time: the same percentile
control-N           milliseconds per micro-batch that the controller takes for N partitions
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.ladder import Settings
from benchmarks.record import Record, record
from benchmarks.simulate import Run, Scenario, figures, scenarios
from benchmarks.simulate import run as play

SETTLED, OVERSHOOT, OTHERS, LATE = 5, 0.25, 0.95, 1.25
SLOW_SINCE = 20.0


def run(settings: Settings) -> Iterator[Record]:
    """Each scenario with several seeds; the worst of them counts for steps, the median else."""
    known = {scenario.name: scenario for scenario in scenarios()}
    seeds = range(1, 1 + settings.runs_of(5))
    for name in ("step-2", "step-16", "step-300"):
        if settings.wants(name):
            told = [figures(scenario, play(scenario)) for scenario in _seeded(known[name], seeds)]
            batches, beyond = [each["settled"][1] for each in told], [each["overshoot"] for each in told]
            yield record("admission", name, [max(batches)], "micro-batches", asked=SETTLED, less_is_better=True)
            yield record(
                "admission", f"{name}-overshoot", [max(beyond)], "targets", asked=OVERSHOOT, less_is_better=True
            )
    if settings.wants("slow-one"):
        kept = [_others(play(scenario)) for scenario in _seeded(known["slow-one"], seeds)]
        yield record("admission", "slow-one", kept, "rate of the others", asked=OTHERS)
    for case, name in {"wave": "sine", "lost": "lost-half", "lying": "lying-quick"}.items():
        if settings.wants(case):
            told = [figures(scenario, play(scenario)) for scenario in _seeded(known[name], seeds)]
            late = [each["late"] for each in told]
            yield record("admission", f"{case}-p95", late, "targets", asked=LATE, less_is_better=True)
            yield record("admission", f"{case}-goodput", [each["goodput"] for each in told], "capacity")
    for name in ("10-000", "100-000"):
        if settings.wants(f"control-{name}"):
            seen = play(replace(known[name], seconds=5.0 if settings.quick else known[name].seconds))
            millis = [1000 * seconds for seconds in seen.control]
            yield record("admission", f"control-{name}", millis, "ms", less_is_better=True)


def _seeded(scenario: Scenario, seeds: range) -> Iterator[Scenario]:
    for seed in seeds:
        yield replace(scenario, seed=seed)


def _others(seen: Run) -> float:
    """Offsets per second of all partitions but number 3, from the third micro-batch on that began when it was slow, by
    those before."""
    planned, took, read = np.array(seen.planned), np.array(seen.took), np.array(seen.read)
    others = np.delete(read, 3, axis=1).sum(axis=1)
    before = (planned > 2) & (planned + took < SLOW_SINCE)
    after = planned >= planned[planned >= SLOW_SINCE][2]
    return float(others[after].sum() / took[after].sum() / (others[before].sum() / took[before].sum()))
