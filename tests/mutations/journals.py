"""A journal's files: one of them damaged, cut, gone, in another one's place, or of a backup; or several.

With one fault a committed batch gives its tuples, all and in order, or an error: it never looks as if it had not been
committed, for its tuples were acked and would not come again. With several nothing else comes out either, as long as a
copy of the manifest is left. What is recovered of killed attempts is theirs, in order, and nothing twice.
"""

import errno
import logging
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa

from pystorm_source.clock import SystemClock
from pystorm_source.errors import PystormError
from pystorm_source.journal.committed import Part, tuples_of
from pystorm_source.journal.log import Journal
from pystorm_source.journal.manifest import BatchRange
from pystorm_source.journal.options import JournalOptions
from pystorm_source.journal.orphans import orphaned_segments
from pystorm_source.journal.rows import JournalRows
from pystorm_source.journal.writer import BatchWriter
from tests.mutations.outcomes import refused
from tests.spouts.mutations import mutated

ID = "0" * 31 + "3"
SCHEMAS = {"default": pa.schema([("n", pa.int64()), ("text", pa.string())])}
FIRST, SECOND, OPEN = (BatchRange(start, start + 100) for start in (0, 100, 200))
State = dict[str, bytes]


class Case:
    """A journal as it should be: its files, those of its backups, what its committed batches hold, and what each
    killed attempt at the open batch has left without ids."""

    def __init__(self, build: Callable[["Builder"], None], folder: Path):
        self.builder = Builder(folder)
        build(self.builder)
        self.files = self.builder.state()
        self.older = self.builder.older
        self.committed = self.builder.committed
        self.orphans = self.builder.orphans


class Journals:
    """``Journals(folder)``: mutants of a few journals, written into the folder one after the other."""

    def __init__(self, folder: Path):
        self._options = JournalOptions(path=str(folder / "journal"), fsync="never")
        self._journal = Journal(self._options, "lines", ID)
        self._folder = Path(self._journal.store.folder)
        self._folder.mkdir(parents=True)
        self._cases = [Case(build, folder / build.__name__) for build in (two_batches, trimmed, orphaned, by_ballots)]
        self._warnings = Warnings()

    def mutated(self, rng: random.Random) -> str:
        case = rng.choice(self._cases)
        files = dict(case.files)
        faults = 1 if rng.random() < 0.8 else rng.randint(2, 3)
        for _ in range(faults):
            spoil(files, case.older, rng)
        self._write(files)
        outcomes = {
            self._read(batch, numbers, strict=faults == 1, loud=rng.random() < 0.7)
            for batch, numbers in case.committed.items()
        }
        self._recover(case, strict=faults == 1)
        self._go_on(case)
        return "refused" if "refused" in outcomes else "same"

    def _read(self, batch: BatchRange, numbers: list[int], strict: bool, loud: bool) -> str:
        """``loud``: failOnDataLoss."""
        rows = JournalRows("lines", SCHEMAS)
        with self._warnings.counted() as warnings:
            try:
                manifest = self._journal.opened(batch, 1, loud)
                if manifest is None:
                    assert not strict or (not loud and warnings), "a committed batch looks as if it was open"
                    return "refused"
                groups = tuples_of(self._journal, Part(manifest), rows, loud)
                found = [emit[0][0] for _, group, *_ in groups for emit in rows.emits(group)]
            except PystormError as error:
                return refused(error)
        if found == numbers:
            return "same"
        left = iter(numbers)
        assert not loud and warnings and all(n in left for n in found), f"{found} instead of {numbers}"
        return "refused"

    def _recover(self, case: Case, strict: bool) -> None:
        rows = JournalRows("lines", SCHEMAS)
        found = [
            emit[0][0]
            for orphan in orphaned_segments(self._journal, OPEN, rows)
            for group in orphan.groups
            for emit in rows.emits(group)
        ]
        for numbers in case.orphans:
            left = iter(numbers)
            assert all(n in left for n in found if n in numbers), f"{found} out of {numbers}"
        whole = [numbers for numbers in case.orphans if set(numbers) <= set(found)]
        assert len(found) == len(set(found)) and set(found) <= set().union(*case.orphans)
        assert not strict or len(whole) >= len(case.orphans) - 1, "one fault, one attempt"

    def _go_on(self, case: Case) -> None:
        """The driver of a query that has finished both batches."""
        try:
            self._journal.reconcile(200, True)
            self._journal.trim(200)
            assert self._journal.trimmed() == 200
            assert self._journal.opened(OPEN, 1, True) is None
        except PystormError as error:
            refused(error)

    def _write(self, files: State) -> None:
        for name in os.listdir(self._folder):
            (self._folder / name).unlink()
        for name, data in files.items():
            (self._folder / name).write_bytes(data)


