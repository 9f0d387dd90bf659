"""Ports of servers that tests and benchmarks start, kill and start again."""

import random
import socket

OURS = range(15_000, 32_000)
"""Below the ports that Linux gives to the near end of a connection and to port 0 (from 32,768 on). A server that is
down for a while could lose such a port: a client that tries to reach it may get that very port and connect to itself,
and any other process may get it, too."""


def free_port(host: str = "127.0.0.1") -> int:
    """Returns a port of ``host`` that no process listens on now, or gets by chance."""
    while True:
        port = random.SystemRandom().choice(OURS)  # the system's: tests fix the seed of Python's own
        with socket.socket() as probe:
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return port
