"""The log of ``pystorm-source run``: thousands of lines from one place in the code are counted, not printed."""

import logging
import os
import threading
from typing import NamedTuple

from pystorm_source.clock import Clock

FIRST = 5
"""Lines printed per place in the code. Fewer: a topology's occasional messages are lost. More: a line for each tuple
pushes the table off the screen."""
SECONDS_BETWEEN = 10.0
"""Interval between two counts of a place; after such a pause its lines are printed again. Less: counts fill the log.
More: you do not see that it continues."""


class _Count(NamedTuple):
    """A place in the code: lines printed, lines only counted since then, the time of the last print, the last line."""

    printed: int
    more: int
    since: float
    last: logging.LogRecord


class SummedLog(logging.Handler):
    """Passes records to another handler: every warning and error; up to INFO, the first five from each line of code,
    then how many more there were."""

    def __init__(self, to: logging.Handler, clock: Clock):
        super().__init__()
        self._to = to
        self._clock = clock
        self._counts: dict[tuple[str, str, int], _Count] = {}
        self._counting = threading.RLock()

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno > logging.INFO:
            self._to.handle(record)
            return
        now = self._clock.monotonic()
        place = record.name, record.pathname, record.lineno
        with self._counting:
            count = self._counts.get(place)
            if count is None or now - count.since >= SECONDS_BETWEEN:
                self._say(count, now)
                count = _Count(0, 0, now, record)
            if count.printed < FIRST:
                self._to.handle(record)
                self._counts[place] = count._replace(printed=count.printed + 1, since=now)
            else:
                self._counts[place] = count._replace(more=count.more + 1, last=record)

    def say_counts(self) -> None:
        """Logs the counts that are not yet logged."""
        with self._counting:
            for count in self._counts.values():
                self._say(count, self._clock.monotonic())
            self._counts.clear()

    def _say(self, count: _Count | None, now: float) -> None:
        if count is None or not count.more:
            return
        last = count.last
        where = f"{os.path.basename(last.pathname)}:{last.lineno}"
        text = f"{count.more:,} more lines of {where} in {now - count.since:.0f} s, the last one: {last.getMessage()}"
        self._to.handle(logging.LogRecord(last.name, last.levelno, last.pathname, last.lineno, text, (), None))
