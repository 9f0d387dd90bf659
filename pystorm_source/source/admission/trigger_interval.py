"""Detects the interval of a processing-time trigger; Spark does not tell it to a source.

Spark fires such a trigger at multiples of its interval since 1970, or at once if a micro-batch took longer. If the
query is idle for a while and then asked just after such a multiple, several times in a row, it has waited for its
trigger: the time since its last report is no work. Pure."""

from dataclasses import dataclass, replace

GRID = 0.5
"""Intervals are multiples of so many seconds. Too large: others are not detected. Too small: chance is detected."""
LATENESS, LATENESS_SHARE, MOST_LATENESS = 0.01, 0.02, 0.1
"""The source is asked at most so many seconds, plus this share of the interval, after a trigger fired. Too large:
chance is taken for a trigger. Too small: a trigger on a busy driver is not found."""
AGREEING = 3
"""Questions in a row that must agree. Too large: it is found late. Too small: chance is taken for a trigger."""


@dataclass(frozen=True)
class TriggerInterval:
    """``interval``: seconds, 0 while unknown. ``waited``: whether the query waited for its trigger before the last
    question. ``asked``: when that was; ``guess``: the candidate, and ``agreeing`` questions in a row that fit it."""

    interval: float = 0.0
    waited: bool = False
    asked: float | None = None
    guess: float = 0.0
    agreeing: int = 0

    def asked_again(self, wall: float, idle: float) -> "TriggerInterval":
        """After a question at ``wall`` (seconds since 1970) that follows ``idle`` seconds without work."""
        if self.asked is None:
            return replace(self, asked=wall)
        gap = wall - self.asked
        if self.interval:
            if _is_in_phase(wall, self.interval):
                return replace(self, asked=wall, waited=idle > _lateness(self.interval))
            if gap > self.interval / 2:  # a micro-batch that took longer than the interval
                return replace(self, asked=wall, waited=False)
            return TriggerInterval(asked=wall)
        guess = round(gap / GRID) * GRID
        fits = guess >= GRID and idle > gap / 4 and abs(gap - guess) <= _lateness(guess) and _is_in_phase(wall, guess)
        if not fits:
            return TriggerInterval(asked=wall)
        same = abs(guess - self.guess) < GRID / 2
        agreeing = self.agreeing + 1 if same else 1
        found = guess if agreeing >= AGREEING else 0.0
        return TriggerInterval(found, found > 0, wall, guess, agreeing)


def _is_in_phase(wall: float, interval: float) -> bool:
    return wall % interval <= _lateness(interval)


def _lateness(interval: float) -> float:
    return min(LATENESS + LATENESS_SHARE * interval, MOST_LATENESS)
