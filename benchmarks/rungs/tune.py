"""What `pystorm-source tune` finds for word count in a minute, against the best of an exhaustive sweep.

    word-count      words a second under the settings that `tune` keeps, against those that are best in the grid
    word-count-slow  the same from settings that are bad on purpose: threads, batches of one, queues of sixteen

The grid has every combination of SCHEDULERS, BATCHES, QUEUES and numbers of tasks. The best FINALISTS of one trial each
are measured again, RUNS times in turn with what `tune` has found; the peer is the one with the best median.
``seconds``: that `tune` took; ``tried`` and ``grid``: settings that each has measured.
"""

import itertools
import statistics
from collections.abc import Iterator
from typing import Any

from benchmarks.harness import components as c
from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import Record, record
from pystorm_source.api import Topology
from pystorm_source.clock import SystemClock
from pystorm_source.errors import OptionError
from pystorm_source.plan import Plan, compile_plan
from pystorm_source.tuning.settings import Settings as Tried
from pystorm_source.tuning.sweep import Sweep
from pystorm_source.tuning.trial import Trial, TrialRunner

CLOCK = SystemClock()
SECONDS = 60.0
SCHEDULERS = ("inline", "threads")
BATCHES = (1, 16, 100, 256, 512)
QUEUES = (64, 256, 1024, 4096)
TASKS = ((1, 1), (1, 2), (2, 1), (2, 2))
"""Of split and count."""
GRID_SECONDS = 0.6
FINALISTS = 6
RUNS = 7
RUN_SECONDS = 2.0
BAD = {
    "topology.scheduler": "threads",
    "topology.producer.batch.size": 1,
    "topology.executor.receive.buffer.size": 16,
}


class WordCount(Topology):
    """SentenceSpout → SplitBolt → CountBolts, by word."""

    spout = c.SentenceSpout.spec()
    split = c.SplitBolt.spec(inputs=[spout])
    last = c.CountBolt.spec(inputs={split: c.Grouping.fields("word")}, par=2)


def run(settings: Settings) -> Iterator[Record]:
    """One exhaustive sweep for both cases."""
    runner = TrialRunner(compile_plan(WordCount))
    best = finalists(runner, settings.quick) if settings.peers else []
    for case, config in (("word-count", {}), ("word-count-slow", BAD)):
        if settings.wants(case):
            yield _case(case, compile_plan(WordCount, config), best, settings)


def grid() -> Iterator[Tried]:
    """Every combination."""
    for scheduler, batch, queue, (split, last) in itertools.product(SCHEDULERS, BATCHES, QUEUES, TASKS):
        if batch <= queue // 2:
            keys: dict[str, Any] = {
                "topology.scheduler": scheduler,
                "topology.producer.batch.size": batch,
                "topology.executor.receive.buffer.size": queue,
            }
            yield Tried().with_keys(keys).with_pars({"split": split, "last": last})


def finalists(runner: TrialRunner, quick: bool) -> list[Tried]:
    """The best of one trial each."""
    every = list(grid())
    if quick:
        every = every[::20]
    trials: list[Trial] = []
    for settings in every:
        try:
            trials.append(runner(settings, 0.05 if quick else GRID_SECONDS))
        except OptionError:
            continue
    return [trial.settings for trial in sorted(trials, key=_rate, reverse=True)[: 2 if quick else FINALISTS]]


def _case(case: str, plan: Plan, best: list[Tried], asked: Settings) -> Record:
    runner = TrialRunner(plan)
    began = CLOCK.monotonic()
    outcome = Sweep(plan, runner, CLOCK, 10.0 if asked.quick else SECONDS)()
    took = CLOCK.monotonic() - began
    seconds = 0.1 if asked.quick else RUN_SECONDS
    rates: dict[Tried, list[float]] = {settings: [] for settings in [outcome.settings, *best]}
    for turn in range(asked.runs_of(RUNS)):
        for settings in sorted(rates, key=str, reverse=turn % 2 == 1):
            rates[settings].append(_rate(runner(settings, seconds)))
    peer = max(best, key=lambda settings: statistics.median(rates[settings]), default=None)
    return record(
        "tune",
        case,
        rates[outcome.settings],
        "sentences/s",
        peer="exhaustive sweep",
        peer_values=rates[peer] if peer is not None else [],
        asked=0.95,
        seconds=round(took, 1),
        gain=round(outcome.gain, 2),
        settings=str(outcome.settings),
        peer_settings=str(peer) if peer is not None else None,
        tried=len({trial.settings for trial in outcome.trials}),
        grid=len(list(grid())) if best else None,
        note=None if best else "the peer was left out by --no-peers",
        named=[finding.about for finding in outcome.named],
    )


def _rate(trial: Trial) -> float:
    """Under ``inline`` the time that other processes held the processor does not count."""
    return trial.rate_alone if trial.is_inline else trial.rate
