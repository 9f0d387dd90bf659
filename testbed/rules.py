"""The rules of the admission controller, and how each is switched off; ``testbed.ablation`` says what each is worth."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from pystorm_source.source.admission import (
    batch_budget,
    controller,
    overhead,
    rate_estimator,
    rate_samples,
    task_schedule,
    trigger_interval,
)

NEVER = 1e12


class Rule(NamedTuple):
    """``meaning``: what it does; ``off``: replacements that switch it off: (owner, name, replacement)."""

    meaning: str
    off: tuple[tuple[Any, str, Any], ...]


def _same(known: Any, *given: Any) -> Any:
    return known


RULES: Mapping[str, Rule] = {
    "smoothing": Rule("noise and rises count in part", ((rate_estimator, "GAIN", 1.0),)),
    "growth": Rule(
        "a rate grows at most so much", ((controller, "GROWTH", NEVER), (controller, "FIRST_GROWTH", NEVER))
    ),
    "first-growth": Rule("it may grow quicker in the first micro-batches", ((controller, "FIRST_GROWTH", 5.0),)),
    "failures": Rule(
        "a partition whose tuples fail is given half, if fewer fail then",
        ((rate_estimator, "FAILING", 2.0), (rate_estimator, "OUTAGE", 2.0)),
    ),
    "lost-reports": Rule(
        "partitions without a report follow the others", ((rate_estimator, "_common_change", lambda *given: 1.0),)
    ),
    "common-rate": Rule(
        "partitions that were never measured have the median rate",
        ((rate_estimator.RateEstimator, "_with_common", _same),),
    ),
    "hidden-time": Rule("time that reports hide is charged to suspects", ((rate_samples, "SUSPECT", NEVER),)),
    "task-overhead": Rule(
        "what a task costs besides its work is measured",
        ((controller, "MOST_TASK_OVERHEAD", controller.TASK_OVERHEAD), (rate_samples, "MOST_TASK_OVERHEAD", 0.01)),
    ),
    "task-fixed": Rule(
        "what a task costs besides its offsets is separated from its rate",
        ((rate_estimator.RateEstimator, "_task_fixed", lambda self, *given: 0.0),),
    ),
    "task-fixed-test": Rule(
        "a rate that drifts is tested for such a cost by reading less", ((rate_estimator, "DRIFTED", NEVER),)
    ),
    "moving-rates": Rule(
        "a micro-batch in which rates changed is no basis for such a cost",
        ((rate_estimator.RateEstimator, "_deviates", lambda *given: False),),
    ),
    "exact-schedule": Rule("few tasks are scheduled exactly", ((task_schedule, "EXACT_TASKS", 0),)),
    "rotation": Rule(
        "which task goes on to the end changes",
        ((batch_budget, "task_times", lambda *given: task_schedule.task_times(*given[:5], 0)),),
    ),
    "round-robin": Rule(
        "of very many partitions some are read, round robin", ((batch_budget, "LEAST_PER_SLOT", 10**9),)
    ),
    "as-much-again": Rule(
        "tasks have at least the time that they cost",
        ((batch_budget, "_available", lambda time, splits: time.seconds),),
    ),
    "target-gives-way": Rule(
        "the target in force is at least 2.2 times the fixed cost",
        ((overhead.Overhead, "target_in_force", lambda self, target, *given: target.wished),),
    ),
    "unset-target": Rule("an unset target grows under pressure", ((overhead, "SMALL_SHARE", NEVER),)),
    "most-fixed": Rule("a fixed cost counts up to 20 seconds", ((overhead, "MOST_FIXED", NEVER),)),
    "slope": Rule("what grows with the work is separated from what is fixed", ((overhead, "MOST_SLOPE", 1.0),)),
    "proven": Rule("a fixed cost is proven before the target gives way to it", ((overhead, "UNPROVEN", NEVER),)),
    "stalls-again": Rule(
        "a sink that stalls again and again has no slope", ((overhead, "_between_stalls", lambda *given: ()),)
    ),
    "innovation": Rule(
        "after one that takes much longer than predicted less is read", ((overhead, "INNOVATION", NEVER),)
    ),
    "memory": Rule("lone micro-batches are outvoted", ((overhead, "MEMORY", 2),)),
    "steepness": Rule("another slope must fit clearly better", ((overhead, "STEEPNESS", 0.0),)),
    "cold-start": Rule("the first micro-batch tells nothing of time", ((controller, "COLD_BATCHES", 0),)),
    "trigger": Rule(
        "the interval of a trigger is found out", ((trigger_interval.TriggerInterval, "asked_again", _same),)
    ),
    "trigger-found": Rule("what was learned before it was found is dropped", ((controller, "YOUNG_QUERY", 0),)),
}


@contextmanager
def without(names: list[str]) -> Iterator[None]:
    """Switches these rules off inside the block. Raises KeyError for an unknown rule."""
    switched = [place for name in names for place in RULES[name].off]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in switched]
    try:
        for owner, name, off in switched:
            setattr(owner, name, off)
        yield
    finally:
        for owner, name, value in reversed(before):
            setattr(owner, name, value)
