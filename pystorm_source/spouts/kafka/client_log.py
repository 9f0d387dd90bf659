"""The log of one Kafka client, without the lines that only say again what the last one said.

librdkafka logs every attempt to connect: 20 lines a second for each broker that is down.
"""

import logging
import re
from typing import Any

from pystorm_source.clock import Clock

FIRST_SECONDS = 10.0
"""How long similar lines are left out. Less: a broker that is down fills the log. More: it seems to be back."""
LONGEST_SECONDS = 80.0
"""The pause doubles up to this. Less: a long outage fills the log. More: the log does not show that it lasts."""
_NUMBERS = re.compile(r"\d+")
_OF_THREAD = re.compile(r"\[thrd:([^\]]*)\]")
MOST_KINDS = 100
"""Kinds of lines that are told apart. Fewer: brokers of a large cluster hide each other. More: memory for lines that
are over."""


class ClientLog:
    """``ClientLog(logger, clock)`` is the ``logger`` of a confluent-kafka client, which only calls ``log``.

    Lines about one broker that differ only in numbers are of one kind. ``logger`` gets one line of a kind in 10 s,
    later in 20 s, 40 s and 80 s; it says how many lines were left out.
    """

    def __init__(self, logger: logging.Logger, clock: Clock):
        self._logger = logger
        self._clock = clock
        self._kinds: dict[tuple[str, str], tuple[float, float, int]] = {}  # next line, pause, lines left out

    def log(self, level: int, text: str, *args: Any) -> None:
        line = text % args if args else text
        broker = _OF_THREAD.search(line)
        kind = broker[1] if broker else "", _NUMBERS.sub("#", line)
        now = self._clock.monotonic()
        due, pause, left_out = self._kinds.pop(kind, (now, FIRST_SECONDS / 2, 0))
        if now < due:
            self._kinds[kind] = due, pause, left_out + 1
            return
        pause = FIRST_SECONDS if now > due + 2 * pause else min(2 * pause, LONGEST_SECONDS)
        if len(self._kinds) >= MOST_KINDS:
            del self._kinds[next(iter(self._kinds))]
        self._kinds[kind] = now + pause, pause, 0
        again = f" (and {left_out} like it in the meantime)" if left_out else ""
        self._logger.log(level, "%s%s", line, again)
