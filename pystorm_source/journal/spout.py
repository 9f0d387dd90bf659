"""A journal around a spout without offsets, so that Spark can replay it.

    the user's spout ──emit──► JournalRows ──groups──► segments ──► manifest: committed, durable ──► ack(id) upstream
                                                                        │
                              a replay reads them ──────────────────────┴──► offsets, emitted into the topology

A micro-batch asks for offsets [start, end), tuple i of the batch has offset ``start + i``. A task polls first: the
spout is asked until ``batch.target.millis`` have passed or it has emitted ``end - start`` tuples. Then the batch is
committed (``writer``): one attempt's tuples are its tuples for ever. Only then does the first of them enter the
topology, read back from Arrow, so that a replay cannot differ from the first run. If nothing but the output and bolts
of batches takes them, they enter as the batches that they are. This is the order of the LMAX
Disruptor's journaler: consumers wait behind its barrier. The barrier is the manifest, and it comes at the end of the
batch, for before it another attempt may still be first; so nothing runs beside the writing, and no ring is needed.

Tuples that the spout emits outside of ``next_tuple`` (in ``ack``, ``fail``, ``activate``) begin the next batch.

Threading law: as every component; all calls come from the executor's thread.
"""

import base64
import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Annotated, Any, ClassVar

import msgspec
import pyarrow as pa
from msgspec import Meta

from cython_core.arrow.row_error import coded
from pystorm_source.api.partitioned_spout import PartitionedSpout, Snapshot
from pystorm_source.api.spout import Spout
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import CheckpointError, given
from pystorm_source.journal.log import Journal
from pystorm_source.journal.manifest import BatchRange, Manifest
from pystorm_source.journal.options import JournalOptions
from pystorm_source.journal.orphans import orphaned_segments
from pystorm_source.journal.rows import Emit, JournalRows
from pystorm_source.journal.segment import Group, StreamBatch
from pystorm_source.journal.writer import BatchWriter
from pystorm_source.options import Options, parse

logger = logging.getLogger("pystorm.journal")

TURN_SECONDS = 0.02
"""How long one call of ``next_tuple`` goes on asking a spout that always has something. Too small: the scheduler's turn
costs more than the spout's calls. Too large: timers, ticks and a stop wait that long."""
FLUSH_SECONDS = 0.1
"""How old a tuple gets before it is written though the spout has nothing more. Too small: a group, with its frames, for
few tuples. Too large: a killed attempt loses more tuples without ids."""
CALLS_TO_LOOK = 256
"""Calls of ``next_tuple`` between two looks whether there is enough for a group. Too small: the look costs more than
the call. Too large: rows beyond a full batch wait in memory before they are written."""
MOST_RAISES = 100
"""Exceptions in a row, of a spout with ``exit_on_exception = False``, before the task fails. Too small: a short outage
fails it. Too large: a spout that can only raise keeps the task busy until the batch's time is over."""

INTERNAL = ("journal.schemas", "journal.direct", "journal.permits")


class JournaledSpoutOptions(Options, frozen=True, kw_only=True):
    """The planner's settings for a journaled spout besides ``JournalOptions``. ``schemas``: stream → Arrow schema, as
    the base64 text of its IPC message."""

    schemas: dict[str, str] = msgspec.field(name="journal.schemas")
    direct: list[str] = msgspec.field(name="journal.direct", default_factory=list)
    permits: Annotated[int, Meta(ge=1)] = msgspec.field(name="journal.permits")
    target_millis: int = msgspec.field(name="batch.target.millis", default=1000)
    fail_on_data_loss: bool = msgspec.field(name="failOnDataLoss", default=True)


