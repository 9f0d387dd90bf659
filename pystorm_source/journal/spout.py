"""A journal around a spout without offsets, so that Spark can replay it.

    the user's spout ──emit──► JournalRows ──groups──► segments ──► manifest: committed, durable ──► ack(id) upstream
                                                                        │
                              a replay reads them ──────────────────────┴──► offsets, emitted into the topology

A micro-batch asks for offsets [start, end); tuple i of the batch has offset ``start + i``. A task first polls the spout
until ``batch.target.millis`` have passed or it has emitted ``end - start`` tuples (``polled_spout``). Then it commits
the batch (``writer``): the tuples of one attempt become final. Only then do they enter the topology, read back from
Arrow, so that a replay cannot differ. They enter as batches if only the output and bolts of batches take them. This is
the order of the LMAX Disruptor's journaler: consumers wait behind its barrier. The barrier is the manifest at the end
of the batch, because another attempt may be first until then. So nothing in a task runs beside the writing, and no ring
is needed.

With ``journal.readers``, other tasks read at the same time what the previous micro-batch committed (``positions``).

Threading law: as for every component, the executor's thread makes all calls.
"""

import base64
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Annotated, Any

import msgspec
import pyarrow as pa
from msgspec import Meta

from pystorm_source.api.partitioned_spout import PartitionedSpout, Snapshot
from pystorm_source.api.spout import Spout
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.journal.committed import Part, check_fields, cuts, parts_of, tuples_of
from pystorm_source.journal.log import Journal
from pystorm_source.journal.manifest import BatchRange, Manifest
from pystorm_source.journal.notes import is_over
from pystorm_source.journal.options import JournalOptions
from pystorm_source.journal.polled_spout import PolledSpout
from pystorm_source.journal.positions import (
    INTAKE,
    READ,
    JournalPositions,
    Share,
    journal_of,
    partition_that_leads,
    tasks_of,
)
from pystorm_source.journal.rows import Emit, JournalRows
from pystorm_source.journal.segment import Group, StreamBatch
from pystorm_source.options import Options, parse

INTERNAL = ("journal.schemas", "journal.direct", "journal.permits", "journal.poll.millis")


class JournaledSpoutOptions(Options, frozen=True, kw_only=True):
    """The planner's settings for a journaled spout besides ``JournalOptions``. ``schemas``: stream → Arrow schema: its
    IPC message in base64."""

    schemas: dict[str, str] = msgspec.field(name="journal.schemas")
    direct: list[str] = msgspec.field(name="journal.direct", default_factory=list)
    permits: Annotated[int, Meta(ge=1)] = msgspec.field(name="journal.permits")
    poll_millis: int = msgspec.field(name="journal.poll.millis")
    fail_on_data_loss: bool = msgspec.field(name="failOnDataLoss", default=True)


