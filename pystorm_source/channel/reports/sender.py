"""Sends reports from a task's process and, while a range is read, answers the runner's question what the process does.

The task hands its report over and waits a moment for it to be sent, so that it arrives before the next micro-batch is
planned. A runner that is slow, gone or behind a firewall costs that moment once: after a report that was not sent in
time, no task waits. Losses do no harm: nothing raises, and nothing waits for an answer.

Threading law: ``send``, ``reading`` from any thread, the rest belongs to the client's.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event

from pystorm_source.channel.reports.client_thread import NEVER, ClientThread
from pystorm_source.channel.reports.link import Link
from pystorm_source.channel.reports.protocol import MOST_BODY

logger = logging.getLogger("pystorm.source")

WAIT_SECONDS = 0.05
"""Seconds that a task waits for its report to leave. Too large: tasks are slow when the driver cannot be reached. Too
small: a worker that Spark ends after its task takes the report along."""

MOST_QUEUED = 64
"""Reports that wait in a process. Too large: after an outage, useless old ones are sent first. Too small: short tasks
lose some."""
# Seconds between two looks at the connection while a range is read. Too large: after a cut connection the process does
# not answer for long. Too small: needless traffic.
_REFRESH_SECONDS = 300.0

Answer = Callable[[], bytes]
"""What the process does at this moment, as JSON."""


class _Envelope:
    """A report in the queue, and whether the sender is done with it."""

    def __init__(self, body: bytes):
        self.body = body
        self.left = False
        self.done = Event()


class ReportSender:
    """The reports of this process to one runner, and its answers."""

    def __init__(self, link: Link, thread: ClientThread):
        self._link = link
        self._thread = thread
        self._queue: deque[_Envelope] = deque()
        self._answers: list[Answer] = []
        self._refresh_at = 0.0
        self._prompt = True
        """Whether waiting is worthwhile: the last report was sent in time."""

    def send(self, body: bytes, seconds: float = WAIT_SECONDS) -> bool:
        """Waits up to ``seconds`` until the report is sent; not at all if the last report was not sent in time.

        Returns whether the report is known to be sent. If too many wait, the oldest is dropped.
        """
        if len(body) > MOST_BODY:
            return False
        envelope = _Envelope(body)
        with self._thread.lock:
            if len(self._queue) >= MOST_QUEUED:
                self._queue.popleft().done.set()
            self._queue.append(envelope)
            is_seen_to = self._thread.wake()
        if is_seen_to and self._prompt and not envelope.done.wait(seconds):
            self._prompt = False
        return envelope.left

    @contextmanager
    def reading(self, answer: Answer) -> Iterator[None]:
        """A range is read while the block runs: the runner may ask for ``answer``, which the client's thread calls.

        Non-blocking. Opens the connection if necessary.
        """
        self._answers.append(answer)
        try:
            if not self._link.is_open:
                with self._thread.lock:
                    self._refresh_at = 0.0
                    self._thread.wake()
            yield
        finally:
            self._answers.remove(answer)

    def due(self) -> float:
        if self._queue:
            return 0.0
        return self._refresh_at if self._answers else NEVER

    def turn(self) -> None:
        with self._thread.lock:
            if self.due() > (now := self._thread.clock.monotonic()):
                return
            envelope = self._queue.popleft() if self._queue else None
            self._refresh_at = now + _REFRESH_SECONDS
        if envelope is None:
            self._link.refresh()
            return
        try:
            envelope.left = self._link.send(envelope.body)
        finally:
            self._prompt = envelope.left
            envelope.done.set()

    def answered(self) -> bytes:
        """The answer of the range that began last, because one is read at a time; empty without one. Raises nothing."""
        try:
            return self._answers[-1]() if self._answers else b""
        except Exception:  # permits must still arrive if a component's state cannot be described
            logger.debug("the runner is not answered", exc_info=True)
            return b""
