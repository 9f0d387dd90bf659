"""Drives a real pystorm bolt through its pipe, with Storm's side of the multilang protocol as cheap as possible.

    writer thread ──► 1 MiB pipe ──► pystorm's process ──► 1 MiB pipe ──► this thread: counts acks, parses nothing

Tuples are serialised beforehand and sent as fast as the pipe takes them, so that thousands are in flight and the bolt
never waits; Storm itself holds at most ``topology.shellbolt.max.pending`` = 100. ``busy`` says whether that worked: the
share of the measured time during which the peer's process was on a core.
"""

import contextlib
import fcntl
import json
import os
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness.peers import PROGRAMS
from pystorm_source.clock import SystemClock

PIPE_BYTES = 1 << 20
CHUNK_TUPLES = 1000
CLOCK = SystemClock()


class PipeRun(NamedTuple):
    """The result of one run of the peer."""

    tuples_per_second: float
    busy: float


def run_id_bolt(python: Path, tuples: int) -> PipeRun:
    """Sends ``tuples`` tuples through pystorm's IdBolt; timed from the first one written to the last ack.

    Raises RuntimeError if the bolt ends early or does not emit and ack each tuple once.
    """
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [str(python), str(PROGRAMS / "pystorm_id_bolt.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            for pipe in (process.stdin, process.stdout):
                _widen(pipe.fileno())
            replies = Replies(process.stdout.fileno())
            warm_up = [_message(_handshake(folder)) + _tuples(CHUNK_TUPLES)]
            _exchange(process.stdin.fileno(), warm_up, replies)
            chunks = [_tuples(CHUNK_TUPLES)] * (tuples // CHUNK_TUPLES)
            on_core, began = _cpu_seconds(process.pid), CLOCK.monotonic()
            _exchange(process.stdin.fileno(), chunks, replies)
            seconds = CLOCK.monotonic() - began
            busy = (_cpu_seconds(process.pid) - on_core) / seconds
        finally:
            process.kill()
            process.wait()
            for open_pipe in (process.stdin, process.stdout):
                if open_pipe is not None:
                    open_pipe.close()
    return PipeRun(len(chunks) * CHUNK_TUPLES / seconds, round(busy, 2))


class Replies:
    """Counts the bolt's answers."""

    ACK = b'"command": "ack"'
    EMIT = b'"command": "emit"'

    def __init__(self, file: int):
        self.file = file
        self.tail = b""

    def wait_for(self, tuples: int) -> None:
        """Blocking, until so many more tuples are acked. Raises RuntimeError if the answers do not fit."""
        acks = emits = 0
        while acks < tuples:
            read = os.read(self.file, PIPE_BYTES)
            if not read:
                raise RuntimeError(f"pystorm's bolt ended after {acks} of {tuples} tuples")
            for pattern in (self.ACK, self.EMIT):
                # The end of the last read may be the first half of a pattern, but is too short for an entire one.
                found = (self.tail[-(len(pattern) - 1) :] + read).count(pattern)
                if pattern is self.ACK:
                    acks += found
                else:
                    emits += found
            self.tail = (self.tail + read)[-len(self.EMIT) :]
        if (acks, emits) != (tuples, tuples):
            raise RuntimeError(f"pystorm's bolt emitted {emits} and acked {acks} of {tuples} tuples")


def _handshake(folder: str) -> dict[str, object]:
    context = {"taskid": 2, "componentid": "id", "task->component": {"1": "spout", "2": "id"}}
    return {"conf": {"topology.name": "benchmark"}, "pidDir": folder, "context": context}


def _tuples(count: int) -> bytes:
    row = {"comp": "spout", "stream": "default", "task": 1, "tuple": ["some data"]}
    return b"".join(_message({"id": str(-6955786537413359385 + number), **row}) for number in range(count))


def _message(content: dict[str, object]) -> bytes:
    return json.dumps(content).encode() + b"\nend\n"


def _exchange(file: int, chunks: list[bytes], replies: Replies) -> None:
    """Blocking. Writes the chunks and takes the replies at the same time: either pipe may be full."""
    writer = threading.Thread(target=_write_all, args=(file, chunks), daemon=True)
    writer.start()
    replies.wait_for(len(chunks) * CHUNK_TUPLES)
    writer.join()


def _write_all(file: int, chunks: list[bytes]) -> None:
    # If the bolt is gone, the thread that counts its replies notices.
    with contextlib.suppress(OSError):
        for chunk in chunks:
            view = memoryview(chunk)
            while view:
                view = view[os.write(file, view) :]


def _widen(file: int) -> None:
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        # Above this user's limit the pipe stays as it is.
        with contextlib.suppress(OSError):
            fcntl.fcntl(file, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
