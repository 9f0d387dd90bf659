"""Commits to the spouts, which a source may refuse for a while.

A refused commit is not kept: the next one has later offsets, and covers this one.
"""

from collections.abc import Mapping

from pystorm_source.clock import Clock
from pystorm_source.source.driver.spouts import DriverSpouts, SourceBusy


class Commits:
    """``outages``: spout → whether it refuses commits."""

    def __init__(self, spouts: DriverSpouts, clock: Clock):
        self._spouts = spouts
        self.outages = spouts.outages(clock)

    def commit(self, component: str, offsets: Mapping[str, int]) -> None:
        """Raises TupleFailed if the spout does, or has been busy for too long."""
        outage = self.outages[component]
        if outage.rests():
            return
        try:
            self._spouts.commit(component, offsets)
        except SourceBusy as busy:
            outage.note_on_driver(busy.method, busy.__cause__)
        else:
            outage.end()
