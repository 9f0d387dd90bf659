"""Sends reports from a task's process: for each runner a queue, a thread, and a connection that outlives the task.

The task hands its report over and waits a moment for it to leave, so that it is there before the next micro-batch is
planned. A runner that is slow, gone or behind a firewall costs it that moment once: while the last report did not leave
in time, no task waits. Losses do no harm: nothing is raised, no answer is waited for.

The same thread answers the runner's question what the process does, while a range is read. So the connection is opened
when the first range begins.

Threading law: ``send``, ``reading`` from any thread; the connection belongs to the sender's thread. A forked process
begins anew, with clients of its own.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread

from pystorm_source.channel.reports.endpoint import Runner
from pystorm_source.channel.reports.link import Link
from pystorm_source.channel.reports.protocol import MOST_BODY
from pystorm_source.channel.reports.server_clients import ServerClients
from pystorm_source.clock import Clock, SystemClock

logger = logging.getLogger("pystorm.source")

WAIT_SECONDS = 0.05
"""Seconds that a task waits for its report to leave. Too large: tasks are slow when the driver cannot be reached. Too
small: a worker that Spark ends after its task takes the report along."""

MOST_QUEUED = 64
"""Reports that wait in a process. Too large: old ones, which are of no use, go first after an outage. Too small: short
tasks lose some."""
# Seconds between two looks at the connection while a range is read. Too large: after a cut connection the process does
# not answer for long. Too small: needless traffic.
_REFRESH_SECONDS = 300.0

Answer = Callable[[], bytes]
"""What the process does at this moment, as JSON."""


class _Envelope:
    """A report on its way, and whether the sender is done with it."""

    def __init__(self, body: bytes):
        self.body = body
        self.left = False
        self.done = Event()


class FeedbackClient:
    """The reports of this process to one runner, and its answers."""

    def __init__(self, runner: Runner, clock: Clock | None = None):
        self._link = Link(runner, clock or SystemClock(), self._answered)
        self._queue: deque[_Envelope] = deque()
        self._lock = Lock()
        self._thread: Thread | None = None
        self._sleeps = False
        self._closed = False
        self._wanted = False
        """Whether a connection is to be opened."""
        self._answers: list[Answer] = []
        self._prompt = True
        """Whether it is worth waiting for: whether the last report left, and in time."""

    def send(self, body: bytes, seconds: float = WAIT_SECONDS) -> bool:
        """Waits for at most ``seconds`` until the report has left; not at all if the last report did not leave in time.

        Returns whether the report is known to have left. If too many wait, the oldest is dropped.
        """
        if len(body) > MOST_BODY:
            return False
        envelope = _Envelope(body)
        with self._lock:
            if len(self._queue) >= MOST_QUEUED:
                self._queue.popleft().done.set()
            self._queue.append(envelope)
            self._wake()
        if self._prompt and not envelope.done.wait(seconds):
            self._prompt = False
        return envelope.left

    @contextmanager
    def reading(self, answer: Answer) -> Iterator[None]:
        """A range is read while the block runs: the runner may ask for ``answer``, which the sender's thread calls.

        Non-blocking. The connection is opened if there is none.
        """
        self._answers.append(answer)
        try:
            if not self._link.is_open:
                with self._lock, suppress(RuntimeError):  # no thread can start when the interpreter ends
                    self._wanted = True
                    self._wake()
            yield
        finally:
            self._answers.remove(answer)

    def close(self) -> None:
        """Non-blocking. Sends the queued reports, and ends."""
        with self._lock:
            self._closed = True
            self._wake()

    def abandon(self) -> None:
        """In a forked process: closes its copy of the connection, which belongs to the other process."""
        self._link.end()

    def _wake(self) -> None:
        """With the lock held: the thread looks at what is new."""
        if self._thread is None:
            thread = Thread(target=self._run, name="pystorm-reports", daemon=True)
            thread.start()
            self._thread = thread
        elif self._sleeps:
            self._sleeps = False
            self._link.wake()

    def _run(self) -> None:
        while (envelope := self._next()) is not None:
            try:
                envelope.left = self._link.send(envelope.body)
            except Exception:
                logger.debug("a report did not leave", exc_info=True)
            self._prompt = envelope.left
            envelope.done.set()
        self._link.end()

    def _next(self) -> _Envelope | None:
        """The next report, None after the last one. Meanwhile the connection is kept, and questions are answered."""
        while True:
            with self._lock:
                envelope = self._queue.popleft() if self._queue else None
                if envelope is None and self._closed:
                    return None
                wanted, self._wanted = self._wanted, False
                self._sleeps = envelope is None
            try:
                if wanted:
                    self._link.open()
                # Order: looked at before each report, which would be lost on a connection that the runner has closed.
                seconds = 0.0 if envelope is not None else _REFRESH_SECONDS if self._answers else None
                if not self._link.look(seconds) and envelope is None:
                    self._link.refresh()
            except Exception:
                logger.debug("the runner is not answered", exc_info=True)
                self._link.close()
            if envelope is not None:
                return envelope

    def _answered(self) -> bytes:
        """Of the range that began last, as one is read at a time; empty for none."""
        answers = self._answers[-1:]
        return answers[0]() if answers else b""


_clients = ServerClients(FeedbackClient)


def client(runner: Runner) -> FeedbackClient:
    """That of this process. Called by the thread that runs the tasks; those not used for longest are closed."""
    return _clients.of(runner)
