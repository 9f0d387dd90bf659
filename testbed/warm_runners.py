"""Forks the processes that ask a source for offsets, and commit a sink, from one that has imported what they need.

Spark starts each of them, and each imports pyspark, pyarrow and pystorm source for half a second of a core,
several hundred times in a test session. ``warm_daemons/sitecustomize.py`` runs in each of them first: it hands its
streams, its environment and its work to the process here, and only waits for the end. The JVM sees no difference: it
can kill the process that it has started.

    python -m testbed.warm_runners SOCKET       # until standard input ends; writes a line when it listens
"""

import array
import contextlib
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from testbed.warm_daemons.sitecustomize import PACKAGES, RUNNERS, SOCKET

ROOT = Path(__file__).resolve().parents[1]
MOST_BYTES = 1 << 20
"""Of a request: an environment and a command line."""


@contextlib.contextmanager
def warm_runners(folder: Path, environment: dict[str, str]) -> Iterator[dict[str, str]]:
    """While the block runs, JVMs that are started with the variables of this block fork these processes. Not with Spark
    4.0: there, a runner is sometimes left when its query ends.

    Args:
        folder: where the socket lies; its path must be short, as sockets' are.
        environment: that of the JVM.
    """
    if version("pyspark").startswith("4.0."):
        yield {}
        return
    path = str(folder / "runners")
    server = subprocess.Popen(
        [sys.executable, "-u", "-m", "testbed.warm_runners", path],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdin and server.stdout
    try:
        # Else nothing listens there, and each process imports for itself.
        yield {SOCKET: path} if server.stdout.readline() else {}
    finally:
        server.stdin.close()
        server.wait(20)
        server.stdout.close()


def serve(path: str) -> None:
    """Forks a process for each request until standard input ends. Returns in each forked process, which is set up like
    the one that asked."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(path)
        listening.listen(64)
        print("listening", flush=True)
        while True:
            ready, _, _ = select.select([listening, sys.stdin], [], [])
            if sys.stdin in ready:
                os._exit(0)
            connection, _ = listening.accept()
            if os.fork() == 0:
                break
            connection.close()
    become(connection)


def become(connection: socket.socket) -> None:
    """Takes over the streams, the environment and the command line of the process that asks, and ends with it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as what a JVM of pyspark starts
    streams = array.array("i")
    text = b""
    while not text.endswith(b"\n"):
        data, given, _, _ = connection.recvmsg(MOST_BYTES, socket.CMSG_LEN(3 * streams.itemsize))
        if not data:
            os._exit(1)
        text += data
        for _, _, descriptors in given:
            streams.frombytes(descriptors)
    for stream, number in enumerate(streams):
        os.dup2(number, stream)
        os.close(number)
    asked = json.loads(text)
    os.environ.clear()
    os.environ.update(asked["environment"])
    time.tzset()
    os.chdir(asked["folder"])
    sys.path[:] = asked["path"]
    sys.argv[:] = sys.orig_argv[:] = asked["command"]
    jvm = asked["parent"]
    os.getppid = lambda: jvm  # what is private to a JVM and its processes bears its number
    threading.Thread(target=end_with, args=(connection,), daemon=True).start()


def end_with(connection: socket.socket) -> None:
    """Passes on the signal by which the JVM has ended the process that asked."""
    connection.recv(1)
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGTERM)  # which it interrupts while that waits for the JVM


def main() -> None:
    import gc
    import runpy

    for package in (*PACKAGES, *RUNNERS):
        with contextlib.suppress(ImportError):
            importlib.import_module(package)
    gc.freeze()
    serve(sys.argv[1])
    module = sys.orig_argv[sys.orig_argv.index("-m") + 1]
    del sys.modules[module]  # it is run, not imported
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
