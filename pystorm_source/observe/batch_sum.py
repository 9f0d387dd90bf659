"""A sum over micro-batches that never falls, from records that may arrive twice, late, or not at all."""


class BatchSum:
    """Adds each micro-batch once: the largest value that one of its records has."""

    def __init__(self) -> None:
        self._before = 0.0
        self._batch: int | None = None
        self._of_batch = 0.0

    @property
    def value(self) -> float:
        """The sum."""
        return self._before + self._of_batch

    def add(self, batch: int, value: float) -> None:
        """``batch``: its number. A batch before the last one was added already: it changes nothing."""
        if self._batch is None or batch > self._batch:
            self._before += self._of_batch
            self._batch, self._of_batch = batch, max(value, 0.0)
        elif batch == self._batch:
            self._of_batch = max(self._of_batch, value)
