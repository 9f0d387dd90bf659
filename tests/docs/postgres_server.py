"""A PostgreSQL of a test's own: on a free port of the loopback interface, in a temporary folder."""

import glob
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from testbed.kafka_broker import free_port

STARTING_SECONDS = 30
QUICK = {"fsync": "off", "unix_socket_directories": "", "listen_addresses": "127.0.0.1", "shared_buffers": "16MB"}


def postgres_binary(name: str) -> str:
    """The path of a program of PostgreSQL. Without one the test fails where CI=true, else it is skipped.

    Debian puts these programs into a folder that is not on PATH.
    """
    found = shutil.which(name, path=os.pathsep.join([os.environ["PATH"], *glob.glob("/usr/lib/postgresql/*/bin")]))
    if found is None:
        remedy = f"there is no {name}: apt-get install postgresql (.ci/run does it)"
        if os.environ.get("CI") == "true":
            pytest.fail(remedy)
        pytest.skip(remedy)
    return found


@contextmanager
def postgres_server() -> Iterator[str]:
    """Where a new, empty database is: a connection string. The server ends with the context."""
    initdb, postgres = postgres_binary("initdb"), postgres_binary("postgres")
    # Not pytest's folder, which only its owner may enter: PostgreSQL refuses to be run by root.
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        user = ()
        if os.getuid() == 0:
            account = pwd.getpwnam("postgres")
            os.chown(folder, account.pw_uid, account.pw_gid)
            user = ("setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups")
        data, port = Path(folder) / "data", free_port()
        made = [*user, initdb, "-D", str(data), "-U", "reader", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run([*made, "--locale=C"], check=True, capture_output=True, cwd=folder, timeout=60)
        settings = [part for key, value in QUICK.items() for part in ("-c", f"{key}={value}")]
        command = [*user, postgres, "-D", str(data), "-p", str(port), *settings]
        with open(Path(folder) / "log", "wb") as log:
            process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            place = f"host=127.0.0.1 port={port} user=reader dbname=postgres"
            _wait(place, process, Path(folder) / "log")
            yield place
        finally:
            process.terminate()
            process.wait(20)


def _wait(place: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + STARTING_SECONDS
    while True:
        try:
            return psycopg.connect(place, connect_timeout=5).close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > end:
                pytest.fail(f"PostgreSQL does not start; its log: {log.read_text()[-2000:]}")
            time.sleep(0.05)
