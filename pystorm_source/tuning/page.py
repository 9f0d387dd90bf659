"""The result as a configuration file: YAML with a comment for each change, its reason and its expected gain."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pystorm_source.errors.redaction import redacted
from pystorm_source.options import SourceOptions, fields_of
from pystorm_source.tuning.advice import Advice
from pystorm_source.tuning.settings import BATCHES, Settings
from pystorm_source.tuning.sweep import Goal, Outcome, Step

WIDTH = 120


class Change(NamedTuple):
    """A key of the engine (``kind`` is empty), or what a component's class or spec sets (``par``, ``processes``,
    ``tuples_between_batches``), with all steps that have changed it."""

    name: str
    value: Any
    kind: str
    steps: tuple[Step, ...]

    @property
    def shown(self) -> str:
        return f"{self.name}.{self.kind}" if self.kind else self.name

    @property
    def gain(self) -> float:
        """The product of its steps' gains."""
        gain = 1.0
        for step in self.steps:
            gain *= step.gain
        return gain


def changes_of(outcome: Outcome) -> list[Change]:
    """Returns what was changed, ordered by its first change."""
    steps: dict[tuple[str, str], list[Step]] = {}
    for step in outcome.steps:
        for name, kind, _ in _parts(step.proposal.change):
            steps.setdefault((name, kind), []).append(step)
    values = {(name, kind): value for name, kind, value in _parts(outcome.settings)}
    return [Change(name, values[name, kind], kind, tuple(made)) for (name, kind), made in steps.items()]


def _parts(settings: Settings) -> Iterator[tuple[str, str, Any]]:
    yield from ((name, "", value) for name, value in settings.keys)
    yield from ((name, "par", tasks) for name, tasks in settings.pars)
    yield from ((name, BATCHES, size) for name, size in settings.batches)
    yield from ((name, "processes", count) for name, count in settings.processes)


def written(
    command: str,
    outcome: Outcome | None,
    advice: Sequence[Advice],
    goal: Goal = "throughput",
    given: Mapping[str, Any] | None = None,
    use: str = "",
) -> str:
    """Returns the file's text. ``command``: what made it. ``given``: options that the topology was measured with.
    ``use``: the path for option ``config``; empty: the text is for reading, not for a file."""
    lines = [f"# Made by: {command}"]
    if outcome is not None:
        base, best = outcome.base, outcome.best
        lines += [
            f"# Goal: {goal}. As it is: {figures(base.rate, base.latency)}.",
            f"# Tuned: {figures(best.rate, best.latency)}; {outcome.gain:.2f} times as good, measured in pairs.",
        ]
    if use:
        lines.append(f'# Use: .option("config", {json.dumps(use)})')
    if given:
        lines += ["", "# As given by -o.", *_given(given)]
    said: set[int] = set()
    for change in changes_of(outcome) if outcome is not None else ():
        lines += ["", *_change(change, said)]
    for each in advice:
        lines += ["", *_advice(each)]
    if outcome is not None and not outcome.steps:
        lines += ["", "# Nothing that was tried gains."]
    if all(not line or line.startswith("#") for line in lines):
        lines += ["", "# No key of a configuration is to change."]
        lines += ["{}"] if use else []  # a YAML file of nothing but comments would be no configuration
    return "\n".join(lines) + "\n"


def _given(given: Mapping[str, Any]) -> Iterator[str]:
    """Writes options of the reader as comments, because option ``config`` does not take them, and omits secrets."""
    readers = {key.lower() for key in fields_of(SourceOptions)}
    for key, value in given.items():
        if redacted(key, value) != value:
            yield f"# {key}: a secret, which is not written here"
        elif key.lower() in readers:
            yield f'# On the reader: .option("{key}", {json.dumps(value)})'
        else:
            yield f"{key}: {json.dumps(value)}"


def figures(rate: float, latency: float) -> str:
    """``12,345 tuples/s, 3.21 ms``."""
    return f"{rate:,.0f} tuples/s, {latency * 1e3:,.2f} ms from emit to ack"


def _change(change: Change, said: set[int]) -> Iterator[str]:
    """``said``: identities of the steps already explained above; adds this change's steps."""
    finding = change.steps[0].proposal.finding
    own = change.shown
    together = sorted({name for step in change.steps for name in _names(step)} - {own})
    if said.issuperset(map(id, change.steps)):
        yield from _wrapped(f"Together with {' and '.join(together)}, above.")
    else:
        beside = f", together with {' and '.join(together)}" if together else ""
        yield from _wrapped(f"{finding.about}: {finding.why}.")
        yield from _wrapped(f"{change.steps[-1].proposal.arithmetic}.")
        yield from _wrapped(f"Expected gain: {change.gain:.2f} times, measured{beside}.")
    said.update(map(id, change.steps))
    if not change.kind:
        yield f"{change.name}: {json.dumps(change.value)}"
    elif change.kind == BATCHES:
        yield f"# In the class of {change.name}: {BATCHES} = {change.value}"
    else:
        yield f"# In the class of the topology: {change.name} = ....spec(..., {change.kind}={change.value})"
        if change.kind == "processes":
            yield f"# When the application starts: spark.task.cpus={change.value}"


def _names(step: Step) -> Iterator[str]:
    yield from (f"{name}.{kind}" if kind else name for name, kind, _ in _parts(step.proposal.change))


def _advice(advice: Advice) -> Iterator[str]:
    finding = advice.finding
    yield from _wrapped(f"{finding.about}: {finding.why}.")
    yield from _wrapped(f"{advice.change}.")
    yield from _wrapped(f"{advice.promise[0].upper()}{advice.promise[1:]}: {advice.arithmetic}.")
    if advice.option is not None:
        key, value = advice.option
        yield f'# On the reader: .option("{key}", {value})'


def _wrapped(text: str) -> Iterator[str]:
    line = "#"
    for word in text.split():
        if len(line) + 1 + len(word) > WIDTH:
            yield line
            line = "#"
        line += f" {word}"
    yield line
