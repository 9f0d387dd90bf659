"""Processes that run the programs of ``benchmarks.job_programs``, by the Python that has their package."""

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.harness.record import ROOT
from benchmarks.jobs.side import Kind
from testbed.maven import last_line

NOTE_CHARACTERS = 300
LIMIT_SECONDS = 900
"""For one process. Less: a slow machine ends what works."""


class Failed(Exception):
    """A side's program has ended without an answer."""


class Process:
    """Runs programs of one kind of side; ended with all that it has started."""

    def __init__(self, kind: Kind, folder: Path):
        """Raises PeerMissing."""
        command = [kind.python(), "-m", "benchmarks.job_programs"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **kind.environment()}
        self._errors = folder / "errors.log"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self._timer = threading.Timer(LIMIT_SECONDS, self._end)

    def __enter__(self) -> "Process":
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._end()
        self._process.wait()

    def _end(self) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended, and all that it had started
            os.killpg(self._process.pid, signal.SIGKILL)

    def start(self, program: str, options: Mapping[str, Any]) -> None:
        """Starts a run and does not wait for its end."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # its last words say why
            self._process.stdin.write(json.dumps({"program": program, **options}) + "\n")
            self._process.stdin.flush()

    def check(self) -> None:
        """Raises Failed if the process has ended."""
        if self._process.poll() is not None:
            raise Failed(self._reason())

    def does(self, program: str, options: Mapping[str, Any]) -> dict[str, float]:
        """Seconds and processor seconds of one run. Raises Failed."""
        self.start(program, options)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith('{"seconds"'):
                took: dict[str, float] = json.loads(line)
                return took
        raise Failed(self._reason())

    def _reason(self) -> str:
        """The last error that the program has printed."""
        errors = self._errors.read_text(errors="replace")
        named = [line for line in errors.splitlines() if re.match(r"(Caused by: )?[\w.]+(Error|Exception)\b", line)]
        return (named[-1] if named else last_line(errors))[:NOTE_CHARACTERS]


class Processes(contextlib.ExitStack):
    """A new process for each run; if ``quick``, one for all runs of a kind of side, which ends with this context."""

    def __init__(self, quick: bool):
        super().__init__()
        self.quick = quick
        self._running: dict[Kind, Process] = {}

    @contextlib.contextmanager
    def of(self, kind: Kind) -> Iterator[Process]:
        """A process, for the runs of a side. Raises PeerMissing."""
        if not self.quick:
            with TemporaryDirectory(prefix="jobs") as folder, Process(kind, Path(folder)) as process:
                yield process
            return
        if kind not in self._running:
            folder = self.enter_context(TemporaryDirectory(prefix="jobs"))
            self._running[kind] = self.enter_context(Process(kind, Path(folder)))
        try:
            yield self._running[kind]
        except Failed:
            del self._running[kind]  # the next side gets another one
            raise
