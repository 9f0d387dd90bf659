"""Files of dead letters: JSON lines, one file for a task that had any, so that a retried task leaves no doubles.

::

    task:    .<query>-<batch>-part-00003.<attempt>.tmp ── in its commit message ──► driver
    commit:  <query>-<batch>-part-00003.jsonl; what an earlier commit of the same micro-batch has left goes away
"""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa


def stem_of(query: str, batch: int) -> str:
    """The begin of the names of a micro-batch's files. ``query``: its id, or the name of a batch write."""
    return f"{query}-{batch:010}-"


class DeadLetterFile:
    """That of one task, made with its first row. ``folder``: option topology.dead.letter.path."""

    def __init__(self, folder: str, stem: str, partition: str):
        self._folder = Path(folder)
        self._name = f".{stem}part-{partition.zfill(5)}.{uuid4().hex[:12]}.tmp"
        self._file: Any = None

    @property
    def name(self) -> str:
        """Of the temporary file; empty if there is none."""
        return self._name if self._file is not None else ""

    def write(self, rows: pa.RecordBatch) -> None:
        """Appends dead letters. Raises OSError."""
        if rows.num_rows == 0:
            return
        if self._file is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file = (self._folder / self._name).open("w", encoding="utf-8")
        for row in rows.to_pylist():
            self._file.write(json.dumps(row, default=_text) + "\n")

    def close(self) -> None:
        """All of it is on the disk. Raises OSError."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()

    def remove(self) -> None:
        """The task has failed."""
        if self._file is not None:
            self._file.close()
            (self._folder / self._name).unlink(missing_ok=True)


def move_all(folder: str, stem: str, names: Iterable[str]) -> None:
    """Driver. Gives the temporary files of a micro-batch their names, and removes others of it. May come again: the
    last call counts. Raises OSError."""
    place = Path(folder)
    if not place.is_dir():
        return
    final = {f"{name[1:].partition('.')[0]}.jsonl": name for name in names}
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
