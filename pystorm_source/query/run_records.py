"""The micro-batches in the files of a run, for a listener: each once, when Spark says that it has ended."""

from collections.abc import Mapping
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pystorm_source.clock import Clock, SystemClock
from pystorm_source.query.recorded import LOOK_SECONDS, WAIT_SECONDS, is_unknown, is_written
from pystorm_source.records.from_spark import joined
from pystorm_source.records.record import PystormProgress
from pystorm_source.records.record_file import RecordedRun, RecordFile, last_lines
from pystorm_source.records.record_folder import files_in

MOST_PARTIAL = 10_000
"""Most micro-batches with missing ranges that are remembered. More: memory of a query whose reports get lost. Fewer:
ranges that are reported late stay missing."""


class RunRecords:
    """One run of a query. ``folder``: where its files are, among other runs' files; ``first``: its first micro-batch
    that Spark has reported to the listener."""

    def __init__(self, run_id: str, folder: Path, first: int):
        self._run_id = run_id
        self._folder = folder
        self._first = first
        self._of_spark: Mapping[str, Any] = {}
        self._files: dict[Path, RecordFile] = {}
        self._doors: dict[Path, str] = {}
        self._others: set[Path] = set()
        self._unknown: list[RecordedRun] = []
        """Runs whose tasks have not reported yet."""
        self._given: dict[str, int] = {}
        """The topology's run → the last micro-batch whose counts were given."""
        self._partial: set[tuple[str, int]] = set()
        """Topology's run and micro-batch whose record was given with ranges missing."""

    def reported(self, of_spark: Mapping[str, Any]) -> None:
        """Spark has reported a micro-batch that has ended."""
        self._of_spark = of_spark

    def given(self, record: PystormProgress) -> None:
        """Notes that its counts were given."""
        if record.topology is not None:
            run, batch = record.topology.run, record.topology.batch
            self._given[run] = max(batch, self._given.get(run, batch))
            if record.topology.whole:
                self._partial.discard((run, batch))
            elif len(self._partial) < MOST_PARTIAL:
                self._partial.add((run, batch))

    def new(self, door: str = "source") -> list[PystormProgress]:
        """Returns a door's new records: of micro-batches that Spark has reported, with all ranges reported. The others
        come later."""
        files = [file for file in self._found() if self._doors[file.path] == door]
        return [record for file in files for record in self._new_of(_read(file), is_over=False)]

    def rest(self, clock: Clock | None = None) -> list[PystormProgress]:
        """Returns the records left when the run has ended, and those that were given with ranges missing; waits for the
        last lines of its files."""
        clock = clock or SystemClock()
        until = clock.monotonic() + WAIT_SECONDS
        files = self._found()
        while any(map(is_written, map(_read, files) if files else self._unknown)) and clock.monotonic() < until:
            clock.sleep(LOOK_SECONDS)
            files = files or self._found()
        return [record for file in files for record in self._new_of(_read(file), is_over=True)]

    def _new_of(self, run: RecordedRun, is_over: bool) -> list[PystormProgress]:
        found = []
        for record, after in zip_longest(run.records, run.records[1:]):
            is_final = is_over or after is not None or (record.topology is not None and record.topology.whole)
            if is_final and self._has_ended(record) and self._is_new(record):
                found.append(joined(record, self._of_spark.get("name"), self._of_spark))
                self.given(record)
        run.records[:] = list(filter(self._is_new, run.records)) or run.records[-1:]  # a long run fills no memory
        return found

    def _has_ended(self, record: PystormProgress) -> bool:
        """A micro-batch that the query's end has cut off does not count: a restart runs it again."""
        return self._first <= record.batch_id <= self._of_spark.get("batchId", -1)

    def _is_new(self, record: PystormProgress) -> bool:
        found = record.topology
        if found is None:
            return False
        was_partial = found.whole and (found.run, found.batch) in self._partial
        return was_partial or found.batch > self._given.get(found.run, -1)

    def _found(self) -> list[RecordFile]:
        self._unknown = []
        for path in files_in(self._folder):
            if path not in self._files and path not in self._others:
                self._look_at(path)
        return list(self._files.values())

    def _look_at(self, path: Path) -> None:
        with suppress(OSError):
            run = last_lines(path)
            if is_unknown(run):
                self._unknown.append(run)
            elif run.records[-1].run_id == self._run_id:
                self._files[path], self._doors[path] = RecordFile(path), run.records[-1].door
            else:
                self._others.add(path)


def _read(file: RecordFile) -> RecordedRun:
    with suppress(OSError):
        return file.read()
    return RecordedRun()
