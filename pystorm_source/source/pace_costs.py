"""What a micro-batch costs besides the work of its tasks: something fixed, and something that grows with it. Pure.

::

    seconds of a micro-batch = fixed + stretch * seconds that its tasks explain

Planning, logs and scheduling are fixed; stages behind the source, slots shared with others and reports that hide
something are not. Both are followed by a Kalman filter (Kalman 1960) whose state is the two coefficients: where a
micro-batch with less work is no shorter, it is the fixed part that is larger, and reading still less would not help.
"""

from dataclasses import dataclass, replace

FIXED = 0.1
"""Seconds that are taken until something is measured."""
MOST_FIXED = 0.7
"""Share of the target: the rest is for tasks, whatever else a micro-batch costs. With less it would do next to nothing,
and take as long."""
MOST_STRETCH = 50.0
FIXED_DOUBT, STRETCH_DOUBT = 0.1**2, 0.5**2
FIXED_DRIFT, STRETCH_DRIFT = 0.03**2, 0.1**2
NOISE = 0.05**2
"""Variances: at first, added by each micro-batch, of what is measured. Of times as shares of the target."""
MOST_SURPRISE = 2.0
"""Share of the target by which a micro-batch may surprise: a lone one that took minutes says little."""


@dataclass(frozen=True)
class Costs:
    """``fixed``: seconds; ``stretch``: at least 1; the others: covariance of the two."""

    fixed: float = FIXED
    stretch: float = 1.0
    fixed_doubt: float = FIXED_DOUBT
    shared_doubt: float = 0.0
    stretch_doubt: float = STRETCH_DOUBT

    def work_within(self, target: float) -> float:
        """Seconds that tasks may take so that their micro-batch takes ``target`` seconds."""
        return (target - min(self.fixed, MOST_FIXED * target)) / self.stretch

    def after(self, took: float, explained: float, target: float) -> "Costs":
        """What is known after a micro-batch of ``took`` seconds whose tasks explain ``explained`` of them."""
        work = explained / target
        fixed_doubt, stretch_doubt = self.fixed_doubt + FIXED_DRIFT, self.stretch_doubt + STRETCH_DRIFT
        on_fixed = fixed_doubt + work * self.shared_doubt
        on_stretch = self.shared_doubt + work * stretch_doubt
        doubt = on_fixed + work * on_stretch + NOISE
        surprise = (took - self.fixed - self.stretch * explained) / target
        surprise = max(-MOST_SURPRISE, min(MOST_SURPRISE, surprise))
        stretch = min(self.stretch + surprise * on_stretch / doubt, MOST_STRETCH)
        gain = on_fixed / doubt
        if stretch < 1.0:  # there is no less: the rest of the surprise is of what is fixed
            stretch, gain = 1.0, fixed_doubt / (fixed_doubt + NOISE)
        return replace(
            self,
            fixed=min(max(self.fixed + target * surprise * gain, 0.0), target),
            stretch=stretch,
            fixed_doubt=fixed_doubt - on_fixed * on_fixed / doubt,
            shared_doubt=self.shared_doubt - on_fixed * on_stretch / doubt,
            stretch_doubt=stretch_doubt - on_stretch * on_stretch / doubt,
        )
