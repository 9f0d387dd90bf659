"""A mosquitto for tests and benchmarks, which keeps sessions when it is stopped and started again.

with mosquitto_server(folder) as server:
    server.port
    server.stop()
    server.start()                   # same port, same sessions

It ends with the context, or when the process that started it is killed.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.kafka_broker import DIES_WITH_PARENT
from testbed.ports import free_port

STARTING_SECONDS = 20
LIMITS = ("max_queued_messages 0", "set_tcp_nodelay true")


def mosquitto_binary() -> str | None:
    """Returns its path; Debian installs it where only root looks."""
    return shutil.which("mosquitto", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")


class MosquittoServer:
    """``settings``: lines of mosquitto.conf; without them, every client may do everything."""

    def __init__(self, folder: Path, binary: str, settings: tuple[str, ...]):
        self.port = free_port()
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        lines = ["persistence true", f"persistence_location {folder}/", f"log_dest file {folder}/log"]
        lines += ["user root", *LIMITS, f"listener {self.port} 127.0.0.1", *(settings or ("allow_anonymous true",))]
        (folder / "mosquitto.conf").write_text("\n".join(lines) + "\n")
        self._command = [binary, "-c", str(folder / "mosquitto.conf")]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        command = [*DIES_WITH_PARENT, str(os.getpid()), *self._command]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + STARTING_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"mosquitto does not start: {self.log()}")
            time.sleep(0.02)

    def save(self) -> None:
        """Makes it write its sessions to disk. Blocking, until it has."""
        assert self._process is not None
        before = self._saved_at()
        self._process.send_signal(signal.SIGUSR1)
        end = time.monotonic() + STARTING_SECONDS
        while self._saved_at() == before:
            if time.monotonic() > end:
                raise RuntimeError(f"mosquitto does not write its sessions: {self.log()}")
            time.sleep(0.005)

    def kill(self) -> None:
        """kill -9: it forgets what has come since it wrote its sessions."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(20)
        self._process = None

    def stop(self) -> None:
        """Stops it cleanly: it writes its sessions to disk."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(20)
            self._process = None

    def log(self) -> str:
        log = self._folder / "log"
        return log.read_text()[-2000:] if log.exists() else ""

    def _saved_at(self) -> int:
        path = self._folder / "mosquitto.db"
        return path.stat().st_mtime_ns if path.exists() else 0

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1):
                return True
        except OSError:
            return False


@contextmanager
def mosquitto_server(folder: Path, *settings: str) -> Iterator[MosquittoServer]:
    """Runs a new, empty one. Raises RuntimeError without mosquitto."""
    binary = mosquitto_binary()
    if binary is None:
        raise RuntimeError("no mosquitto: apt-get install mosquitto")
    server = MosquittoServer(folder, binary, settings)
    server.start()
    try:
        yield server
    finally:
        server.stop()
