"""A Redis of a test's own: on a free port of the loopback interface, in a temporary folder, nothing saved."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError

from testbed.ports import free_port
from tests.missing import missing

ATTEMPTS = 5  # a free port may be taken before the server binds it
STARTING_SECONDS = 20


def redis_binary() -> str:
    """The path of redis-server. Without one the test fails where CI=true, else it is skipped."""
    found = shutil.which("redis-server")
    if found is None:
        missing("redis-server", "redis-server")
    return found


@contextmanager
def redis_server(folder: Path) -> Iterator[Redis]:
    """A client of a new server, which ends with the context."""
    binary = redis_binary()
    for _ in range(ATTEMPTS):
        port = free_port()
        settings = {"port": port, "bind": "127.0.0.1", "save": "", "dir": folder, "logfile": folder / "redis.log"}
        arguments = [str(part) for key, value in settings.items() for part in (f"--{key}", value)]
        process = subprocess.Popen([binary, *arguments], stdin=subprocess.DEVNULL)
        client = Redis(port=port, decode_responses=True)
        try:
            if _answers(client, process):
                yield client
                return
        finally:
            client.close()
            process.terminate()
            process.wait(20)
    pytest.fail(f"redis-server does not start; its log: {(folder / 'redis.log').read_text()[-2000:]}")


def _answers(client: Redis, process: subprocess.Popen[bytes]) -> bool:
    """Whether this very process answers; False if it has ended or another one has the port."""
    end = time.monotonic() + STARTING_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            return client.info("server")["process_id"] == process.pid
        except RedisError:
            time.sleep(0.02)
    return False
