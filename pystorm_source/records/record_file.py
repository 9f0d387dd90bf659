"""The file of a run's records: lines of JSON that one process appends and any number of others read.

::

    {"kind":"begin","topology":"WordCount","run":"0f3a…","began":1767225600.0,"components":[…],"edges":[…]}
    {"batchId":0, …, "topology":{"batch":0, …}}      a PystormProgress for each micro-batch
    {"batchId":1, …, "topology":{"batch":1, …}}
    {"batchId":1, …, "topology":{"batch":1, …}}      later reports have come: the last line of a micro-batch counts
    {"kind":"end","ended":1767225660.0}

Readers skip a line that was cut off by a full disk or a killed process. A file that has become too long is replaced by
a shorter one without the oldest records. ``record_writer`` writes it.
"""

import os
from pathlib import Path
from typing import Any

import msgspec

from pystorm_source.records.record import ComponentProgress, EdgeProgress, PystormProgress

TAIL_BYTES = 256 * 1024
"""Read from a file's end to find its last record. Too large: slow. Too small: a longer record is not found."""


class Begin(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", tag_field="kind", tag="begin"
):
    """The first line. ``run``: names the run of the query's source; ``began``: seconds since 1970; ``process``: the id
    of the process that writes. ``components`` and ``edges`` draw the topology: they have names, no counts. ``options``:
    those that were given, without secrets."""

    topology: str = ""
    run: str = ""
    began: float = 0.0
    process: int = 0
    components: tuple[ComponentProgress, ...] = ()
    edges: tuple[EdgeProgress, ...] = ()
    options: dict[str, Any] = {}


class End(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="end"):
    """The last line. ``ended``: seconds since 1970."""

    ended: float


class RecordedRun:
    """The contents of a record file.

    Attributes:
        begin (Begin | None): the first line, None if it is missing.
        records (list[PystormProgress]): oldest first, one for a micro-batch.
        ended (float | None): when the run ended, in seconds since 1970; None if it still runs or was killed.
    """

    def __init__(self) -> None:
        self.begin: Begin | None = None
        self.records: list[PystormProgress] = []
        self.ended: float | None = None

    def take(self, line: bytes) -> None:
        """Adds a line; skips one that this package did not write."""
        found = parsed(line)
        if isinstance(found, Begin):
            self.begin = found
        elif isinstance(found, End):
            self.ended = found.ended
        elif found is not None and self.records and batch_of(self.records[-1]) == batch_of(found):
            self.records[-1] = found
        elif found is not None:
            self.records.append(found)


class RecordFile:
    """The record file of a running or finished run. Each read continues where the last one stopped.

    Args:
        path (Path): the file.

    Example:
        >>> from pathlib import Path
        >>> from pystorm_source.records.record_file import RecordFile
        >>> _ = Path("run.jsonl").write_text('{"batchId":0,"rows":5}\\n{"batchId":1,"rows":7}\\n{"batch')
        >>> [record.rows for record in RecordFile(Path("run.jsonl")).read().records]
        [5, 7]
    """

    def __init__(self, path: Path):
        self.path = path
        self._run = RecordedRun()
        self._file = (0, 0)
        self._at = 0

    def read(self) -> RecordedRun:
        """Returns everything in the file; reads only what is new from the disk. Raises OSError."""
        with self.path.open("rb") as file:
            status = os.fstat(file.fileno())
            if self._file != (status.st_dev, status.st_ino) or status.st_size < self._at:  # replaced by a shorter one
                self._run, self._at = RecordedRun(), 0
                self._file = status.st_dev, status.st_ino
            file.seek(self._at)
            whole, end, _ = file.read().rpartition(b"\n")
        if end:
            self._at += len(whole) + 1
            for line in whole.split(b"\n"):
                self._run.take(line)
        return self._run


def last_lines(path: Path) -> RecordedRun:
    """Returns the first line of a file, its last record and its end, quickly even for a long file. Raises OSError."""
    run = RecordedRun()
    with path.open("rb") as file:
        run.take(file.readline(TAIL_BYTES))
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
        lines = file.read().split(b"\n")[:-1]
    for line in reversed(lines):
        found = parsed(line)
        if isinstance(found, PystormProgress):
            run.records = [found]
            break
        if isinstance(found, End):
            run.ended = found.ended
    return run


def parsed(line: bytes) -> "Begin | End | PystormProgress | None":
    """Parses a line; None if this package did not write it, or if it was cut off."""
    try:
        return _marks.decode(line) if line.startswith(b'{"kind":') else PystormProgress.from_json(line)
    except (ValueError, RecursionError):
        return None


def batch_of(record: PystormProgress) -> object:
    """Equal for the lines of one micro-batch."""
    return record.topology.batch if record.topology is not None else record.timestamp or id(record)


_marks = msgspec.json.Decoder(Begin | End)