def spoil(files: State, older: list[State], rng: random.Random) -> None:
    """One fault."""
    if not files:
        return
    name = rng.choice(sorted(files))
    backups = [state[name] for state in older if state.get(name, files[name]) != files[name]]
    kind = rng.randrange(6)
    if kind == 0:
        del files[name]
    elif kind == 1 and backups:
        files[name] = rng.choice(backups)
    elif kind == 2:
        files[name] = files[rng.choice(sorted(files))]
    elif kind == 3:
        files[name] = files[name][: rng.randrange(len(files[name]) + 1)]
    else:
        files[name] = mutated(files[name], rng)


class Warnings(logging.Handler):
    """Counts what the journal says."""

    def __init__(self) -> None:
        super().__init__()
        self._said: list[str] = []
        logging.getLogger("pystorm.journal").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self._said.append(record.getMessage())

    @contextmanager
    def counted(self) -> Iterator[list[str]]:
        """What is said meanwhile."""
        self._said = []
        yield self._said


class Builder:
    """Writes a journal, and keeps backups of it on the way."""

    def __init__(self, folder: Path):
        self._options = JournalOptions(path=str(folder), fsync="never", segment_bytes=4096)
        self._folder = folder
        self.journal = Journal(self._options, "lines", ID)
        self.journal.found()
        self.older: list[State] = []
        self.committed: dict[BatchRange, list[int]] = {}
        self.orphans: list[list[int]] = []

    def state(self) -> State:
        return {path.name: path.read_bytes() for path in self._folder.glob("*/*/*")}

    def attempt(self, batch: BatchRange, numbers: list[int], ids: bool = False) -> BatchWriter:
        rows = JournalRows("lines", SCHEMAS)
        writer = BatchWriter(self.journal, self._options, batch, rows, SystemClock())
        for n in numbers:
            rows.append((n, "x" * 300), "default", None, n)
            if n % 5 == 4:
                writer.flush(ids)
                self.older.append(self.state())
        return writer

    def commit(self, batch: BatchRange, numbers: list[int]) -> None:
        assert self.attempt(batch, numbers).commit() is None
        self.committed[batch] = numbers
        self.older.append(self.state())

    def orphan(self, numbers: list[int], ids: bool = False) -> None:
        self.attempt(OPEN, numbers, ids)._release()  # as its death would
        if not ids:
            self.orphans.append(numbers)


def two_batches(builder: Builder) -> None:
    builder.commit(FIRST, list(range(30)))
    builder.commit(SECOND, list(range(100, 110)))


def trimmed(builder: Builder) -> None:
    builder.commit(FIRST, list(range(10)))
    builder.commit(SECOND, list(range(100, 110)))
    builder.journal.trim(100)
    del builder.committed[FIRST]


def orphaned(builder: Builder) -> None:
    builder.commit(SECOND, list(range(100, 120)))
    builder.journal.trim(100)
    builder.orphan(list(range(200, 210)))
    builder.orphan(list(range(220, 240)), ids=True)
    builder.orphan(list(range(240, 270)))


def by_ballots(builder: Builder) -> None:
    with patch("os.link", side_effect=OSError(errno.EPERM, "no hard links")):
        builder.commit(FIRST, list(range(10)))
        builder.commit(SECOND, list(range(100, 110)))
