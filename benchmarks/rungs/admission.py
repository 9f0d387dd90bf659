"""The controller in the simulation of ``testbed.simulate``: how soon it follows a change, and at what cost.

step-N              capacity times four, then down to a quarter, with N partitions: micro-batches until three in a row
                    are within a fifth of the target, and by how much later ones planned after the change exceed it
slow-one            one of 16 partitions 50 times slower: offsets/s of the other 15 afterwards, relative to before
wave                capacity up and down by four: 95th percentile of micro-batch times over the target, goodput
lost, lying         half of the reports are lost; one task of 16 claims to take no time: the same percentile
fixed-N             a micro-batch costs N seconds besides its tasks, the target is one second: work done, divided by the
                    work that the slots could have done in the time of all micro-batches (wall time x slots x rate)
first-batch         the first micro-batch of a bolt of 5 ms per tuple, less the start of processes, over the target
quick, quick-endless  a query of five million rows per second: rows read in its first 30 seconds, relative to reading
                    without limits
control-N           milliseconds per micro-batch that the controller takes for N partitions
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import Record, record
from testbed.scenarios import Scenario, scenarios
from testbed.simulate import Run, figures
from testbed.simulate import run as play

SETTLED, OVERSHOOT, OTHERS, LATE = 5, 0.25, 0.95, 1.25
GOODPUT, FIRST, QUICK = 0.45, 2.0, 0.9
SLOW_SINCE = 20.0
FIRST_SECONDS = 30.0


def run(settings: Settings) -> Iterator[Record]:
    """Plays each scenario with several seeds; the worst counts for steps, otherwise the median."""
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
            yield record("admission", f"{case}-goodput", [each["busy"] for each in told], "capacity")
    for name in ("fixed-1", "fixed-2", "fixed-5"):
        if settings.wants(name):
            goodput = [figures(scenario, play(scenario))["goodput"] for scenario in _seeded(known[name], seeds)]
            yield record("admission", name, goodput, "capacity", asked=GOODPUT)
    if settings.wants("first-batch"):
        first = [play(scenario).took[0] - scenario.cold for scenario in _seeded(known["bolt-5ms"], seeds)]
        yield record("admission", "first-batch", first, "targets", asked=FIRST, less_is_better=True)
    for name in ("quick", "quick-endless"):
        if settings.wants(name):
            shares = [
                play(scenario).rows_within(FIRST_SECONDS) / play(scenario, limited=False).rows_within(FIRST_SECONDS)
                for scenario in _seeded(known[name], seeds)
            ]
            yield record("admission", name, shares, "rows without limits", asked=QUICK)
    for name in ("10-000", "100-000"):
        if settings.wants(f"control-{name}"):
            seen = play(replace(known[name], seconds=5.0 if settings.quick else known[name].seconds))
            millis = [1000 * seconds for seconds in seen.control]
            yield record("admission", f"control-{name}", millis, "ms", less_is_better=True)


def _seeded(scenario: Scenario, seeds: range) -> Iterator[Scenario]:
    for seed in seeds:
        yield replace(scenario, seed=seed)


def _others(seen: Run) -> float:
    """Returns the offsets per second of all partitions except number 3, from the third micro-batch of its slow time on,
    relative to before."""
    planned, took, read = np.array(seen.planned), np.array(seen.took), np.array(seen.read)
    others = np.delete(read, 3, axis=1).sum(axis=1)
    before = (planned > 2) & (planned + took < SLOW_SINCE)
    after = planned >= planned[planned >= SLOW_SINCE][2]
    return float(others[after].sum() / took[after].sum() / (others[before].sum() / took[before].sum()))
