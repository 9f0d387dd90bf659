"""Rows/s into a journal that is on disk when a micro-batch ends, against the barest Arrow writer with the same waits.

    rows        tuples of Python: row builder, frames with CRC, manifest, folder; the peer makes its arrays by
                ``pyarrow.array`` and writes them with pyarrow's IPC stream writer
    batches     the same rows, Arrow already on both sides: what is left are copies, CRCs and waits for the disk
    batches-10  ten times as many rows in one micro-batch
    spout       the same behind ``emit`` of a spout and the acks; the peer is that of ``rows``
    replay      tuples of Python read back from a journal; the peer is ``pyarrow.ipc.open_stream`` and ``to_pylist``
    replay-out  a micro-batch that is run again by a worker, journaled spout → output; the peer is the same by tuple

A micro-batch is 100,000 rows of a word and a number, 2.9 MB. Ours and the peer's take turns; both wait for the disk
once per file (``fsync`` of the data; ours of the manifest and the folder, too).
"""

import base64
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import Record, record
from pystorm_source.api import Spout, Topology
from pystorm_source.clock import SystemClock
from pystorm_source.journal.log import Journal
from pystorm_source.journal.manifest import BatchRange
from pystorm_source.journal.options import JournalOptions
from pystorm_source.journal.rows import JournalRows
from pystorm_source.journal.segment import StreamBatch
from pystorm_source.journal.spout import JournaledSpout
from pystorm_source.journal.writer import BatchWriter
from pystorm_source.options import SourceOptions, parse
from pystorm_source.plan import compile_plan
from pystorm_source.source.journaled import journaled
from pystorm_source.worker import OutputPlan, Worker

ASKED = 0.8
ID = "f" * 32
SCHEMA = pa.schema([("word", pa.string()), ("n", pa.int64())])


class WordSpout(Spout):
    """Emits the rows it was given, each with an id, without an end."""

    outputs = ["word string", "n long"]
    rows: list[tuple[str, int]] = []

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.left = iter(self.rows)
        self.acked = 0

    def next_tuple(self) -> None:
        for row in self.left:
            self.emit(row, tup_id=row[1])
            return
        self.left = iter(self.rows)

    def ack(self, tup_id: int) -> None:
        self.acked += 1


class Journals:
    """A journal in ``folder``, one batch after the other, trimmed behind."""

    def __init__(self, folder: Path, size: int):
        self.options = JournalOptions(path=str(folder))
        self.journal = Journal(self.options, "words", ID)
        self.journal.found()
        self.rows = JournalRows("words", {"default": SCHEMA})
        self.size = size
        self.at = 0

    def next_batch(self) -> BatchRange:
        """The batch to write, those before it trimmed."""
        self.journal.trim(self.at)
        self.at += self.size
        return BatchRange(self.at - self.size, self.at)

    def writer(self, batch: BatchRange) -> BatchWriter:
        """An attempt at it."""
        return BatchWriter(self.journal, self.options, batch, self.rows, SystemClock())


def run(settings: Settings) -> Iterator[Record]:
    """One record per case."""
    size = 2_000 if settings.quick else 100_000
    rounds = settings.runs_of(15)
    rows = [(f"word-{n % 1000}-abcdefgh", n) for n in range(size)]
    folder = Path(tempfile.mkdtemp(prefix="journal-", dir=os.environ.get("PYSTORM_BENCH_FOLDER")))
    try:
        journals = Journals(folder, size)
        filled = _filled(journals, rows)
        many = Journals(folder / "many", size * 10)
        spout, replay = _spout(folder, rows), _replay(Journals(folder / "replay", size), rows)
        for case, count, ours, peer, asked in (
            ("rows", size, lambda: _rows(journals, rows), lambda: _raw(folder, _arrays(rows)), ASKED),
            ("batches", size, lambda: _batches(journals, filled), lambda: _raw(folder, filled), ASKED),
            ("batches-10", size * 10, lambda: _batches(many, filled * 10), lambda: _raw(folder, filled * 10), ASKED),
            ("spout", size, spout, lambda: _raw(folder, _arrays(rows)), None),
            ("replay", size, replay, _raw_replay(folder, filled), None),
            ("replay-out", size, _replay_out(folder, rows, JournaledSpout), _replay_out(folder, rows, ByTuple), None),
        ):
            if settings.wants(case):
                mine, theirs = _in_turn(ours, peer, rounds)
                yield record(
                    "journal",
                    case,
                    [count / seconds for seconds in mine],
                    "rows/s",
                    peer="by tuple" if case == "replay-out" else "pyarrow.ipc",
                    peer_version=None if case == "replay-out" else pa.__version__,
                    peer_values=[count / seconds for seconds in theirs],
                    asked=asked,
                    rows=count,
                )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _in_turn(ours: Callable[[], float], peer: Callable[[], float], rounds: int) -> tuple[list[float], list[float]]:
    ours(), peer()  # warm
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        for which in (0, 1) if number % 2 else (1, 0):
            times[which].append((ours, peer)[which]())
    return times


def _filled(journals: Journals, rows: list[tuple[str, int]]) -> list[pa.RecordBatch]:
    for n, row in enumerate(rows):
        journals.rows.append(row, "default", None, n)
    return [each.batch for each in journals.rows.take()]


