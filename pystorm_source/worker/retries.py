"""Failed and timed-out tuples of a spout are emitted again, or become dead letters. Records that a spout has read but
cannot turn into tuples become dead letters, too.

    failed ──► a retry left? ──yes──► emitted again, after the back-off
                     │ no
                     ▼
               dead letter: the task fails │ a row of ``__dead_letter`` │ dropped, counted

Threading law: called in the turns of the spout's executor.
"""

import datetime
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from cython_core.routing.failure_kinds import Hopeless, RetryLater
from pystorm_source.clock import Clock
from pystorm_source.errors.user_frames import shown
from pystorm_source.options import EngineOptions
from pystorm_source.types.json_text import json_text
from pystorm_source.worker.failure import Blame, Failed, GivenUp, described, failed, shortened
from pystorm_source.worker.failure_rules import FailureRules

LONGEST_BACKOFF_MILLIS = 60_000
JITTER = 0.2
"""A retry's delay is up to this share longer. Larger: tuples, and the micro-batch that waits for them, arrive later
than requested. Smaller: tuples that failed together reach a busy service together again."""


class Retries:
    """The retries of one task of a spout.

    ``send(row)`` emits a row of the stream ``__dead_letter`` and returns whether it has a reader; ``warn(what, text)``
    logs each kind once. ``source_of``: stream → the component and stream that its tuples name; after a cut, the ones
    before it. ``rules``: component → what its ``topology.retry.on`` says. ``chance``: spreads delays. ``partition``: of
    the current range, None without partitions. ``keep(row)``: gets the rows instead of ``send``, if it is set. Counts
    ``retries``, ``dead_letters``, of these ``dropped``: without a row; and ``refused``: fails that no retry helps, by a
    bolt's word or ``topology.retry.on``, so the service works.
    """

    def __init__(
        self,
        component: str,
        task: int,
        options: EngineOptions,
        clock: Clock,
        send: Callable[[tuple[Any, ...]], bool],
        warn: Callable[[str, str], None],
        source_of: Callable[[str], tuple[str, str]] | None = None,
        rules: Mapping[str, FailureRules] | None = None,
        chance: Random | None = None,
    ):
        self.component = component
        self.task = task
        self.partition: str | None = None
        self.keep: Callable[[tuple[Any, ...]], None] | None = None
        self.retries = self.dead_letters = self.dropped = self.refused = 0
        self._options = options
        self._clock = clock
        self._send = send
        self._warn = warn
        self._source_of = source_of or (lambda stream: (component, stream))
        self._rules = rules or {}
        self._chance = chance or Random()
        self._blame: Blame | None = (component, task, "fail", None, None)

    def __reduce__(self) -> tuple[Any, ...]:
        """A component's state may be pickled: the engine's own attributes are left out."""
        return type(None), ()

    def exhausted(self, attempts: int) -> bool:
        """Whether no retry is left after so many emits."""
        return attempts > self._options.max_spout_retries

    def hopeless(self, blame: Blame | None) -> bool:
        """Whether the bolt has said that a retry is useless."""
        return blame is not None and isinstance(blame[4], Hopeless)

    def _never(self, blame: Blame | None) -> bool:
        """Whether ``topology.retry.on`` says so."""
        if blame is None or blame[4] is None or isinstance(blame[4], (Hopeless, RetryLater)):
            return False
        rules = self._rules.get(blame[0])
        return rules is not None and rules.verdict(blame[4]) == "never"

    def _is_no_use(self, blame: Blame | None) -> bool:
        return self.hopeless(blame) or self._never(blame)

    def gives_up(self, attempts: int, blame: Blame | None) -> bool:
        """Whether a tuple that has failed in this way, after so many emits, is not emitted again."""
        return self._is_no_use(blame) or self.exhausted(attempts)

    def own_is_hopeless(self) -> bool:
        """As ``gives_up``, for the fail that the spout is being notified of, regardless of the spout's limit of
        attempts."""
        return self._is_no_use(self._blame)

    def again(self, values: Any, stream: str | None, offset: int, attempts: int, blame: Blame | None) -> float:
        """Seconds after which the engine emits the failed tuple again; -1 if it became a dead letter.

        ``stream``: None for the default one; other arguments as for ``failure.failed``. Raises as ``give_up``.
        """
        if self._is_no_use(blame):
            self.refused += 1
            self._end(self._failed(values, stream, offset, attempts, blame), self._why(blame))
            return -1
        if self.exhausted(attempts):
            limit = f"topology.max.spout.retries={self._options.max_spout_retries}"
            self.give_up(self._failed(values, stream, offset, attempts, blame), limit)
            return -1
        self.retries += 1
        cause = None if blame is None else blame[4]
        seconds = cause.seconds if isinstance(cause, RetryLater) else self._backoff(attempts)
        return seconds * (1 + JITTER * self._chance.random())

    def _failed(self, values: Any, stream: str | None, offset: int, attempts: int, blame: Blame | None) -> Failed:
        source = self._source_of(stream or "default")
        return failed((self.component, self.task), values, source, offset, attempts, blame)

    def _why(self, blame: Blame | None) -> str:
        way = "go on without it by topology.dead.letter=stream or drop"
        if self.hopeless(blame):
            return f"no retry helps, as the bolt says: {way}"
        return f"topology.retry.on says never: {way}, or name the exception there with retry"

    def _backoff(self, attempts: int) -> float:
        doublings = min(attempts - 1, LONGEST_BACKOFF_MILLIS.bit_length())
        return min(self._options.spout_retry_backoff_millis << doublings, LONGEST_BACKOFF_MILLIS) / 1000

    def give_up(self, lost: Failed, limit: str) -> None:
        """Makes the tuple a dead letter; ``limit``: the setting that limits its retries, such as ``max_fails=3``.

        Raises GivenUp if ``topology.dead.letter`` is ``fail``.
        """
        ways = "allow for more, or go on without it by topology.dead.letter=stream or drop"
        self._end(lost, f"no retry is left ({limit}): {ways}")
        rules = self._rules.get(lost.component)
        if lost.cause is not None and rules is not None and rules.verdict(lost.cause) == "retry":
            text = f"no retry is left ({limit}): {described(lost)}\n{shown(lost.cause)}"
            self._warn(f"gave up {type(lost.cause)}", text)  # in full: its attempts were logged in a line each

    def _end(self, lost: Failed, remedy: str) -> None:
        self.dead_letters += 1
        if self._options.dead_letter == "fail":
            raise GivenUp(self.component, self.task, lost, remedy) from lost.cause
        self._bury(lost)

    def give_up_unread(
        self, values: tuple[Any, ...], offset: int, reason: str, error: Callable[[], Exception], drop: str = ""
    ) -> bool:
        """Makes a dead letter of a record that a spout has read but cannot turn into a tuple. Returns whether it became
        a row.

        ``values``: as they were read; ``drop``: the spout's option that drops it, which overrides
        ``topology.dead.letter``. Raises the result of ``error()`` if ``topology.dead.letter`` is ``fail``.
        """
        self.dead_letters += 1
        if self._options.dead_letter == "fail" and not drop:
            raise error()
        name = f"{shortened(values)} of {self.component}.default"
        return self._bury(Failed(values, name, offset, 0, self.component, self.task, reason, reason), drop)

    def _bury(self, lost: Failed, drop: str = "") -> bool:
        """Sends the row of a dead letter, or drops it. Returns whether it was sent."""
        streams = self._options.dead_letter == "stream" and not drop
        if streams and self.keep is not None:
            self.keep(self._row(lost))
            return True
        if streams and self._send(self._row(lost)):
            return True
        self.dropped += 1
        why = drop or ("the stream __dead_letter has no reader" if streams else "topology.dead.letter is drop")
        self._warn(
            "dropped",
            f"drops a tuple, as {why}: {described(lost)}. Others are counted by the report alone",
        )
        return False

    def blame(self, blame: Blame | None) -> None:
        """Notes the cause of the next fail that the spout gets; None for a time-out."""
        self._blame = blame

    def give_up_own(self, message_id: Any, values: Any, stream: str | None, attempts: int, limit: str) -> None:
        """As ``give_up``, for a spout that keeps its own tuples and got a fail."""
        lost = self._failed(values, stream, -1, attempts, self._blame)
        lost = lost._replace(message_id=message_id)
        if self.own_is_hopeless():
            self.refused += 1
            self._end(lost, self._why(self._blame))
        else:
            self.give_up(lost, limit)

    def _row(self, lost: Failed) -> tuple[Any, ...]:
        return (
            lost.component,
            lost.reason,
            lost.attempts,
            self.partition,
            lost.offset if lost.offset >= 0 else None,
            json_text(lost.values),
            datetime.datetime.fromtimestamp(self._clock.wall(), datetime.UTC),
        )
