"""Bytes of ``text/event-stream`` that become events, as the HTML standard says."""

import re
from typing import NamedTuple

LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r(?!\n|\Z))")
"""A complete line. A carriage return at the end of the bytes may be half of a line's end: it waits for more."""


class Event(NamedTuple):
    """``id``: of this event, or of the last one that had one; "" before."""

    id: str
    event: str
    data: str


class EventParser:
    """Give it the bytes of one connection. ``id``: the last one that was read, ``retry``: as the stream asks for, in
    milliseconds, None if it does not. Half an event at the end gives nothing."""

    def __init__(self, id: str = ""):
        self.id = id
        self.retry: int | None = None
        self._rest = b""
        self._is_begin = True
        self._event = ""
        self._data: list[str] = []
        self._has_begun = False

    def feed(self, data: bytes) -> list[Event]:
        """Returns the events that are complete now."""
        self._rest += data
        if self._is_begin and len(self._rest) >= 3:
            self._is_begin = False
            self._rest = self._rest.removeprefix(b"\xef\xbb\xbf")
        events: list[Event] = []
        end = 0
        for line in LINE.finditer(self._rest):
            end = line.end()
            self._take(line[0].rstrip(b"\r\n").decode("utf-8", "replace"), events)
        self._rest = self._rest[end:]
        return events

    @property
    def waiting(self) -> int:
        """Bytes and characters of the event that is not complete."""
        return len(self._rest) + sum(map(len, self._data))

    @property
    def is_amid(self) -> bool:
        """Whether an event has begun that is not complete."""
        return self._has_begun or (len(self._rest) > 0 and not self._rest.startswith(b":"))

    def _take(self, line: str, events: list[Event]) -> None:
        if not line:
            if self._data:
                events.append(Event(self.id, self._event or "message", "\n".join(self._data)))
            self._event, self._data, self._has_begun = "", [], False
            return
        field, _, value = line.partition(":")  # a comment has an empty field
        self._has_begun = self._has_begun or field in ("data", "event", "id")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._event = value
        elif field == "id" and "\0" not in value:
            self.id = value
        elif field == "retry" and value.isascii() and value.isdigit():
            self.retry = int(value)
