"""The user's spout behind a journal. Its tuples are written here; they do not enter the topology yet.

Tuples that the spout emits outside of ``next_tuple`` (in ``ack``, ``fail``, ``activate``) begin the next batch.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from cython_core.arrow.row_error import coded
from pystorm_source.api.spout import Spout
from pystorm_source.clock import Clock
from pystorm_source.errors import given
from pystorm_source.journal.log import Journal
from pystorm_source.journal.manifest import BatchRange, Manifest
from pystorm_source.journal.notes import notes_at
from pystorm_source.journal.options import JournalOptions
from pystorm_source.journal.orphans import orphaned_segments
from pystorm_source.journal.rows import JournalRows
from pystorm_source.journal.segment import StreamBatch
from pystorm_source.journal.writer import BatchWriter

TURN_SECONDS = 0.02
"""How long one call of ``poll`` keeps asking a spout that always has something. Too small: the scheduler's turn costs
more than the spout's calls. Too large: timers, ticks and a stop wait that long."""
FLUSH_SECONDS = 0.1
"""The age at which a tuple is written even if the spout has nothing more. Too small: a group, with its frames, for few
tuples. Too large: a killed attempt loses more tuples without ids."""
CALLS_TO_LOOK = 256
"""Calls of ``next_tuple`` between two checks for a full group. Too small: the check costs more than the call. Too
large: rows beyond a full batch wait in memory before they are written."""
MOST_RAISES = 100
"""Exceptions in a row of a spout with ``exit_on_exception = False`` before the task fails. Too small: a short outage
fails it. Too large: a spout that can only raise keeps the task busy until the batch's time is over."""


