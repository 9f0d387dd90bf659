"""Ports of servers that tests and benchmarks start, kill and start again."""

import random
import socket

OURS = range(15_000, 32_000)
"""Below the ports that Linux gives to the near end of a connection (from 32,768 on) and hands out for port 0. One of
those is lost to a server that is down for a while: a client that tries to reach it is given that very port now and then
and is connected to itself, and any other process may get it."""


def free_port(host: str = "127.0.0.1") -> int:
    """A port of ``host`` that no process listens on now, and that none gets by chance."""
    while True:
        port = random.SystemRandom().choice(OURS)  # of the system: tests fix the seed of Python's own
        with socket.socket() as probe:
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return port