def _arrays(rows: list[tuple[str, int]]) -> Callable[[], list[pa.RecordBatch]]:
    return lambda: [
        pa.record_batch(
            [pa.array([word for word, _ in rows], pa.string()), pa.array([n for _, n in rows], pa.int64())],
            schema=SCHEMA,
        )
    ]


def _batches(journals: Journals, batches: list[pa.RecordBatch]) -> float:
    batch = journals.next_batch()
    groups = [[StreamBatch(0, batch)] for batch in batches]
    began = time.perf_counter()
    writer = journals.writer(batch)
    for group in groups:
        writer.put(group, has_ids=False)
    assert writer.commit() is None
    return time.perf_counter() - began


def _rows(journals: Journals, rows: list[tuple[str, int]]) -> float:
    batch = journals.next_batch()
    began = time.perf_counter()
    writer = journals.writer(batch)
    append = journals.rows.straight
    assert append is not None
    for n, row in enumerate(rows):
        append(row, n)
    writer.flush(has_ids=False)
    assert writer.commit() is None
    return time.perf_counter() - began


def _raw(folder: Path, batches: list[pa.RecordBatch] | Callable[[], list[pa.RecordBatch]]) -> float:
    path = folder / "raw.arrows"
    path.unlink(missing_ok=True)
    began = time.perf_counter()
    with path.open("wb") as file:
        with pa.ipc.new_stream(file, SCHEMA) as writer:
            for batch in batches() if callable(batches) else batches:
                writer.write_batch(batch.replace_schema_metadata(None))
        file.flush()
        os.fsync(file.fileno())
    return time.perf_counter() - began


def _spout(folder: Path, rows: list[tuple[str, int]]) -> Callable[[], float]:
    """A journaled spout as a task opens it, up to the first tuple that may enter the topology."""
    WordSpout.rows = rows
    spout = JournaledSpout(WordSpout)
    conf = {
        "journal.path": str(folder / "spout"),
        "journal.permits": len(rows),
        "journal.schemas": {"default": base64.b64encode(SCHEMA.serialize()).decode()},
        "batch.target.millis": 600_000,
    }
    spout._start(conf, {"componentid": "words", "taskid": 1, "place": "task", "task->component": {"1": "words"}})
    driver = JournaledSpout(WordSpout)
    driver._start(conf, {"componentid": "words", "taskid": 1, "place": "driver"})
    (id,) = driver.snapshot({}, {}).heads
    ends = iter(range(len(rows), 1 << 62, len(rows)))

    def once() -> float:
        end = next(ends)
        start = end - len(rows)
        driver.commit({id: start})
        began = time.perf_counter()
        spout.open(id, start, end)
        while not spout._poll():
            pass
        return time.perf_counter() - began

    return once


def _replay(journals: Journals, rows: list[tuple[str, int]]) -> Callable[[], float]:
    batch = journals.next_batch()
    writer = journals.writer(batch)
    for n, row in enumerate(rows):
        journals.rows.append(row, "default", None, n)
    writer.flush(has_ids=False)
    writer.commit()

    def once() -> float:
        began = time.perf_counter()
        manifest = journals.journal.opened(batch, shares=1, fail_on_data_loss=True)
        assert manifest is not None
        groups = journals.journal.read(manifest, journals.rows, True)
        read = sum(1 for group in groups for _ in journals.rows.emits(group))
        assert read == len(rows)
        return time.perf_counter() - began

    return once


class WordCounts(Topology):
    """The spout → output."""

    words = WordSpout.spec()


class ByTuple(JournaledSpout):
    """The same, a tuple at a time."""

    def _pystorm_reads_batches(self, straight: bool) -> bool:
        return super()._pystorm_reads_batches(False)


def _replay_out(folder: Path, rows: list[tuple[str, int]], wrapper: type[JournaledSpout]) -> Callable[[], float]:
    """Runs a micro-batch, then again and again."""
    WordSpout.rows = rows
    options = {"journal.path": str(folder / wrapper.__name__), "batch.target.millis": "600000"}
    plan = compile_plan(WordCounts, options, any_environment=True)
    source = parse(SourceOptions, {**options, "topology": "words", "maxOffsetsPerTrigger": str(len(rows))})
    plan = journaled(plan, source)
    plan = replace(plan, components=tuple(replace(each, wrapper=wrapper) for each in plan.components))
    component = plan.component("words")
    driver = component.instance()
    driver._start(plan.conf_of(component), plan.context_of("words", component.tasks[0], "driver"))
    (id,) = driver.snapshot({}, {}).heads
    worker = Worker(plan, OutputPlan.typed(plan))

    def once() -> float:
        began = time.perf_counter()
        read = sum(batch.num_rows for batch in worker.run("words", id, 0, len(rows)))
        assert read == len(rows)
        return time.perf_counter() - began

    once()  # polls the spout and commits what it emits
    return once


def _raw_replay(folder: Path, batches: list[pa.RecordBatch]) -> Callable[[], float]:
    path = folder / "replayed.arrows"
    with path.open("wb") as file, pa.ipc.new_stream(file, SCHEMA) as writer:
        for batch in batches:
            writer.write_batch(batch.replace_schema_metadata(None))

    def once() -> float:
        began = time.perf_counter()
        read = 0
        with path.open("rb") as file:
            for batch in pa.ipc.open_stream(file):
                read += sum(1 for _ in zip(*[column.to_pylist() for column in batch.columns], strict=True))
        assert read
        return time.perf_counter() - began

    return once