class PolledSpout:
    """One instance of the user's spout class. ``component``: its name; ``schemas``, ``direct``: as in ``JournalRows``.
    ``spout`` is the instance."""

    seconds_to_flush: ClassVar[float] = FLUSH_SECONDS

    def __init__(
        self, cls: type[Spout], component: str, schemas: Mapping[str, pa.Schema], direct: Sequence[str], clock: Clock
    ):
        self._cls = cls
        self._clock = clock
        self._rows = JournalRows(component, schemas, direct)
        self._writer: BatchWriter | None = None  # while the spout is polled
        self._count = 0
        self._ids: list[Any] = []
        self._early: list[tuple[Sequence[Any], Any, str, int | None]] = []
        self.outage: Any = None
        """The outage of the spout's source, from the worker."""
        self._has_notes = cls._pystorm_has_notes
        self._reached: tuple[str, int] | None = None  # journal and offset at which the spout's notes are
        self._owed: list[tuple[str, Any]] = []  # notices that the busy source has refused
        spout: Any = cls()
        spout._pystorm_sends = self._on_message
        if cls.emit is Spout.emit:
            spout.emit = self._quick_emit()  # the same, without a message between
        self.spout = spout

    @property
    def is_polled(self) -> bool:
        """True between ``begin`` and ``commit`` or ``give_up``."""
        return self._writer is not None

    def begin(
        self,
        journal: Journal,
        options: JournalOptions,
        batch: BatchRange,
        seconds: float,
        keeps: bool = True,
        fail_on_data_loss: bool = True,
    ) -> None:
        """Starts ``batch``: the next tuples belong to it, after those that killed attempts have left. ``seconds``: how
        long to poll; ``keeps``: whether ``commit`` returns the tuples. Raises as ``notes_at`` if the spout has
        notes."""
        if self._has_notes and self._reached != (journal.id, batch.start):
            self.spout._pystorm_resume(notes_at(journal, batch.start, fail_on_data_loss))
        self._reached, self._batch = None, (journal.id, batch)
        self._writer = BatchWriter(journal, options, batch, self._rows, self._clock, keeps)
        self._most = batch.end - batch.start
        self._rows.take()  # left by an attempt that broke off
        self._ids = []
        self._written_ids = 0
        self._flushed = self._clock.monotonic()
        self._deadline = self._flushed + seconds
        self._count = self._writer.recover(orphaned_segments(journal, batch, self._rows))
        self._raises = 0
        early, self._early = self._early, []
        for values, tup_id, stream, task in early:
            self._take(values, tup_id, stream, task)

    def poll(self) -> bool:
        """Polls the spout for at most 20 ms. True: the batch is full, or its time is over."""
        clock, ask, outage = self._clock.monotonic, self.spout.next_tuple, self.outage
        until = min(self._deadline, clock() + TURN_SECONDS)
        calls = 0
        while self._count < self._most:
            before = self._count
            is_out = outage is not None and outage.is_on
            try:
                if not (is_out and self._rests()):
                    has_ended = ask() is False
                    if is_out:
                        outage.end()
                    if has_ended:
                        break
                self._raises = 0
            except Exception as error:
                self._raised(error)
            now = clock()
            calls += 1
            if calls % CALLS_TO_LOOK == 0 and self._rows.is_full:
                self._flush(now)
            if now >= self._deadline and not (outage is not None and outage.is_waited_out and outage.is_on):
                break
            if self._count == before:
                if now - self._flushed >= self.seconds_to_flush:
                    self._flush(now)
                return False
            if now >= until:
                return False
        return True

    def commit(self) -> tuple[Manifest | None, list[tuple[StreamBatch, ...]]]:
        """Ends the batch and notifies the spout. Returns None and this attempt's tuples (if they are kept) if its
        tuples count, otherwise the manifest of the tuples that count, and no tuples."""
        assert self._writer is not None
        self._flush(self._clock.monotonic())
        winner = self._writer.commit(self.spout._pystorm_notes() if self._has_notes else None)
        if winner is None:
            self._reached = self._batch[0], self._batch[1].end
        writer, self._writer = self._writer, None
        self._notify("ack" if winner is None else "fail")
        return winner, writer.groups if winner is None else []

    def give_up(self) -> None:
        """Discards this attempt and notifies the spout. Does nothing if the spout is not polled."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.give_up()
            self._notify("fail")

    def _rests(self) -> bool:
        """Whether the unavailable source must rest. The batch goes on to its deadline with what it has."""
        if self.outage.rests():
            return True
        owed, self._owed = self._owed, []
        for place, (verdict, tup_id) in enumerate(owed):
            if not self._notified(verdict, tup_id):
                self._owed += owed[place:]
                return True
        return False

    def _is_busy(self, method: str, error: Exception) -> bool:
        if self.outage is None or not self.outage.passes(error):
            return False
        self.outage.note(method, error)
        return True

    def _raised(self, error: Exception) -> None:
        if self._is_busy("next_tuple", error):
            return
        self._raises += 1
        if self.spout.exit_on_exception or self._raises > MOST_RAISES:
            raise error
        self.spout.raise_exception(error)

    def _flush(self, now: float) -> None:
        assert self._writer is not None
        # Tuples of a spout with notes are read or delivered again, like messages with ids.
        self._writer.flush(has_ids=self._has_notes or len(self._ids) > self._written_ids)
        self._written_ids = len(self._ids)
        self._flushed = now

    def _notify(self, verdict: str) -> None:
        ids, self._ids = self._ids, []
        if self._has_notes:
            ids = [None]  # the spout knows what it has emitted
        for place, tup_id in enumerate(ids):
            if self._owed or not self._notified(verdict, tup_id):
                self._owed += [(verdict, each) for each in ids[place:]]
                return

    def _notified(self, verdict: str, tup_id: Any) -> bool:
        """False: the source is busy, and the same notice must be sent again."""
        try:
            if self._has_notes:
                self.spout._pystorm_batch_ended(verdict == "ack")
            else:
                getattr(self.spout, verdict)(tup_id)
        except Exception as error:
            if self._is_busy(verdict, error):
                return False
            if self.spout.exit_on_exception:
                raise
            self.spout.raise_exception(error)
        return True

    def _on_message(self, message: dict[str, Any]) -> bool:
        """Takes the spout's emits. The core passes them as pystorm's messages because the spout is in no topology."""
        if message["command"] != "emit":
            return False
        needs = message.get("need_task_ids", True)
        self._emitted(message["tuple"], message.get("id"), message.get("stream"), message.get("task"), needs)
        return True

    def _quick_emit(self) -> Callable[..., None]:
        """``_emitted`` for a spout of one stream, in a quarter of the time."""
        append = self._rows.straight
        if append is None:
            return self._emitted

        def emit(
            tup: Any, tup_id: Any = None, stream: Any = None, direct_task: Any = None, need_task_ids: bool = False
        ) -> None:
            if stream is not None or direct_task is not None or need_task_ids or self._writer is None:
                self._emitted(tup, tup_id, stream, direct_task, need_task_ids)
                return
            append(tup, self._count)
            self._count += 1
            if tup_id is not None:
                self._ids.append(tup_id)

        return emit

    def _emitted(
        self,
        tup: Sequence[Any],
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> None:
        """The spout's ``emit``."""
        if need_task_ids:
            raise coded(
                ValueError,
                "PYSTORM_TASK_IDS_UNKNOWN",
                f"{self._cls.__name__}.emit: a journaled tuple is sent to tasks later on: leave need_task_ids "
                f"out, or run without journal.path. Given: need_task_ids={given(need_task_ids)}",
            )
        if self._writer is None:
            self._early.append((tup, tup_id, stream or "default", direct_task))
        else:
            self._take(tup, tup_id, stream or "default", direct_task)

    def _take(self, tup: Sequence[Any], tup_id: Any, stream: str, direct_task: int | None) -> None:
        self._rows.append(tup, stream, direct_task, self._count)
        self._count += 1
        if tup_id is not None:
            self._ids.append(tup_id)
