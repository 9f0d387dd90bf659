"""Tries what the classification proposes, keeps what gains, and stops at its time limit.

    observe ─► findings ─► proposals ─► a trial each ─► the best against what is, in pairs ─► kept ─► observe again

Its choices depend only on the trials and the seed. The seed decides the order within pairs, so that neither side always
gets the warmer machine.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from statistics import median
from typing import Literal, Protocol

from pystorm_source.clock import Clock
from pystorm_source.errors import OptionError, TopologyError
from pystorm_source.plan.plan import Plan
from pystorm_source.tuning.classify import WAITS, Finding, findings
from pystorm_source.tuning.observed import Observed
from pystorm_source.tuning.proposals import Proposal, Tried, frontier, proposals
from pystorm_source.tuning.settings import Settings
from pystorm_source.tuning.trial import Trial

Goal = Literal["throughput", "latency"]

WORTH = 1.03
"""Least gain of a change that is kept. Less: noise is kept. More: small gains that add up are lost."""
PROMISING = 1.02
"""A setting that gains so much in SCREENING pairs gets CONFIRMING pairs, or as few as one if time is short."""
NEAR = 0.96
"""A setting that seems to lose no more than this may gain: it is measured again if time is left."""
CLEAR, HOPELESS = 1.5, 0.5
"""Gains that one pair proves: enough to keep the setting, or to drop it."""
PLAIN = 1.15
"""Least gain if there is time for only a few pairs."""
KEEPS = 0.9
"""Share of the throughput that a change for latency must keep."""
SCREENING, CONFIRMING, VERIFYING = 3, 9, 5
"""Pairs. Many short ones, because a machine's speed changes from second to second. More: they detect smaller gains, but
fewer settings are tried."""
LONG, SHORT = 1 / 60, 1 / 150
"""Shares of the time for a trial: short if FAST tuples pass in it, otherwise long."""
FAST = 2_000
LEAST_SECONDS, MOST_SECONDS = 0.3, 2.0


class Runner(Protocol):
    """Runs trials."""

    def __call__(self, settings: Settings, seconds: float, rate: float = 0.0) -> Trial: ...

    def profile(self, settings: Settings, seconds: float) -> Mapping[str, float]: ...


@dataclass(frozen=True)
class Step:
    """A change that was kept. ``gain``: how many times better than before, by the goal."""

    proposal: Proposal
    gain: float
    before: Trial
    after: Trial


@dataclass
class Outcome:
    """``observed``: before any change; ``tuned``: with all changes. ``steps``: changes that were kept, in order;
    ``gain``: of all changes together, measured once more in pairs. ``named``: findings, the ones proven by a change
    first. ``tried``: what each proposal gained, kept or not. ``out_of_time``: proposals that were not tried."""

    base: Trial
    best: Trial
    observed: Observed
    tuned: Observed
    steps: list[Step] = field(default_factory=list)
    named: list[Finding] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    tried: list[Tried] = field(default_factory=list)
    gain: float = 1.0
    out_of_time: int = 0

    @property
    def settings(self) -> Settings:
        """All changes."""
        return self.best.settings

    @property
    def refuted(self) -> list[Tried]:
        """Tried proposals of components without a kept change or a plain gain, which may only have lacked time to be
        confirmed."""
        kept = {step.proposal.finding.component for step in self.steps}
        plain = {each.proposal.finding.component for each in self.tried if each.gain >= PLAIN}
        return [each for each in self.tried if each.proposal.finding.component not in kept | plain]

    @property
    def spread(self) -> float:
        """How much trials of the same settings differ, (most - least) / median: the largest over settings with at least
        three trials."""
        rates: dict[Settings, list[float]] = {}
        for trial in self.trials:
            rates.setdefault(trial.settings, []).append(trial.rate_alone if trial.is_inline else trial.rate)
        several = [each for each in rates.values() if len(each) >= 3 and median(each) > 0]
        return max(((max(each) - min(each)) / median(each) for each in several), default=0.0)

    def points(self) -> list[tuple[Trial, bool]]:
        """Returns, best first, one trial per settings, with median rate and latency, and whether it is on the frontier:
        no other one is better in both."""
        by_settings: dict[Settings, list[Trial]] = {}
        for trial in self.trials:
            by_settings.setdefault(trial.settings, []).append(trial)
        united = [_united(settings, trials) for settings, trials in by_settings.items()]
        best = frontier((each.rate, each.latency) for each in united)
        return [(each, (each.rate, each.latency) in best) for each in sorted(united, key=lambda each: -each.rate)]


@dataclass
class Sweep:
    """``seconds``: for the entire sweep. ``notes``: called with a line for each thing done."""

    plan: Plan
    run: Runner
    clock: Clock
    seconds: float = 60.0
    seed: int = 0
    goal: Goal = "throughput"
    notes: Callable[[str], None] = lambda line: None

    def __call__(self) -> Outcome:
        """Blocking, until nothing more gains or time is up. Raises TupleFailed if a component fails, TopologyError
        without any tuple."""
        self._deadline = self.clock.monotonic() + self.seconds
        self._trial_seconds = min(MOST_SECONDS, max(LEAST_SECONDS, self.seconds * LONG))
        self._chance = Random(self.seed)
        self._trials: list[Trial] = []
        self._rates: dict[Settings, float] = {}
        nothing = Settings()
        self.notes("which calls compute, and which wait")
        self._cpu_share = dict(self.run.profile(nothing, self._trial_seconds))
        base = self._trial(nothing, 0.0)
        if not base.tuples and not any(spout.batch.emitted for spout in self._seen(base).spouts):
            raise _without_tuples(self.plan)
        outcome = Outcome(base, base, self._seen(base), self._seen(base))
        short = min(1.0, max(LEAST_SECONDS, self.seconds * SHORT))
        if base.rate * short >= FAST:
            self._trial_seconds = short
        tried: set[Settings] = set()
        proven: list[Finding] = []
        while step := self._improved(outcome, tried):
            outcome.steps.append(step)
            outcome.best, outcome.tuned = step.after, self._seen(step.after)
            proven.append(step.proposal.finding)
        first = findings(outcome.observed)
        outcome.named = list(dict.fromkeys([*proven, *first]))
        if outcome.steps:
            self._verify(outcome)
        outcome.trials = self._trials
        return outcome

    def _seen(self, trial: Trial) -> Observed:
        assert trial.observed is not None
        return replace(trial.observed, cpu_share=self._cpu_share)

    def _improved(self, outcome: Outcome, tried: set[Settings]) -> Step | None:
        """Returns the next change to keep, trying the largest findings first. If no change gains enough and time is
        left, measures again the ones that nearly did."""
        best = outcome.best
        observed = self._seen(best)
        plan = best.settings.applied(self.plan)
        near: list[tuple[float, Proposal]] = []
        for finding in findings(observed):
            promising: list[tuple[float, Proposal]] = []
            for proposal in proposals(finding, observed, plan):
                settings = best.settings.plus(proposal.change)
                if settings in tried or settings == best.settings:
                    continue
                if not self._has_time(2 * (SCREENING + VERIFYING)):
                    outcome.out_of_time += 1
                    continue
                tried.add(settings)
                gain, pairs = self._screened(best, settings)
                if pairs:
                    before, after = (_typical([pair[side] for pair in pairs]).rate for side in (0, 1))
                    waits = self._cpu_share.get(finding.component, 1.0) < WAITS
                    outcome.tried.append(Tried(proposal, gain, before, after, waits))
                (promising if gain >= PROMISING else near).append((gain, proposal))
                if gain >= 4:  # the others are smaller steps in the same direction
                    break
            for _, proposal in sorted(promising, key=lambda each: -each[0])[:2]:
                if step := self._confirmed(best, proposal):
                    return step
        for gain, proposal in sorted(near, key=lambda each: -each[0]):
            if gain < NEAR or not self._has_time(2 * (CONFIRMING + VERIFYING)):
                break
            if step := self._confirmed(best, proposal):
                return step
        return None

    def _screened(self, best: Trial, settings: Settings) -> tuple[float, list[tuple[Trial, Trial]]]:
        """Measures the gain in a few pairs, or in one if that is enough."""
        try:
            pairs = self._pairs(best.settings, settings, best.rate, SCREENING)
        except OptionError as error:  # settings that contradict each other
            self.notes(f"  {settings}: {error.message.splitlines()[0]}")
            return 0.0, []
        return median(self._gain(before, after) for before, after in pairs), pairs

    def _confirmed(self, best: Trial, proposal: Proposal) -> Step | None:
        settings = best.settings.plus(proposal.change)
        pairs = self._pairs(best.settings, settings, best.rate, CONFIRMING)
        gains = [self._gain(before, after) for before, after in pairs]
        lost = sum(each <= 1.0 for each in gains)
        asked = WORTH if len(gains) > CONFIRMING // 2 else PLAIN
        if median(gains) < asked or lost > len(gains) // 3:
            return None
        before, after = (_typical([pair[side] for pair in pairs]) for side in (0, 1))
        self.notes(f"kept: {proposal.change}, {median(gains):.2f} times as good")
        return Step(proposal, median(gains), before, after)

    def _verify(self, outcome: Outcome) -> None:
        """Measures all changes together against no change: what was kept by chance does not gain again."""
        pairs = self._pairs(Settings(), outcome.settings, outcome.best.rate, VERIFYING, is_last=True)
        outcome.gain = median(self._gain(before, after) for before, after in pairs)
        if outcome.gain < PROMISING:
            self.notes(f"not confirmed: {outcome.settings}, {outcome.gain:.2f} times as good in pairs")
            outcome.steps, outcome.gain = [], 1.0
            outcome.best, outcome.tuned = outcome.base, outcome.observed
            outcome.named = findings(outcome.observed)
        elif len(outcome.steps) == 1:
            outcome.steps = [replace(outcome.steps[0], gain=outcome.gain)]

    def _pairs(
        self, one: Settings, two: Settings, rate: float, pairs: int, is_last: bool = False
    ) -> list[tuple[Trial, Trial]]:
        """Runs trials of both in random order, pair by pair; stops early if the first is clear or time is up."""
        made: list[tuple[Trial, Trial]] = []
        reserved = 0 if is_last else 2 * VERIFYING
        while len(made) < pairs and (not made or self._has_time(2 + reserved)):
            first_is_one = self._chance.random() < 0.5
            trials = [self._trial(each, rate) for each in ((one, two) if first_is_one else (two, one))]
            made.append((trials[0], trials[1]) if first_is_one else (trials[1], trials[0]))
            if not is_last and len(made) == 1 and not HOPELESS < self._gain(*made[0]) < CLEAR:
                break
        return made

    def _trial(self, settings: Settings, rate: float) -> Trial:
        """``rate``: of the best settings so far: others may be slower, and a range that is too long cannot be cut."""
        trial = self.run(settings, self._trial_seconds, self._rates.get(settings, rate / 8))
        self._rates[settings] = trial.peak
        self._trials.append(trial)
        left = max(0.0, self._deadline - self.clock.monotonic())
        self.notes(f"  {left:3.0f} s left: {settings}: {trial.rate:,.0f} tuples/s, {trial.latency * 1e3:,.2f} ms")
        return trial

    def _has_time(self, trials: int) -> bool:
        return self.clock.monotonic() + trials * self._trial_seconds * 1.1 <= self._deadline

    def _gain(self, before: Trial, after: Trial) -> float:
        """Returns how many times better ``after`` is. For latency: 0.0 if it costs too much throughput."""
        one, two = before.rate, after.rate
        if before.is_inline and after.is_inline:
            one, two = before.rate_alone, after.rate_alone
        faster = two / one if one > 0 else 1.0
        if self.goal == "throughput":
            return faster
        return before.latency / after.latency if after.latency > 0 and faster >= KEEPS else 0.0


def _without_tuples(plan: Plan) -> TopologyError:
    return TopologyError(
        f"no tuple came from {', '.join(repr(spout.name) for spout in plan.spouts)}, so nothing could be measured: see "
        "that the source has data, by pystorm-source run, or give its options by -o. Given: "
        f"topology {plan.name!r}",
        code="PYSTORM_INVALID_ARGUMENT",
    )


def _typical(trials: Iterable[Trial]) -> Trial:
    """Returns the trial with the median rate."""
    ordered = sorted(trials, key=lambda trial: trial.rate)
    return ordered[len(ordered) // 2]


def _united(settings: Settings, trials: list[Trial]) -> Trial:
    rate = median(trial.rate for trial in trials)
    open_trees = median(trial.latency for trial in trials) * rate
    return Trial(settings, round(rate * 1000), 1000.0, open_trees=open_trees)
