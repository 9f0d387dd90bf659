"""A streaming query over a followed folder, called as Spark calls it, whose processes die."""

import json
import os
import pickle
import random
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pystorm_source.source.data_source import PystormDataSource
from tests.source.spark_calls import through_pickle

ATTEMPTS = 4  # Spark's, of a task


class Died(BaseException):
    """Stands for kill -9 of whatever runs."""


class Query:
    """``Query(options)``. What outlives its processes: ``offsets``, as text, ``finished`` of them, and ``rows``."""

    def __init__(self, options: dict[str, str]):
        self.offsets: list[str] = []
        self.finished = 0
        self.rows: Counter[str] = Counter()
        self.kills = 0
        self._options = options
        self._reader: Any = None

    def restart(self) -> None:
        """The driver dies; the next trigger starts another one."""
        self._reader = None

    def trigger(self, read: Callable[[Any, Any], list[str]]) -> bool:
        """One trigger: whether it ran a micro-batch. ``read(reader, partition)``: a task, which may raise Died."""
        if self._reader is None:
            source = through_pickle(PystormDataSource(self._options))
            self._reader = source.streamReader(source.schema())
            self._planned = through_pickle(source).streamReader(source.schema())
            self._limit = self._reader.getDefaultReadLimit()
        reader = self._reader
        if len(self.offsets) == self.finished:
            start = self.offsets[-1] if self.offsets else json.dumps(reader.initialOffset())
            end = json.dumps(reader.latestOffset(json.loads(start), self._limit))
            if end == start:
                return False
            self.offsets.append(end)
            if len(self.offsets) > 1:
                reader.commit(json.loads(self.offsets[-2]))
        start = self.offsets[-2] if len(self.offsets) > 1 else json.dumps(reader.initialOffset())
        rows = []
        for partition in reader.partitions(json.loads(start), json.loads(self.offsets[-1])):
            rows += self._attempts(lambda: read(self._planned, through_pickle(partition)))  # noqa: B023
        self.rows.update(rows)
        self.finished = len(self.offsets)
        return True

    def _attempts(self, task: Callable[[], list[str]]) -> list[str]:
        for _ in range(ATTEMPTS - 1):
            try:
                return task()
            except Died:
                self.kills += 1
        return task()


def read_here(reader: Any, partition: Any) -> list[str]:
    """A task in this process."""
    return [line for batch in through_pickle(reader).read(partition) for line in batch.column(0).to_pylist()]


def read_in_child(rng: random.Random, scratch: Path, share: float) -> Callable[[Any, Any], list[str]]:
    """Tasks in processes of their own, of which this share is killed at some time."""

    def read(reader: Any, partition: Any) -> list[str]:
        answer = scratch / "answer"
        answer.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            try:
                answer.with_suffix(".tmp").write_bytes(pickle.dumps(_told(reader, partition)))
                os.rename(answer.with_suffix(".tmp"), answer)
            finally:
                os._exit(0)
        if rng.random() < share:
            signal.sigtimedwait([signal.SIGCHLD], rng.random() * 0.03)
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if not answer.exists():
            raise Died
        told = pickle.loads(answer.read_bytes())
        if isinstance(told, Exception):
            raise told
        return told

    return read


def _told(reader: Any, partition: Any) -> Any:
    try:
        return read_here(reader, partition)
    except Exception as error:
        return RuntimeError(f"{type(error).__name__}: {error}")
