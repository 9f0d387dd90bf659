"""A source that is busy: whether an exception says so, when to ask the spout again, and when to give up.

a call raises RetryLater, or what topology.retry.on calls worth a retry ──► note ──► again_at ──► … ──► end
                                                                              └► after spout.unavailable.timeout:
                                                                                 SpoutUnavailable

In a task, topology.retry.on holds only for calls that depend on nothing but their arguments (``repeatable``). Another
call, such as next_tuple, may have moved on before it raised: its repetition could skip a row.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from random import Random
from types import MappingProxyType

from cython_core.routing.failure_kinds import FailureKind, RetryLater
from pystorm_source.clock import Clock
from pystorm_source.errors import one_line, said
from pystorm_source.options import EngineOptions
from pystorm_source.worker.ended_generator import ended_generator, refuse_ended_generator
from pystorm_source.worker.failure import SpoutUnavailable, tuple_failed
from pystorm_source.worker.failure_rules import FailureRules
from pystorm_source.worker.users_method import users_method

logger = logging.getLogger("pystorm.source")

FIRST_SECONDS = 0.5
"""Pause before the second attempt if the source names no time; each further pause is twice as long. Too large: a short
hiccup costs as much. Too small: a source that restarts is asked in vain."""
LONGEST_SECONDS = 30.0
"""The longest such pause. Too large: rows wait although the source is back. Too small: a source in trouble gets no
rest."""
LEAST_SECONDS = 0.01
"""If the source names a time, the second pause is at least so long, and the least one doubles up to ``FIRST_SECONDS``.
Too large: a source that is ready within milliseconds is asked late. 0: one that says 0, and stays busy, is asked as
often as a core can, for ten minutes."""
JITTER = 0.2
"""A pause is up to this share longer. Larger: rows wait. Smaller: queries that were refused together ask again
together."""
LEAST_ATTEMPTS = 3
"""Attempts before a source counts as gone, no matter how much time has passed. Too large: commits, which are rare, are
refused forever. Too small: two refused commits at night end a query."""
READS = frozenset({"next_tuple", "next_batch"})
"""Methods that continue where the last call ended."""
NO_RULES: Mapping[str, str] = MappingProxyType({})


class SourceOutage:
    """The outage of one spout's source, in one place: ``task`` 0 is the driver. Between ``note`` and ``end`` the source
    is unavailable.

    ``rules``: what ``topology.retry.on`` says. ``again_at``: the reading of the clock before which the spout must not
    be asked; 0 without an outage. ``reason``: the last error, with its call; empty without one.
    ``is_waited_out``: a micro-batch with a journal must not end in time while it lasts.
    """

    def __init__(
        self,
        spout: str,
        task: int,
        options: EngineOptions,
        clock: Clock,
        rules: Mapping[str, str] = NO_RULES,
        chance: Random | None = None,
    ):
        self.spout = spout
        self.task = task
        self.again_at = 0.0
        self.reason = ""
        self.is_waited_out = False
        self._timeout = options.spout_unavailable_seconds
        self._given = options.spout_unavailable_timeout
        self._clock = clock
        self._rules = FailureRules(rules)
        self._chance = chance or Random()
        self._since: float | None = None
        self._attempts = 0
        self._repeatable: Exception | None = None

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """A component's state may be pickled: the engine's own attributes are left out."""
        return type(None), ()

    @property
    def is_on(self) -> bool:
        """Whether the source is unavailable."""
        return self._since is not None

    @property
    def seconds(self) -> float:
        """For how long it has been unavailable."""
        return 0.0 if self._since is None else self._clock.monotonic() - self._since

    def rests(self) -> bool:
        """Whether the spout must not be asked now."""
        return self._since is not None and self._clock.monotonic() < self.again_at

    @contextmanager
    def repeatable(self) -> Iterator[None]:
        """Wraps a call in a task that may be made again with the same arguments."""
        self._repeatable = None
        try:
            yield
        except Exception as error:
            self._repeatable = error
            raise

    def passes(self, error: BaseException | None) -> bool:
        """Whether the exception of a call says that the source is only busy."""
        if isinstance(error, RetryLater):
            return True
        if not isinstance(error, Exception) or isinstance(error, FailureKind):
            return False
        # One that has ended a generator fails the task, as without rules: the next call could find nothing more in it.
        may_repeat = self.task == 0 or (error is self._repeatable and ended_generator(error) is None)
        return may_repeat and self._rules.retries(error)

    def note(self, method: str, error: BaseException) -> None:
        """Notes that a call was refused. Raises SpoutUnavailable if that has lasted too long; TopologyError if the
        spout cannot continue where it was."""
        self._repeatable = None  # its traceback would keep the frames
        if method in READS and isinstance(error, RetryLater):
            refuse_ended_generator(self.spout, users_method(method, error), error)
        now = self._clock.monotonic()
        if self._since is None:
            self._since, self._attempts = now, 0
        self._attempts += 1
        end = self._since + self._timeout
        if now >= end and self._attempts >= LEAST_ATTEMPTS:
            raise SpoutUnavailable(
                self.spout, self.task, method, self._attempts, now - self._since, self._given
            ) from error
        if isinstance(error, RetryLater):
            pause = error.seconds
            if self._attempts > 1:
                pause = max(pause, min(LEAST_SECONDS * 2 ** min(self._attempts - 2, 16), FIRST_SECONDS))
        else:
            pause = min(FIRST_SECONDS * 2 ** min(self._attempts - 1, 16), LONGEST_SECONDS)
        pause *= 1 + JITTER * self._chance.random()
        # Not beyond the bound: the last attempt is at that time. The few attempts after it also have pauses in between.
        self.again_at = now + (min(pause, end - now) if now < end else min(pause, FIRST_SECONDS))
        self.reason = f"{users_method(method, error)}() raised {one_line(said(error))}"
        if self._attempts == 1:
            logger.warning(
                "the source of spout %r is unavailable: %s; asked again in %.1f s, for at most %s "
                "(spout.unavailable.timeout)",
                self.spout,
                self.reason,
                self.again_at - now,
                self._given,
            )

    def note_on_driver(self, method: str, error: BaseException | None) -> None:
        """As ``note``. Raises TupleFailed."""
        assert error is not None
        try:
            self.note(method, error)
        except SpoutUnavailable as failure:
            raise tuple_failed(failure) from error

    def end(self) -> None:
        """Notes that the spout has answered."""
        if self._since is None:
            return
        logger.warning(
            "the source of spout %r is available again, after %.1f s and %d attempts",
            self.spout,
            self.seconds,
            self._attempts + 1,
        )
        self._since, self.again_at, self.reason = None, 0.0, ""

    def sleep(self) -> None:
        """Blocking, until the spout may be asked again."""
        self._clock.sleep(max(0.0, self.again_at - self._clock.monotonic()))
