"""What `tune` says of ``processes=``: each sentence, in a run in which it is true and in one in which it is not."""

import functools
import os
from dataclasses import replace

import pytest

from pystorm_source.plan import compile_plan
from pystorm_source.tuning.advice import modelled
from pystorm_source.tuning.classify import Finding, findings
from pystorm_source.tuning.observed import MicroBatch, Observed
from pystorm_source.tuning.page import written
from pystorm_source.tuning.proposals import Proposal, proposals
from pystorm_source.tuning.settings import Settings
from pystorm_source.tuning.sweep import Outcome, Step
from pystorm_source.tuning.trial import Trial, TrialRunner
from tests.tuning import planted

pytestmark = pytest.mark.timeout(120)
quiet = pytest.mark.quiet  # what else runs takes cores from the processes alone


@functools.cache
def observed(topology, seconds=1.0, cores=2, **settings):
    """Of one fat partition, which may be cut no further. One run for all tests."""
    runner = TrialRunner(compile_plan(topology), cores=cores)
    shares = runner.profile(Settings(), 0.5)
    seen = runner(Settings(**settings), seconds).observed
    return replace(seen, cpu_share=shares, partitions=(1_000_000,))


def advised(seen):
    return [each for each in modelled(findings(seen), seen) if "processes=" in each.change]


PLACED = {"processes": (("bolt", 1),)}


@pytest.mark.parametrize(
    ("topology", "changes", "is_said"),
    [
        (planted.Heavy, {}, True),
        (planted.Heavy, {"cores": 1}, False),
        (planted.Heavy, {"partitions": (500, 500)}, False),  # as many tasks as cores
        (planted.Light, {}, False),
        (planted.SlowBolt, {}, False),  # it waits
    ],
)
def test_a_heavy_bolt_of_one_fat_range_is_told_what_processes_gain(topology, changes, is_said):
    seen = replace(observed(topology), **changes)
    assert bool(advised(seen)) == is_said, seen
    if is_said:
        (advice,) = advised(seen)
        assert 1.2 <= advice.gain <= 2.0
        assert "processes=2 in the spec of bolt, and spark.task.cpus=2" in advice.change
        assert "minPartitions does the same" in advice.change


def test_a_bolt_that_waits_is_told_to_be_async_instead():
    seen = observed(planted.SlowBolt)
    texts = [each.change for each in modelled(findings(seen), seen)]
    assert any("an AsyncBolt" in text for text in texts)
    heavy = observed(planted.Heavy)
    assert not any("AsyncBolt" in each.change for each in modelled(findings(heavy), heavy))


def test_a_query_gains_by_the_share_of_its_micro_batches_that_tasks_take():
    """Half of each micro-batch is Spark's: twice as quick tasks make it 1.33 times as quick."""
    seen = observed(planted.Heavy)
    inside = replace(seen, micro_batches=(MicroBatch(1.0, 100, 1.0, 1.0, 1, elapsed=1.0),), backlog=9)
    half = replace(seen, micro_batches=(MicroBatch(2.0, 100, 1.0, 1.0, 1, elapsed=1.0),), backlog=9)
    (all_of_it,), (part,) = advised(inside), advised(half)
    assert part.gain == pytest.approx(2 / (1 + 1 / all_of_it.gain), rel=1e-6)


def test_a_placed_bolt_is_not_told_to_be_placed():
    assert not [each for each in advised(observed(planted.Heavy, **PLACED)) if each.gain and each.gain > 1]


@quiet
@pytest.mark.parametrize(("topology", "is_said"), [(planted.Light, True), (planted.Heavier, False)])
def test_processes_of_a_light_bolt_cost_more_than_they_give(topology, is_said):
    seen = observed(topology, **PLACED)
    found = [each for each in findings(seen) if each.cause == "costly processes"]
    assert bool(found) == is_said, seen
    if is_said:
        (advice,) = modelled(found, seen)
        assert advice.change == "bolt without processes= at this rate: they cost more than they give"
        assert observed(topology).rate > seen.rate, "and so it is"


@quiet
@pytest.mark.parametrize(("topology", "is_said"), [(planted.HeavySeldom, True), (planted.Heavier, False)])
def test_processes_that_one_thread_could_spare_are_idle(topology, is_said):
    seen = observed(topology, **PLACED)
    found = [each for each in findings(seen) if each.cause == "idle processes"]
    assert bool(found) == is_said, seen
    if is_said:
        (advice,) = modelled(found, seen)
        assert advice.gain is None
        assert observed(topology).rate == pytest.approx(seen.rate, rel=0.15), "and it is as quick without"


@quiet
def test_without_a_backlog_idle_processes_are_said_all_the_same():
    seen = replace(observed(planted.HeavySeldom, **PLACED), backlog=0)
    batches = (MicroBatch(1.0, 100, 1.0, 1.0, 1, elapsed=1.0),)
    assert [each.cause for each in findings(replace(seen, micro_batches=batches))] == ["idle processes"]


@pytest.mark.parametrize(
    ("topology", "is_tried"),
    [(planted.Heavy, True), (planted.Light, False), (planted.SlowBolt, False), (planted.HeavyAsync, False)],
)
def test_processes_are_tried_where_they_may_gain(topology, is_tried):
    seen = observed(topology)
    tried = [each.change for found in findings(seen) for each in proposals(found, seen, compile_plan(topology))]
    assert any(each.processes for each in tried) == (is_tried and (os.cpu_count() or 1) > 1)


def test_settings_with_processes_are_applied_and_written():
    settings = Settings().with_processes({"bolt": 2})
    plan = settings.applied(compile_plan(planted.Heavy))
    assert (plan.component("bolt").processes, len(plan.component("bolt").tasks)) == (2, 2)
    assert str(settings) == "bolt.processes=2"
    assert Settings().plus(settings) == settings
    before, after = Trial(Settings(), 100, 1.0), Trial(settings, 160, 1.0)
    step = Step(Proposal(Finding("slow bolt", "bolt", 0.9, "busy"), settings, "two cores"), 1.6, before, after)
    seen = Observed(components=(), seconds=1.0, cores=2)
    text = written("T", Outcome(before, after, seen, seen, steps=[step]), [])
    assert "# In the class of the topology: bolt = ....spec(..., processes=2)" in text
    assert "# When the application starts: spark.task.cpus=2" in text
