"""Finds out the interval of a processing-time trigger, which no source is given.

Spark fires such a trigger at multiples of its interval since 1970, unless a micro-batch took longer: then at once.
A query that had nothing to do for a while and is asked again just behind such a multiple, several times in a row, has
been waiting for its trigger: the time since its last report is no work. Pure.
"""

from dataclasses import dataclass, replace

GRID = 0.5
"""Intervals are taken for multiples of so many seconds. Too large: others are not found. Too small: chance is found."""
LATENESS, LATENESS_SHARE, MOST_LATENESS = 0.01, 0.02, 0.1
"""The source is asked so many seconds, and so much of the interval, after a trigger has fired at most. Too large:
chance is taken for a trigger. Too small: a trigger on a busy driver is not found."""
AGREEING = 3
"""Questions in a row that must agree. Too large: it is found late. Too small: chance is taken for a trigger."""


@dataclass(frozen=True)
class TriggerInterval:
    """When the source was asked. ``interval``: seconds, 0 while none is known. ``waited``: whether the query has waited
    for its trigger before it asked last."""

    interval: float = 0.0
    waited: bool = False
    asked: float | None = None
    guess: float = 0.0
    agreeing: int = 0

    def asked_again(self, wall: float, idle: float) -> "TriggerInterval":
        """The source is asked at ``wall`` (seconds since 1970), after ``idle`` seconds in which no work was seen."""
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
