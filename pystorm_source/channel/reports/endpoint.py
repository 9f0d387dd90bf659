"""The address where the runner listens for reports and where tasks find it."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

LOOPBACK = "127.0.0.1"
DRIVER_HOST = "spark.driver.host"
_WILDCARDS = ("0.0.0.0", "::")


class Runner(NamedTuple):
    """The receiver of reports."""

    host: str
    port: int
    token: bytes

    def __repr__(self) -> str:
        return f"Runner(host={self.host!r}, port={self.port!r})"


@dataclass(frozen=True)
class ReportEndpoint:
    """A task's access to the runner: its address, and the secret that permits it.

    ``host``: empty if tasks find the driver as Spark does. The token is in no repr, and in no comparison.
    """

    host: str
    port: int
    token: bytes = field(repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:  # short, because every partition of a micro-batch carries one
        return ReportEndpoint, (self.host, self.port, self.token)

    def runner_of(self, task: Any) -> Runner | None:
        """As ``runner``, for a task's context; None without one."""
        return self.runner(task.getLocalProperty(DRIVER_HOST) if task is not None else None)

    def runner(self, driver_host: str | None) -> Runner | None:
        """The runner's address for a task; ``driver_host``: Spark's name of the driver. None if it is unknown."""
        host = (self.host or driver_host or "").strip("[]")
        return Runner(host, self.port, self.token) if host else None


@dataclass(frozen=True)
class ListenAddress:
    """``bind``: the address to listen at, empty for all. ``advertised``: the host that tasks connect to, empty for
    Spark's."""

    bind: str
    advertised: str

    @classmethod
    def of(cls, host: str, driver_command: Sequence[str]) -> "ListenAddress":
        """``host``: option feedback.host, empty if it is not given. ``driver_command``: of the driver's JVM.

        Without the option: loopback if all tasks run on this machine, all addresses if they may not.
        """
        if host in _WILDCARDS:
            return cls(host, "")
        if host:
            return cls(host, host)
        masters = masters_of(driver_command)
        if masters and all(master.startswith("local") for master in masters):
            return cls(LOOPBACK, LOOPBACK)
        return cls("", "")


def masters_of(command: Sequence[str]) -> list[str]:
    """Every master that a command line of Spark names: ``--master M``, ``--conf spark.master=M``, ``-Dspark.master=M``.

    Empty if the session was given its master later, or by a file."""
    masters = [after for before, after in pairwise(command) if before == "--master"]
    masters += [word.removeprefix("--master=") for word in command if word.startswith("--master=")]
    return masters + _settings(command, "spark.master")


def speculation_of(command: Sequence[str]) -> str:
    """The last value of ``spark.speculation`` in a command line of Spark; empty if it is not set."""
    return ["", *_settings(command, "spark.speculation")][-1]


def _settings(command: Sequence[str], key: str) -> list[str]:
    """Every value that a command line of Spark gives a key."""
    prefixes = (f"{key}=", f"-D{key}=", f"--conf={key}=")
    return [word.removeprefix(prefix) for word in command for prefix in prefixes if word.startswith(prefix)]


def in_runner() -> bool:
    """Whether this is the process on the driver that plans a streaming query for Spark."""
    return any("python_streaming_source_runner" in argument for argument in sys.orig_argv)


def parents_command() -> list[str]:
    """The command line of the parent process (for the runner the driver's JVM); empty if it is not available."""
    parent = os.getppid()
    try:
        return Path(f"/proc/{parent}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        pass
    try:  # macOS
        asked = subprocess.run(["ps", "-ww", "-o", "args=", "-p", str(parent)], capture_output=True, timeout=5)
        return asked.stdout.decode(errors="replace").split()
    except (OSError, subprocess.SubprocessError):
        return []
