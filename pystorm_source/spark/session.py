"""A local Spark session for the command line; jobs and notebooks bring their own."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

ATTEMPTS = 4
"""As on a cluster; a local master gives up with the first failed task otherwise."""


def local_session(name: str, log: Path, cores: str = "*") -> SparkSession:
    """A session on this machine with Spark's UI and as many shuffle partitions as a laptop needs.

    All that its Java and Python processes print goes to the file ``log``. Python workers that crash print their stack
    (``spark.python.worker.faulthandler.enabled``). A task that fails is tried again, as on a cluster.
    """
    with stderr_to(log):  # the JVM inherits it, and keeps it
        return (
            SparkSession.builder.appName(name)
            .master(f"local[{cores},{ATTEMPTS}]")
            .config("spark.log.level", "WARN")
            .config("spark.ui.enabled", "true")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.streaming.numRecentProgressUpdates", "10000")
            .config("spark.python.worker.faulthandler.enabled", "true")
            .getOrCreate()
        )


@contextmanager
def stderr_to(path: Path) -> Iterator[None]:
    """Appends to the file what this process, and processes that it starts in the block, write to stderr."""
    sys.stderr.flush()
    kept = os.dup(2)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(file, 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
        os.close(file)
