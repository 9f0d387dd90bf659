"""A Redis that a test may kill and start again: what it has answered is in its append-only file."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError

from testbed.ports import free_port
from tests.examples.redis_server import redis_binary

STARTING_SECONDS = 20


class RedisProcess:
    """``start``, ``kill`` (-9) and ``start`` again: same port, same data."""

    def __init__(self, folder: Path, binary: str):
        self.port = free_port()
        # By default Redis answers before it writes, if an fsync runs: a kill then loses a batch that is done.
        lasting = {"save": "", "appendonly": "yes", "appendfsync": "always"}
        settings = {"port": self.port, "bind": "127.0.0.1", "dir": folder, **lasting}
        parts = [str(part) for key, value in settings.items() for part in (f"--{key}", value)]
        self._command = [binary, *parts, "--logfile", str(folder / "log")]
        self._log = folder / "log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self.process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL)
        end = time.monotonic() + STARTING_SECONDS
        with Redis(port=self.port, retry=None) as client:
            while True:
                try:
                    if client.info("persistence")["loading"] == 0:
                        return
                except RedisError:
                    if self.process.poll() is not None or time.monotonic() > end:
                        pytest.fail(f"redis-server does not start; its log: {self._log.read_text()[-2000:]}")
                time.sleep(0.02)

    def kill(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(20)
        self.process = None

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(20)


@contextmanager
def redis_process(folder: Path) -> Iterator[RedisProcess]:
    """A new, empty server, which ends with the context."""
    server = RedisProcess(folder, redis_binary())
    try:
        server.start()
        yield server
    finally:
        server.stop()
