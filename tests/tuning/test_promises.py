"""What `tune` may promise: nothing of what a limit holds, nothing that its trials have refuted."""

import re
import resource
from contextlib import contextmanager
from dataclasses import replace
from random import Random

import pytest
from msgspec import structs

from pystorm_source.clock import SystemClock
from pystorm_source.errors import TopologyError
from pystorm_source.plan import compile_plan
from pystorm_source.tuning.advice import modelled
from pystorm_source.tuning.classify import Finding, findings, load_of
from pystorm_source.tuning.machine import open_files
from pystorm_source.tuning.model import bend_of
from pystorm_source.tuning.observed import MicroBatch, Observed
from pystorm_source.tuning.page import written
from pystorm_source.tuning.proposals import proposals
from pystorm_source.tuning.settings import Settings
from pystorm_source.tuning.sweep import Sweep
from pystorm_source.tuning.trial import TrialRunner
from tests.tuning import planted


def swept(topology, seconds=8.0):
    plan = compile_plan(topology)
    return Sweep(plan, TrialRunner(plan, cores=2), SystemClock(), seconds=seconds, seed=3)()


def observed(topology, seconds=0.5):
    return TrialRunner(compile_plan(topology), cores=2)(Settings(), seconds).observed


@pytest.mark.parametrize("topology", [planted.Limited, planted.LimitedAsync])
def test_a_limit_is_named_and_nothing_behind_it_is_scaled(topology):
    seen = replace(observed(topology), cpu_share={"asks": 0.01}, partitions=(1_000, 10))
    found = findings(seen)
    assert [(each.cause, each.component) for each in found] == [("rate limit", "asks")]
    assert "permits of 'prices', 50/s" in found[0].why
    assert load_of(seen.component("asks"), seen).kind == "held back"
    assert proposals(found[0], seen, compile_plan(topology)) == []
    (advice,) = modelled(found, seen)
    assert advice.gain is None
    assert "only the value of topology.rate.limit, 'prices': 50/s" in advice.change


@pytest.mark.parametrize(
    ("topology", "waits", "said"),
    [
        (planted.Limited, 0.2, "more tasks share the same calls: 20% of the time"),
        (planted.NoMore, None, "more tasks have no more rows: "),
    ],
)
def test_more_tasks_promise_nothing_if_a_limit_or_the_source_holds_back(topology, waits, said):
    """Also if the limit holds for a small part of the time only: how small it stays, nobody has tried."""
    seen = replace(observed(topology), partitions=(1_000, 10), cpu_share={})
    if waits is not None:
        seen = replace(seen, limits=tuple(structs.replace(each, waits=waits, paused=0.0) for each in seen.limits))
    found = [*findings(seen), Finding("few tasks", "", 0.4, "1 partition, 2 cores")]
    (advice,) = [each for each in modelled(found, seen) if each.finding.cause == "few tasks"]
    assert advice.gain is None
    assert advice.promise == "no gain is computed"
    assert advice.arithmetic.startswith(said)


def test_a_gain_of_more_tasks_that_nothing_contradicts_is_said_to_be_untried():
    seen = replace(observed(planted.SlowBoltInC), partitions=(1_000,), cores=2)
    (advice,) = [each for each in modelled(findings(seen), seen) if each.finding.cause == "few tasks"]
    assert advice.promise == "computed, not tried: 2.00 times, if tasks take most of the time"


def test_what_the_trials_refuted_is_not_promised():
    """More tasks are no faster: 300 → 290 → 280 tuples/s. Half as long calls, or more partitions, are no advice."""
    outcome = swept(planted.Saturated, 12)
    assert [each for each in outcome.tried if each.proposal.change.pars], outcome.tried
    assert outcome.steps == []
    advice = modelled(findings(outcome.tuned), outcome.tuned, outcome.refuted)
    assert [each.gain for each in advice] == [None]
    assert "More calls at a time do not help" in advice[0].change
    assert re.search(r"\d+ → \d+.* tuples/s measured with 1, ", advice[0].arithmetic)
    text = written("T", outcome, advice)
    assert "Computed" not in text
    assert "No gain is computed" in text


def test_larger_batches_of_the_dearest_operation_are_found():
    """10 tuples in 3.03 ms are 3,300 a second; from 1,000 on the batch costs nearly nothing."""
    outcome = swept(planted.SmallBatches, 12)
    assert outcome.steps[0].proposal.finding.cause == "small batches"
    assert dict(outcome.settings.batches)["stores"] >= 160
    assert outcome.gain >= 5
    assert "# In the class of stores: tuples_between_batches = " in written("T", outcome, [])


@contextmanager
def files(most):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_open_files_are_the_bound_and_more_gain_what_is_promised():
    def best():
        """Of three: as many files as are open are the bound only while the machine has time for the calls."""
        return max((observed(planted.FewFiles, 1.0) for _ in range(3)), key=lambda each: each.rate)

    with files(open_files() + 24):
        seen = best()
    (found,) = [each for each in findings(seen) if each.cause == "few open files"]
    (advice,) = modelled([found], seen)
    assert "ulimit -n" in advice.change
    more = best()
    assert more.rate / seen.rate == pytest.approx(advice.gain, rel=0.3)


def sink(rows):
    """Three regimes: flat, slowly growing, and from 5,000 rows on twenty-five times as steep."""
    return max(0.2, 0.18 + 2e-5 * min(rows, 5_000)) + 5e-4 * max(0, rows - 5_000)


def micro_batches(sizes, chance):
    for rows in sizes:
        tasks = rows * 1e-4 / 2
        outside = sink(rows) * chance.uniform(0.95, 1.05)
        yield MicroBatch(tasks + outside, rows, 2 * tasks, tasks, 2, elapsed=tasks)


@pytest.mark.parametrize("seed", range(5))
def test_a_sink_in_its_third_regime_gets_smaller_micro_batches(seed):
    chance = Random(seed)
    batches = tuple(micro_batches([chance.randrange(2_000, 12_000) for _ in range(40)], chance))
    seen = Observed(components=(), seconds=1.0, cores=2, micro_batches=batches, backlog=9_999)
    found = next(each for each in findings(seen) if each.cause == "overwhelmed sink")
    (advice,) = modelled([found], seen)
    key, rows = advice.option
    assert key == "maxOffsetsPerTrigger"
    assert 3_500 <= rows <= 5_500
    now = sum(each.rows for each in batches) / sum(each.seconds for each in batches)
    gained = rows / (rows * 1e-4 / 2 + sink(rows)) / now
    assert advice.gain == pytest.approx(gained, rel=0.3)


@pytest.mark.parametrize("seed", range(5))
def test_a_sink_that_grows_evenly_is_not_overwhelmed(seed):
    chance = Random(seed)
    sizes = [chance.randrange(2_000, 12_000) for _ in range(40)]
    assert bend_of(sizes, [(0.3 + 4e-5 * rows) * chance.uniform(0.8, 1.2) for rows in sizes]) is None


def test_without_a_tuple_it_is_an_error():
    with pytest.raises(TopologyError, match="no tuple came from 'numbers'"):
        swept(planted.NoTuples)