class JournaledSpout(PartitionedSpout):
    """``JournaledSpout(cls)``: a spout of class ``cls`` behind a journal. Its one partition is the journal's id, which
    is made for the first micro-batch of a query and stays in its offsets."""

    clock: Clock = SystemClock()
    bounded = False
    seconds_to_flush: ClassVar[float] = FLUSH_SECONDS

    def __init__(self, spout_cls: type[Spout]):
        self._spout_cls = spout_cls
        self._spout: Any = None
        self._journal: Journal | None = None
        self._batch: BatchRange | None = None
        self._writer: BatchWriter | None = None  # while the spout is polled
        self._emits: Iterator[Emit] = iter(())
        self._batches: Iterator[pa.RecordBatch] = iter(())  # of the same tuples: one of both is read
        self._by_column = False
        self._count = 0
        self._ids: list[Any] = []
        self._early: list[tuple[Sequence[Any], Any, str, int | None]] = []

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self._options = parse(JournalOptions, conf)
        self._plan = parse(JournaledSpoutOptions, conf)
        self._on_driver = context["place"] == "driver"
        if self._on_driver:
            return
        self._shares = list(context["task->component"].values()).count(str(self.component_name))
        schemas = {name: _schema(text) for name, text in self._plan.schemas.items()}
        self._rows = JournalRows(str(self.component_name), schemas, self._plan.direct)
        self._spout = self._spout_cls()
        self._spout._pystorm_sends = self._on_message
        self._spout._pystorm_metrics = self._pystorm_metrics
        self._spout._pystorm_reported = self._pystorm_reported
        self._spout._pystorm_errors = self._pystorm_errors
        self._spout._pystorm_options = self._pystorm_options
        if self._spout_cls.emit is Spout.emit:
            self._spout.emit = self._quick_emit()  # the same, without a message between
        own = {key: value for key, value in conf.items() if key not in INTERNAL}
        self._spout._start(own, context)

    # --- driver

    def snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str]) -> Snapshot:
        """A full micro-batch ahead of Spark's offset: the number of tuples that the spout will emit is unknown."""
        if not known:
            if self._journal is None:
                self._journal = self._journal_of(uuid.uuid4().hex)
                self._journal.found()
            return Snapshot({self._journal.id: (0, self._plan.permits)}, state)
        name, offset = self._checked(known)
        begin = 0
        if self._journal is None or self._journal.id != name:  # once: from here on this process alone trims it
            journal = self._journal_of(name)
            begin = journal.reconcile(offset, self._plan.fail_on_data_loss)
            self._journal = journal
        return Snapshot({name: (begin, max(offset, begin) + self._plan.permits)}, state)

    def split(self, partition: str, start: int, end: int, parts: int) -> list[int]:
        """In a task, even shares for its instances; never between Spark's tasks."""
        return [] if self._on_driver else super().split(partition, start, end, parts)

    def commit(self, offsets: Mapping[str, int]) -> None:
        """Trims the journal."""
        name, offset = self._checked(offsets)
        self._journal_of(name).trim(offset)

    def _checked(self, known: Mapping[str, int]) -> tuple[str, int]:
        """The journal that an offset names, and the offset in it."""
        if len(known) != 1:
            raise CheckpointError(
                f"the checkpoint names several journals of spout {self.component_name!r}, which has one: it was "
                f"changed; give this query a checkpointLocation of its own. Given: {dict(known)!r}",
                code="PYSTORM_CHECKPOINT_OF_ANOTHER_TOPOLOGY",
            )
        ((name, offset),) = known.items()
        self._journal_of(name)
        return name, offset

    def _journal_of(self, id: str) -> Journal:
        return Journal(self._options, str(self.component_name), id, self.clock)

    # --- task

    def open(self, partition: str, start: int, end: int) -> None:
        """A batch that is committed is read; for another one the spout is polled. Raises as ``Journal.opened`` does."""
        if self._writer is not None:
            self.close()  # of a run that broke off without it
        self._journal = self._journal_of(partition)
        self._batch = BatchRange(start, end)
        self._read(iter(()))
        self._next, self._last = start, end - 1
        manifest = self._journal.opened(self._batch, self._shares, self._plan.fail_on_data_loss)
        if manifest is not None:
            self._follow(manifest)
            return
        self._writer = BatchWriter(self._journal, self._options, self._batch, self._rows, self.clock)
        self._rows.take()  # of an attempt that broke off
        self._ids = []
        self._written_ids = 0
        self._flushed = self.clock.monotonic()
        self._deadline = self._flushed + self._plan.target_millis / 1000
        self._count = self._writer.recover(orphaned_segments(self._journal, self._batch, self._rows))
        self._raises = 0
        early, self._early = self._early, []
        for values, tup_id, stream, task in early:
            self._take(values, tup_id, stream, task)

    def next_tuple(self) -> Any:
        """Polls the spout, at most 20 ms long; once the batch is committed, emits one of its tuples."""
        if self._writer is not None and not self._poll():
            return None
        if self._by_column:
            return self._emit_batch()
        for values, stream, task in self._emits:
            # Tuples of one call beyond the last permit share the last offset.
            offset = min(self._next, self._last)
            self._next += 1
            if stream == "default" and task is None:
                self.emit(values, offset)  # the quick way
            else:
                self.emit(values, offset, stream, task)
            return None
        return False

    def _emit_batch(self) -> Any:
        for batch in self._batches:
            self._next += batch.num_rows
            self.emit_batch(batch, min(self._next - 1, self._last))
            return None
        return False

    def _pystorm_reads_batches(self, straight: bool) -> bool:
        # Polled it is by ``next_tuple`` in any case, which may return without a tuple, as ``next_batch`` may not.
        self._by_column = straight and self._rows.are_columns
        return False

    def activate(self) -> None:
        self._spout.activate()

    def deactivate(self) -> None:
        self._spout.deactivate()

    def close(self) -> None:
        """If the run broke off while the spout was polled, nothing of it counts, and the spout is notified."""
        writer, self._writer = self._writer, None
        self._read(iter(()))
        if writer is not None:
            writer.give_up()
            self._notify("fail")

    def cleanup(self) -> None:
        if self._spout is not None:
            self._spout.cleanup()

    def _poll(self) -> bool:
        """Whether the batch is committed."""
        assert self._batch is not None
        most = self._batch.end - self._batch.start
        clock, ask = self.clock.monotonic, self._spout.next_tuple
        until = min(self._deadline, clock() + TURN_SECONDS)
        calls = 0
        while self._count < most:
            before = self._count
            try:
                if ask() is False:
                    break
                self._raises = 0
            except Exception as error:
                self._raised(error)
            now = clock()
            calls += 1
            if calls % CALLS_TO_LOOK == 0 and self._rows.is_full:
                self._flush(now)
            if now >= self._deadline:
                break
            if self._count == before:
                if now - self._flushed >= self.seconds_to_flush:
                    self._flush(now)
                return False
            if now >= until:
                return False
        self._commit()
        return True

    def _raised(self, error: Exception) -> None:
        self._raises += 1
        if self._spout.exit_on_exception or self._raises > MOST_RAISES:
            raise error
        self._spout.raise_exception(error)

    def _commit(self) -> None:
        assert self._writer is not None
        self._flush(self.clock.monotonic())
        winner = self._writer.commit()
        writer, self._writer = self._writer, None
        if winner is None:
            self._read(iter(writer.groups))
            self._notify("ack")
        else:
            self._notify("fail")
            self._follow(winner)

    def _follow(self, manifest: Manifest) -> None:
        assert self._journal is not None
        self._read(self._journal.read(manifest, self._rows, self._plan.fail_on_data_loss))

    def _read(self, groups: Iterator[Group | Sequence[StreamBatch]]) -> None:
        self._emits = chain.from_iterable(map(self._rows.emits, groups))
        self._batches = chain.from_iterable(map(self._rows.batches, groups))

    def _flush(self, now: float) -> None:
        assert self._writer is not None
        self._writer.flush(has_ids=len(self._ids) > self._written_ids)
        self._written_ids = len(self._ids)
        self._flushed = now

    def _notify(self, verdict: str) -> None:
        ids, self._ids = self._ids, []
        notified = getattr(self._spout, verdict)
        for tup_id in ids:
            try:
                notified(tup_id)
            except Exception as error:
                if self._spout.exit_on_exception:
                    raise
                self._spout.raise_exception(error)

    def _on_message(self, message: dict[str, Any]) -> bool:
        """The spout is in no topology, so the core hands its emits over as pystorm's messages."""
        if message["command"] != "emit":
            return False
        needs = message.get("need_task_ids", True)
        self._emitted(message["tuple"], message.get("id"), message.get("stream"), message.get("task"), needs)
        return True

    def _quick_emit(self) -> Any:
        """``_emitted``, for a spout of one stream, whose emits take a quarter of the time then."""
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
        """``emit`` of the spout."""
        if need_task_ids:
            raise coded(
                ValueError,
                "PYSTORM_TASK_IDS_UNKNOWN",
                f"{self._spout_cls.__name__}.emit: a journaled tuple is sent to tasks later on: leave need_task_ids "
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


def _schema(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
