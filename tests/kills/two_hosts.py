"""A standalone cluster of two hosts, which are two addresses of the loopback device.

Spark starts a task's speculative twin on another host only, and a ``local-cluster`` has but one.
"""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.ports import free_port
from testbed.spark_classes import QUICK

HOSTS = ("127.0.0.1", "127.0.0.2")
DEADLINE = 90.0


@contextmanager
def two_hosts(folder: Path, env: dict[str, str]) -> Iterator[str]:
    """The master's address while a worker runs on each host, with one core. ``env``: of all of these processes."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port(HOSTS[0])
    address = f"spark://{HOSTS[0]}:{port}"
    started = []
    try:
        started.append(start("master", ["--host", HOSTS[0], "--port", str(port)], folder, env))
        for host in HOSTS:
            size = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work-{host}")]
            started.append(start("worker", ["--host", host, *size, address], folder, env))
        wait_for(lambda: (folder / "master.log").read_text().count("Registering worker") == len(HOSTS), folder)
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(DEADLINE)


def start(what: str, arguments: list[str], folder: Path, env: dict[str, str]) -> subprocess.Popen:
    command = Path(env["SPARK_HOME"]) / "bin" / "spark-class"
    name = f"org.apache.spark.deploy.{what}.{what.capitalize()}"
    (folder / "conf").mkdir(exist_ok=True)
    (folder / "conf" / "log4j2.properties").write_text(LOGS)
    with (folder / f"{what}.log").open("ab") as log:
        return subprocess.Popen(
            [str(command), name, "--webui-port", "0", *arguments],
            env={**os.environ, **env, "SPARK_CONF_DIR": str(folder / "conf"), "SPARK_DAEMON_JAVA_OPTS": QUICK},
            stdout=log,
            stderr=log,
        )


LOGS = """
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n
"""


def wait_for(is_so, folder: Path) -> None:
    end = time.monotonic() + DEADLINE
    while not is_so():
        if time.monotonic() > end:
            logs = "\n".join(path.read_text()[-1000:] for path in folder.glob("*.log"))
            raise TimeoutError(f"the cluster of two hosts has not come up: {logs}")
        time.sleep(0.1)
