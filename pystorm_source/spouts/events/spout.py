"""The events of an event stream, by their ids."""

import math
from collections import deque
from typing import Any, ClassVar

from cython_core.routing.failure_kinds import RetryLater
from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.cursor_spout import CursorSpout, Page
from pystorm_source.api.spec_config import spec_config
from pystorm_source.errors import TopologyError
from pystorm_source.options import parse
from pystorm_source.spouts.events.connection import EventConnection
from pystorm_source.spouts.events.options import EventStreamOptions
from pystorm_source.spouts.events.parser import Event

WAIT_SECONDS = 0.1
"""Wait at a silent stream. Less: a burst takes more calls. More: no bolt gets a turn meanwhile."""
FIRST_SECONDS = 1.0
"""Wait for the first bytes of a connection. Less: availableNow may end before the server has sent what it keeps."""
ENOUGH_SECONDS = 60.0
"""So long after its first bytes, availableNow no longer waits for a pause. Less: it ends before a slow server has sent
what it keeps. More: a query over a stream that never pauses runs for longer."""


class EventStreamSpout(CursorSpout):
    """Server-sent events (``text/event-stream``). Needs ``journal.path``, and aiohttp on every executor.

    One connection stays open from micro-batch to micro-batch. After a lost one, a restart or a kill, the spout asks for
    the events behind the last one in the journal (``Last-Event-ID``). If each event has an id, and the server still has
    those behind it, each event gives its row exactly once. Half an event at the end of a connection is never given.

    The stream's ``retry`` is the time until the next connection, 3 s without it. ``EventStreamOptions`` has the
    options. A subclass may leave out fields of ``outputs``.

    Raises:
        OptionError: aiohttp is not installed, or an invalid option.
        TopologyError: a subclass is ``replayable``.
        WorldError: the server refuses the request, or answers with no event stream.

    Example:
        >>> from pystorm_source.spouts import EventStreamSpout
        >>> class Changes(Topology):
        ...     edits = EventStreamSpout.spec(url="https://stream.example.org/v2/recentchange")
        >>> Changes.edits.stream("default").fields
        ('id', 'event', 'data')
    """

    Options = EventStreamOptions
    outputs = ["id string", "event string", "data string"]
    page_rows = 1000
    poll_seconds: ClassVar[float] = 0.0  # ``read`` waits for events

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        par: int | dict[str, int] | None = None,
        config: dict[str, Any] | None = None,
        *,
        url: str | None = None,
    ) -> ComponentSpec:
        """This spout for a Topology; arguments win over the reader's options.

        Args:
            name (str): as in ``Spout.spec``.
            par (int | dict[str, int]): as in ``Spout.spec``; one task.
            config (dict): as in ``Spout.spec``; further options such as ``{"events.sock_read": 30}``.
            url (str): ``events.url``: the address of the stream. Defaults to the reader's option.

        Returns:
            ComponentSpec: what an attribute of the Topology is set to.
        """
        return super().spec(name=name, par=par, config=spec_config(cls.config, config, {"events.url": url}))

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Reads the options.

        Raises:
            OptionError: wrong options, or aiohttp is not installed.
            TopologyError: a subclass is ``replayable``.
        """
        if self.replayable:
            raise TopologyError(
                f"{type(self).__name__} cannot be `replayable`: a stream does not tell whether more events follow an "
                "id, or are late. Leave that out, and set journal.path. Given: replayable=True",
                code="PYSTORM_INVALID_COMPONENT",
            )
        self._stream_options = parse(EventStreamOptions, conf)
        self._connection = EventConnection(self._stream_options, self.clock)
        self._inbox: deque[Event] = deque()  # received and not given
        self._at: Any = None  # the cursor behind the last one that was given
        self._trouble: RetryLater | None = None  # to raise as soon as the inbox is empty
        self._asks_at = self.clock.monotonic()
        self._enough_at = math.inf
        self._has_warned = False

    def first_cursor(self, partition: str) -> Any:
        """Returns a cursor: the id of the last event, and how many events have come, some of them perhaps without an
        id. At first ``events.last_event_id``."""
        return {"id": self._stream_options.last_event_id, "count": 0}

    def read(self, cursor: Any, limit: int) -> Page:
        """Returns the events that are there, and the cursor behind them.

        Raises:
            WorldError: the server refuses the request. While it is busy, ``RetryLater`` is raised.
        """
        if cursor != self._at:  # a new task, or one whose events another one has read
            self._connection.close()
            self._inbox.clear()
            self._at, self._trouble = cursor, None
        try:
            self._receive(limit)
        except RetryLater as error:
            self._trouble = error
        if self._trouble is not None and not self._inbox:
            trouble, self._trouble = self._trouble, None
            raise trouble
        events = [self._inbox.popleft() for _ in range(min(limit, len(self._inbox)))]
        # A silent stream has no more: availableNow must not end in the middle of what the server sends.
        now, goes_on = self.clock.monotonic(), bool(events) or self._connection.is_amid
        self._pystorm_has_more = bool(self._inbox) or (goes_on and now < self._enough_at)
        if goes_on:
            self._enough_at = min(self._enough_at, now + ENOUGH_SECONDS)
        if events:
            self._warn_without_ids(events)
            self._at = {"id": events[-1].id, "count": cursor["count"] + len(events)}
        return [event._asdict() for event in events], self._at

    def cleanup(self) -> None:
        self._connection.end()

    def _receive(self, limit: int) -> None:
        """Reads up to ``limit`` events into the inbox, connected if need be."""
        if self._inbox or self._trouble is not None:
            seconds = 0.0
        else:
            seconds = WAIT_SECONDS
            if not self._connection.is_open:
                if self.clock.monotonic() < self._asks_at:
                    return
                if not self._connection.connect(self._at["id"]):
                    self._asks_at = self.clock.monotonic() + self._connection.pause  # it has no more now
                    return
                seconds = FIRST_SECONDS
        while self._connection.is_open and len(self._inbox) < limit:
            found = self._connection.read(seconds)
            if not found:
                return
            self._inbox += found
            seconds = 0.0

    def _warn_without_ids(self, events: list[Event]) -> None:
        if not self._has_warned and not all(event.id for event in events):
            self._has_warned = True
            self._any_logger().warning(
                "%s: the stream has events without an id: those that come while no task is connected are lost",
                type(self).__name__,
            )
