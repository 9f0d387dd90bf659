"""A PostgreSQL for tests and benchmarks: on a free port of the loopback interface, in a temporary folder.

with postgres_server() as server:
    server.place      # "host=127.0.0.1 port=41234 user=reader dbname=postgres", for psycopg
    server.url        # "postgresql://reader@127.0.0.1:41234/postgres"
    server.kill()     # -9, with its connections' processes
    server.start()    # same port, same data, recovered
"""

import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from testbed.ports import free_port

STARTING_SECONDS = 30
# Without fsync: what the kernel has received outlives a killed process.
QUICK = {"fsync": "off", "unix_socket_directories": "", "listen_addresses": "127.0.0.1", "shared_buffers": "16MB"}


def postgres_program(name: str) -> str | None:
    """Returns the path of a program of PostgreSQL. Debian keeps them in a folder that is not on PATH."""
    return shutil.which(name, path=os.pathsep.join([os.environ["PATH"], *glob.glob("/usr/lib/postgresql/*/bin")]))


class PostgresServer:
    """A server in a folder that its user may access. Raises RuntimeError if it does not start."""

    def __init__(self, folder: Path, initdb: str, postgres: str, settings: dict[str, str]):
        self._folder = folder
        self._user: tuple[str, ...] = ()
        if os.getuid() == 0:  # PostgreSQL refuses to be run by root
            account = pwd.getpwnam("postgres")
            os.chown(folder, account.pw_uid, account.pw_gid)
            self._user = ("setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups")
        data = str(folder / "data")
        made = [*self._user, initdb, "-D", data, "-U", "reader", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run([*made, "--locale=C"], check=True, capture_output=True, cwd=folder, timeout=60)
        self.port = free_port()
        parts = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        self._command = [*self._user, postgres, "-D", data, "-p", str(self.port), *parts]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def place(self) -> str:
        """The connection string for psycopg."""
        return f"host=127.0.0.1 port={self.port} user=reader dbname=postgres"

    @property
    def url(self) -> str:
        return f"postgresql://reader@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Starts it. Blocking, until it answers."""
        end = time.monotonic() + STARTING_SECONDS
        self._process = self._launched()
        while True:
            try:
                return psycopg.connect(self.place, connect_timeout=5).close()
            except psycopg.OperationalError:
                if time.monotonic() > end:
                    log_text = (self._folder / "log").read_text()[-2000:]
                    raise RuntimeError(f"PostgreSQL does not start; its log: {log_text}") from None
                time.sleep(0.05)
                if self._process.poll() is not None:  # a process of the killed server still has the shared memory
                    self._process = self._launched()

    def _launched(self) -> "subprocess.Popen[bytes]":
        with open(self._folder / "log", "ab") as log:
            return subprocess.Popen(self._command, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self) -> None:
        """kill -9, without a chance to finish anything."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Shuts it down cleanly; does nothing if it was killed."""
        if self._process is not None:
            self._end(signal.SIGINT)

    def _end(self, how: signal.Signals) -> None:
        assert self._process is not None
        children: list[str] = []
        if how == signal.SIGKILL:  # its connections' processes, too
            children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        for each in [self._process.pid, *map(int, children)]:
            with suppress(ProcessLookupError):
                os.kill(each, how)
        self._process.wait(20)
        self._process = None


@contextmanager
def postgres_server(settings: dict[str, str] | None = None) -> Iterator[PostgresServer]:
    """Runs a new server with an empty database until the context ends. Raises FileNotFoundError without PostgreSQL."""
    initdb, postgres = postgres_program("initdb"), postgres_program("postgres")
    if initdb is None or postgres is None:
        raise FileNotFoundError("there is no PostgreSQL: apt-get install postgresql")
    # Not pytest's folder, which only its owner may access.
    with tempfile.TemporaryDirectory(prefix="postgres-", ignore_cleanup_errors=True) as folder:
        server = PostgresServer(Path(folder), initdb, postgres, QUICK | (settings or {}))
        try:
            server.start()
            yield server
        finally:
            server.stop()
