"""How long the children of a worker may take to end by themselves."""

import time


class EndTime:
    """One time for all of them, from when the first is told to end: they end in parallel."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._at: float | None = None

    def begin(self) -> None:
        """A child is told to end."""
        if self._at is None:
            self._at = time.monotonic() + self.seconds

    @property
    def left(self) -> float:
        """Seconds left, at least 0; 0 if none was told to end."""
        return 0.0 if self._at is None else max(0.0, self._at - time.monotonic())
