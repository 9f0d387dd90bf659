"""What a run of a topology gave."""

from collections.abc import Mapping
from typing import Any

from pystorm_source.api import ComponentSpec
from pystorm_source.errors import given
from pystorm_source.plan import Plan
from pystorm_source.worker.local_run import Counts


class Result:
    """What a run of a topology gave.

    ``emitted``, ``executed``, ``acked``, ``failed``, ``unsettled`` (trees without a verdict): component → count.
    ``retries``, ``dead_letters``, ``dropped`` (dead letters that nobody has seen): component → count of its tuples.
    ``duplicate_verdicts``: component → acks and fails of tuples that had their verdict already, which do not count.
    ``skipped``: component → tuples that it did not get, as their trees had failed while they waited in its queue.
    ``errors``: what components raised, as TupleFailed with the component's exception as cause. ``metrics``: component →
    what it reported. ``attempts``: workers that ran: one for each range, and one more for each that died.
    ``micro_batches``: those that ended. Counts are sums over all workers.
    """

    def __init__(self, plan: Plan, rows: Mapping[tuple[str, str], list[tuple[Any, ...]]], counts: Counts):
        self.topology = plan.name
        zeros = dict.fromkeys((component.name for component in plan.components), 0)
        self.emitted = {**zeros, **counts.of("emitted")}
        self.executed = {**zeros, **counts.of("executed")}
        self.acked = {**zeros, **counts.of("acked")}
        self.failed = {**zeros, **counts.of("failed")}
        self.unsettled = {**zeros, **counts.of("unsettled")}
        self.retries = {**zeros, **counts.of("retries")}
        self.dead_letters = {**zeros, **counts.of("dead_letters")}
        self.dropped = {**zeros, **counts.of("dropped")}
        self.duplicate_verdicts = {**zeros, **counts.of("duplicate_verdicts")}
        self.skipped = {**zeros, **counts.of("skipped")}
        self.metrics = counts.metrics
        self.errors: list[Exception] = counts.errors
        self.attempts = 1
        self.micro_batches = 0
        self._rows = rows

    def rows(self, component: str | ComponentSpec, stream: str = "default") -> list[tuple[Any, ...]]:
        """What that stream emitted, in order, in micro-batches that came to their end. Raises KeyError for others."""
        name = component.label if isinstance(component, ComponentSpec) else component
        if (name, stream) not in self._rows:
            streams = ", ".join(".".join(each) for each in self._rows)
            raise KeyError(f"topology {self.topology!r} has the streams {streams}. Given: {given(f'{name}.{stream}')}")
        return list(self._rows[name, stream])

    def __repr__(self) -> str:
        names = ("emitted", "executed", "acked", "failed", "unsettled")
        width = max(map(len, self.emitted), default=0)
        lines = [
            f"<Result of {self.topology}: {counted(self.micro_batches, 'micro-batch')}, "
            f"{counted(self.attempts, 'attempt')}, {counted(len(self.errors), 'error')}",
            "  " + " " * width + "".join(f"{name:>11}" for name in names),
        ]
        for component in self.emitted:
            counts = "".join(f"{getattr(self, name)[component]:>11,}" for name in names)
            lines.append(f"  {component:{width}}{counts}")
        return "\n".join([*lines, *(f"  {error}" for error in self.errors)]) + ">"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 'es' if noun.endswith('ch') else 's'}"
