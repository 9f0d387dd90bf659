"""The acts of the demo: an easy load, a bolt that becomes ten times slower, a worker that is killed, the end."""

import os
import signal
import statistics
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pystorm_source.cli.show.display import Silence, kilobytes
from pystorm_source.cli.show.query import MicroBatch, Query
from pystorm_source.cli.show.text import GrowingFiles
from pystorm_source.clock import Clock

EASY_SECONDS = 0.0005
SLOW_SECONDS = 10 * EASY_SECONDS
POLL_SECONDS = 0.25
EASY_MICRO_BATCHES = 4
FITTING_MICRO_BATCHES = 3
IN_TIME = 2.0
"""Micro-batches are in time if their median is below this multiple of the target in force, because Spark's overhead
varies on a busy machine. If the budget does not follow, the median exceeds five times the target."""
KILLS = 3
"""Attempts: killing a worker between two tasks shows nothing, so another one is killed."""


class Slowdown(NamedTuple):
    """What followed when the bolt became slower. ``budgets``: bytes before and after; ``late``: how many micro-batches
    still had the old budget; ``followed``: those with the new one."""

    budgets: tuple[int, int]
    late: int
    followed: tuple[MicroBatch, ...]

    @property
    def shown(self) -> bool:
        """Whether the budget followed, and the query stayed in time."""
        return bool(self.followed) and statistics.median(done.seconds / done.aim for done in self.followed) < IN_TIME


class Kill(NamedTuple):
    """A worker that was killed. ``failed_tasks``: the tasks that Spark reran because of it."""

    pid: int
    micro_batch: int
    failed_tasks: int


class Acts:
    """Plays the acts and watches the query. ``check`` is called often; it raises whatever ends the demo."""

    def __init__(
        self,
        query: Query,
        files: GrowingFiles,
        service: Path,
        display: Silence,
        clock: Clock,
        check: Callable[[], None],
    ):
        self._query = query
        self._files = files
        self._service = service
        self._display = display
        self._clock = clock
        self._check = check
        self._began = clock.monotonic()
        self.ran: list[MicroBatch] = []

    def first(self, seconds: float) -> bool:
        """Blocking, until the first micro-batch is done; False if it takes longer."""
        return self._until(lambda: bool(self.ran), seconds)

    def easy(self, seconds: float = 60) -> None:
        """The writer begins; the query grows into its load."""
        self._files.start()
        self._until(lambda: len(self.ran) >= 1 + EASY_MICRO_BATCHES, seconds)

    def slow(self, seconds: float = 60) -> Slowdown:
        """The bolt's service becomes ten times slower, until some micro-batches have had a budget that fits it."""
        usual = int(statistics.median(done.allowed for done in self.ran[1:] or self.ran))
        since = len(self.ran)
        self._display.line(
            f"-> the bolt `known` becomes ten times slower: {1000 * SLOW_SECONDS:g} ms a line, it was "
            f"{1000 * EASY_SECONDS:g} ms"
        )
        set_service(self._service, SLOW_SECONDS)

        def followed() -> list[MicroBatch]:
            return [done for done in self.ran[since + 1 :] if done.allowed < usual / 2]

        self._until(lambda: len(followed()) >= FITTING_MICRO_BATCHES, seconds)
        fitting = followed()
        late = self.ran.index(fitting[0]) - since if fitting else len(self.ran) - since
        after = fitting[-1].allowed if fitting else self.ran[-1].allowed
        return Slowdown((usual, after), late, tuple(fitting))

    def kill(self, seconds: float = 30) -> Kill | None:
        """A Python worker gets SIGKILL in the middle of its task; None if none was found at work."""
        before = self._query.failed_tasks()
        kill = None
        for _ in range(KILLS):
            if not self._until(lambda: self._query.worker_at_work() is not None, seconds, poll=0.02):
                break
            pid = self._query.worker_at_work()
            if pid is None:
                continue
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            number = self.ran[-1].number + 1
            self._display.line(f"-> the Python worker with process id {pid} is killed (SIGKILL)")
            hit = self._until(lambda: self._query.failed_tasks() > before, 5)
            kill = Kill(pid, number, self._query.failed_tasks() - before)
            if hit:
                break
        since = len(self.ran)
        self._until(lambda: len(self.ran) > since, seconds)
        return kill

    def end(self, seconds: float = 300) -> None:
        """The service recovers, the writer ends, and all is read."""
        self._display.line("-> the bolt is as quick as it was, the writer ends, the backlog is worked off")
        set_service(self._service, EASY_SECONDS)
        self._files.finish()
        if not self._until(self._all_read, seconds):
            left = self._files.written - self.ran[-1].position
            raise TimeoutError(f"after {seconds:g} s {kilobytes(left)} are still not read")

    def _all_read(self) -> bool:
        return not self._files.writing and self.ran[-1].position >= self._files.written

    def _until(self, done: Callable[[], bool], seconds: float, poll: float = POLL_SECONDS) -> bool:
        """Blocking, until that holds; False if it does not within so many seconds."""
        end = self._clock.monotonic() + seconds
        while not done():
            if self._clock.monotonic() >= end:
                return False
            self._check()
            self._query.wait(poll)
            self._look()
        return True

    def _look(self) -> None:
        before, self.ran = len(self.ran), self._query.ran()
        for done in self.ran[before:]:
            self._display.micro_batch(done)
        number = self.ran[-1].number + 1 if self.ran else 0
        self._display.status(
            f"micro-batch {number} runs; {kilobytes(self._files.written)} of text are written; "
            f"{self._clock.monotonic() - self._began:.0f} s"
        )


def set_service(service: Path, seconds: float) -> None:
    """Sets how long the topology's look-up takes. Replaces the file atomically: it may be read at any moment."""
    aside = service.with_suffix(".new")
    aside.write_text(repr(seconds))
    aside.replace(service)
