"""Bottlenecks outside of components, planted in simulated queries under the source's own admission controller: `tune`
names them from the records, and its advice, applied, gains what it promised within 30 %."""

from dataclasses import replace

import numpy as np
import pytest
from msgspec.structs import replace as replace_in

from pystorm_source.records.record import ComponentProgress, Counts, PystormProgress, TaskProgress, TopologyProgress
from pystorm_source.tuning.advice import modelled
from pystorm_source.tuning.classify import findings
from pystorm_source.tuning.from_records import observed_of
from testbed.scenarios import ENDLESS, Scenario, constant
from testbed.simulate import run

EVEN = np.full(8, 5_000.0)
PROMISED = 0.3


def records(seen, capacity=0.05):
    """What a query's runner notes of such micro-batches."""
    made = []
    for number, (took, read, work) in enumerate(zip(seen.took, seen.read, seen.work, strict=True)):
        rows = int(read.sum())
        spout = ComponentProgress(name="spout", kind="spout", batch=Counts(emitted=rows, executed=rows))
        bolt = ComponentProgress(name="bolt", batch=Counts(executed=rows), capacity=capacity)
        made.append(
            PystormProgress(
                seconds=took,
                rows=rows,
                backlog=1_000_000,
                reason="rate",
                target=seen.targets[number],
                tasks=TaskProgress(ranges=int((work > 0).sum()), rows=rows, offsets=rows, longest=float(work.max())),
                topology=TopologyProgress(batch=number, seconds=float(work.sum()), components=(spout, bolt)),
            )
        )
    return made


def rate(seen):
    """Rows a second, once it has settled."""
    return sum(int(read.sum()) for read in seen.read[5:]) / sum(seen.took[5:])


def advised(scenario, cause):
    seen = run(scenario)
    observed = observed_of(records(seen), scenario.slots)
    found = findings(observed)
    assert found and found[0].cause == cause
    (advice,) = modelled(found[:1], observed)
    return advice, rate(seen)


def within(promised, gained):
    return abs(gained / promised - 1) <= PROMISED


@pytest.mark.parametrize("fixed", [0.2, 0.5, 2.0])
def test_a_fixed_cost_is_named_and_the_target_that_is_advised_gains_what_it_promises(fixed):
    scenario = Scenario("fixed", 8, 2, constant(EVEN), seconds=200.0, batch_cost=fixed)
    advice, before = advised(scenario, "fixed cost of micro-batches")
    key, millis = advice.option
    assert key == "batch.target.millis"
    after = rate(run(replace(scenario, target=millis / 1000, seconds=40 * millis / 1000)))
    assert within(advice.gain, after / before), (advice, after / before)


@pytest.mark.parametrize("downstream", [0.5, 3.0])
def test_a_slow_sink_is_named_and_a_quicker_one_gains_what_was_promised(downstream):
    """Micro-batches of two sizes, as of a query whose target was changed: they tell a sink from a fixed cost."""
    scenario = Scenario("sink", 8, 2, constant(EVEN), seconds=25.0, downstream=downstream, batch_cost=0.02)
    small, large = run(scenario), run(replace(scenario, target=3.0, seconds=75.0))
    observed = observed_of(renumbered([*records(small), *records(large)]), scenario.slots)
    finding = findings(observed)[0]
    assert finding.cause == "slow sink"
    (advice,) = modelled([finding], observed)
    gained = rate(run(replace(scenario, downstream=downstream / 2))) / rate(small)
    assert within(advice.gain, gained), (advice, gained)


def renumbered(all_records):
    return [
        replace_in(record, topology=replace_in(record.topology, batch=number))
        for number, record in enumerate(all_records)
    ]


def test_a_sink_that_takes_most_of_the_time_is_named_before_the_bolt_that_is_busy_in_the_rest():
    scenario = Scenario("sink", 8, 2, constant(EVEN), seconds=25.0, downstream=3.0, batch_cost=0.02)
    both = [*records(run(scenario), 0.95), *records(run(replace(scenario, target=3.0, seconds=75.0)), 0.95)]
    found = findings(observed_of(renumbered(both), scenario.slots))
    assert [each.about for each in found[:2]] == ["slow sink", "slow bolt 'bolt'"]
    assert sum(each.share for each in found) <= 1.01


def test_few_tasks_are_named_and_more_of_them_gain_what_was_promised():
    advice, before = advised(Scenario("one", 1, 4, constant(EVEN[:1]), seconds=100.0), "few tasks")
    assert advice.option[0] == "minPartitions"
    cut = advice.option[1]
    after = rate(run(Scenario("cut", cut, 4, constant(np.full(cut, 5_000.0)), seconds=100.0)))
    assert within(advice.gain, after / before), (advice, after / before)


def test_a_skewed_partition_is_named_and_cutting_it_gains_what_was_promised():
    """One of four partitions always has more, the others have little."""

    def skewed(large, little):
        waiting = np.array([ENDLESS] * large + [0] * little)
        arriving = np.where(waiting > 0, 0.0, 100.0)
        rates = constant(np.full(large + little, 5_000.0))
        return Scenario("skewed", large + little, 4, rates, seconds=100.0, waiting=waiting, arriving=arriving)

    advice, before = advised(skewed(1, 3), "skewed partition")
    key, parts = advice.option
    assert key == "minPartitions"
    gained = rate(run(skewed(parts - 3, 3))) / before
    assert within(advice.gain, gained), (advice, gained)


def test_a_query_that_keeps_up_has_no_finding():
    seen = run(Scenario("idle", 8, 2, constant(EVEN), seconds=60.0, batch_cost=0.5))
    caught_up = [replace_in(record, backlog=0) for record in records(seen)]
    assert findings(observed_of(caught_up, 2)) == []