class JournaledSpout(PartitionedSpout):
    """``JournaledSpout(cls)``: a spout of class ``cls`` behind a journal. Its partitions are named after the journal's
    id, which the first micro-batch of a query creates and its offsets keep."""

    clock: Clock = SystemClock()
    bounded = False
    poll_seconds = 0.0  # the heads are counted from the offset that Spark passes
    _pystorm_is_journal = True
    _pystorm_opens_source = False  # it opens the journal instead

    def __init__(self, spout_cls: type[Spout]):
        self._spout_cls = spout_cls
        self._polled: PolledSpout | None = None
        self._is_active = False
        self._journal: Journal | None = None
        self._began: int | None = None
        self._emits: Iterator[Emit] = iter(())
        self._batches: Iterator[pa.RecordBatch] = iter(())  # the same tuples: only one of the two is read
        self._by_column = False

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self._options = parse(JournalOptions, conf)
        self._plan = parse(JournaledSpoutOptions, conf)
        self._on_driver = context["place"] == "driver"
        if self._on_driver:
            return
        self._conf, self._context = conf, context
        self._shares = list(context["task->component"].values()).count(str(self.component_name))
        self._schemas = {name: _schema(text) for name, text in self._plan.schemas.items()}
        self._rows = JournalRows(str(self.component_name), self._schemas, self._plan.direct)
        if self._options.readers is None:
            self._start_spout()

    def _start_spout(self) -> PolledSpout:
        """With readers, starts the spout only in a process that polls: a client that nothing polls would still take
        tuples, or keep them from others."""
        if self._polled is None:
            polled = PolledSpout(
                self._spout_cls, str(self.component_name), self._schemas, self._plan.direct, self.clock
            )
            spout = polled.spout
            polled.outage = self._pystorm_outage
            self._pystorm_lend(spout)
            spout._start({key: value for key, value in self._conf.items() if key not in INTERNAL}, self._context)
            self._polled = polled
        return self._polled

    # --- driver

    def snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str]) -> Snapshot:
        """Lets Spark ask for a full micro-batch beyond its offset: the number of tuples that the spout will emit is
        unknown."""
        begin = 0
        if known:
            at = self._checked(known)
            if self._journal is None or self._journal.id != at.id:  # once: from now on only this process trims it
                journal = self._journal_of(at.id)
                begin = journal.reconcile(at.read, self._plan.fail_on_data_loss)
                self._journal = journal
        else:
            if self._journal is None:
                self._journal = self._journal_of(uuid.uuid4().hex)
                self._journal.found()
            at = JournalPositions(self._journal.id, 0, 0)
        permits = 0 if self._pystorm_is_frozen and self._is_over(at.polled) else self._plan.permits
        return at.snapshot(known, begin, permits, self._options.readers is not None, state)

    def _is_over(self, polled: int) -> bool:
        """Whether a run that reads everything available has reached the end of the source."""
        if self._began is None:
            self._began = polled  # the end that the previous run saw may no longer be the end
        return polled > self._began and self._journal is not None and is_over(self._journal, polled)

    def split(self, partition: str, start: int, end: int, parts: int) -> list[int]:
        """In a task, splits evenly for its instances; between Spark's tasks, only as ``_pystorm_tasks`` says."""
        if self._on_driver:
            return []
        if partition.endswith(READ):
            return cuts(self._journal_of(journal_of(partition)), start, end, parts)
        return super().split(partition, start, end, parts)

    def commit(self, offsets: Mapping[str, int]) -> None:
        """Trims the journal."""
        at = self._checked(offsets)
        self._journal_of(at.id).trim(at.read)

    @classmethod
    def _pystorm_leader_of(cls, partition: str) -> str | None:
        return partition_that_leads(partition)

    def _pystorm_tasks(self, ranges: list[Share]) -> list[Share]:
        readers = self._options.readers or 1
        return tasks_of(ranges, lambda share: cuts(self._journal_of(journal_of(share[0])), *share[1:], readers))

    def _checked(self, known: Mapping[str, int]) -> JournalPositions:
        """Raises CheckpointError for offsets that do not belong to one journal."""
        at = JournalPositions.of(str(self.component_name), known)
        self._journal_of(at.id)
        return at

    def _journal_of(self, id: str) -> Journal:
        has_notes = self._spout_cls._pystorm_has_notes
        return Journal(self._options, str(self.component_name), id, self.clock, has_notes)

    # --- task

    def open(self, partition: str, start: int, end: int) -> None:
        """Reads a committed batch; for an open one, polls the spout. Raises as ``Journal.opened`` and
        ``committed.parts_of`` do."""
        self.close()  # for a run that broke off without it
        self._journal = journal = self._journal_of(journal_of(partition))
        self._read(())
        fail = self._plan.fail_on_data_loss
        if partition.endswith(READ):
            self._read(parts_of(journal, start, end, fail))
            return
        self._batch = BatchRange(start, end)
        self._is_intake = partition.endswith(INTAKE)
        manifest = journal.opened(self._batch, self._shares, fail)
        if manifest is not None:
            self._follow(manifest)
            return
        if self._options.readers is not None and self._polled is None:
            check_fields(journal, self._rows)
        polled = self._start_spout()
        if not self._is_active:
            self._is_active = True
            polled.spout.activate()
        seconds = self._plan.poll_millis / 1000
        polled.begin(journal, self._options, self._batch, seconds, keeps=not self._is_intake, fail_on_data_loss=fail)

    def next_tuple(self) -> Any:
        """Polls the spout for at most 20 ms; once the batch is committed, emits one of its tuples."""
        polled = self._polled
        if polled is not None and polled.is_polled:
            if not polled.poll():
                return None
            self._committed(*polled.commit())
        if self._by_column:
            return self._emit_batch()
        for values, stream, task in self._emits:
            # Tuples beyond the last permit, from one call, share the last offset.
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
        # ``next_tuple`` polls it in any case: it may return without a tuple, ``next_batch`` may not.
        self._by_column = straight and self._rows.are_columns
        return False

    def activate(self) -> None:
        if self._options.readers is None and self._polled is not None:
            self._is_active = True
            self._polled.spout.activate()

    def deactivate(self) -> None:
        if self._is_active and self._polled is not None:
            self._is_active = False
            self._polled.spout.deactivate()

    def close(self) -> None:
        """If the run broke off while the spout was polled, discards the attempt and notifies the spout."""
        self._read(())
        if self._polled is not None:
            self._polled.give_up()

    def cleanup(self) -> None:
        if self._polled is not None:
            self._polled.spout.cleanup()

    def _committed(self, winner: Manifest | None, groups: Sequence[Sequence[StreamBatch]]) -> None:
        """The next micro-batch reads an intake's tuples."""
        if winner is not None:
            self._follow(winner)
        elif not self._is_intake:
            self._next, self._last = self._batch.start, self._batch.end - 1
            self._emits = chain.from_iterable(map(self._rows.emits, groups))
            self._batches = chain.from_iterable(map(self._rows.batches, groups))

    def _follow(self, manifest: Manifest) -> None:
        if not self._is_intake:
            self._read([Part(manifest)])

    def _read(self, parts: Iterable[Part]) -> None:
        self._emits = chain.from_iterable(map(self._emits_of, parts))
        self._batches = chain.from_iterable(map(self._batches_of, parts))

    def _emits_of(self, part: Part) -> Iterator[Emit]:
        for offset, group, low, high in self._groups_of(part):
            self._next, self._last = offset, part.last
            yield from islice(self._rows.emits(group), low, high)

    def _batches_of(self, part: Part) -> Iterator[pa.RecordBatch]:
        for offset, group, low, high in self._groups_of(part):
            self._next, self._last = offset, part.last
            at = 0
            for batch in self._rows.batches(group):
                skipped = max(low - at, 0)
                taken = min(high - at, batch.num_rows) - skipped
                at += batch.num_rows
                if taken > 0:
                    yield batch.slice(skipped, taken)

    def _groups_of(self, part: Part) -> Iterator[tuple[int, Group, int, int]]:
        assert self._journal is not None
        return tuples_of(self._journal, part, self._rows, self._plan.fail_on_data_loss)


def _schema(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
