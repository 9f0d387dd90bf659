"""Reports for the tests of the way back, and clients that talk to a server by hand."""

import socket
import time

from pystorm_source.channel.reports.protocol import GREETING_BYTES, frame, nonce_of
from pystorm_source.channel.reports.task_report import Latency, RangeReport, encode
from pystorm_source.worker.component_columns import ComponentColumns

TOKEN = b"a token of thirty-two characters"
DEADLINE = 60.0


def report(**changes):
    """A RangeReport of partition ``a``, [0, 100)."""
    told = dict(
        v=1,
        batch="run-0",
        spout="lines",
        partition="a",
        start=0,
        end=100,
        attempt=0,
        offsets=100,
        rows=100,
        seconds=0.5,
        stalls={"downstream_full": 0.1},
        acked=100,
        failed=0,
        latency=Latency(p50=1e-6, p95=2e-6, p99=3e-6),
        components=ComponentColumns(queue_high_mark=(3,)),
    )
    return RangeReport(**{**told, **changes})


def body(**changes):
    return encode(report(**changes))


class Caller:
    """A connection to a server that knows, or does not know, its token."""

    def __init__(self, address, token=TOKEN):
        self.socket = socket.create_connection(address, timeout=DEADLINE)
        self.token = token
        self.nonce = nonce_of(self._exactly(GREETING_BYTES))
        self.sequence = 0

    def send(self, data):
        """One frame."""
        self.write(frame(self.token, self.nonce, self.sequence, data))
        self.sequence += 1

    def write(self, data):
        self.socket.sendall(data)

    def is_closed(self):
        """Waits until the server has closed the connection."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def close(self):
        self.socket.close()

    def _exactly(self, size):
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise ConnectionResetError("closed")
            data += more
        return data


def wait_until(is_so, what="it"):
    """Returns once ``is_so()`` is true, its value; fails after some time."""
    end = time.monotonic() + DEADLINE
    while not (value := is_so()):
        assert time.monotonic() < end, f"{what} has not come about"
        time.sleep(0.002)
    return value
