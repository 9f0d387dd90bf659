"""How often the driver asks a spout for new data, no matter how often Spark asks the driver.

An idle Spark query asks some 70 times a second: nothing for a spout that looks into memory, and too much for a service.
"""

EARLY = 0.1
"""A spout may be asked so much of its interval too early. Too small: a trigger of the same interval that is a moment
early finds nothing new, and its rows wait for the next one. Too large: it is asked too often."""


class PollInterval:
    """How often one spout is asked: every so many ``seconds``; 0: whenever Spark asks. ``asked``: how often it was.

    Over any period, the spout is due at most once per interval, plus once.
    """

    def __init__(self, seconds: float):
        self.seconds = seconds
        self.asked = 0
        self._next: float | None = None

    def is_due(self, now: float) -> bool:
        """Whether the spout may be asked. ``now``: monotonic seconds. The first time always."""
        return self._next is None or now >= self._next - EARLY * self.seconds

    def ask(self, now: float) -> None:
        """The spout is asked."""
        self.asked += 1
        self._next = (now if self._next is None else max(self._next, now)) + self.seconds
