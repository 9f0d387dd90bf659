"""The common part of spouts that ask a source for many rows at once."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pystorm_source.api.stream import Stream


def fields_of(spout: Any) -> Sequence[str]:
    """Names of the fields of its default stream."""
    streams = Stream.all_of(spout.outputs, given_by=type(spout).__name__)
    return next(stream.fields for stream in streams if stream.name == "default")


def values_of(row: Any, fields: Sequence[str]) -> Any:
    """The values of a row: a sequence of them, or a mapping that has the fields."""
    return [row.get(name) for name in fields] if isinstance(row, Mapping) else row


def poll_seconds_of(spout: Any) -> float:
    """Seconds between two questions to its source: of ``spout.poll.seconds``, otherwise its own."""
    options = spout._pystorm_options
    wished: float | None = None if options is None else options.spout_poll_seconds
    own: float = spout.poll_seconds
    return own if wished is None else wished


class PolledRows:
    """The rows of one such spout, which has a ``clock`` and ``poll_seconds``."""

    def __init__(self, spout: Any):
        self._spout = spout
        self._now = spout.clock.monotonic
        self._poll_seconds = poll_seconds_of(spout)
        # From the instance: the config may have set them in a ready-made spout.
        self._fields = fields_of(spout)

    def _emit(self, rows: Iterable[Any]) -> None:
        """Emits all of them, even after one that does not fit: the source does not give the others again."""
        raised: Exception | None = None
        for row in rows:
            try:
                self._spout.emit(values_of(row, self._fields))
            except Exception as error:
                raised = raised or error
        if raised is not None:
            raise raised
