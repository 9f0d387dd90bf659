"""Python runs this at its start if the folder is on PYTHONPATH, to warm up Spark's Python processes in a test session.

Spark forks a process from a daemon to create a source, to plan a read, to run a task, to write a sink. Each process
would import the packages below again: 0.4 s of a core, several hundred times. Here the daemon imports them before it
forks. The processes that Spark does not fork, for offsets of a source and for commits of a sink, are forked by
``testbed/warm_runners.py``. In users' jobs each process imports them itself, and so do, here, all jobs that a test
starts by itself.
"""

import contextlib
import importlib
import json
import os
import sys

PACKAGES = (
    *("asyncio", "concurrent.futures.thread", "msgspec", "numpy", "pyarrow", "pyarrow.compute", "ssl", "yaml"),
    *("pyspark.worker", "pyspark.sql.worker.create_data_source", "pyspark.sql.worker.plan_data_source_read"),
    "pystorm_source.source.data_source",
)
RUNNERS = (
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.worker.python_streaming_sink_runner",
)
SOCKET = "PYSTORM_WARM_RUNNERS"
"""The environment's name for the socket of the process that forks them."""


def hand_over(path: str) -> None:
    """Has another process do the work of this one, and waits for its end. Returns if none listens."""
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(path)
        except OSError:
            return
        asked = {
            "command": sys.orig_argv,
            "environment": dict(os.environ),
            "folder": os.getcwd(),
            "parent": os.getppid(),
            "path": [os.getcwd(), *sys.path[1:]] if sys.path[:1] == [""] else sys.path,
        }
        text = json.dumps(asked).encode() + b"\n"
        sent = socket.send_fds(connection, [text], [0, 1, 2])
        connection.sendall(text[sent:])
        connection.recv(1)  # it writes nothing
    os._exit(0)


if "pyspark.daemon" in sys.orig_argv:
    for package in PACKAGES:
        with contextlib.suppress(ImportError):
            importlib.import_module(package)
elif SOCKET in os.environ and not set(RUNNERS).isdisjoint(sys.orig_argv):
    hand_over(os.environ[SOCKET])
