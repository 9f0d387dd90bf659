"""Files of dead letters: JSON lines, one file for a task that had any.

A sink has commits, so that a retried task leaves no doubles::

    task:    .<write>-<batch>-part-00003.<attempt>.tmp ── in its commit message ──► driver
    commit:  <write>-<batch>-part-00003.jsonl

``write`` names the write whose commit that is, and a commit never touches another write's files. A stream's sink writes
a micro-batch once, so the query is its name, and a commit replaces what an earlier one of the same micro-batch left.
``df.write`` gets a new name each time: inside ``foreachBatch`` a micro-batch may have any number of them, each with the
query and the micro-batch of the stream.

Other writers have no commit: an attempt that reaches its end renames its file itself, and no two attempts use the same
name::

    task:    .rows-<query>-<batch>-part-00003.<attempt>.tmp ──► rows-<query>-<batch>-part-00003-<attempt>.jsonl

A line has query and micro-batch, too: copied into a table, it still says which row it was.
"""

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext

from pystorm_source.api.stream import DEAD_LETTER
from pystorm_source.errors import OptionError
from pystorm_source.journal.private_files import FileGroup
from pystorm_source.options import SourceOptions
from pystorm_source.spark.query_batch import QueryBatch
from pystorm_source.worker.worker import Worker


def stem_of(query: str, batch: int) -> str:
    """The start of the names of a write's files. ``query``: its id, or the name of a batch write."""
    return f"{query}-{batch:010}-"


OF_LINES = (("query", "string"), ("batch", "long"))
"""What a line has behind the fields of ``DEAD_LETTER``."""


@dataclass(frozen=True)
class LetterFolder:
    """Options topology.dead.letter.path, empty for none, and topology.dead.letter.group."""

    path: str = ""
    group: str = ""

    def __bool__(self) -> bool:
        return bool(self.path)

    @classmethod
    def of(cls, options: SourceOptions) -> "LetterFolder":
        """As options name it."""
        return cls(options.dead_letter_path, options.dead_letter_group)


NO_LETTERS = LetterFolder()


class DeadLetterFile:
    """The file of one task, made with its first row; only its user and the folder's group can read it. ``stem``: the
    start of its name; ``query``, ``batch``: what its lines say. Its methods raise OptionError if they cannot write."""

    def __init__(self, folder: LetterFolder, stem: str, query: str, batch: int, partition: str):
        self._folder = Path(folder.path)
        self._group = FileGroup(folder.group, "topology.dead.letter.group")
        self._component = ""
        self._place = {"query": query, "batch": batch}
        self._name = f".{stem}part-{partition.zfill(5)}.{uuid4().hex[:12]}.tmp"
        self._file: Any = None

    @property
    def name(self) -> str:
        """The name of the temporary file; empty if there is no file."""
        return self._name if self._file is not None else ""

    def write(self, rows: pa.RecordBatch) -> None:
        """Appends dead letters."""
        for row in rows.to_pylist():
            self.append(row)

    def append(self, row: Mapping[str, Any]) -> None:
        """Appends a dead letter."""
        self._component = str(row["component"])
        with _written(self._folder, f"a dead letter of component {self._component!r}"):
            if self._file is None:
                self._group.make_folder(self._folder)
                made = self._group.open(self._folder / self._name)
                self._file = os.fdopen(made, "w", encoding="utf-8")
            self._file.write(json.dumps({**row, **self._place}, default=_text) + "\n")

    def close(self) -> None:
        """Writes all of it to the disk."""
        if self._file is not None:
            with _written(self._folder, f"dead letters, the last one of component {self._component!r},"):
                self._file.flush()
                os.fsync(self._file.fileno())
                self._file.close()

    def move(self) -> None:
        """Gives the closed file the name of its attempt."""
        if self._file is not None:
            stem, attempt, _ = self._name[1:].rsplit(".", 2)
            with _written(self._folder, f"a file of dead letters, the last one of component {self._component!r},"):
                (self._folder / self._name).replace(self._folder / f"{stem}-{attempt}.jsonl")

    def remove(self) -> None:
        """Removes the file of a failed task."""
        if self._file is not None:
            with suppress(OSError):  # a full disk: what is left in the buffer need not be written
                self._file.close()
            with suppress(OSError):
                (self._folder / self._name).unlink()


@contextmanager
def _written(folder: Path, what: str) -> Iterator[None]:
    """Raises OptionError instead of OSError."""
    try:
        yield
    except OSError as error:
        raise OptionError(
            f"option 'topology.dead.letter.path' names a folder on a disk that has room, in which this process may "
            f"write, and {what} cannot be written ({error.strerror or error}): make room, or change the folder's "
            f"owner or the option. Given: {str(folder)!r}",
            code="PYSTORM_NOT_WRITABLE",
        ) from error


@contextmanager
def letters_kept(worker: Worker, folder: LetterFolder, run: str) -> Iterator[None]:
    """Writes the worker's dead letters into a file in ``folder``. The file gets its name if the block reaches its end,
    and is removed otherwise. ``run``: takes the query's place in its name, outside of a stream. Empty ``folder``: dead
    letters go where they always go.

    Raises OptionError if the file cannot be written.
    """
    if not folder:
        yield
        return
    task = TaskContext.get()
    query = QueryBatch.of(task)
    name, batch = (run, 0) if query is None else (query.query, query.batch)
    # Not like a sink's names: a sink of the same query and folder removes all of these that are not its own.
    stem = f"rows-{stem_of(name, batch)}"
    file = DeadLetterFile(folder, stem, name, batch, str(task.partitionId()) if task is not None else "0")
    lock = threading.Lock()
    is_open = True

    def keep(row: tuple[Any, ...]) -> None:
        with lock:  # a spout has its own thread under topology.scheduler=threads
            if is_open:
                file.append(dict(zip(DEAD_LETTER.fields, row, strict=True)))

    worker.keep_dead_letters(keep)
    try:
        yield
        file.close()
        file.move()
    except BaseException:
        with lock:
            is_open = False
            file.remove()
        raise
    finally:
        worker.keep_dead_letters(None)


def move_all(folder: str, stem: str, names: Iterable[str]) -> None:
    """Driver. Gives the temporary files of a write their names, and removes its other files, whose names begin
    with ``stem``. May be called again: the last call counts. Raises OptionError if that fails."""
    place = Path(folder)
    if not place.is_dir():
        return
    final = {f"{name[1:].partition('.')[0]}.jsonl": name for name in names}
    with _written(place, "a file of dead letters"):
        for shown, name in final.items():
            with suppress(FileNotFoundError):  # an earlier call has moved it
                (place / name).replace(place / shown)
        for path in place.iterdir():
            if path.name.startswith((stem, f".{stem}")) and path.name not in final:
                path.unlink(missing_ok=True)


def remove_all(folder: str, names: Iterable[str]) -> None:
    """Driver. Removes temporary files: their micro-batch was aborted."""
    for name in names:
        with suppress(OSError):
            (Path(folder) / name).unlink()


def _text(value: Any) -> str:
    return str(value.isoformat() if hasattr(value, "isoformat") else value)
