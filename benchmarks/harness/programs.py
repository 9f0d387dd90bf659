"""Programs that a benchmark compiles or starts beside itself, and the processors that it measures on."""

import os
import select
import shlex
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.peers import PROGRAMS
from benchmarks.harness.record import ROOT
from testbed.maven import PeerMissing

SILENCE = 60.0
"""Seconds without an answer after which a program is ended."""


class Program:
    """A program that answers each line "case milliseconds" with a line of numbers."""

    def __init__(self, command: Sequence[str], stderr: int | None = None) -> None:
        self._process = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, bufsize=1
        )

    def ask(self, case: str, millis: int) -> list[float]:
        """Returns the numbers of its answer. Raises RuntimeError if it has ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{case} {millis}\n")
        return [float(word) for word in self.line().split()]

    def line(self) -> str:
        """Returns its next line. Raises RuntimeError if it has ended or is silent."""
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], SILENCE)[0]:
            self._process.kill()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args!r} ended with {self._process.wait()}")
        return line

    def send_signal(self, number: int) -> None:
        """Sends a signal, such as SIGSTOP."""
        self._process.send_signal(number)

    def end(self) -> None:
        """Ends it, and waits until it has ended."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def processors() -> tuple[int, int]:
    """Returns the two processors to measure on; twice the same if only one exists."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[-1]


def build_program(name: str, folder: Path) -> Path:
    """Compiles a C program of ``peer_programs`` into the folder. Raises PeerMissing."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    program = folder / name
    source = PROGRAMS / f"{name}.c"
    command = [compiler, "-O3", "-std=c11", "-pthread", f"-I{ROOT}", str(source), "-o", str(program), "-lm"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.SubprocessError) as error:
        raise PeerMissing(f"{source.name} cannot be compiled here: {error}") from error
    return program
