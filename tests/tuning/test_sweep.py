"""What the sweep tries, keeps and leaves, with trials of a queue that is computed rather than run: their time is the
sweep's own clock, and their figures depend on the settings alone."""

from dataclasses import dataclass, field, replace
from random import Random

import pytest

from pystorm_source.clock import ManualClock
from pystorm_source.errors import OptionError
from pystorm_source.plan import compile_plan
from pystorm_source.records.record import ComponentProgress, Counts, Latency
from pystorm_source.tuning.observed import Observed
from pystorm_source.tuning.page import changes_of
from pystorm_source.tuning.proposals import PENDING, frontier
from pystorm_source.tuning.settings import Settings
from pystorm_source.tuning.sweep import Sweep
from pystorm_source.tuning.trial import Trial
from tests.tuning.planted import FewOpenTrees

ANSWER = 0.005
MOST = 2_000.0


@dataclass
class Computed:
    """A service that answers in 5 ms, asked by a bolt that can do 2,000 a second; every trial takes its time."""

    clock: ManualClock
    noise: float = 0.0
    asked: list[Settings] = field(default_factory=list)
    chance: Random = field(default_factory=lambda: Random(5))

    def __call__(self, settings, seconds, rate=0.0):
        self.clock.advance(seconds)
        self.asked.append(settings)
        pending = {**dict(FewOpenTrees.config), **dict(settings.keys)}[PENDING] or 1 << 20
        done = min(MOST, pending / ANSWER) * (1 + self.noise * self.chance.uniform(-1, 1))
        tuples = int(done * seconds)
        spout = ComponentProgress(name="numbers", kind="spout", stalls={"max_spout_pending": 1 - done / MOST})
        bolt = ComponentProgress(
            name="asks",
            batch=Counts(executed=tuples),
            execute=Latency(count=tuples, mean=1 / MOST),
            capacity=min(1.0, done / MOST),
            queue_capacity=1024,
        )
        seen = Observed(
            components=(spout, bolt), seconds=seconds, cores=1, tuples=tuples, scheduler="inline", partitions=(1,)
        )
        return Trial(settings, tuples, seconds, open_trees=pending, observed=seen)

    def profile(self, settings, seconds):
        self.clock.advance(seconds)
        return {"numbers": 1.0, "asks": 1.0}


def swept(seed=0, seconds=60.0, noise=0.0, goal="throughput", runner=None):
    clock = ManualClock()
    runner = runner or Computed(clock, noise)
    runner.clock = clock
    outcome = Sweep(compile_plan(FewOpenTrees), runner, clock, seconds, seed, goal)()
    return outcome, runner, clock


def test_the_bound_that_littles_law_asks_for_is_found_and_kept():
    outcome, _, _ = swept()
    assert [step.proposal.finding.cause for step in outcome.steps] == ["few open trees"]
    bound = dict(outcome.settings.keys)[PENDING]
    assert bound is None or bound >= MOST * ANSWER
    assert outcome.gain == pytest.approx(MOST / (2 / ANSWER), rel=0.01)
    assert [change.name for change in changes_of(outcome)] == [PENDING]


def test_the_same_seed_tries_the_same():
    assert swept(seed=4)[1].asked == swept(seed=4)[1].asked


def test_it_stops_at_its_time_limit():
    for seconds in (10.0, 20.0, 60.0):
        _, _, clock = swept(seconds=seconds)
        assert clock.now - ManualClock().now <= seconds


def test_noise_alone_is_not_kept():
    """Only the pending bound gains anything; 3 % of noise must not make another setting a gain."""
    for seed in range(5):
        outcome, _, _ = swept(seed=seed, noise=0.03)
        assert {key for key, _ in outcome.settings.keys} == {PENDING}


def test_what_does_not_gain_again_is_given_up():
    """A machine on which every trial is slower than the one before: whatever is tried last seems best the other way."""

    class Drifting(Computed):
        def __call__(self, settings, seconds, rate=0.0):
            trial = super().__call__(settings, seconds, rate)
            if settings.keys and len(self.asked) > 8:
                trial.tuples //= 1000
            return trial

    outcome, _, _ = swept(seconds=20.0, runner=Drifting(ManualClock()))
    assert (outcome.steps, outcome.gain, outcome.settings) == ([], 1.0, Settings())


def test_settings_that_contradict_each_other_are_passed_over():
    class Refusing(Computed):
        def __call__(self, settings, seconds, rate=0.0):
            if dict(settings.keys).get("topology.producer.batch.size"):
                raise OptionError("refused. Given: it", code="PYSTORM_INVALID_OPTION")
            return super().__call__(settings, seconds, rate)

    outcome, _, _ = swept(runner=Refusing(ManualClock()))
    assert outcome.steps


def test_the_frontier_is_what_nothing_is_better_than_in_both():
    points = {(100.0, 5.0), (90.0, 1.0), (80.0, 2.0), (100.0, 6.0), (10.0, 0.5)}
    assert frontier(points) == {(100.0, 5.0), (90.0, 1.0), (10.0, 0.5)}


def test_a_goal_of_latency_keeps_the_throughput():
    outcome, _, _ = swept(goal="latency")
    best = replace(outcome).best
    assert best.rate >= 0.9 * outcome.base.rate
    assert best.latency <= outcome.base.latency


def test_tasks_are_numbered_anew_and_a_key_of_none_is_the_default():
    plan = compile_plan(FewOpenTrees)
    applied = Settings().with_keys({PENDING: None}).with_pars({"asks": 3}).applied(plan)
    assert applied.options.max_spout_pending is None
    assert sorted(task for component in applied.components for task in component.tasks) == [1, 2, 3, 4]
    assert len(applied.component("asks").tasks) == 3
    assert plan.options.max_spout_pending == 2
